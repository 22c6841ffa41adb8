import { isSvcError, messageOf, within } from 'svc-gateway/plugin'
import { askEngine } from '../engine-call.js'
import type { EngineStatus, MemoryEngine } from '../engine.js'
import type { HindsightPlace } from './place.js'

/**
 * How a Hindsight server is. Its health needs no key, so that the key is tried on the list of banks. Never throws; takes
 * one `lookMs` at most.
 */
export async function lookAt (
  engine: MemoryEngine, { url, key, keyName }: HindsightPlace, lookMs: number
): Promise<EngineStatus> {
  return await within(null, lookMs, async signal => {
    const ask = (path: string, query = '') => askEngine(engine, { method: 'GET', path, query, signal })
    try {
      const [health, version, banks] = await Promise.all([ask('/health'), ask('/version'), ask('/v1/default/banks', 'limit=1')])
      const told = object(version.value)
      const features = Object.entries(object(told.features)).filter((entry): entry is [string, boolean] => typeof entry[1] === 'boolean')
      const { banks: list, total } = object(banks.value)
      const isRefused = banks.status === 401 || banks.status === 403
      const isOther = banks.status < 300 && !Array.isArray(list)
      const detail = isOther
        ? `what answers at ${url} is not a Hindsight server; check [memory] url`
        : problemOf(health.status, banks.status, { url, hasKey: key !== undefined && key !== '', keyName })
      return {
        reachable: health.status < 500 && !isRefused && !isOther,
        version: typeof told.api_version === 'string' ? told.api_version : null,
        features: Object.fromEntries(features),
        banks: typeof total === 'number' ? total : null,
        degraded: detail !== null,
        detail
      }
    } catch (error) {
      const why = signal.aborted ? `it did not answer within ${lookMs / 1000} s` : isSvcError(error) ? error.message : messageOf(error)
      return { reachable: false, version: null, features: {}, banks: null, degraded: true, detail: `${url}: ${why}` }
    }
  })
}

interface Asked {
  readonly url: string
  readonly hasKey: boolean
  readonly keyName: string
}

function problemOf (health: number, banks: number, { url, hasKey, keyName }: Asked): string | null {
  if (health >= 500) return `the Hindsight server at ${url} reports that it is unhealthy (status ${health})`
  if (banks === 401 || banks === 403) {
    const next = keyName === '' ? 'name its variable as [memory] auth_value_env' : `put it into api.env as ${keyName}`
    return hasKey ? `the Hindsight server at ${url} refuses the key ${keyName}; ${next}` : `the Hindsight server at ${url} requires a key; ${next}`
  }
  return banks >= 400 ? `the Hindsight server at ${url} does not list its banks (status ${banks})` : null
}

function object (value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? value as Record<string, unknown> : {}
}
