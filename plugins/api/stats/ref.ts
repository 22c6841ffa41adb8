import { createServiceRef } from 'svc-gateway/plugin'
import { z } from 'zod'

const mib = z.int().nullable().meta({ description: 'MiB; null if the host does not report it' })

/** A virtualization host that is configured and did not answer, or not as one would. */
export const hostFailedSchema = z.strictObject({
  configured: z.literal(true),
  ok: z.literal(false),
  error: z.string().meta({ description: 'Problem, and how to fix it' })
})

/** A virtualization host that answered. */
export const slimHostSchema = z.strictObject({
  configured: z.literal(true),
  ok: z.literal(true),
  node: z.string(),
  host_mem_total_mb: z.int().meta({ description: 'MiB' }),
  host_mem_used_mb: mib,
  host_mem_free_mb: mib,
  host_cpu_pct: z.number().nullable().meta({ description: '0 to 100, of all processors' }),
  tenants_running: z.int(),
  tenants_total: z.int().meta({ description: 'Containers and virtual machines that the token may see, without templates' })
})

export type SlimHost = z.output<typeof slimHostSchema> | z.output<typeof hostFailedSchema>

/** Where the machine's virtualization host comes into `/api/stats/hardware`. */
export interface HostDisplay {
  /**
   * `source` is asked at every answer and must be quick: it tells what is known and asks no host. It resolves to null while no
   * host is configured. Null takes the source away.
   */
  show (source: (() => Promise<SlimHost | null>) | null): void
}

export const hostDisplayRef = createServiceRef<HostDisplay>('stats.host-display')
