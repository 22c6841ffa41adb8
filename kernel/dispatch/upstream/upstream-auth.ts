import type { Upstream } from '../../contract/index.js'

const ANTHROPIC_VERSION = '2023-06-01'

/** Where a call to an upstream goes and what the gateway adds to it. */
export interface UpstreamTarget {
  readonly origin: string
  /** Path and query; may hold the key, so it is never logged. */
  readonly path: string
  /** Flat list of names and values. */
  readonly headers: readonly string[]
  /** As above, for requests that do not bring their own. */
  readonly fallbackHeaders: readonly string[]
}

/** @param path below the upstream's base URL, which may itself end in a slash or have a query of its own */
export function upstreamTarget (
  upstream: Upstream, path: string, secret: (name: string) => string | undefined
): UpstreamTarget {
  const { origin, pathname, search } = new URL(upstream.url)
  const { headers, query } = upstreamAuth(upstream, secret)
  const queries = [search.slice(1), query].filter(part => part !== '').join('&')
  return {
    origin,
    path: `${pathname.replace(/(?<!\/)\/+$/, '')}${path}${queries === '' ? '' : `?${queries}`}`,
    headers,
    fallbackHeaders: upstream.auth_style === 'anthropic' ? ['anthropic-version', ANTHROPIC_VERSION] : []
  }
}

/** The key of an upstream; empty when it has none. */
export function upstreamKey (
  { auth_style: style, auth_value_env: variable }: Upstream, secret: (name: string) => string | undefined
): string {
  return style === 'none' || variable === '' ? '' : secret(variable) ?? ''
}

/**
 * Headers and query that carry an upstream's key. The key comes from the environment file or the environment
 * and is never logged. Without a key the request goes out bare, and the upstream says what it thinks of it.
 */
export function upstreamAuth (
  upstream: Upstream, secret: (name: string) => string | undefined
): { headers: string[], query: string } {
  const key = upstreamKey(upstream, secret)
  if (key === '') return { headers: [], query: '' }
  switch (upstream.auth_style) {
    case 'bearer': return { headers: ['authorization', `Bearer ${key}`], query: '' }
    case 'anthropic': return { headers: ['x-api-key', key], query: '' }
    case 'header': return { headers: [upstream.auth_header, key], query: '' }
    case 'google_query': return { headers: [], query: `key=${encodeURIComponent(key)}` }
    case 'none': return { headers: [], query: '' }
  }
}
