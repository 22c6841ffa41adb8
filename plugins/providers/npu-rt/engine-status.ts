import type { EngineClient, EngineMetrics, HealthAnswer, HealthVerdict } from 'svc-gateway/plugin'
import { z } from 'zod'

const modelListSchema = z.looseObject({ data: z.array(z.unknown()).min(1) })
const statusSchema = z.looseObject({ active_requests: z.int().min(0) })

/** It lists its models as soon as it serves, and before that says nothing at all. A completion would take the NPU. Pure. */
export function healthVerdict ({ status, json }: HealthAnswer): HealthVerdict {
  if (status === 200) return modelListSchema.safeParse(json).success ? 'ok' : 'loading'
  return status === 503 ? 'loading' : 'failed'
}

/** Older releases have no such route. */
export async function npuMetrics (client: EngineClient, signal: AbortSignal): Promise<EngineMetrics> {
  const response = await client.request({ path: '/api/npu/status', signal })
  const status = statusSchema.safeParse(await response.json().catch(() => null))
  return status.success ? { requestsProcessing: status.data.active_requests } : {}
}
