import { AGENT_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'

export const PERSONA_ID_PATTERN = /^[a-z0-9][a-z0-9-]{0,31}$/

export const approvalPolicies = ['ask', 'auto-approve', 'never'] as const
export const tones = ['neutral', 'concise', 'friendly', 'formal', 'playful'] as const

const patterns = (description: string) => z.array(z.string().max(128).regex(/^[\w.*/-]+$/, { error: 'must be the name of a tool; * matches anything' }))
  .max(200).meta({ description })

const line = (max: number) => z.string().max(max).regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, { error: 'must be one line' })

/** A persona as it is written; what is left out is the seed's, or empty. */
export const personaPatchSchema = z.strictObject({
  display_name: line(120).optional().meta({ description: 'Display name; default is its id' }),
  summary: line(400).optional(),
  tone: z.enum(tones).optional(),
  system_prompt: z.string().max(64 * 1024).optional().meta({ description: 'System prompt of the agent while it is active' }),
  tools_allowed: patterns('Tools that the persona wants; `*` for all that the file of the agent allows').optional(),
  memory_namespace: z.string().regex(/^(shared|agents|project:[A-Za-z0-9_-]{1,64}|private:[A-Za-z0-9_-]{1,64})$/, { error: 'must be shared, agents, project:<name> or private:<name>' })
    .optional().meta({ description: 'Where it remembers' }),
  preferred_upstream: line(64).optional().meta({ description: 'Defaults to this gateway' }),
  preferred_model: line(256).optional().meta({ description: 'Defaults to the model that the agent is configured with' }),
  approval: z.strictObject({
    default_policy: z.enum(approvalPolicies).optional(),
    auto_approve: patterns('Tools that the agent may call without asking').optional(),
    require_approval: patterns('Tools that the agent must ask about').optional()
  }).optional()
})
export type PersonaPatch = z.output<typeof personaPatchSchema>

const personaId = z.string().regex(PERSONA_ID_PATTERN, { error: 'must be a persona: lower case letters, digits and -' })
const agentName = z.string().regex(AGENT_NAME_PATTERN, { error: 'must be the name of an agent' })

/** personas.toml. */
export const personasFile = {
  file: 'personas.toml',
  schema: z.strictObject({
    active: z.record(agentName, personaId).default({}),
    agents: z.record(agentName, z.record(personaId, personaPatchSchema)).default({})
  })
}
export type PersonasFile = z.output<typeof personasFile.schema>
