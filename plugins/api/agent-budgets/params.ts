import { AGENT_NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import { PERSONA_ID_PATTERN } from '../../services/agent-personas/ref.js'

export const personaParamsSchema = z.object({
  agent: z.string().meta({ description: 'Agent', pattern: AGENT_NAME_PATTERN.source, examples: ['hermes'] }),
  pid: z.string().meta({ description: 'Persona', pattern: PERSONA_ID_PATTERN.source, examples: ['coder'] })
})
