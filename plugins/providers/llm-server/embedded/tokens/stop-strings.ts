import { firstMark, openEnd } from '../chat/marks.js'

/**
 * Cuts a text at the first stop string that completes, while the text arrives in pieces of any size. What might
 * be the beginning of a stop string is held back until it is clear that it is not, so nothing of a stop string
 * is ever let through. How the text is cut into pieces makes no difference to what comes out.
 */
export class StopScanner {
  readonly #stops: readonly string[]
  #held = ''
  #stopped = false

  /** Empty stop strings are left out. */
  constructor (stops: readonly string[]) {
    this.#stops = stops.filter(stop => stop !== '')
  }

  /** True once a stop string was found; nothing comes out after that. */
  get stopped (): boolean {
    return this.#stopped
  }

  /** Takes the next piece and returns what may be shown now. */
  push (piece: string): string {
    if (this.#stopped) return ''
    const text = this.#held + piece
    const cut = firstMark(text, this.#stops)
    if (cut !== null) {
      this.#stopped = true
      this.#held = ''
      return text.slice(0, cut.start)
    }
    const keep = openEnd(text, this.#stops)
    this.#held = text.slice(text.length - keep)
    return text.slice(0, text.length - keep)
  }

  /** The text is over: returns what was held back. */
  flush (): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
