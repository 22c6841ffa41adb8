import type { Core } from '../core.js'
import { ensureBank, findBank } from '../store/bank-table.js'
import { BANK, bankNotFound, json, WireError, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { partsOf, PART_TOKENS } from './parts.js'
import { readRetain, type RetainItem } from './request.js'
import { retain } from './retain.js'

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/memories`, handler: retainItems }]

const noTokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cached_tokens: 0, thoughts_tokens: 0 }

/** Of what is kept in one go where a retain is kept in several: other requests are served between them. */
const SLICE_TOKENS = 2_500

async function retainItems ({ core, params, body, headers, ignored, signal }: WireCall): Promise<WireAnswer> {
  const request = readRetain(body, headers, ignored, core.now())
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  const { async, items } = request
  const answer = { success: true, bank_id: bank.bank_id, items_count: items.length, async, operation_ids: null }
  if (!async) {
    await inTurn(core, bank.bank_id, () => retainNow(core, bank.bank_id, items, signal))
    return json({ ...answer, operation_id: null, usage: noTokens })
  }
  const { retainLater } = core.hooks
  if (retainLater === null) throw new WireError(501, 'this engine has no queue for an asynchronous retain; send it with async: false')
  return json({ ...answer, operation_id: retainLater({ bank, request, operationId: request.operationId }), usage: null })
}

/** What a part of an asynchronous retain could hold is one transaction; more is kept slice by slice, until its client leaves. */
async function retainNow (core: Core, bankId: string, items: readonly RetainItem[], signal: AbortSignal): Promise<void> {
  const slices = partsOf(items, PART_TOKENS).length > 1 ? partsOf(items, SLICE_TOKENS) : [items]
  for (const [i, slice] of slices.entries()) {
    if (i > 0) await new Promise(resolve => setImmediate(resolve))
    signal.throwIfAborted()
    core.closing.throwIfAborted()
    // it may have been deleted meanwhile
    const bank = findBank(core.store, bankId)
    if (bank === undefined) throw bankNotFound(bankId)
    retain(core, bank, slice)
  }
}

const lastEnds = new WeakMap<Core, Map<string, Promise<void>>>()

/** After the retains of the bank that came before: another one between its slices would mix two texts of one document. */
async function inTurn (core: Core, bankId: string, work: () => Promise<void>): Promise<void> {
  const ends = lastEnds.get(core) ?? new Map<string, Promise<void>>()
  lastEnds.set(core, ends)
  const done = (ends.get(bankId) ?? Promise.resolve()).then(work)
  const end = done.catch(() => {})
  ends.set(bankId, end)
  try {
    await done
  } finally {
    if (ends.get(bankId) === end) ends.delete(bankId)
  }
}
