/** What a decoder shows for bytes that are no character, or not yet one. */
const BROKEN = '\uFFFD'

/** Tokens that may wait for the rest of a character. A character has at most four bytes, so four would do. */
const MOST_PENDING = 16

/** Tokens before the pending ones that are decoded along, for decoders that treat the first word differently. */
const LOOK_BACK = 4

/**
 * Turns tokens into text one by one. A token may end within a character; it then waits for the tokens that
 * complete it, so that no broken character comes out.
 */
export class TokenText<T> {
  readonly #detokenize: (tokens: readonly T[], before: readonly T[]) => string
  #before: readonly T[]
  #pending: T[] = []

  /** @param before tokens of the prompt; only the last few are used. */
  constructor (detokenize: (tokens: readonly T[], before: readonly T[]) => string, before: readonly T[] = []) {
    this.#detokenize = detokenize
    this.#before = before.slice(-LOOK_BACK)
  }

  /** Text that is complete with this token; may be empty. */
  push (token: T): string {
    this.#pending.push(token)
    const text = this.#detokenize(this.#pending, this.#before)
    if (text.endsWith(BROKEN) && this.#pending.length < MOST_PENDING) return ''
    this.#before = [...this.#before, ...this.#pending].slice(-LOOK_BACK)
    this.#pending = []
    return text
  }

  /** There are no more tokens: what waits, without the character that was never completed. */
  flush (): string {
    if (this.#pending.length === 0) return ''
    const text = this.#detokenize(this.#pending, this.#before)
    this.#pending = []
    return text.replace(/\uFFFD+$/, '')
  }
}
