import type { Clock, SvcError } from '../../contract/index.js'
import type { HoldTimes, ReaderSink } from './answer-sink.js'

/** Stands before a reader and passes everything on. */
export class PassingSink implements ReaderSink {
  protected readonly sink: ReaderSink

  constructor (sink: ReaderSink) {
    this.sink = sink
  }

  get done (): boolean { return this.sink.done }
  get flowing (): boolean { return this.sink.flowing }
  get failed (): boolean { return this.sink.failed }
  get isClients (): boolean { return this.sink.isClients }
  get bytesOut (): number { return this.sink.bytesOut }
  get pendingBytes (): number { return this.sink.pendingBytes }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    this.sink.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    return this.sink.data(chunk)
  }

  end (): void {
    this.sink.end()
  }

  fail (error: SvcError): void {
    this.sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.sink.onDrain(resume)
  }

  hold (clock: Clock, times: HoldTimes): void {
    this.sink.hold(clock, times)
  }

  note (event: Buffer, clock: Clock, pingMs: number): boolean {
    return this.sink.note(event, clock, pingMs)
  }

  flush (): void {
    this.sink.flush()
  }

  cutOff (error: SvcError): void {
    this.sink.cutOff(error)
  }
}
