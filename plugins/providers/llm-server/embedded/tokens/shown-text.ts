import type { RankedToken } from './logprobs.js'
import { StopScanner } from './stop-strings.js'

/** What can be shown, and the tokens that it is made of where their probabilities are told. */
export interface Piece {
  readonly text: string
  readonly tokens: readonly RankedToken[]
}

/** Text up to the first stop string, with the tokens that it is made of: a token is told when all of its text is. */
export class ShownText {
  readonly #scanner: StopScanner
  readonly #waiting: Array<{ readonly token: RankedToken, readonly end: number }> = []
  #read = 0
  #shown = 0

  constructor (stops: readonly string[]) {
    this.#scanner = new StopScanner(stops)
  }

  get stopped (): boolean {
    return this.#scanner.stopped
  }

  /** Null while there is nothing to show. */
  push (text: string, token: RankedToken | null): Piece | null {
    this.#read += text.length
    if (token !== null) this.#waiting.push({ token, end: this.#read })
    const shown = this.#scanner.push(text)
    this.#shown += shown.length
    return shown === '' ? null : { text: shown, tokens: this.#told(this.#shown) }
  }

  /** What was held back. */
  end (text: string): Piece | null {
    const stopped = this.stopped
    const rest = this.#scanner.push(text) + this.#scanner.flush()
    this.#shown += rest.length
    const tokens = this.#told(stopped || this.stopped ? this.#shown : Infinity)
    return rest === '' && tokens.length === 0 ? null : { text: rest, tokens }
  }

  #told (end: number): RankedToken[] {
    const open = this.#waiting.findIndex(each => each.end > end)
    return this.#waiting.splice(0, open === -1 ? this.#waiting.length : open).map(each => each.token)
  }
}
