import { randomUUID } from 'node:crypto'

const MOST_ENDED = 1000
const MOST_STREAMS = 64

/** A stream of a session for what no request asked for. */
export interface SessionStream {
  readonly server: string
  readonly tell: (method: string) => void
  readonly end: () => void
}

/**
 * Sessions of clients of the older revisions, of which nothing is kept: an id that the client brings is as good as any. It
 * tells which running call a `notifications/cancelled` means, and whose stream hears of changes. So a client that never
 * says goodbye costs nothing, and one outlives a restart of the gateway without noticing.
 */
export class SoftSessions {
  /** Those that their client ended, which it may expect to be gone. */
  readonly #ended = new Set<string>()
  readonly #running = new Map<string, AbortController>()
  readonly #streams = new Map<string, SessionStream>()

  /** The client's name is in the id, so that later requests carry it. */
  mint (agent: string | null): string {
    return agent === null ? randomUUID() : `${agent}.${randomUUID()}`
  }

  agentOf (id: string | null): string | null {
    return id === null ? null : /^([a-z0-9_-]{1,64})\.[0-9a-f-]{36}$/.exec(id)?.[1] ?? null
  }

  end (id: string): void {
    if (this.#ended.size >= MOST_ENDED) this.#ended.delete(this.#ended.values().next().value!)
    this.#ended.add(id)
    this.#streams.get(id)?.end()
  }

  isEnded (id: string): boolean {
    return this.#ended.has(id)
  }

  /** A call that `cancel` may find until `done`; it ends with its client as well. */
  run (
    id: string | null, request: string | number, client: AbortSignal
  ): { readonly signal: AbortSignal, readonly done: () => void } {
    const controller = new AbortController()
    const leave = (): void => controller.abort(client.reason)
    if (client.aborted) leave()
    client.addEventListener('abort', leave, { once: true })
    const key = keyOf(id, request)
    if (id !== null) this.#running.set(key, controller)
    return {
      signal: controller.signal,
      done: () => {
        client.removeEventListener('abort', leave)
        if (this.#running.get(key) === controller) this.#running.delete(key)
      }
    }
  }

  cancel (id: string | null, request: unknown): void {
    if (id !== null && (typeof request === 'string' || typeof request === 'number')) this.#running.get(keyOf(id, request))?.abort(new Error('the client cancelled the call'))
  }

  /** Whether a stream of this session would be taken. */
  hasRoom (id: string): boolean {
    return this.#streams.has(id) || this.#streams.size < MOST_STREAMS
  }

  /** One for each session, the newest. False: there are too many. */
  open (id: string, stream: SessionStream): boolean {
    if (!this.hasRoom(id)) return false
    const before = this.#streams.get(id)
    this.#streams.set(id, stream)
    before?.end()
    return true
  }

  close (id: string, stream: SessionStream): void {
    if (this.#streams.get(id) === stream) this.#streams.delete(id)
  }

  /** Servers that have streams. */
  get heardServers (): ReadonlySet<string> {
    return new Set([...this.#streams.values()].map(({ server }) => server))
  }

  /** To every stream of the server. */
  tell (server: string, method: string): void {
    for (const stream of this.#streams.values()) if (stream.server === server) stream.tell(method)
  }

  endAll (): void {
    for (const stream of this.#streams.values()) stream.end()
  }

  /** What is kept, for health and for tests. */
  get sizes (): { readonly running: number, readonly streams: number, readonly ended: number } {
    return { running: this.#running.size, streams: this.#streams.size, ended: this.#ended.size }
  }
}

/** No id of a session has a space. */
function keyOf (id: string | null, request: string | number): string {
  return `${id ?? ''} ${typeof request} ${request}`
}
