import { svcError, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from './answer-sink.js'
import { without } from './headers.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/** Collects an answer, which is split before any client gets a byte of it. */
export class WholeAnswer implements AnswerSink {
  readonly #done: (status: number, headers: readonly string[], body: Buffer) => void
  readonly #failed: (error: SvcError) => void
  #chunks: Buffer[] | null = []
  #size = 0
  #status = 0
  #headers: readonly string[] = []

  constructor (done: (status: number, headers: readonly string[], body: Buffer) => void, failed: (error: SvcError) => void) {
    this.#done = done
    this.#failed = failed
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.#status = status
    this.#headers = without(rawHeaders.map(text => text.toString('latin1')), ['content-length', 'transfer-encoding', 'etag'])
  }

  data (chunk: Buffer): boolean {
    this.#size += chunk.length
    if (this.#size > LONGEST_ANSWER_BYTES) this.#chunks = null
    this.#chunks?.push(chunk)
    return true
  }

  end (): void {
    if (this.#chunks !== null) return this.#done(this.#status, this.#headers, Buffer.concat(this.#chunks, this.#size))
    this.#failed(svcError('dispatch.upstream_failed', `the vectors for one call are larger than ${LONGEST_ANSWER_BYTES} bytes`))
  }

  fail (error: SvcError): void {
    this.#failed(error)
  }

  onDrain (): void {}
}
