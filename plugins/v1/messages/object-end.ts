const QUOTE = 0x22
const BACKSLASH = 0x5c
const [OPENS, CLOSES] = [new Set([0x7b, 0x5b]), new Set([0x7d, 0x5d])]

/** Sees where the JSON of an object ends that comes in pieces. */
export class ObjectEnd {
  #depth = 0
  #isString = false
  #isEscaped = false
  #isOver = false

  /** Whether the object is there as a whole. */
  get isOver (): boolean { return this.#isOver }

  push (piece: string): void {
    for (let at = 0; at < piece.length && !this.#isOver; at++) this.#code(piece.charCodeAt(at))
  }

  #code (code: number): void {
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === BACKSLASH) this.#isEscaped = true
      else if (code === QUOTE) this.#isString = false
    } else if (code === QUOTE) {
      this.#isString = true
    } else if (OPENS.has(code)) {
      this.#depth++
    } else if (CLOSES.has(code)) {
      this.#isOver = --this.#depth <= 0
    }
  }
}
