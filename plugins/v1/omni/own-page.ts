import type { IncomingHttpHeaders } from 'node:http'
import { svcError } from 'svc-gateway/plugin'

/**
 * Origins may be let in to `/v1` alone. Tools of servers do what the rest of the gateway does, so for a request that names some
 * a web page must be one that may call all of it.
 */
export function requireOwnPage ({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders, allowed: readonly string[]): void {
  if (origin === undefined && site !== 'cross-site') return
  const page = origin?.toLowerCase() ?? ''
  const entries = allowed.map(entry => entry.toLowerCase().replace(/\/$/, ''))
  if (entries.includes('*') || entries.includes(page)) return
  if (host !== undefined && page.replace(/^https?:\/\//, '') === host.toLowerCase()) return
  throw svcError('request.origin_not_allowed', `pages of ${page.slice(0, 200) || 'other sites'} may not use tools of this gateway; add that origin to [server] allowed_origins, without /v1, if they should`)
}
