import type { EngineRequest } from '../memory/ref.js'
import type { Errand, ErrandAnswer } from './messages.js'

type Run = (errand: Errand, signal: AbortSignal) => Promise<ErrandAnswer>

/** A question's vector that is asked for while the engine's thread reads the question. */
interface Begun {
  readonly answer: Promise<ErrandAnswer>
  readonly control: AbortController
}

/** Longer ones are left to the thread. */
const LONGEST_BODY = 16 * 1024
const RECALL = /\/memories\/recall$/

/**
 * Asks for the vector of a recall's question as soon as it comes, in the words in which the thread asked for the last one:
 * what the thread asks then is on its way already. What it did not ask for is taken back, and nothing is asked ahead until it
 * asks again.
 */
export class EmbedAhead {
  readonly #run: Run
  /** What the last errand said beside the question; null if nothing is to be expected. */
  #like: Readonly<Record<string, unknown>> | null = null
  /** By the bodies of their errands. */
  readonly #begun = new Map<string, Begun>()

  constructor (run: Run) {
    this.#run = run
  }

  /** Returns what takes it back once the request is over; null if nothing is asked for. */
  begin ({ method, path, body }: EngineRequest): (() => void) | null {
    if (this.#like === null || method !== 'POST' || !RECALL.test(path)) return null
    const query = Buffer.isBuffer(body) && body.length <= LONGEST_BODY ? queryIn(body) : null
    if (query === null) return null
    const text = JSON.stringify({ ...this.#like, input: [query] })
    if (this.#begun.has(text)) return null
    const control = new AbortController()
    const answer = this.#run({ to: 'embed', background: false, body: Buffer.from(text) }, control.signal)
    // told to the thread if it asks
    answer.catch(() => {})
    const begun: Begun = { answer, control }
    this.#begun.set(text, begun)
    return () => {
      if (this.#begun.get(text) !== begun) return
      this.#begun.delete(text)
      this.#like = null
      control.abort(new Error('no longer wanted'))
    }
  }

  /** Does what the thread asks for, or waits for what was begun of it. */
  run (errand: Errand, control: AbortController): Promise<ErrandAnswer> {
    if (errand.to !== 'embed' || errand.background) return this.#run(errand, control.signal)
    const text = Buffer.from(errand.body).toString('utf8')
    const begun = this.#begun.get(text)
    this.#begun.delete(text)
    if (begun === undefined) {
      this.#like = JSON.parse(text) as Record<string, unknown>
      return this.#run(errand, control.signal)
    }
    control.signal.addEventListener('abort', () => begun.control.abort(control.signal.reason), { once: true })
    return begun.answer
  }

  /** Another model may be there. */
  forget (): void {
    this.#like = null
  }
}

function queryIn (body: Buffer): string | null {
  try {
    const { query } = JSON.parse(body.toString('utf8')) as { readonly query?: unknown }
    return typeof query === 'string' ? query : null
  } catch {
    return null
  }
}
