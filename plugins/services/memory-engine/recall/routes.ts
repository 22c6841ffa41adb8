import { needBank } from '../store/bank-table.js'
import { BANK, jsonBytes, type WireAnswer, type WireCall, type WireRoute } from '../wire/answer.js'
import { recallAnswer } from './answer.js'
import { recall } from './recall.js'
import { readRecall } from './request.js'

export const routes: readonly WireRoute[] = [{ method: 'POST', path: `${BANK}/memories/recall`, handler: answerRecall }]

async function answerRecall ({ core, params, body, headers, signal, ignored }: WireCall): Promise<WireAnswer> {
  const request = readRecall(body, headers, ignored, core.now())
  const bank = needBank(core.store, params.bank_id!)
  const recalled = await recall(core, bank, request, signal)
  const { steps } = recalled
  // beyond the wire: says when it ran on text alone
  const used = (['text', 'vectors', 'rerank'] as const).filter(step => steps[step] === null).join('+')
  return jsonBytes(recallAnswer(core, bank, request, recalled), 200, used === '' ? {} : { 'x-svc-recall': used })
}
