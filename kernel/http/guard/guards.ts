import { isIP } from 'node:net'
import { svcError, type SvcError } from '../../contract/index.js'

export interface GuardSettings {
  /** Names besides loopback and IP addresses; `*` allows all. */
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** The machine's own names. */
  readonly ownNames: readonly string[]
  /** What counts for tool servers besides. */
  readonly mcp?: { readonly allowedHosts: readonly string[], readonly allowedOrigins: readonly string[] }
}

export type OriginVerdict = { readonly refusal: SvcError } | { readonly allow: string | null }

/** What of a request the guards look at. */
export interface Visit {
  readonly host: string | undefined
  readonly origin: string | undefined
  /** `Sec-Fetch-Site`: what a browser says of where the request comes from, also where it sends no origin. */
  readonly site: string | undefined
  /** Address that the connection comes from. */
  readonly remote: string | undefined
  readonly path: string
}

export interface Guards {
  readonly host: (visit: Pick<Visit, 'host' | 'remote' | 'path'>) => SvcError | null
  /** What to do with a request's `Origin`: refuse it, or let the page read the answer. */
  readonly origin: (visit: Pick<Visit, 'origin' | 'host' | 'site' | 'path'>) => OriginVerdict
}

/** Names under which containers know the machine that they run on. */
const machineNames: ReadonlySet<string> = new Set(['host.docker.internal', 'host.containers.internal'])
const ONLY_V1 = '/v1'

/**
 * There is no authentication, so the browser is the way in: a web page may point a
 * name of its own at this machine (DNS rebinding), or call it from its own origin. An IP address as Host is
 * harmless: rebinding needs a name.
 */
export function createGuards (settings: GuardSettings): Guards {
  const { allowedHosts: mcpHosts = [], allowedOrigins: mcpOrigins = [] } = settings.mcp ?? {}
  const toolNames = new Set(mcpHosts.map(name => name.toLowerCase()))
  // a page that lies under an allowed name may call, unless it is said which may
  const toolPages = new Set(mcpOrigins.map(entry => entry.toLowerCase().replace(/\/$/, '')))
  const names = new Set(['localhost', ...settings.ownNames, ...settings.allowedHosts].map(name => name.toLowerCase()))
  const entries = settings.allowedOrigins.map(entry => entry.toLowerCase().replace(/\/$/, ''))
  const everywhere = new Set(entries.filter(entry => !entry.endsWith(ONLY_V1)))
  const inference = new Set(entries.filter(entry => entry.endsWith(ONLY_V1)).map(entry => entry.slice(0, -ONLY_V1.length)))
  const isOwn = (host: string | undefined): boolean => {
    const name = hostName(host)
    return name !== null && (isIP(name) !== 0 || names.has(name) || name.endsWith('.localhost'))
  }
  // clients spell the host in a handful of ways: each is judged once; bounded against made-up names
  const judged = new Set<string>()
  const isAllowed = (origin: string, path: string): boolean => {
    if (everywhere.has('*') || everywhere.has(origin)) return true
    if (isMcp(path)) {
      if (toolPages.size > 0) return toolPages.has('*') || toolPages.has(origin)
      const name = hostName(origin.replace(/^https?:\/\//, ''))
      return name !== null && toolNames.has(name)
    }
    return (inference.has('*') || inference.has(origin)) && isInference(path)
  }
  return {
    host: ({ host, remote, path }) => {
      if (host !== undefined && judged.has(host)) return null
      if (names.has('*') || isOwn(host)) {
        if (host !== undefined && judged.size < 256) judged.add(host)
        return null
      }
      const name = hostName(host) ?? ''
      if (machineNames.has(name) && isNearby(remote)) return null
      if (isMcp(path) && (toolNames.has('*') || toolNames.has(name))) return null
      return svcError('request.host_not_allowed',
        `this gateway does not answer to the name '${name.slice(0, 200)}'; use its address, or add the name to [server] allowed_hosts`)
    },
    origin: ({ origin: header, host, site, path }) => {
      if (header === undefined) return site === 'cross-site' && isManagement(path) ? { refusal: crossSite(path) } : { allow: null }
      const origin = header.toLowerCase()
      if (isAllowed(origin, path)) return { allow: header }
      if (host !== undefined && origin.replace(/^https?:\/\//, '') === host.toLowerCase()) return { allow: null }
      return {
        refusal: svcError('request.origin_not_allowed',
          `pages of ${header.slice(0, 200)} may not call this gateway${inference.has(origin) ? ' beyond /v1' : ''}; to allow them, add that origin to [server] allowed_origins`)
      }
    }
  }
}

function isMcp (path: string): boolean {
  return path === '/mcp' || path.startsWith('/mcp/')
}

function isInference (path: string): boolean {
  return path === '/v1' || path.startsWith('/v1/')
}

/** What manages the gateway or reaches into its engines. A page that embeds such an address sends no origin along. */
function isManagement (path: string): boolean {
  return ['/api', '/mcp', '/upstream'].some(root => path === root || path.startsWith(`${root}/`))
}

function crossSite (path: string): SvcError {
  return svcError('request.origin_not_allowed',
    `a page of another site asked for ${path.slice(0, 200)}; open the address by itself, or add the origin of that page to [server] allowed_origins`)
}

/** Loopback, and the private ranges that container networks use. */
function isNearby (address: string | undefined): boolean {
  const bare = address?.replace(/^::ffff:/, '') ?? ''
  if (isIP(bare) === 6) return bare === '::1' || /^f[cd]|^fe[89ab]/i.test(bare)
  return /^(127\.|10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.)/.test(bare)
}

/** A Host header without its port, lowercase; null when there is none. IPv6 without brackets. */
function hostName (header: string | undefined): string | null {
  if (header === undefined || header === '') return null
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(header)
  if (bracketed !== null) return bracketed[1]!.toLowerCase()
  return header.replace(/:\d*$/, '').toLowerCase()
}
