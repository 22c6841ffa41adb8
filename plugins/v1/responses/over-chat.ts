import type { Clock, DispatchService, Otherwise } from 'svc-gateway/plugin'
import { askChat, bodyObject, textOr } from '../over-chat/ref.js'
import { chatOverMessages } from '../over-messages/ref.js'
import { ResponseWriter } from './chat-answer.js'
import { chatRequest, type Standing } from './chat-request.js'

/** The Responses API for slots and upstreams that speak chat completions alone. */
export function responsesOverChat (dispatch: DispatchService, clock: Clock): (standing: Standing) => Otherwise {
  const otherwise = chatOverMessages(dispatch, clock)
  return standing => ({
    surface: 'chat',
    take (request) {
      const asked = bodyObject(request.body)
      const chat = chatRequest(asked, request.slot, standing)
      const { body, stream, warnings } = chat
      return {
        stream,
        answer: signal => askChat(dispatch, {
          request, body, stream, warnings, otherwise, signal,
          writer: () => new ResponseWriter(chat, { model: textOr(asked.model, ''), createdAt: Math.floor(clock.now() / 1000) })
        })
      }
    }
  })
}
