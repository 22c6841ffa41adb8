import type { WrittenBody } from '../wire/answer.js'

/** Of a number as `decimal` writes it: one digit, a point, six decimals. */
export const DECIMAL = '0.000000'
const ZERO = 48

/** An answer that is put together of many pieces, each of which is copied once, to where it is sent from. */
export class AnswerBytes implements WrittenBody {
  readonly #pieces: Uint8Array[] = []
  /** Where they are written, and those numbers, by turns: to make a text of each takes longer than to find them. */
  readonly #decimals: number[] = []
  #size = 0

  get size (): number { return this.#size }

  bytes (piece: Uint8Array): void {
    this.#pieces.push(piece)
    this.#size += piece.length
  }

  text (piece: string): void {
    this.bytes(Buffer.from(piece))
  }

  /**
   * Writes a number over a `DECIMAL` of the pieces.
   * @param value from 0 up to 9.999999
   */
  decimal (at: number, value: number): void {
    this.#decimals.push(at, value)
  }

  /** @param all of `size` bytes */
  writeInto (all: Buffer): void {
    let at = 0
    for (const piece of this.#pieces) {
      all.set(piece, at)
      at += piece.length
    }
    for (let i = 0; i < this.#decimals.length; i += 2) write(all, this.#decimals[i]!, this.#decimals[i + 1]!)
  }
}

function write (all: Buffer, at: number, value: number): void {
  let rest = Math.round(value * 1_000_000)
  for (let i = at + DECIMAL.length - 1; i > at + 1; i--) {
    const tenth = Math.floor(rest / 10)
    all[i] = ZERO + rest - tenth * 10
    rest = tenth
  }
  all[at] = ZERO + rest
}
