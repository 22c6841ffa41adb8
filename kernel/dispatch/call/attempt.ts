import { retryAfterS, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { isIll, outcomeOf, type Outcome } from './retry-policy.js'

/** What an attempt tells and asks its request (`upstream-trip.ts`). */
export interface AttemptOwner {
  /** How the place is: told once, at the head or at the failure before it. */
  judged (isIll: boolean): void
  /** What is to follow an attempt that failed; null when its answer is the client's. */
  instead (outcome: Outcome): (() => void) | null
  /** Whether anything else could follow. Then a head is held until the first byte behind it. */
  hasMore (): boolean
  /** Epoch milliseconds. */
  now (): number
}

/**
 * One try of a request in one place. Stands before the client's sink and decides, up to the first byte of the answer,
 * whether the client gets to see it. From then on it only passes on.
 */
export class Attempt implements AnswerSink {
  readonly #owner: AttemptOwner
  readonly #sink: AnswerSink
  #state: 'waiting' | 'held' | 'given' | 'dropped' = 'waiting'
  #head: { readonly status: number, readonly rawHeaders: readonly Buffer[] | readonly string[] } | null = null

  constructor (owner: AttemptOwner, sink: AnswerSink) {
    this.#owner = owner
    this.#sink = sink
  }

  /** Something else follows: whatever still comes is dropped. */
  get dropped (): boolean { return this.#state === 'dropped' }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (this.#state === 'dropped') return
    const outcome = status < 400 ? null : outcomeOf(status, rawHeaders, this.#owner.now())
    this.#owner.judged(outcome !== null && isIll(outcome))
    if (outcome !== null && this.#goesOn(outcome)) return
    this.#head = { status, rawHeaders }
    if (outcome === null && this.#owner.hasMore()) this.#state = 'held'
    else this.#give()
  }

  data (chunk: Buffer): boolean {
    if (this.#state === 'dropped') return true
    this.#give()
    return this.#sink.data(chunk)
  }

  end (): void {
    if (this.#state === 'dropped') return
    this.#give()
    this.#sink.end()
  }

  /** @param again false when it would fail again for sure */
  fail (error: SvcError, again = isWorthAnotherTry(error)): void {
    if (this.#state === 'dropped') return
    if (this.#state === 'given') return this.#sink.fail(error)
    const wait = retryAfterS(error)
    // a redirect is an answer: the upstream is well, and its address is wrong
    if (this.#state === 'waiting') this.#owner.judged(error.code !== 'dispatch.upstream_redirected')
    if (this.#goesOn({ status: error.status, retryAfterMs: wait === null ? null : wait * 1000, again })) return
    this.#state = 'given'
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  #goesOn (outcome: Outcome): boolean {
    const next = this.#owner.instead(outcome)
    if (next === null) return false
    this.#state = 'dropped'
    next()
    return true
  }

  #give (): void {
    if (this.#state === 'given') return
    this.#state = 'given'
    if (this.#head !== null) this.#sink.head(this.#head.status, this.#head.rawHeaders)
    this.#head = null
  }
}

/** A certificate that is not good will not be better in a second. */
function isWorthAnotherTry ({ details: { cause } }: SvcError): boolean {
  return typeof cause !== 'string' || !/CERT|TLS|SSL/.test(cause)
}
