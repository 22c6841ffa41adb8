import { abortable } from './waiting.js'

/** Lets any number wait for the next change of something, until its owner closes. Those that leave leave nothing behind. */
export class Changes {
  readonly #closing: AbortSignal | null
  #next: { readonly promise: Promise<void>, readonly resolve: () => void } | null = null

  /** @param closing of an owner that closes before the last of those that wait leaves */
  constructor (closing: AbortSignal | null = null) {
    this.#closing = closing
  }

  /** Resolves at the next change; rejects with the reason of either signal. */
  async next (signal: AbortSignal): Promise<void> {
    this.#closing?.throwIfAborted()
    if (this.#next === null) {
      let resolve = (): void => {}
      const promise = new Promise<void>(settle => { resolve = settle })
      this.#next = { promise, resolve }
    }
    await abortable(this.#next.promise, signal)
    this.#closing?.throwIfAborted()
  }

  /** It has changed, or its owner closes. */
  wake (): void {
    this.#next?.resolve()
    this.#next = null
  }
}
