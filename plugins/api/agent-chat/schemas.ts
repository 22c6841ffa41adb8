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
  session_id: z.string().meta({ description: 'Id of the running session' }),
  stored_session_id: z.string().optional().meta({ description: 'Id to resume it with' })
}).meta({ title: 'AgentSession', description: 'With further fields from the agent' })

export const historyQuerySchema = z.strictObject({
  session_id: sessionId.meta({ description: 'Id of the running session', examples: ['0123abcd'] })
})

export const historySchema = z.looseObject({
  count: z.int(),
  messages: z.array(z.unknown())
}).meta({ title: 'AgentHistory' })
