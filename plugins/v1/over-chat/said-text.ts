const EMPTY = Buffer.alloc(0)
const LEAST_BYTES = 256

/** A text out of its pieces. Those that come as JSON are not looked at before the whole is wanted. */
export class SaidText {
  #text = ''
  /** JSON of what comes behind the text, without quotes. */
  #json: Buffer = EMPTY
  #size = 0

  get text (): string {
    if (this.#size > 0) this.#text += JSON.parse(`"${this.#json.toString('utf8', 0, this.#size)}"`) as string
    this.#size = 0
    return this.#text
  }

  add (piece: string): void {
    this.#text = this.#size === 0 ? this.#text + piece : this.text + piece
  }

  /** @param bytes JSON of a piece without its quotes: `bytes[from..to)` */
  addJson (bytes: Buffer, from: number, to: number): void {
    const size = this.#size + to - from
    if (size > this.#json.length) {
      const larger = Buffer.allocUnsafe(Math.max(LEAST_BYTES, 2 * size))
      larger.set(this.#json.subarray(0, this.#size))
      this.#json = larger
    }
    for (let i = from, at = this.#size; i < to; i++) this.#json[at++] = bytes[i]!
    this.#size = size
  }
}
