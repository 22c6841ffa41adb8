import type { OutgoingCall, RequestPriority, RequestSurface, SvcError } from '../../contract/index.js'

/** Counts what an engine generates for a call. */
export interface TokenCount { tokens: number }

/** The part of a client's answer that tells how far it is. */
export interface AnswerProgress {
  /** The upstream's head has come. */
  readonly flowing: boolean
  readonly bytesOut: number
  /** It is or was an error. */
  readonly failed: boolean
  /** A client asked, not a plugin. */
  readonly isClients: boolean
}

export interface ActiveRequest extends TokenCount {
  readonly id: string
  readonly model: string
  readonly surface: RequestSurface
  readonly priority: RequestPriority
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly bytesIn: number
  /** Tell whose request it is, once the list is read. */
  readonly headers: OutgoingCall['headers']
  readonly sink: AnswerProgress
  /** Who serves it; null while that is being found out. */
  slot: string | null
  upstream: string | null
  /** It has left the gateway, to an engine or an upstream. */
  sent: boolean
  /** Counts from 1 once it is sent; more where an upstream failed it. */
  attempt: number
  /** What it waits for between two attempts. */
  note: string | null
  /** Counts in its place where the call is shared. */
  shared: TokenCount | null
  /** Ends the request with an error for its client; frees everything it holds. */
  readonly stop: (error: SvcError) => void
  /** Its place in the list; the list's own business. */
  index: number
}

/**
 * Requests that have not been answered in full: the owner of "is anything still running". A plain list, from
 * which one is removed by putting the last in its place. A `Set` would do the same and keep the garbage collector
 * busy: with this much coming and going its outgrown tables hold on to finished requests until the next full
 * collection. Progress is fields that are written in place; nothing is made of them before they are read.
 */
export class ActiveRequests {
  readonly #active: ActiveRequest[] = []
  #waiting: Array<() => void> = []

  readonly #ended: (request: ActiveRequest) => void

  /** @param ended told of every request that is removed */
  constructor (ended: (request: ActiveRequest) => void = () => {}) {
    this.#ended = ended
  }

  get size (): number { return this.#active.length }

  add (request: ActiveRequest): void {
    request.index = this.#active.push(request) - 1
  }

  remove (request: ActiveRequest): void {
    if (this.#active[request.index] !== request) return
    const last = this.#active.pop()!
    if (last !== request) {
      this.#active[request.index] = last
      last.index = request.index
    }
    this.#ended(request)
    if (this.#active.length > 0 || this.#waiting.length === 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  list (): readonly ActiveRequest[] {
    return [...this.#active]
  }

  /** Resolves when none is left. */
  idle (): Promise<void> {
    if (this.#active.length === 0) return Promise.resolve()
    return new Promise(resolve => { this.#waiting.push(resolve) })
  }

  stopAll (error: SvcError): void {
    for (const request of [...this.#active]) request.stop(error)
  }
}
