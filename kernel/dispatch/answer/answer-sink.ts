import type { Clock, SvcError } from '../../contract/index.js'
import type { AnswerProgress } from '../requests/active-requests.js'

/**
 * Where an upstream's answer goes. Calls come in this order: `head` once, `data` any number of times, then
 * `end` or `fail` once; `fail` may also come first. No call is made after `end` or `fail`.
 */
export interface AnswerSink {
  /** @param rawHeaders flat list of names and values */
  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void
  /** False asks to pause until the function given to `onDrain` is called. */
  data (chunk: Buffer): boolean
  end (): void
  fail (error: SvcError): void
  /** Where the sink reports that it can take more. */
  onDrain (resume: () => void): void
  /** Hands on what `data` took in this turn, before the turn is over; not there in one that gathers nothing, or all. */
  flush? (): void
}

export interface HoldTimes {
  readonly holdMs: number
  /** 0 is off. */
  readonly pingMs: number
}

/** The sink of the one who asked: a client on a socket, or a caller inside the gateway. */
export interface ReaderSink extends AnswerSink, AnswerProgress {
  readonly done: boolean
  /** Bytes that the reader has not taken yet. */
  readonly pendingBytes: number
  /** Keeps the reader's connection alive until the upstream's first byte. */
  hold (clock: Clock, times: HoldTimes): void
  /**
   * Opens the answer as an event stream, if it is not yet, and writes an event of the gateway's own into it; false once the
   * answer itself has begun.
   */
  note (event: Buffer, clock: Clock, pingMs: number): boolean
  flush (): void
  /** As `fail`, for a reader that is too slow. */
  cutOff (error: SvcError): void
}
