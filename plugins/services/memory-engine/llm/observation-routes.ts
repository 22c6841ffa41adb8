import { clearMemories } from '../memories/clear.js'
import { operationsOf } from '../operations/operations.js'
import { needBank } from '../store/bank-table.js'
import { deleteDerived, findMemory } from '../store/memory-table.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { anything, int, listOf, object, maybe, optional, readBody, readOptionalBody, readQuery, required, text } from '../wire/shape.js'
import { UUID } from '../wire/uuid.js'
import { requireChat } from './ask.js'
import { submitConsolidation } from './consolidation-schedule.js'
import { undoChanges, undoProblem } from './observation-changes.js'
import { asking, unsupported } from './refusal.js'

const consolidate = asking(async ({ core, params, body, headers, ignored }) => {
  const given = readOptionalBody(body, headers, ignored, object({ observation_scopes: maybe(listOf(listOf(text))) }))
  const { bank_id: bankId } = needBank(core.store, params.bank_id!)
  requireChat(core, 'the consolidation')
  const { operation, isKnown } = submitConsolidation(core, bankId, given?.observation_scopes ?? null)
  return json({ operation_id: operation.id, deduplicated: isKnown })
})

/** Facts that a consolidation failed on are open again. */
const recover: Handler = ({ core, params }) => {
  const bank = needBank(core.store, params.bank_id!)
  const retried = core.store.transaction(() => {
    const { changes } = core.store.run('UPDATE memories SET consolidation_failed_at = NULL WHERE bank = ? AND consolidation_failed_at IS NOT NULL', [bank.seq])
    if (changes > 0 && core.outside.abilities.chat.model !== null) submitConsolidation(core, bank.bank_id)
    return changes
  })
  return json({ retried_count: retried })
}

const undo: Handler = ({ core, params }) => {
  const id = params.operation_id!.toLowerCase()
  const operation = operationsOf(core).table.get(id, needBank(core.store, params.bank_id!).bank_id)
  if (operation === null) throw new WireError(404, `Operation ${id} not found for bank ${params.bank_id!}`)
  if (operation.type !== 'consolidation') throw new WireError(409, `Operation ${id} cannot be undone: only consolidations can`)
  const problem = undoProblem(core, id)
  if (problem !== null) throw new WireError(409, `Operation ${id} cannot be undone: ${problem}`)
  undoChanges(core, id)
  return json({ success: true, message: `Operation ${id} undone`, operation_id: id })
}

const clear: Handler = async ({ core, params }) => {
  const bank = needBank(core.store, params.bank_id!)
  const count = await clearMemories(core, bank, { type: 'observation', reopens: true })
  return json({ success: true, message: `Cleared ${count} observations`, deleted_count: count })
}

const clearOfMemory: Handler = ({ core, params }) => {
  const bank = needBank(core.store, params.bank_id!)
  const id = params.memory_id!
  if (!UUID.test(id)) throw new WireError(400, `Invalid memory_id: '${id.slice(0, 100)}' is not a valid UUID`)
  const memory = findMemory(core.store, bank.seq, id)
  // none is derived of what is not there
  if (memory === undefined) return json({ deleted_count: 0 })
  return json({
    deleted_count: core.store.transaction(() => {
      core.store.run('UPDATE memories SET consolidated_at = NULL WHERE seq = ?', [memory.seq])
      return deleteDerived(core.store, memory.seq)
    })
  })
}

const scopes: Handler = ({ core, params, query, ignored }) => {
  const { limit, offset } = readQuery(query, ignored, {
    limit: optional(int({ min: 1, max: 1000 }), 100), offset: optional(int({ min: 0 }), 0)
  })
  const bank = needBank(core.store, params.bank_id!)
  const { total } = core.store.get<{ total: number }>('SELECT count(*) AS total FROM observation_scopes WHERE bank = ?', [bank.seq])!
  const rows = core.store.all<{ scope: string, count: number }>(
    'SELECT scope, count FROM observation_scopes WHERE bank = ? ORDER BY count DESC, scope LIMIT ? OFFSET ?', [bank.seq, limit, offset])
  return json({ scopes: rows.map(({ scope, count }) => ({ tags: JSON.parse(scope) as string[], count })), total, limit, offset })
}

const STRATEGIES = 'this engine consolidates the facts of the same tags together and has no strategies; set `enable_auto_consolidation` or POST …/consolidate with `observation_scopes`'

const strategies: Handler = ({ core, params, body, headers, ignored }) => {
  readBody(body, headers, ignored, object({
    strategies: required(listOf(anything)), sample_limit: optional(int({ min: 0, max: 100 }), 5)
  }))
  needBank(core.store, params.bank_id!)
  return unsupported(STRATEGIES)
}

export const routes: readonly WireRoute[] = [
  { method: 'POST', path: `${BANK}/consolidate`, handler: consolidate },
  { method: 'POST', path: `${BANK}/consolidation/recover`, handler: recover },
  { method: 'POST', path: `${BANK}/consolidation-strategies/preview`, handler: strategies },
  { method: 'POST', path: `${BANK}/operations/{operation_id}/undo`, handler: undo },
  { method: 'DELETE', path: `${BANK}/observations`, handler: clear },
  { method: 'GET', path: `${BANK}/observations/scopes`, handler: scopes },
  { method: 'DELETE', path: `${BANK}/memories/{memory_id}/observations`, handler: clearOfMemory }
]
