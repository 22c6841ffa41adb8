import type { EngineClient, EngineMetrics } from 'svc-gateway/plugin'
import { z } from 'zod'

const modelListSchema = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) })
const slotListSchema = z.array(z.looseObject({ is_processing: z.boolean() }))

/** Id of the model that the engine serves; null when it does not say. */
export async function loadedModel (client: EngineClient, signal: AbortSignal): Promise<string | null> {
  const response = await client.request({ path: '/v1/models', signal })
  const list = modelListSchema.safeParse(await response.json())
  return list.success ? list.data.data[0]?.id ?? null : null
}

/** From `/metrics`, or from `/slots` when a profile or the operator switched that off. */
export async function engineMetrics (client: EngineClient, signal: AbortSignal): Promise<EngineMetrics> {
  const metrics = await client.request({ path: '/metrics', signal })
  const text = await metrics.text()
  if (metrics.status === 200) return parseMetrics(text)
  const slots = slotListSchema.safeParse(await (await client.request({ path: '/slots', signal })).json())
  return slots.success ? { requestsProcessing: slots.data.filter(slot => slot.is_processing).length } : {}
}

/** Reads llama-server's Prometheus text. Gauges that a version does not have are left out. Pure. */
export function parseMetrics (text: string): EngineMetrics {
  const gauge = (name: string): number | undefined => {
    const value = Number(new RegExp(`^llamacpp:${name} (\\S+)$`, 'm').exec(text)?.[1] ?? NaN)
    return Number.isFinite(value) ? value : undefined
  }
  const requestsProcessing = gauge('requests_processing')
  const kvCacheUsage = gauge('kv_cache_usage_ratio')
  const tokensPerSecond = gauge('predicted_tokens_seconds')
  return {
    ...requestsProcessing === undefined ? {} : { requestsProcessing },
    ...kvCacheUsage === undefined ? {} : { kvCacheUsage },
    ...tokensPerSecond === undefined ? {} : { tokensPerSecond }
  }
}
