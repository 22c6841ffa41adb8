import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import { MentalModelTable } from '../models/mental-model-table.js'
import { isTooSoon } from '../models/schedule.js'
import { isStale } from '../models/staleness.js'
import { submitRefresh } from '../models/submit-refresh.js'
import { operationsOf } from '../operations/operations.js'
import type { Operation } from '../operations/operation.js'
import type { BankRow } from '../store/bank-table.js'
import { hasOpenFacts } from './open-facts.js'

/** Has the bank consolidated soon: one that waits already does for both. */
export function submitConsolidation (
  core: Core, bankId: string, scopes: ReadonlyArray<readonly string[]> | null = null
): { readonly operation: Operation, readonly isKnown: boolean } {
  const { table } = operationsOf(core)
  const waiting = scopes === null ? table.waiting(bankId, 'consolidation') : null
  if (waiting !== null) return { operation: waiting, isKnown: true }
  return { operation: operationsOf(core).submit({ bankId, type: 'consolidation', ...scopes !== null && { payload: { scopes } } }), isKnown: false }
}

/** Whether facts are consolidated without being asked for: where facts are extracted, and the bank wants it. */
export function consolidatesByItself (core: Core, bank: BankRow): boolean {
  const { enable_observations: observes, enable_auto_consolidation: isAuto } = configOf(bank)
  const { extracts, chat } = core.outside.abilities
  return extracts === true && chat.model !== null && observes === true && isAuto === true
}

/**
 * Lays down what follows a consolidation: the rest of the facts, and mental models that are to be made anew. Called in the
 * transaction that ends it.
 */
export function afterConsolidation (core: Core, bank: BankRow, { changed, mayGoOn }: {
  readonly changed: boolean
  readonly mayGoOn: boolean
}): void {
  // what waits for its extraction is consolidated when that ends
  if (mayGoOn && hasOpenFacts(core.store, bank)) submitConsolidation(core, bank.bank_id)
  if (!changed) return
  for (const model of new MentalModelTable(core).each(bank.seq)) {
    if (model.settings.refresh_after_consolidation !== true || isTooSoon(model, core.now())) continue
    if (!isStale(core, bank.seq, model)) continue
    if (operationsOf(core).table.waiting(bank.bank_id, 'refresh_mental_model', model.id) === null) submitRefresh(core, bank.bank_id, model)
  }
}
