import { AGENT_NAME_PATTERN, defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { AgentPersonas } from '../../services/agent-personas/ref.js'
import { checkBankOf, identityOf, type MemoryService } from '../../services/memory/ref.js'
import { memoryStats, ownDataset } from './stats.js'

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
  reads: z.int().meta({ description: 'Recorded recalls from it' }),
  last_write: z.string().nullable().meta({ description: 'ISO 8601 UTC' }),
  available: z.boolean().meta({ description: 'Whether the memory answered; if not, the numbers are 0' }),
  reason: z.string().optional().meta({ description: 'Why it could not' })
}).meta({ title: 'AgentMemoryStats' })

export function memoryStatsRoute ({ memory, personas }: AgentMemoryServices): AnyRoute {
  return defineRoute({
    method: 'GET',
    url: '/api/agents/:agent/memory/stats',
    tag: 'Agents',
    summary: 'Statistics of the memories of an agent',
    description: 'If the memory is off or does not answer, the answer says so; it is not an error. With `X-svc-Agent`, only of that agent.',
    schema: { params: paramsSchema, response: statsSchema },
    handler: async ({ params: { agent }, request, signal }) => {
      personas.requireAgent(agent)
      checkBankOf(identityOf(request.headers).agent, ownDataset(agent).bank)
      return await memoryStats(memory, agent, signal)
    }
  })
}
