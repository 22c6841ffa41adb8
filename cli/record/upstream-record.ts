import { z } from 'zod'
import type { Colour } from '../terminal/output.js'

/** The part of an upstream that commands show. */
export const upstreamSchema = z.looseObject({
  name: z.string(),
  kind: z.string().default('remote'),
  source: z.string().nullish(),
  url: z.string(),
  enabled: z.boolean(),
  auth_style: z.string(),
  auth_value_env: z.string().default(''),
  auth_configured: z.boolean().default(false),
  auth_key_present: z.boolean().default(false),
  timeout_seconds: z.number().nullish(),
  retries: z.number().default(0),
  fallback: z.array(z.string()).default([]),
  models: z.array(z.string()).default([]),
  refreshed_at: z.string().nullish(),
  error: z.string().nullish(),
  circuit: z.looseObject({ state: z.string(), failures: z.number(), retry_in_ms: z.number() })
})
export type UpstreamRecord = z.output<typeof upstreamSchema>

export const testSchema = z.looseObject({
  ok: z.boolean(),
  status: z.number().nullish(),
  latency_ms: z.number(),
  models_count: z.number().nullish(),
  error: z.string().nullish()
})

export interface UpstreamState { readonly word: string, readonly colour: Colour }

/** In one word: what matters most first. */
export function stateOf ({ enabled, kind, circuit, error, refreshed_at: refreshed }: UpstreamRecord): UpstreamState {
  if (!enabled) return { word: 'off', colour: 'dim' }
  if (kind === 'slot') return { word: 'slot', colour: 'dim' }
  if (circuit.state !== 'closed') return { word: 'cooling down', colour: 'red' }
  if (error != null) return { word: 'failing', colour: 'yellow' }
  return refreshed == null ? { word: 'not asked yet', colour: 'dim' } : { word: 'ok', colour: 'green' }
}

export function keyOf (record: UpstreamRecord): string {
  const { auth_style: style, auth_configured: configured, auth_value_env: env, auth_key_present: isSet } = record
  if (style === 'none') return 'none needed'
  if (!configured) return 'none'
  return isSet ? env : `${env} (not set)`
}

/** What is wrong with it, one sentence a line. */
export function problemsOf (record: UpstreamRecord): string[] {
  const { name, enabled, error, auth_configured: configured, auth_key_present: isSet, auth_value_env: env } = record
  if (!enabled) return []
  return [
    ...(configured && !isSet ? [`${name}: ${env} is not set; \`svc upstream key ${name}\` sets it`] : []),
    ...(error == null ? [] : [`${name}: ${error}`]),
    ...circuitProblem(record)
  ]
}

function circuitProblem ({ name, circuit: { state, failures, retry_in_ms: waitMs } }: UpstreamRecord): string[] {
  if (state === 'closed') return []
  const until = waitMs > 0 ? `for ${Math.ceil(waitMs / 1000)} s` : 'until the next request'
  return [`${name}: failed ${failures} times in a row and is not used ${until}; \`svc upstream test ${name}\` tests it now`]
}
