import { defineWebSocket, type AnyRoute, type ForwardOptions } from 'svc-gateway/plugin'
import type { AnsweringDeps } from '../answering.js'
import type { Standing } from '../chat-request.js'
import { MadeResponses } from './made-responses.js'
import type { Shared } from './serve.js'

/** Each may have as much unread as a message may have. */
const MOST_CONNECTIONS = 32
const LARGEST_MESSAGE = 16 * 1024 * 1024
/** Messages go out one after the other, so that no more than one waits; an engine's event may have so much. */
const MOST_UNSENT = 32 * 1024 * 1024

/** Responses over a WebSocket, one request after the other. @param options how a request that stands so goes out */
export function socketRoute (deps: AnsweringDeps, options: (standing: Standing) => ForwardOptions): AnyRoute {
  const shared: Shared = { made: new MadeResponses(), held: 0 }
  return defineWebSocket({
    url: '/v1/responses',
    alsoAt: ['/responses'],
    tag: 'Responses',
    summary: 'Responses over a WebSocket: requests one after the other, events as messages',
    description: 'Each `response.create` has the body of `POST /v1/responses` beside its `type`; the events of the stream are the messages that come back. Requests with the same `stream_id` are answered one after the other, others at the same time. `previous_response_id` may be any response that was made on the connection, with `store: false` too.',
    maxMessageBytes: LARGEST_MESSAGE,
    maxUnsentBytes: MOST_UNSENT,
    maxSockets: MOST_CONNECTIONS,
    handler: async ({ requestId, request: { headers } }) => {
      // with the first connection: most gateways have none
      const { serveConnection } = await import('./serve.js')
      return socket => serveConnection(socket, { ...deps, options, requestId, headers }, shared)
    }
  })
}
