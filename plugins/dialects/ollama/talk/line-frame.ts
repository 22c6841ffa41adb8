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

/** The second that was told last, and its beginning in ISO 8601. */
let second = NaN
let told = ''

/** Epoch milliseconds as ISO 8601 in UTC. Each line of each answer has one, and most are of the second of the one before. */
export function isoTime (ms: number): string {
  const whole = Math.floor(ms / 1000)
  if (whole !== second) {
    told = new Date(whole * 1000).toISOString().slice(0, -4)
    second = whole
  }
  return `${told}${String(Math.floor(ms) - whole * 1000).padStart(3, '0')}Z`
}
