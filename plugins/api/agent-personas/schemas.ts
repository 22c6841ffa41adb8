import { activityOutcomes, AGENT_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import { approvalPolicies, PERSONA_ID_PATTERN, tones } from '../../services/agent-personas/ref.js'

export const agentParamsSchema = z.object({
  agent: z.string().meta({ description: 'Agent', pattern: AGENT_NAME_PATTERN.source, examples: ['hermes'] })
})
export const personaParamsSchema = agentParamsSchema.extend({
  pid: z.string().meta({ description: 'Persona', pattern: PERSONA_ID_PATTERN.source, examples: ['coder'] })
})

const shortShape = {
  id: z.string(),
  display_name: z.string(),
  summary: z.string(),
  active: z.boolean()
}

export const personaListSchema = z.strictObject({
  agent_id: z.string(),
  active: z.string().meta({ description: 'Id of the active persona' }),
  personas: z.array(z.strictObject(shortShape))
})

export const personaSchema = z.strictObject({
  ...shortShape,
  tone: z.enum(tones),
  system_prompt: z.string(),
  tools_allowed: z.array(z.string()),
  memory_namespace: z.string(),
  preferred_upstream: z.string(),
  preferred_model: z.string(),
  approval: z.strictObject({
    default_policy: z.enum(approvalPolicies),
    auto_approve: z.array(z.string()),
    require_approval: z.array(z.string())
  }),
  raw_toml: z.string().meta({ description: 'Its table in personas.toml; for an unchanged built-in one, what the table would be' })
}).meta({ title: 'Persona' })

export const activateBodySchema = z.strictObject({
  reload: z.boolean().default(true).meta({ description: 'Whether to reload a running agent' }),
  reload_url: z.string().min(1).max(2048).optional()
    .meta({ description: 'WebSocket address of the agent for JSON-RPC, on this machine, including its token', examples: ['ws://127.0.0.1:9119/api/ws?token=…'] })
})

export const activatedSchema = z.strictObject({
  agent_id: z.string(),
  active: z.string(),
  previous: z.string(),
  reloaded: z.boolean().meta({ description: 'Whether a running agent has reloaded' }),
  reload_error: z.string().nullable().meta({ description: 'Why not; null if it worked or no agent was to be reloaded. The persona is active either way' })
})

export const enumsSchema = z.strictObject({
  tones: z.array(z.enum(tones)),
  tools: z.array(z.string()).meta({ description: 'Tools of this gateway as `server/tool`' })
})

export const activityQuerySchema = z.strictObject({ limit: z.coerce.number().int().min(1).max(500).default(50) })
export const activitySchema = z.strictObject({
  agent: z.string(),
  events: z.array(z.strictObject({
    id: z.int().meta({ description: 'Id of the row of the audit trail' }),
    timestamp: z.string().meta({ description: 'ISO 8601 UTC' }),
    tool: z.string().meta({ description: '`server/tool`' }),
    args: z.unknown().meta({ description: 'Without secrets' }),
    gated: z.boolean().meta({ description: 'Whether calls of the tool currently wait for an operator' }),
    outcome: z.enum(activityOutcomes),
    client_id: z.string()
  })),
  count: z.int(),
  hint: z.string().optional()
})
