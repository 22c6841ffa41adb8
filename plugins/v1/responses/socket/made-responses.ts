import type { Json } from '../../over-chat/ref.js'

/** What a connection remembers at most, in bytes, and in number. */
const MOST_OWN_BYTES = 16 * 1024 * 1024
const MOST_OWN = 32
/** What all connections do together. */
const MOST_BYTES = 256 * 1024 * 1024

/** A response that is kept nowhere else, with all that it was made of. */
export interface MadeResponse {
  /** In the order of the conversation, its output last. */
  readonly items: readonly Json[]
  /** What they take up at most: responses that go on from each other share items. */
  readonly bytes: number
  /** The upstream that all thoughts among them are of; null where others thought too. */
  readonly thinker: string | null
}

/**
 * What connections have made, as long as they are open. Where it is too much, the connection that made none for the longest
 * time forgets.
 */
export class MadeResponses {
  readonly #open = new Set<OwnResponses>()

  open (): OwnResponses {
    const own = new OwnResponses(() => this.#grown(own), () => { this.#open.delete(own) })
    return own
  }

  #grown (own: OwnResponses): void {
    this.#open.delete(own)
    this.#open.add(own)
    let bytes = 0
    for (const each of this.#open) bytes += each.bytes
    for (const each of this.#open) {
      if (bytes <= MOST_BYTES || each === own) return
      bytes -= each.bytes
      each.forget()
    }
  }
}

/** What one connection has made. */
export class OwnResponses {
  readonly #made = new Map<string, MadeResponse>()
  readonly #grown: () => void
  readonly #closed: () => void
  #bytes = 0

  constructor (grown: () => void, closed: () => void) {
    this.#grown = grown
    this.#closed = closed
  }

  get bytes (): number { return this.#bytes }

  get (id: string): MadeResponse | undefined {
    return this.#made.get(id)
  }

  /** The oldest go; one that is too large by itself is not remembered. */
  add (id: string, made: MadeResponse): void {
    this.#drop(id)
    if (made.bytes > MOST_OWN_BYTES) return
    this.#made.set(id, made)
    this.#bytes += made.bytes
    for (const oldest of this.#made.keys()) {
      if (this.#bytes <= MOST_OWN_BYTES && this.#made.size <= MOST_OWN) break
      this.#drop(oldest)
    }
    this.#grown()
  }

  forget (): void {
    this.#made.clear()
    this.#bytes = 0
  }

  close (): void {
    this.forget()
    this.#closed()
  }

  #drop (id: string): void {
    this.#bytes -= this.#made.get(id)?.bytes ?? 0
    this.#made.delete(id)
  }
}
