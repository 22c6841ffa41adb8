import type { Otherwise, SlotService } from 'svc-gateway/plugin'
import { countTokens, ESTIMATE_HEADER } from '../messages/ref.js'
import { bodyObject, warningHeader } from '../over-chat/ref.js'
import { chatRequest, NOT_KEPT } from './chat-request.js'

/** How many tokens the input of a response has, by the counter of `/v1/messages/count_tokens`. */
export function inputTokens (slots: Pick<SlotService, 'client'>): Otherwise {
  return {
    surface: 'chat',
    take (request) {
      const asked = bodyObject(request.body)
      const { body, warnings } = chatRequest({ ...asked, input: asked.input ?? [] }, request.slot, NOT_KEPT)
      return {
        stream: false,
        answer: async signal => {
          const { count, isEstimate } = await countTokens(slots, request.slot?.name ?? null, body, signal)
          const headers = { 'content-type': 'application/json', ...warningHeader(warnings), ...isEstimate ? { [ESTIMATE_HEADER]: 'input_tokens' } : {} }
          return { status: 200, headers, body: Buffer.from(JSON.stringify({ object: 'response.input_tokens', input_tokens: count })) }
        }
      }
    }
  }
}
