import type { Readable } from 'node:stream'
import { errors } from 'undici'
import { PlainConnection, type ConnectionOwner, type WireReader } from './plain-connection.js'
import { postHead, takeLength } from './request-head.js'

/** How long a connection waits for its next request where the other side says nothing of it. */
const IDLE_MS = 4_000
const LONGEST_IDLE_MS = 600_000
const LOOK_MS = 1_000

/**
 * Connections without TLS to one origin, for POSTs: what nearly every inference request is. Made because a general client
 * costs such a request more than all else that the gateway does for it. Whatever is unusual in a request is left to that one.
 */
export class PlainPool implements ConnectionOwner {
  readonly #host: string
  readonly #hostname: string
  readonly #port: number
  readonly #connectTimeoutMs: number
  readonly #all = new Set<PlainConnection>()
  /** The last one to become free is the first to be used. */
  readonly #idle: PlainConnection[] = []
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  /** @param origin with the scheme `http:` */
  constructor (origin: string, connectTimeoutMs: number) {
    const { host, hostname, port } = new URL(origin)
    this.#host = host
    this.#hostname = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    this.#port = port === '' ? 80 : Number(port)
    this.#connectTimeoutMs = connectTimeoutMs
  }

  /**
   * False, and nothing was done, for a request that is unusual. A body that streams is destroyed with its request; its length
   * is among the headers, or it goes out in chunks.
   * @param isFresh on a connection that was not used before: one that met a closed connection may meet another, since a
   *   server that restarts closes all of them at once
   */
  post (path: string, headers: readonly string[], body: Buffer | Readable, reader: WireReader, isFresh = false): boolean {
    const taken = Buffer.isBuffer(body) ? { headers, length: body.length } : takeLength(headers)
    const head = postHead(this.#host, path, taken.headers, taken.length)
    if (head === null) return false
    const connection = isFresh ? this.#make() : this.#take()
    connection.post({ head, body, length: taken.length }, reader)
    return true
  }

  /** Ends idle connections; the others end behind their answers. */
  close (): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const connection of this.#idle.splice(0)) connection.destroy(new errors.ClientClosedError())
  }

  /** Ends them all. */
  destroy (): void {
    this.close()
    for (const connection of [...this.#all]) connection.destroy(new errors.ClientDestroyedError())
  }

  free (connection: PlainConnection, keepMs: number): void {
    if (this.#isClosed) return connection.destroy(new errors.ClientClosedError())
    connection.idleUntil = performance.now() + (keepMs === -1 ? IDLE_MS : Math.min(keepMs, LONGEST_IDLE_MS))
    this.#idle.push(connection)
    this.#timer ??= setTimeout(this.#look, LOOK_MS).unref()
  }

  gone (connection: PlainConnection): void {
    this.#all.delete(connection)
    const at = this.#idle.lastIndexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  #take (): PlainConnection {
    const free = this.#idle.pop()
    if (free?.isOpen === true && free.idleUntil > performance.now()) return free
    free?.destroy(idled())
    return this.#make()
  }

  #make (): PlainConnection {
    const fresh = new PlainConnection(this, this.#hostname, this.#port, this.#connectTimeoutMs)
    this.#all.add(fresh)
    return fresh
  }

  readonly #look = (): void => {
    this.#timer = null
    const now = performance.now()
    for (const connection of this.#idle.filter(({ idleUntil }) => idleUntil <= now)) {
      this.gone(connection)
      connection.destroy(idled())
    }
    if (this.#idle.length > 0) this.#timer = setTimeout(this.#look, LOOK_MS).unref()
  }
}

function idled (): Error {
  return new errors.InformationalError('idle for too long')
}
