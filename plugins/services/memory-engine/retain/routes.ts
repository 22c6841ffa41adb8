import { ensureBank } from '../store/bank-table.js'
import { BANK, json, WireError, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { readRetain } from './request.js'
import { Slices } from './slices.js'
import { inTurn } from './turns.js'

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/memories`, handler: retainItems }]

const noTokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cached_tokens: 0, thoughts_tokens: 0 }

async function retainItems ({ core, params, body, headers, ignored, signal }: WireCall): Promise<WireAnswer> {
  const request = readRetain(body, headers, ignored, core.now())
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  const { async, items } = request
  const answer = { success: true, bank_id: bank.bank_id, items_count: items.length, async, operation_ids: null }
  if (!async) {
    const slices = new Slices(core, bank.bank_id, items, signal)
    await inTurn(core, bank.bank_id, () => slices.keep())
    const told = items.some(({ unlessKnown }) => unlessKnown === true) ? { known: slices.known } : {}
    return json({ ...answer, operation_id: null, usage: noTokens, ...told })
  }
  const { retainLater } = core.hooks
  if (retainLater === null) throw new WireError(501, 'this engine has no queue for an asynchronous retain; send it with async: false')
  return json({ ...answer, operation_id: retainLater({ bank, request, operationId: request.operationId }), usage: null })
}
