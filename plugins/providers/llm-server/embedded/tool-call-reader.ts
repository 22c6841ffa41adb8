import { callOpening } from './grammar/output.js'

/** What a piece of text adds to a call. */
export interface CallDelta {
  /** Name of the tool, told once. */
  readonly name?: string
  readonly arguments: string
}

/** Reads a forced call while it is written: first its name, then its arguments. */
export class ToolCallReader {
  readonly #names: readonly string[]
  #open = false
  #held = ''

  constructor (names: readonly string[]) {
    this.#names = names
  }

  /** Null while there is nothing to tell. The last character is held back: it may be the one that closes the call. */
  push (piece: string): CallDelta | null {
    this.#held += piece
    const name = this.#open ? undefined : this.#names.find(one => this.#held.startsWith(callOpening(one)))
    if (name !== undefined) {
      this.#open = true
      this.#held = this.#held.slice(callOpening(name).length)
    }
    if (!this.#open || (name === undefined && this.#held.length < 2)) return null
    const told = this.#held.slice(0, -1)
    this.#held = this.#held.slice(told.length)
    return { ...name === undefined ? {} : { name }, arguments: told }
  }

  /** @param complete false when the answer was cut off, so that what was held back is part of the arguments */
  end (complete: boolean): CallDelta | null {
    return this.#open && !complete && this.#held !== '' ? { arguments: this.#held } : null
  }
}
