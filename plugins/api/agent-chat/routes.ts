import { defineRoute, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { agentError, type AgentLifecycle } from '../../services/agents/ref.js'
import type { Chats } from './chats.js'
import type { SessionCookies } from './cookie.js'
import {
  agentParamsSchema, handshakeSchema, historyQuerySchema, historySchema, resumeBodySchema, sessionSchema
} from './schemas.js'

export interface ChatDeps {
  readonly chats: Chats
  readonly cookies: SessionCookies
  readonly lifecycle: Pick<AgentLifecycle, 'status'>
}

const tag = 'Agents'

export function chatRoutes ({ chats, cookies, lifecycle }: ChatDeps): AnyRoute[] {
  const asked = async <S extends z.ZodType>(
    { params: { agent }, request }: RouteCall<{ agent: string }>, method: string, params: object, shape: S
  ): Promise<z.output<S>> => {
    // whether it is there at all is told without a cookie
    lifecycle.status(agent)
    const browser = await cookies.read(agent, request.headers.cookie)
    if (browser === null) {
      throw agentError('agent.session_required', `a chat needs the cookie of GET /api/agents/${agent}/session/handshake`, { details: { agent } })
    }
    const answer = shape.safeParse(await chats.with(agent, browser, link => link.call(method, params)))
    if (answer.success) return answer.data
    throw agentError('agent.bad_response', `${agent} answered ${method} in an unexpected form`, { details: { agent } })
  }
  return [
    defineRoute({
      method: 'GET',
      url: '/api/agents/:agent/session/handshake',
      tag,
      summary: 'Start a chat with an agent: sets the cookie that identifies the browser',
      description: 'The cookie is signed, valid for a day, and not sent from pages of other sites.',
      schema: { params: agentParamsSchema, response: handshakeSchema },
      handler: async ({ params: { agent }, request, reply }) => {
        lifecycle.status(agent)
        if (await cookies.read(agent, request.headers.cookie) === null) void reply.header('set-cookie', await cookies.issue(agent))
        return { agent_id: agent, ok: true as const }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:agent/session/create',
      tag,
      summary: 'Start a session of an agent',
      description: 'Its events arrive on the socket `/api/agents/{agent}/events` of the same browser.',
      schema: { params: agentParamsSchema, response: sessionSchema },
      handler: call => asked(call, 'session.create', {}, sessionSchema)
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:agent/session/resume',
      tag,
      summary: 'Resume a session of an agent',
      schema: { params: agentParamsSchema, body: resumeBodySchema, response: sessionSchema },
      example: { session_id: '20261123_203326_3b478c' },
      handler: call => asked(call, 'session.resume', { session_id: call.body.session_id }, sessionSchema)
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:agent/session/history',
      tag,
      summary: 'Messages of a session of an agent',
      schema: { params: agentParamsSchema, querystring: historyQuerySchema, response: historySchema },
      handler: call => asked(call, 'session.history', { session_id: call.query.session_id }, historySchema)
    })
  ]
}
