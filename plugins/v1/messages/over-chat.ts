import type { DispatchService, Otherwise } from 'svc-gateway/plugin'
import { askChat, bodyObject, textOr } from '../over-chat/ref.js'
import { WholeMessage } from './chat-answer.js'
import { MessageEvents } from './chat-events.js'
import { chatRequest } from './chat-request.js'

/** The Messages API for slots and upstreams that speak chat completions alone. */
export function messagesOverChat (dispatch: DispatchService): Otherwise {
  return {
    surface: 'chat',
    take (request) {
      const asked = bodyObject(request.body)
      const { body, stream, warnings } = chatRequest(asked, request.slot)
      const model = textOr(asked.model, '')
      return {
        stream,
        answer: signal => askChat(dispatch, {
          request, body, stream, warnings, signal, writer: () => stream ? new MessageEvents(model) : new WholeMessage(model)
        })
      }
    }
  }
}
