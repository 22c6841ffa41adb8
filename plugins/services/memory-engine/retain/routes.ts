import { BANK, json, WireError, type Handler, type WireCall, type WireRoute } from '../wire/answer.js'
import { ensureBank } from '../store/bank-table.js'
import { readRetain } from './request.js'
import { retain } from './retain.js'

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/memories`, handler: retainItems }]

const noTokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cached_tokens: 0, thoughts_tokens: 0 }

function retainItems ({ core, params, body, headers, ignored }: WireCall): ReturnType<Handler> {
  const request = readRetain(body, headers, ignored, core.now())
  const bank = ensureBank(core.store, params.bank_id!, core.now())
  const { async, items } = request
  const answer = { success: true, bank_id: bank.bank_id, items_count: items.length, async, operation_ids: null }
  if (!async) {
    retain(core, bank, items)
    return json({ ...answer, operation_id: null, usage: noTokens })
  }
  const { retainLater } = core.hooks
  if (retainLater === null) throw new WireError(501, 'this engine has no queue for an asynchronous retain; send it with async: false')
  return json({ ...answer, operation_id: retainLater({ bank, request, operationId: request.operationId }), usage: null })
}
