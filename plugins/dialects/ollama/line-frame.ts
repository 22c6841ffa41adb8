/** A line that differs from others in its time and in a text. */
export class LineFrame {
  readonly #before: Buffer
  readonly #behind: Buffer
  /** Where the time stands in what is before the text. */
  readonly #timeAt: number

  /**
   * @param head up to the time
   * @param middle between the time and the JSON of the text, its quote included
   * @param behind from the last quote of the text on
   * @param time one that is as long as all others, in ASCII
   */
  constructor (head: string, middle: string, behind: string, time: string) {
    this.#before = Buffer.from(head + time + middle)
    this.#behind = Buffer.from(behind)
    this.#timeAt = Buffer.byteLength(head)
  }

  /** @param bytes the text as JSON has it: `bytes[from..to)` */
  line (time: string, bytes: Buffer, from: number, to: number): Buffer {
    const [before, behind] = [this.#before, this.#behind]
    const line = Buffer.allocUnsafe(before.length + to - from + behind.length)
    line.set(before)
    line.write(time, this.#timeAt, 'latin1')
    let at = before.length
    for (let i = from; i < to; i++) line[at++] = bytes[i]!
    line.set(behind, at)
    return line
  }
}
