import { WireError } from '../wire/answer.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The wire's periods: how far back, and in which steps. */
const periods: Readonly<Record<string, { readonly trunc: 'hour' | 'day', readonly ms: number }>> = {
  '1d': { trunc: 'hour', ms: DAY_MS }, '7d': { trunc: 'day', ms: 7 * DAY_MS }, '30d': { trunc: 'day', ms: 30 * DAY_MS }, '90d': { trunc: 'day', ms: 90 * DAY_MS }
}

export interface Period {
  readonly trunc: 'hour' | 'day'
  readonly start: number
  readonly stepMs: number
}

/** Throws the wire's 400. Pure but for that. */
export function periodOf (name: string, now: number): Period {
  const period = periods[name]
  if (period === undefined) throw new WireError(400, `Invalid period '${name.slice(0, 50)}'. Must be one of: ${Object.keys(periods).join(', ')}`)
  return { trunc: period.trunc, start: now - period.ms, stepMs: period.trunc === 'hour' ? HOUR_MS : DAY_MS }
}
