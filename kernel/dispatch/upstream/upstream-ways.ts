import type { ConfigSnapshot, Upstream } from '../../contract/index.js'
import { upstreamsOf } from './upstream-rows.js'

/** What connections are kept by. */
export interface UpstreamWay {
  readonly origin: string
  /** Undefined: that of the gateway. */
  readonly connectTimeoutMs: number | undefined
}

/** What led to upstreams that were removed, moved or switched off, and leads to none of those that there are. */
export function waysLeft (next: ConfigSnapshot, previous: ConfigSnapshot): readonly UpstreamWay[] {
  const now = waysOf(next)
  return [...waysOf(previous)].flatMap(([key, way]) => now.has(key) ? [] : [way])
}

function waysOf (snapshot: ConfigSnapshot): ReadonlyMap<string, UpstreamWay> {
  const on = [...upstreamsOf(snapshot).values()].filter(({ enabled }) => enabled)
  return new Map(on.map(upstream => {
    const way = wayTo(upstream)
    return [`${way.origin} ${way.connectTimeoutMs}`, way]
  }))
}

function wayTo ({ url, connect_timeout_seconds: connect }: Upstream): UpstreamWay {
  return { origin: new URL(url).origin, connectTimeoutMs: connect === undefined ? undefined : connect * 1000 }
}
