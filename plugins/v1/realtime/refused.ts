import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { realtimeError } from './errors.js'
import { callParamsSchema } from './schemas.js'

const WAY = 'open a WebSocket at /v1/realtime?model=<slot or model>'

/** Other ways into the API, for clients that would take a 404 for a wrong address. */
export function refusedRoutes (): readonly AnyRoute[] {
  const call = (): never => { throw realtimeError('realtime.no_calls', `WebRTC and SIP are not supported: ${WAY} instead`) }
  const session = (): never => {
    throw realtimeError('realtime.no_beta_sessions',
      `beta sessions are not created in advance: POST /v1/realtime/client_secrets creates a key for a browser, or ${WAY} with the header OpenAI-Beta: realtime=v1`)
  }
  const route = { method: 'POST', tag: 'Audio', bodyKind: 'buffer' } as const
  return [
    defineRoute({
      ...route, url: '/v1/realtime/calls', example: {}, summary: 'Not supported: calls over WebRTC', handler: call
    }),
    defineRoute({
      ...route, url: '/v1/realtime/calls/:call_id/:verb', schema: { params: callParamsSchema }, example: {},
      summary: 'Not supported: calls over WebRTC or SIP', handler: call
    }),
    defineRoute({ ...route, url: '/v1/realtime/sessions', example: {}, summary: 'Not supported: beta sessions', handler: session }),
    defineRoute({ ...route, url: '/v1/realtime/transcription_sessions', example: {}, summary: 'Not supported: beta sessions', handler: session })
  ]
}
