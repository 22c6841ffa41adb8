import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { realtimeError } from './errors.js'
import { callParamsSchema } from './schemas.js'

const WAY = 'open a WebSocket at /v1/realtime?model=<slot or model>'

/** Other ways into the API, for clients that would take a 404 for a wrong address. */
export function refusedRoutes (): readonly AnyRoute[] {
  const call = (): never => { throw realtimeError('realtime.no_calls', `WebRTC and SIP are not spoken here: ${WAY} instead`) }
  const session = (): never => {
    throw realtimeError('realtime.no_beta_sessions',
      `sessions of the beta are not made beforehand: POST /v1/realtime/client_secrets makes a key for a browser, or ${WAY} with the header OpenAI-Beta: realtime=v1`)
  }
  const route = { method: 'POST', tag: 'Audio', bodyKind: 'buffer' } as const
  return [
    defineRoute({
      ...route, url: '/v1/realtime/calls', example: {}, summary: 'Refused: calls by WebRTC', handler: call
    }),
    defineRoute({
      ...route, url: '/v1/realtime/calls/:call_id/:verb', schema: { params: callParamsSchema }, example: {},
      summary: 'Refused: calls by WebRTC or SIP', handler: call
    }),
    defineRoute({ ...route, url: '/v1/realtime/sessions', example: {}, summary: 'Refused: sessions of the beta', handler: session }),
    defineRoute({ ...route, url: '/v1/realtime/transcription_sessions', example: {}, summary: 'Refused: sessions of the beta', handler: session })
  ]
}
