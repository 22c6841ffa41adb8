import { Pool, type Dispatcher } from 'undici'
import type { Clock } from '../../contract/index.js'
import { PlainPool } from '../wire/plain-pool.js'
import { SilenceWatch } from './silence-watch.js'

/** What leads to one origin. Made when it is asked for. */
class Way {
  readonly #origin: string
  readonly #connectTimeoutMs: number
  #pool: Pool | null = null
  #plain: PlainPool | null = null

  constructor (origin: string, connectTimeoutMs: number) {
    this.#origin = origin
    this.#connectTimeoutMs = connectTimeoutMs
  }

  get pool (): Pool {
    return this.#pool ??= new Pool(this.#origin, {
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: this.#connectTimeoutMs },
      keepAliveTimeout: 4_000
    })
  }

  get plain (): PlainPool | null {
    if (this.#plain === null && this.#origin.startsWith('http://')) this.#plain = new PlainPool(this.#origin, this.#connectTimeoutMs)
    return this.#plain
  }

  /** Requests in flight go on. */
  close (): void {
    this.#plain?.close()
    // they end on their own; a close error only says that it was closed already
    this.#pool?.close().catch(() => {})
  }

  async destroy (): Promise<void> {
    this.#plain?.destroy()
    await this.#pool?.destroy()
  }
}

/**
 * Connection pools to engines and upstreams, one per origin. They set no limit on time: an engine may think for
 * as long as it likes, and what is configured is given with each request.
 */
export class Connections {
  readonly #ways = new Map<string, Way>()
  readonly #connectTimeoutMs: () => number
  /** Whose head or next bytes are waited for. */
  readonly silence: SilenceWatch

  constructor (clock: Clock, connectTimeoutMs: () => number) {
    this.silence = new SilenceWatch(clock)
    this.#connectTimeoutMs = connectTimeoutMs
  }

  /** @param connectTimeoutMs of an upstream that has its own */
  to (origin: string, connectTimeoutMs?: number): Dispatcher {
    return this.#way(origin, connectTimeoutMs).pool
  }

  /** For POSTs; null where the connections are encrypted. */
  plain (origin: string, connectTimeoutMs?: number): PlainPool | null {
    return this.#way(origin, connectTimeoutMs).plain
  }

  /** An engine is gone: its idle sockets are of no use to the next one on that port. Or an upstream is, or is elsewhere. */
  forget (origin: string, connectTimeoutMs?: number): void {
    this.#forget(keyOf(origin, connectTimeoutMs))
  }

  /** Every connection from now on is made anew, with the timeout of this moment; requests in flight go on. */
  renew (): void {
    for (const key of [...this.#ways.keys()]) this.#forget(key)
  }

  async close (): Promise<void> {
    const ways = [...this.#ways.values()]
    this.#ways.clear()
    await Promise.all(ways.map(way => way.destroy()))
  }

  #forget (key: string): void {
    const way = this.#ways.get(key)
    if (way === undefined) return
    this.#ways.delete(key)
    way.close()
  }

  #way (origin: string, connectTimeoutMs?: number): Way {
    const key = keyOf(origin, connectTimeoutMs)
    let way = this.#ways.get(key)
    if (way === undefined) {
      way = new Way(origin, connectTimeoutMs ?? this.#connectTimeoutMs())
      this.#ways.set(key, way)
    }
    return way
  }
}

function keyOf (origin: string, connectTimeoutMs: number | undefined): string {
  return connectTimeoutMs === undefined ? origin : `${origin} ${connectTimeoutMs}`
}

/** By address: a text that is made anew has to be hashed before a pool is found by it. */
const origins = new WeakMap<EngineAddress, string>()

interface EngineAddress { readonly host: string, readonly port: number }

/** @param address is not changed any more */
export function originOf (address: EngineAddress): string {
  let origin = origins.get(address)
  if (origin === undefined) origins.set(address, origin = originAt(address))
  return origin
}

function originAt ({ host, port }: EngineAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
