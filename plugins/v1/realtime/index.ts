import { core, definePlugin, defineRoute, defineWebSocket, svcError } from 'svc-gateway/plugin'
import { realtimeError } from './errors.js'
import { refusedRoutes } from './refused.js'
import { querySchema, secretBodySchema, secretSchema } from './schemas.js'
import { Secrets } from './secrets.js'

/** Each may hold some 25 MB of sound that was not listened to yet. */
const MOST_SESSIONS = 16
/** More than a minute of sound. */
const LARGEST_MESSAGE = 4 * 1024 * 1024
/** A slow reader is waited for long before it has this much unread. */
const MOST_UNSENT = 4 * 1024 * 1024
const USUAL_SECONDS = 600

/** Speech in and out, over a WebSocket, by a slot that hears, one that answers and one that speaks. */
export default definePlugin({
  name: 'v1-realtime',
  kind: 'routes',
  apiVersion: 1,
  errors: realtimeError,
  requires: { clock: core.clock, dispatch: core.dispatch, providers: core.providers, slots: core.slots },
  register (ctx) {
    const { services, log } = ctx
    const secrets = new Secrets(services.clock)
    ctx.addRoute(defineWebSocket({
      url: '/v1/realtime',
      tag: 'Audio',
      summary: 'Speech in and out: the Realtime API over a WebSocket',
      description: 'Events of OpenAI\'s Realtime API, as text messages in both directions; with the header `OpenAI-Beta: realtime=v1`, as its beta named them. A slot of type transcription listens, `model` answers, and a slot of type tts speaks, sentence by sentence.',
      schema: { querystring: querySchema },
      maxMessageBytes: LARGEST_MESSAGE,
      maxUnsentBytes: MOST_UNSENT,
      maxSockets: MOST_SESSIONS,
      handler: async ({ query, requestId, request: { headers } }) => {
        const session = secrets.sessionFor(headers)
        const isTranscription = query.intent === 'transcription' || session?.type === 'transcription'
        const model = query.model?.trim() ?? ''
        if (!isTranscription && model === '' && session?.model === undefined) {
          throw svcError('request.missing_model', 'the query names no model: open /v1/realtime?model=<slot or model>', { param: 'model' })
        }
        const isBeta = /\brealtime=v1\b/.test(String(headers['openai-beta'] ?? ''))
        // with the first session: most gateways have none
        const { serveSession } = await import('./serve.js')
        const opening = { model, type: isTranscription ? 'transcription' as const : 'realtime' as const, session, isBeta, requestId, origin: headers, log }
        return socket => serveSession(socket, services, opening)
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/realtime/client_secrets',
      tag: 'Audio',
      summary: 'A key with which a browser opens a session configured here',
      description: 'Until it expires, the key opens the session that this request configures. It grants no other access: the gateway requires no keys.',
      schema: { body: secretBodySchema, response: secretSchema },
      example: { session: { type: 'realtime', model: 'agent', instructions: 'Be brief.' } },
      handler: async ({ body: { session = { type: 'realtime' }, expires_after: { seconds = USUAL_SECONDS } = {} }, requestId, signal, request: { headers } }) => {
        const { secretSession } = await import('./opening.js')
        const expiresAt = Math.floor(services.clock.now() / 1000) + seconds
        const told = await secretSession(session, services, { requestId, origin: headers }, { expiresAt, signal })
        return { value: secrets.make(session, seconds), expires_at: expiresAt, session: told }
      }
    }))
    for (const route of refusedRoutes()) ctx.addRoute(route)
  }
})
