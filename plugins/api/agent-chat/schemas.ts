import { AGENT_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'

export const agentParamsSchema = z.object({
  agent: z.string().meta({ description: 'Agent', pattern: AGENT_NAME_PATTERN.source, examples: ['hermes'] })
})

const sessionId = z.string().min(1).max(128)

export const handshakeSchema = z.strictObject({ agent_id: z.string(), ok: z.literal(true) })

export const resumeBodySchema = z.strictObject({
  session_id: sessionId.meta({ description: 'The `stored_session_id` of a session' })
})

export const sessionSchema = z.looseObject({
  session_id: z.string().meta({ description: 'Of the session as it runs' }),
  stored_session_id: z.string().optional().meta({ description: 'To resume it by' })
}).meta({ title: 'AgentSession', description: 'With what else the agent tells of it' })

export const historyQuerySchema = z.strictObject({
  session_id: sessionId.meta({ description: 'Of the session as it runs', examples: ['0123abcd'] })
})

export const historySchema = z.looseObject({
  count: z.int(),
  messages: z.array(z.unknown())
}).meta({ title: 'AgentHistory' })
