const ZERO = 0x30

/** An event that differs from others in its text, and perhaps in a number. */
export class DeltaFrame {
  readonly #head: string
  readonly #middle: string | null
  readonly #behind: string
  /** All of the event but its text. */
  #around: Buffer
  /** Where the text stands. */
  #at: number
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
    this.#at = Buffer.byteLength(head)
    this.#around = Buffer.from(head + behind)
  }

  /** @param bytes its text as JSON has it: `bytes[from..to)` */
  event (number: number, bytes: Buffer, from: number, to: number): Buffer {
    if (this.#middle !== null) this.#number(number, this.#middle)
    const around = this.#around
    const event = Buffer.allocUnsafe(around.length + to - from)
    event.set(around)
    let at = this.#at
    for (let i = from; i < to; i++) event[at++] = bytes[i]!
    for (let i = this.#at; i < around.length; i++) event[at++] = around[i]!
    return event
  }

  #number (number: number, middle: string): void {
    if (number >= this.#limit) {
      const digits = String(number).length
      this.#limit = 10 ** digits
      this.#around = Buffer.from(`${this.#head}${number}${middle}${this.#behind}`)
      this.#at = Buffer.byteLength(`${this.#head}${number}${middle}`)
      this.#numberEnd = Buffer.byteLength(this.#head) + digits
      return
    }
    // those before it have as many digits, or fewer
    for (let at = this.#numberEnd, left = number; left > 0; left = Math.floor(left / 10)) this.#around[--at] = ZERO + left % 10
  }
}
