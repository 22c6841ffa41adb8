import { isIP } from 'node:net'
import { svcError, type SvcError } from '../contract/index.js'

export interface GuardSettings {
  /** Names besides loopback and IP addresses; `*` allows all. */
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** The machine's own names. */
  readonly ownNames: readonly string[]
}

export type OriginVerdict = { readonly refusal: SvcError } | { readonly allow: string | null }

export interface Guards {
  readonly host: (header: string | undefined) => SvcError | null
  /** What to do with a request's `Origin`: refuse it, or let the page read the answer. */
  readonly origin: (header: string | undefined, host: string | undefined) => OriginVerdict
}

/**
 * There is no authentication (SPEC.md "Authentication"), so the browser is the way in: a web page may point a
 * name of its own at this machine (DNS rebinding), or call it from its own origin. An IP address as Host is
 * harmless: rebinding needs a name.
 */
export function createGuards (settings: GuardSettings): Guards {
  const names = new Set(['localhost', ...settings.ownNames, ...settings.allowedHosts].map(name => name.toLowerCase()))
  const origins = new Set(settings.allowedOrigins.map(origin => origin.toLowerCase().replace(/\/$/, '')))
  const isOwn = (host: string | undefined): boolean => {
    const name = hostName(host)
    return name !== null && (isIP(name) !== 0 || names.has(name) || name.endsWith('.localhost'))
  }
  // clients spell the host in a handful of ways: each is judged once; bounded against made-up names
  const judged = new Set<string>()
  return {
    host: header => {
      if (header !== undefined && judged.has(header)) return null
      if (names.has('*') || isOwn(header)) {
        if (header !== undefined && judged.size < 256) judged.add(header)
        return null
      }
      return svcError('request.host_not_allowed',
        `this gateway does not answer to the name '${hostName(header) ?? ''}'; use its address, or add the name to [server] allowed_hosts`)
    },
    origin: (header, host) => {
      if (header === undefined) return { allow: null }
      const origin = header.toLowerCase()
      if (origins.has('*') || origins.has(origin)) return { allow: header }
      if (host !== undefined && origin.replace(/^https?:\/\//, '') === host.toLowerCase()) return { allow: null }
      return {
        refusal: svcError('request.origin_not_allowed',
          `pages of ${header.slice(0, 200)} may not call this gateway; add that origin to [server] allowed_origins if they should`)
      }
    }
  }
}

/** A Host header without its port, lowercase; null when there is none. IPv6 without brackets. */
function hostName (header: string | undefined): string | null {
  if (header === undefined || header === '') return null
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(header)
  if (bracketed !== null) return bracketed[1]!.toLowerCase()
  return header.replace(/:\d*$/, '').toLowerCase()
}
