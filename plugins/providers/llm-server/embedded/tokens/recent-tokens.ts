import type { Token } from 'node-llama-cpp'

/** Each token costs as much as it looks back, so all of a long context would make an answer cost the square of its length. */
const MOST_LOOK_BACK = 4096

/** How many tokens are looked back. @param asked -1 is as many as may be */
export function lookBackOf (asked: number): number {
  return asked < 0 ? MOST_LOOK_BACK : Math.min(asked, MOST_LOOK_BACK)
}

/** The tokens that were read last, as many as any request looks back: an answer may go on forever. */
export class RecentTokens {
  readonly #tokens: Token[]

  constructor (tokens: readonly Token[]) {
    this.#tokens = tokens.slice(-MOST_LOOK_BACK)
  }

  push (token: Token): void {
    this.#tokens.push(token)
    if (this.#tokens.length >= 2 * MOST_LOOK_BACK) this.#tokens.splice(0, this.#tokens.length - MOST_LOOK_BACK)
  }

  /** @param count above 0 */
  last (count: number): Token[] {
    return this.#tokens.slice(-count)
  }
}
