import type { SvcError } from '../../contract/index.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { AnswerSink, ReaderSink } from './answer-sink.js'
import { slowReader } from './client-sink.js'

/**
 * One upstream answer for several clients. The fastest reader sets the pace; one
 * that falls further behind it than the bound is cut off, so that none can stall the others.
 */
export class FanOut implements AnswerSink, TokenCount {
  tokens = 0
  readonly #readers = new Set<ReaderSink>()
  readonly #limitBytes: number

  constructor (limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get size (): number { return this.#readers.size }

  add (reader: ReaderSink): void {
    this.#readers.add(reader)
  }

  remove (reader: ReaderSink): void {
    this.#readers.delete(reader)
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    for (const reader of this.#readers) reader.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    let ready = this.#readers.size === 0
    let least = Infinity
    for (const reader of this.#readers) {
      if (reader.data(chunk)) ready = true
      least = Math.min(least, reader.pendingBytes)
    }
    for (const reader of this.#readers) {
      if (reader.pendingBytes - least > this.#limitBytes) this.#cutOff(reader)
    }
    return ready
  }

  end (): void {
    for (const reader of this.#readers) reader.end()
    this.#readers.clear()
  }

  fail (error: SvcError): void {
    for (const reader of this.#readers) reader.fail(error)
    this.#readers.clear()
  }

  onDrain (resume: () => void): void {
    for (const reader of this.#readers) reader.onDrain(resume)
  }

  #cutOff (reader: ReaderSink): void {
    this.#readers.delete(reader)
    reader.cutOff(slowReader(this.#limitBytes))
  }
}
