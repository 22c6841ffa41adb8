import type { ServerResponse } from 'node:http'
import { retryHeader, svcError, type Clock, type SvcError, type Timer, type WireDialect } from '../../contract/index.js'
import type { HoldTimes, ReaderSink } from './answer-sink.js'
import { onClose, probedBy, takesInterim, writeLeadingZero } from './client-gone.js'
import { answerHead, type AnswerHead, openedStreamHeaders, without } from './headers.js'
import { errorEvent, eventOfUpstreamError, plainDialect, reworded } from './in-stream-error.js'
import { gapAfter } from './sse-align.js'

const EMPTY = Buffer.alloc(0)
const PING = ': ping\n\n'
const CUT_OFF_LINGER_MS = 30_000
const LONGEST_ERROR_BODY = 64 * 1024

/**
 * `waiting`: nothing sent. `opened`: the gateway sent the head of a stream before the upstream answered.
 * `refused`: the upstream answered with something that the client is not told as it is: with no stream after
 * `opened`, or with an error in another format than the route's. `flowing`: the upstream's head is out. `done`:
 * ended, failed, or the client left.
 */
type Phase = 'waiting' | 'opened' | 'refused' | 'flowing' | 'done'

interface Refusal {
  readonly status: number
  /** Head of the answer; null when a stream was opened already. */
  readonly headers: string[] | null
  readonly chunks: Buffer[]
  size: number
}

/** One client's answer. The only code that writes to the client's socket on `/v1`. */
export class ClientSink implements ReaderSink {
  readonly #res: ServerResponse
  readonly #requestId: string
  readonly #onGone: () => void
  readonly #unwatch: () => void
  readonly #dialect: WireDialect
  #phase: Phase = 'waiting'
  #timer: Timer | null = null
  #isStream = false
  /** Head of a plain answer that waits for its first byte: until then a failure can still be told with a status. */
  #unsent: AnswerHead | null = null
  /** Bytes of a plain body that are still to come; -1 when the upstream did not say. */
  #left = -1
  #last: Buffer | null = null
  #resume: (() => void) | null = null
  #waitsForDrain = false
  #tail: Buffer = EMPTY
  #refusal: Refusal | null = null
  #bytesOut = 0
  #probedAt = 0
  #failed = false

  /** @param onGone called once when the client leaves, or is cut off, before the answer is complete */
  constructor (res: ServerResponse, requestId: string, onGone: () => void, dialect: WireDialect = plainDialect) {
    this.#res = res
    this.#dialect = dialect
    this.#requestId = requestId
    this.#onGone = onGone
    this.#unwatch = onClose(res, this.#closed)
    probedBy(res, this)
    res.on('error', ignore)
  }

  get done (): boolean { return this.#phase === 'done' }
  get flowing (): boolean { return this.#phase === 'flowing' || this.#phase === 'refused' }
  readonly isClients = true
  get failed (): boolean { return this.#failed }
  get bytesOut (): number { return this.#bytesOut }
  /** Bytes that the client has not taken yet. */
  get pendingBytes (): number { return this.#res.writableLength }

  /**
   * Keeps a streaming client's connection alive: after the grace the head of the stream goes out, then comment
   * lines, until the upstream's first byte.
   */
  hold (clock: Clock, { holdMs, pingMs }: HoldTimes): void {
    if (pingMs === 0 || this.#phase !== 'waiting') return
    this.#timer = clock.setTimer(holdMs, () => {
      this.#open()
      this.#ping(clock, pingMs)
    })
  }

  note (event: Buffer, clock: Clock, pingMs: number): boolean {
    if (this.#phase === 'waiting') {
      this.#stopTimer()
      this.#open()
      if (pingMs > 0) this.#timer = clock.setTimer(pingMs, () => this.#ping(clock, pingMs))
    }
    if (this.#phase !== 'opened') return false
    this.#res.write(event)
    return true
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (this.#phase === 'done') return
    this.#stopTimer()
    this.#failed = status >= 400
    const { requestIdHeader, stream } = this.#dialect
    const head = answerHead(status, rawHeaders, this.#requestId, requestIdHeader, stream?.contentType)
    const isOpen = this.#phase === 'opened'
    if (isOpen ? status !== 200 || !head.isStream : status >= 400 && this.#dialect.upstreamFailure !== undefined) {
      this.#phase = 'refused'
      this.#refusal = { status, headers: isOpen ? null : head.headers, chunks: [], size: 0 }
      return
    }
    if (isOpen) {
      this.#phase = 'flowing'
      return
    }
    this.#phase = 'flowing'
    this.#isStream = head.isStream
    if (head.isStream) {
      this.#res.writeHead(status, head.headers)
      // the first event is there already as a rule: both leave in one write
      process.nextTick(flushHead, this.#res, this)
      return
    }
    this.#left = head.contentLength
    this.#unsent = head
  }

  data (chunk: Buffer): boolean {
    if (this.#phase === 'refused') return this.#keepRefusal(chunk)
    if (this.#phase !== 'flowing') return true
    if (this.#isStream) this.#tail = chunk.length >= 4 ? chunk : Buffer.concat([this.#tail.subarray(-4), chunk])
    this.#bytesOut += chunk.length
    if (this.#left !== -1) {
      this.#left -= chunk.length
      if (this.#left === 0) {
        // the end follows at once: both leave in one write
        this.#last = chunk
        return true
      }
    }
    this.#sendHead()
    return this.#write(chunk)
  }

  end (): void {
    if (this.#phase === 'done') return
    const refusal = this.#refusal
    this.#finish()
    if (refusal !== null) return this.#refuse(refusal)
    this.#sendHead()
    if (this.#last === null) this.#res.end()
    else this.#res.end(this.#last)
  }

  fail (error: SvcError): void {
    if (this.#phase === 'done') return
    const phase = this.#phase
    this.#failed = true
    this.#finish()
    if (phase === 'waiting' || this.#unsent !== null || (phase === 'refused' && !this.#isStream)) {
      writeError(this.#res, error, this.#requestId, this.#dialect)
    } else if (this.#isStream) {
      if (this.#dialect.stream === undefined) this.#res.write(gapAfter(this.#tail))
      this.#res.end(errorEvent(error, this.#requestId, this.#dialect, this.#bytesOut > 0))
    } else {
      // part of a plain body is out: only a broken connection tells the client that the rest is missing
      this.#res.destroy()
    }
  }

  /** Node gathers what is written in one turn. */
  flush (): void {
    const res = this.#res
    if ((res.socket?.writableCorked ?? 0) === 0) return
    // from Node 24 on a write corks the answer, and not only its socket; the end of the turn uncorks it once more
    res.uncork()
    res.cork()
  }

  /** As `fail`, for a client that reads too slowly: what is buffered for it is given up when it stays away. */
  cutOff (error: SvcError): void {
    if (this.#phase === 'done') return
    this.fail(error)
    this.#onGone()
    this.#res.setTimeout(CUT_OFF_LINGER_MS, () => this.#res.destroy())
  }

  /** Where nothing can be written without changing the answer, a client is taken to have left unless the answer goes on. */
  probe (): void {
    const res = this.#res
    if (this.#phase === 'done' || res.writableNeedDrain) return
    const goesOn = this.#bytesOut > this.#probedAt
    this.#probedAt = this.#bytesOut
    if (!res.headersSent && takesInterim(res)) res.writeContinue()
    else if (res.headersSent && res.chunkedEncoding) writeLeadingZero(res)
    else if (!goesOn) res.destroy()
  }

  onDrain (resume: () => void): void {
    this.#resume = resume
  }

  #open (): void {
    this.#phase = 'opened'
    this.#isStream = true
    const { requestIdHeader, stream } = this.#dialect
    this.#res.writeHead(200, openedStreamHeaders(this.#requestId, requestIdHeader, stream?.contentType))
  }

  #ping (clock: Clock, pingMs: number): void {
    this.#res.write(this.#dialect.stream?.ping ?? this.#dialect.ping ?? PING)
    this.#timer = clock.setTimer(pingMs, () => this.#ping(clock, pingMs))
  }

  #sendHead (): void {
    const head = this.#unsent
    if (head === null) return
    this.#unsent = null
    this.#res.writeHead(head.status, head.headers)
  }

  #write (chunk: Buffer): boolean {
    if (this.#res.write(chunk)) return true
    // one that others set the pace for is written to all the same
    if (this.#resume !== null && !this.#waitsForDrain) {
      this.#waitsForDrain = true
      this.#res.once('drain', this.#drained)
    }
    return false
  }

  readonly #drained = (): void => {
    this.#waitsForDrain = false
    // `flush` can come here before the writer has been asked to pause
    process.nextTick(this.#resume!)
  }

  #keepRefusal (chunk: Buffer): boolean {
    const refusal = this.#refusal!
    if (refusal.headers !== null && refusal.size + chunk.length > LONGEST_ERROR_BODY) {
      // too long to be an error worth rewording
      this.#refusal = null
      this.#phase = 'flowing'
      this.#res.writeHead(refusal.status, refusal.headers)
      return this.#write(Buffer.concat([...refusal.chunks, chunk]))
    }
    if (refusal.size < LONGEST_ERROR_BODY) refusal.chunks.push(chunk.subarray(0, LONGEST_ERROR_BODY - refusal.size))
    refusal.size += chunk.length
    return true
  }

  #refuse ({ status, headers, chunks }: Refusal): void {
    const body = Buffer.concat(chunks)
    if (headers === null) {
      this.#res.end(eventOfUpstreamError(status, body, this.#requestId, this.#dialect))
      return
    }
    const content = reworded(status, body, this.#requestId, this.#dialect)
    if (content === null) this.#res.writeHead(status, headers).end(body)
    else writeJson(this.#res, status, kept(headers), content)
  }

  readonly #closed = (): void => {
    if (this.#phase === 'done') return
    this.#finish()
    this.#onGone()
  }

  #finish (): void {
    this.#phase = 'done'
    this.#unwatch()
    this.#stopTimer()
  }

  #stopTimer (): void {
    this.#timer?.cancel()
    this.#timer = null
  }
}

/** Sends the head of a stream whose first event has not come. */
function flushHead (res: ServerResponse, sink: ClientSink): void {
  if (!sink.done && sink.bytesOut === 0) res.flushHeaders()
}

/** A write that came too late for its client: `close` has told already. */
function ignore (): void {}

/** A refusal before anything was sent. Tells SDKs whether a retry makes sense. */
export function writeError (res: ServerResponse, error: SvcError, requestId: string, dialect: WireDialect = plainDialect): void {
  const headers = ['x-request-id', requestId]
  if (dialect.requestIdHeader !== undefined) headers.push(dialect.requestIdHeader, requestId)
  const again = retryHeader(error)
  if (again !== null) headers.push(...again)
  if (error.status === 413) headers.push('connection', 'close')
  writeJson(res, error.status, headers, dialect.failure(error, requestId))
}

function writeJson (res: ServerResponse, status: number, headers: string[], content: object): void {
  const body = Buffer.from(JSON.stringify(content))
  res.writeHead(status, [...headers, 'content-type', 'application/json; charset=utf-8', 'content-length', String(body.length)])
  res.end(body)
}

/** Headers that stay true when the body is reworded. */
function kept (headers: readonly string[]): string[] {
  return without(headers, ['content-type', 'content-length', 'etag', 'content-md5'])
}

export function slowReader (limitBytes: number): SvcError {
  return svcError('dispatch.slow_reader', `the client fell ${Math.round(limitBytes / 1024)} KiB behind a shared stream and was disconnected`)
}
