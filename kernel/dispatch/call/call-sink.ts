import { givenBody, type CallAnswer, type ChunkGiver, type ChunkReader, type SvcError } from '../../contract/index.js'
import type { ReaderSink } from '../answer/answer-sink.js'

/** What is read ahead of a caller, at most about: one chunk of an engine may be larger. */
const READ_AHEAD_BYTES = 256 * 1024

/** The answer of a call that a plugin made, read at the plugin's pace: chunk by chunk, or handed to a reader as it comes. */
export class CallSink implements ReaderSink, ChunkGiver {
  /** Settles with the head of the answer, or with what kept it away. */
  readonly answer: Promise<CallAnswer>
  /** Called once when the caller leaves, or is cut off, before the answer is complete. */
  onGone: () => void = () => {}
  readonly #signal: AbortSignal
  readonly #chunks: Buffer[] = []
  #settle: { resolve: (answer: CallAnswer) => void, reject: (reason: Error) => void } | null = null
  #state: 'waiting' | 'flowing' | 'done' = 'waiting'
  #failure: Error | null = null
  #pending = 0
  #bytesOut = 0
  #resume: (() => void) | null = null
  #isPaused = false
  #wake: (() => void) | null = null
  #reader: ChunkReader | null = null
  /** The reader has asked to pause. */
  #isHeld = false

  constructor (signal: AbortSignal) {
    this.#signal = signal
    this.answer = new Promise((resolve, reject) => { this.#settle = { resolve, reject } })
  }

  /** Gives the call up when its caller does. Once, in the turn in which it was sent: what it asks for is on its way before. */
  watch (): void {
    if (this.#signal.aborted) this.#aborted()
    else if (this.#state !== 'done') this.#signal.addEventListener('abort', this.#aborted, { once: true })
  }

  get done (): boolean { return this.#state === 'done' }
  get flowing (): boolean { return this.#state === 'flowing' }
  readonly isClients = false
  get failed (): boolean { return this.#failure !== null }
  get bytesOut (): number { return this.#bytesOut }
  get pendingBytes (): number { return this.#pending }

  /** There is no connection to keep alive. */
  hold (): void {}

  note (): boolean { return false }

  /** Nothing is gathered. */
  flush (): void {}

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (this.#state !== 'waiting') return
    this.#state = 'flowing'
    const headers: Record<string, string> = {}
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      headers[rawHeaders[i]!.toString().toLowerCase()] = rawHeaders[i + 1]!.toString()
    }
    const iterator = { next: () => this.#next(), return: () => this.#left() }
    this.#settle!.resolve({ status, headers, body: givenBody(this, () => iterator) })
  }

  data (chunk: Buffer): boolean {
    if (this.#state !== 'flowing') return true
    this.#bytesOut += chunk.length
    if (this.#reader !== null && !this.#isHeld) {
      this.#isHeld = !this.#reader.data(chunk)
      this.#isPaused = this.#isHeld
      return !this.#isHeld
    }
    this.#chunks.push(chunk)
    this.#pending += chunk.length
    this.#wake?.()
    this.#isPaused = this.#pending >= READ_AHEAD_BYTES
    return !this.#isPaused
  }

  end (): void {
    this.#finish(null)
  }

  fail (error: SvcError): void {
    this.#finish(error)
  }

  cutOff (error: SvcError): void {
    if (this.#state === 'done') return
    this.#chunks.length = 0
    this.#finish(error)
    this.onGone()
  }

  onDrain (resume: () => void): void {
    this.#resume = resume
  }

  give (reader: ChunkReader): void {
    this.#reader = reader
    this.resume()
  }

  /** What came meanwhile goes first. */
  resume (): void {
    const reader = this.#reader
    if (reader === null) return
    this.#isHeld = false
    while (this.#chunks.length > 0) {
      const chunk = this.#chunks.shift()!
      this.#pending -= chunk.length
      this.#isHeld = !reader.data(chunk)
      if (this.#isHeld) return
    }
    if (this.#state === 'done') return this.#tellEnd()
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#resume?.()
  }

  leave (): void {
    this.#reader = null
    void this.#left()
  }

  async #next (): Promise<IteratorResult<Buffer, undefined>> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) {
        this.#pending -= chunk.length
        if (this.#isPaused && this.#pending < READ_AHEAD_BYTES / 2) {
          this.#isPaused = false
          this.#resume?.()
        }
        return { done: false, value: chunk }
      }
      if (this.#failure !== null) throw this.#failure
      if (this.#state === 'done') return { done: true, value: undefined }
      await new Promise<void>(resolve => { this.#wake = resolve })
    }
  }

  #left (): Promise<IteratorResult<Buffer, undefined>> {
    if (this.#state !== 'done') {
      this.#finish(null)
      this.onGone()
    }
    this.#chunks.length = 0
    return Promise.resolve({ done: true, value: undefined })
  }

  readonly #aborted = (): void => {
    if (this.#state === 'done') return
    this.#chunks.length = 0
    this.#finish(this.#signal.reason instanceof Error ? this.#signal.reason : new Error('the call was aborted'))
    this.onGone()
  }

  #finish (failure: Error | null): void {
    if (this.#state === 'done') return
    this.#state = 'done'
    this.#failure = failure
    this.#signal.removeEventListener('abort', this.#aborted)
    // of no effect once the head is out: what is read then ends with the failure
    if (failure !== null) this.#settle!.reject(failure)
    this.#wake?.()
    // what is held is told before the end
    if (this.#chunks.length === 0) this.#tellEnd()
  }

  #tellEnd (): void {
    const reader = this.#reader
    this.#reader = null
    if (this.#failure === null) reader?.end()
    else reader?.fail(this.#failure)
  }
}
