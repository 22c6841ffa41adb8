import { AGENT_NAME_PATTERN, defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { AgentPersonas } from '../../services/agent-personas/ref.js'
import type { MemoryService } from '../../services/memory/ref.js'
import { memoryStats } from './stats.js'

export interface AgentMemoryServices {
  readonly memory: Pick<MemoryService, 'engine'>
  readonly personas: Pick<AgentPersonas, 'requireAgent'>
}

const paramsSchema = z.object({
  agent: z.string().meta({ description: 'Agent', pattern: AGENT_NAME_PATTERN.source, examples: ['hermes'] })
})

const statsSchema = z.strictObject({
  agent_id: z.string(),
  namespace: z.string().meta({ description: 'Its own dataset of the memory' }),
  writes: z.int().meta({ description: 'Documents that the dataset holds' }),
  reads: z.int().meta({ description: 'Recalls from it that the engine has a record of' }),
  last_write: z.string().nullable().meta({ description: 'ISO 8601 UTC' }),
  available: z.boolean().meta({ description: 'Whether the memory could be asked; otherwise the numbers are 0' }),
  reason: z.string().optional().meta({ description: 'Why it could not' })
}).meta({ title: 'AgentMemoryStats' })

export function memoryStatsRoute ({ memory, personas }: AgentMemoryServices): AnyRoute {
  return defineRoute({
    method: 'GET',
    url: '/api/agents/:agent/memory/stats',
    tag: 'Agents',
    summary: 'What an agent has kept for itself in the memory, in numbers',
    description: 'A memory that is off or does not answer is told, and no failure.',
    schema: { params: paramsSchema, response: statsSchema },
    handler: async ({ params: { agent }, signal }) => {
      personas.requireAgent(agent)
      return await memoryStats(memory, agent, signal)
    }
  })
}
