import type { SvcError } from '../../contract/index.js'
import type { AnswerSink } from './answer-sink.js'
import { isEventStream } from './headers.js'

const LONGEST_REFUSAL = 64 * 1024

/** What to answer in place of a refusal; null lets it pass. */
export type JudgeRefusal = (status: number, body: string) => SvcError | null

interface Held {
  readonly status: number
  readonly rawHeaders: readonly Buffer[] | readonly string[]
  readonly chunks: Buffer[]
}

/**
 * Holds back what an engine refuses a request with until it can be judged; everything else passes at once. A refusal
 * that is longer than anything worth judging passes as it is. For engines that refuse in the guise of success, answers are
 * held back as well, but for event streams.
 */
export class RefusalFilter implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #judge: JudgeRefusal
  readonly #from: number
  #held: Held | null = null
  #heldBytes = 0

  /** @param from lowest status that may be a refusal */
  constructor (sink: AnswerSink, judge: JudgeRefusal, from = 300) {
    this.#sink = sink
    this.#judge = judge
    this.#from = from
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (status < this.#from || (status < 300 && isEventStream(rawHeaders))) this.#sink.head(status, rawHeaders)
    else this.#held = { status, rawHeaders, chunks: [] }
  }

  data (chunk: Buffer): boolean {
    if (this.#held === null) return this.#sink.data(chunk)
    this.#held.chunks.push(chunk)
    this.#heldBytes += chunk.length
    return this.#heldBytes > LONGEST_REFUSAL ? this.#pass() : true
  }

  end (): void {
    const error = this.#held === null ? null : this.#judge(this.#held.status, Buffer.concat(this.#held.chunks).toString('utf8'))
    if (error !== null) return this.#sink.fail(error)
    this.#pass()
    this.#sink.end()
  }

  fail (error: SvcError): void {
    this.#held = null
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  #pass (): boolean {
    if (this.#held === null) return true
    const { status, rawHeaders, chunks } = this.#held
    this.#held = null
    this.#sink.head(status, rawHeaders)
    let ready = true
    for (const chunk of chunks) ready = this.#sink.data(chunk)
    return ready
  }
}
