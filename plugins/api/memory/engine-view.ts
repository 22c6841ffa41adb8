import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { MemoryService } from '../../services/memory/ref.js'
import { tag } from './bank-routes.js'
import { dialect } from './dialect.js'

export const engineViewSchema = z.strictObject({
  enabled: z.boolean(),
  engine: z.string().nullable().meta({ description: 'Null while the memory is off' }),
  reachable: z.boolean(),
  version: z.string().nullable().meta({ description: 'Version of its API; null if unknown' }),
  features: z.record(z.string(), z.boolean()),
  banks_total: z.int().nullable(),
  degraded: z.boolean().nullable(),
  detail: z.string().nullable().meta({ description: 'What is missing, and what to do; null if nothing' }),
  steps: z.record(z.string(), z.string().nullable()).meta({ description: 'Features that need a model: null if on, else why off' })
})

const OFF = 'svc memory enable switches it on'

/** `GET /api/memory/engine`: how the memory is, also while it is off. */
export function engineView (memory: MemoryService): AnyRoute {
  return defineRoute({
    method: 'GET',
    url: '/api/memory/engine',
    tag,
    dialect,
    summary: 'The memory engine and its state',
    schema: { response: engineViewSchema },
    handler: async () => {
      const status = await memory.status()
      const { enabled, engine } = memory.health
      return {
        enabled,
        engine,
        reachable: status?.reachable ?? false,
        version: status?.version ?? null,
        features: { ...status?.features },
        banks_total: status?.banks ?? null,
        degraded: status?.degraded ?? null,
        detail: status === null ? OFF : status.detail,
        steps: { ...status?.steps }
      }
    }
  })
}
