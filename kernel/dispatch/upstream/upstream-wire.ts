import type { Upstream } from '../../contract/index.js'
import { namedByConnection, NameCache, isForwarded, without } from '../answer/headers.js'
import { VIA_HEADER } from '../requests/loop-guard.js'
import { passRule } from './pass-headers.js'
import { hiddenKey, type HiddenKey } from './upstream-answer.js'
import { upstreamKey, upstreamTarget, type UpstreamTarget } from './upstream-auth.js'

const MOST_PATHS = 64

/** What all calls to an upstream share, made once for its configuration and its key. */
export class UpstreamWire {
  readonly key: string
  readonly hidden: HiddenKey
  readonly label: string
  readonly details: { readonly upstream: string }
  readonly headersTimeoutMs: number
  readonly connectTimeoutMs: number | undefined
  readonly #upstream: Upstream
  readonly #secret: (name: string) => string | undefined
  readonly #targets = new Map<string, UpstreamTarget>()
  readonly #passes: NameCache
  readonly #ownNames: ReadonlySet<string>
  /** Names and values that go along where the client brings none. */
  readonly #usual: ReadonlyArray<readonly [name: string, value: string]>
  readonly #own: readonly string[]

  constructor (upstream: Upstream, key: string) {
    const { name, timeout_seconds: first, connect_timeout_seconds: connect } = upstream
    this.key = key
    this.hidden = hiddenKey(key)
    this.label = `upstream '${name}'`
    this.details = { upstream: name }
    this.headersTimeoutMs = first * 1000
    this.connectTimeoutMs = connect === undefined ? undefined : connect * 1000
    this.#upstream = upstream
    const secret = (): string => key
    this.#secret = secret
    const { headers, fallbackHeaders } = this.target('')
    const own = new Set([VIA_HEADER, ...headers.filter((_, i) => i % 2 === 0).map(header => header.toLowerCase())])
    const passes = passRule(upstream.pass_headers)
    this.#own = headers
    this.#ownNames = own
    this.#passes = new NameCache(lower => isForwarded(lower) && passes(lower) && !own.has(lower))
    const usual = [...fallbackHeaders, 'user-agent', 'svc']
    this.#usual = usual.flatMap((header, i) => i % 2 === 0 && !own.has(header) ? [[header, usual[i + 1]!] as const] : [])
  }

  /** Where a call to a path below its base URL goes. */
  target (path: string): UpstreamTarget {
    let target = this.#targets.get(path)
    if (target === undefined) {
      target = upstreamTarget(this.#upstream, path, this.#secret)
      // routes have a few; a plugin may make them up
      if (this.#targets.size < MOST_PATHS) this.#targets.set(path, target)
    }
    return target
  }

  /**
   * What goes out with a call, as a flat list of names and values: what the client sent and this upstream may see, what it
   * did not bring, and what is the gateway's own.
   * @param raw the client's, as they came
   */
  headers (raw: readonly string[], requestId: string, via: string): string[] {
    let headers: string[] = []
    let hopByHop: readonly string[] = []
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = raw[i]!
      if (this.#passes.passes(name)) headers.push(name, raw[i + 1]!)
      else if (name.length === 10) hopByHop = [...hopByHop, ...namedByConnection(name, raw[i + 1]!)]
    }
    if (hopByHop.length > 0) headers = without(headers, hopByHop)
    const clients = headers.length
    if (!this.#ownNames.has('x-request-id')) headers.push('x-request-id', requestId)
    for (const [name, value] of this.#usual) if (!brings(headers, clients, name)) headers.push(name, value)
    headers.push(...this.#own, VIA_HEADER, via)
    return headers
  }
}

const wires = new WeakMap<Upstream, UpstreamWire>()

/** The wire to an upstream. A changed row is another object, and a changed key is looked at here. */
export function wireTo (upstream: Upstream, secret: (name: string) => string | undefined): UpstreamWire {
  const key = upstreamKey(upstream, secret)
  const known = wires.get(upstream)
  if (known !== undefined && known.key === key) return known
  const wire = new UpstreamWire(upstream, key)
  wires.set(upstream, wire)
  return wire
}

/** @param lower a name in lower case, looked for among the first `end` entries */
function brings (headers: readonly string[], end: number, lower: string): boolean {
  for (let i = 0; i < end; i += 2) {
    if (headers[i]!.length === lower.length && headers[i]!.toLowerCase() === lower) return true
  }
  return false
}
