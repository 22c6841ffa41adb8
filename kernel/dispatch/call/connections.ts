import { Pool, type Dispatcher } from 'undici'
import type { Clock } from '../../contract/index.js'
import { SilenceWatch } from './silence-watch.js'

/**
 * Connection pools to engines and upstreams, one per origin. They set no limit on time: an engine may think for
 * as long as it likes, and what is configured is given with each request.
 */
export class Connections {
  readonly #pools = new Map<string, Pool>()
  readonly #connectTimeoutMs: () => number
  /** Whose head or next bytes are waited for. */
  readonly silence: SilenceWatch

  constructor (clock: Clock, connectTimeoutMs: () => number) {
    this.silence = new SilenceWatch(clock)
    this.#connectTimeoutMs = connectTimeoutMs
  }

  /** @param connectTimeoutMs of an upstream that has its own */
  to (origin: string, connectTimeoutMs?: number): Dispatcher {
    const key = connectTimeoutMs === undefined ? origin : `${origin} ${connectTimeoutMs}`
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      pool = new Pool(origin, {
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: { timeout: connectTimeoutMs ?? this.#connectTimeoutMs() },
        keepAliveTimeout: 4_000
      })
      this.#pools.set(key, pool)
    }
    return pool
  }

  /** An engine is gone: its idle sockets are of no use to the next one on that port. */
  forget (origin: string): void {
    const pool = this.#pools.get(origin)
    if (pool === undefined) return
    this.#pools.delete(origin)
    // requests in flight end on their own; a close error only says that it was closed already
    pool.close().catch(() => {})
  }

  /** Every connection from now on is made anew, with the timeout of this moment; requests in flight go on. */
  renew (): void {
    for (const origin of [...this.#pools.keys()]) this.forget(origin)
  }

  async close (): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map(pool => pool.destroy()))
  }
}

export function originOf ({ host, port }: { readonly host: string, readonly port: number }): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
