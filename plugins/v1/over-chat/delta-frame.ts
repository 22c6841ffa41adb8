const ZERO = 0x30

/** An event that differs from others in its text, and perhaps in a number. */
export class DeltaFrame {
  readonly #head: string
  readonly #middle: string | null
  readonly #behind: string
  /** All of the event but its text. */
  #around: Buffer | null = null
  /** Where the text stands. */
  #at = 0
  #numberEnd = 0
  /** Numbers from here on have more digits. */
  #limit = 0

  /**
   * @param head up to the number, or where there is none up to the JSON of the text behind its quote
   * @param middle between the number and the JSON of the text, its quote included; null without a number
   * @param behind from the last quote of the text on
   */
  constructor (head: string, middle: string | null, behind: string) {
    this.#head = head
    this.#middle = middle
    this.#behind = behind
  }

  /** @param bytes its text as JSON has it: `bytes[from..to)` */
  event (number: number, bytes: Buffer, from: number, to: number): Buffer {
    const around = this.#middle === null ? this.#around ?? this.#written('') : this.#numbered(number, this.#middle)
    const event = Buffer.allocUnsafe(around.length + to - from)
    event.set(around)
    let at = this.#at
    for (let i = from; i < to; i++) event[at++] = bytes[i]!
    for (let i = this.#at; i < around.length; i++) event[at++] = around[i]!
    return event
  }

  #numbered (number: number, middle: string): Buffer {
    if (number >= this.#limit) {
      const digits = String(number).length
      this.#limit = 10 ** digits
      this.#numberEnd = Buffer.byteLength(this.#head) + digits
      return this.#written(`${number}${middle}`)
    }
    const around = this.#around!
    // those before it have as many digits, or fewer
    for (let at = this.#numberEnd, left = number; left > 0; left = Math.floor(left / 10)) around[--at] = ZERO + left % 10
    return around
  }

  /** With this between its head and its text. Most answers have many texts, but their first one is told without it. */
  #written (middle: string): Buffer {
    this.#at = Buffer.byteLength(this.#head + middle)
    return this.#around = Buffer.from(this.#head + middle + this.#behind)
  }
}
