import type { Readable } from 'node:stream'
import { errors, type Dispatcher } from 'undici'
import { svcError, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { readBegins, readEnds } from '../body/body-blocks.js'
import type { Connections } from './connections.js'
import { isClosed } from '../wire/closed-connection.js'
import type { WireReader } from '../wire/plain-connection.js'
import type { Wait } from './silence-watch.js'

export interface ExchangeRequest {
  readonly origin: string
  readonly path: string
  readonly method: Dispatcher.HttpMethod
  /** Flat list of names and values. */
  readonly headers: string[]
  /** A stream is read at the pace of the upstream and destroyed with the call. */
  readonly body: Buffer | Readable | null
  /** Not to be sent on a connection that was used before, nor to be followed by another request on its own. */
  readonly alone?: boolean
  /** Longest wait for the head; 0 is no limit. */
  readonly headersTimeoutMs: number
  /** Longest silence inside the body; 0 is no limit. */
  readonly bodyTimeoutMs: number
  /** Longest wait for a connection; absent is the configured one. */
  readonly connectTimeoutMs?: number | undefined
  /** Whether to send it once more when it met a connection that the other side had just closed. */
  readonly resend?: boolean
  /** No failure is told when the request never left: `settled` says `unsent`, and it may be asked again elsewhere. */
  readonly mayReturn?: boolean
}

/** What a call needs of the connections. */
export type Wires = Pick<Connections, 'to' | 'plain' | 'silence'>

/** `unsent`: there was no connection, and the sink was told nothing. */
export type ExchangeOutcome = 'ended' | 'failed' | 'aborted' | 'unsent'

/** A request that meets a closed connection fails at once; what takes longer has been worked on. */
const CLOSED_BEFORE_MS = 1_000

/** Whom the call goes to, for error texts: `slot 'agent'` or `upstream 'openai'`. */
export interface ExchangeTarget {
  readonly label: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * One HTTP call to an engine or upstream, its answer handed to a sink as raw bytes, with backpressure. Settles
 * exactly once: `settled` is called after the sink's `end` or `fail`, or after an abort. A POST without TLS goes over a
 * plain connection; everything else over undici, against its raw callback interface.
 */
export class Exchange implements Dispatcher.DispatchHandler, WireReader {
  readonly #sink: AnswerSink
  readonly #target: ExchangeTarget
  readonly #settled: (outcome: ExchangeOutcome) => void
  #isRepeated = false
  #abort: ((reason?: Error) => void) | null = null
  /** What may be sent once more; null when nothing may. */
  #request: ExchangeRequest | null = null
  #connections: Wires | null = null
  #sentAt = 0
  #mayReturn = false
  /** What is read of a body's memory; null for none that could be used again, and behind the end. */
  #body: Buffer | null = null
  /** Limits of this gateway's own watch; 0 for none. */
  #headLimitMs = 0
  #bodyLimitMs = 0
  #wait: Wait | null = null
  #aborted: Error | null = null
  #hasHead = false
  #open = true

  constructor (sink: AnswerSink, target: ExchangeTarget, settled: (outcome: ExchangeOutcome) => void) {
    this.#sink = sink
    this.#target = target
    this.#settled = settled
  }

  /** Never throws: whatever is wrong with the call is told to the sink. */
  send (connections: Wires, request: ExchangeRequest): void {
    if (Buffer.isBuffer(request.body) && this.#body === null) readBegins(this.#body = request.body)
    this.#headLimitMs = request.headersTimeoutMs
    this.#bodyLimitMs = request.bodyTimeoutMs
    if (request.resend === true) {
      this.#request = request
      this.#sentAt = performance.now()
    }
    this.#connections = connections
    this.#mayReturn = request.mayReturn === true
    try {
      if (!this.#post(connections, request)) this.#dispatch(connections, request)
    } catch (error) {
      this.onError(error as Error)
    }
  }

  #post (connections: Wires, { method, alone, origin, connectTimeoutMs, path, headers, body }: ExchangeRequest): boolean {
    if (method !== 'POST' || alone === true || body === null) return false
    return connections.plain(origin, connectTimeoutMs)?.post(path, headers, body, this, this.#isRepeated) === true
  }

  #dispatch (connections: Wires, request: ExchangeRequest): void {
    // while undici sends a body that streams, only it knows how far that is: there the waits are its own
    const isStream = request.body !== null && !Buffer.isBuffer(request.body)
    if (isStream) this.#headLimitMs = this.#bodyLimitMs = 0
    const options: Dispatcher.DispatchOptions = {
      origin: request.origin,
      path: request.path,
      method: request.method,
      headers: request.headers,
      body: request.body,
      headersTimeout: isStream ? request.headersTimeoutMs : 0,
      bodyTimeout: isStream ? request.bodyTimeoutMs : 0
    }
    if (request.alone === true) options.reset = true
    connections.to(request.origin, request.connectTimeoutMs).dispatch(options, this)
  }

  /** The client left, or the answer is no longer wanted. Frees the upstream's socket at once. */
  abort (reason: Error): void {
    if (!this.#open || this.#aborted !== null) return
    this.#aborted = reason
    if (this.#abort !== null) return this.#abort(reason)
    // not connected yet: nothing was sent, and `onConnect` will see that nothing is to be
    this.#open = false
    this.#bodyEnds(false)
    this.#settled('aborted')
  }

  onConnect (abort: (reason?: Error) => void): void {
    this.#abort = abort
    if (this.#aborted !== null) return abort(this.#aborted)
    if (this.#headLimitMs > 0) this.#await(this.#headLimitMs, () => new errors.HeadersTimeoutError())
  }

  /** The head is waited for while it is the other side that stands still, and not the client whose upload this is. */
  onBody (isTheirs: boolean): void {
    if (this.#hasHead) this.#wait?.heard()
    else if (isTheirs) this.#wait?.goOn()
    else this.#wait?.pause()
  }

  onHeaders (status: number, rawHeaders: readonly Buffer[] | readonly string[], resume: () => void): boolean {
    if (status < 200) return true
    this.#hasHead = true
    if (this.#bodyLimitMs === 0) {
      this.#wait?.end()
      this.#sink.onDrain(resume)
    } else {
      this.#watchBody(resume)
    }
    this.#sink.head(status, rawHeaders)
    return true
  }

  onData (chunk: Buffer): boolean {
    if (this.#bodyLimitMs === 0) return this.#sink.data(chunk)
    this.#wait?.heard()
    const goesOn = this.#sink.data(chunk)
    if (!goesOn) this.#wait?.pause()
    return goesOn
  }

  /** @param isSent as the plain connection knows it; of undici, the trailers */
  onComplete (isSent: unknown): void {
    if (!this.#open) return
    this.#open = false
    this.#bodyEnds(isSent === true)
    this.#wait?.end()
    this.#sink.end()
    this.#settled('ended')
  }

  onError (error: Error): void {
    if (!this.#open) return
    this.#wait?.end()
    this.#wait = null
    if (this.#metClosedConnection(error)) {
      const request = this.#request!
      this.#request = null
      this.#abort = null
      this.#isRepeated = true
      // the engine may have seen it and fallen over it, so it is not asked a third time
      return this.send(this.#connections!, { ...request, resend: false, mayReturn: false })
    }
    this.#open = false
    this.#bodyEnds(false)
    // what has no connection yet has sent nothing
    if (this.#mayReturn && this.#abort === null && this.#aborted === null) return this.#settled('unsent')
    if (this.#aborted === null) this.#sink.fail(upstreamError(error, this.#hasHead, this.#target))
    this.#settled(this.#aborted === null ? 'failed' : 'aborted')
  }

  #bodyEnds (isSent: boolean): void {
    if (this.#body !== null) readEnds(this.#body, isSent)
    this.#body = null
  }

  #watchBody (resume: () => void): void {
    const wait = this.#await(this.#bodyLimitMs, () => new errors.BodyTimeoutError())
    wait.goOn()
    this.#sink.onDrain(() => {
      wait.goOn()
      resume()
    })
  }

  #await (limitMs: number, silence: () => Error): Wait {
    const fellSilent = (): void => this.#abort?.(silence())
    if (this.#wait === null) return this.#wait = this.#connections!.silence.begin(limitMs, fellSilent)
    this.#wait.next(limitMs, fellSilent)
    return this.#wait
  }

  #metClosedConnection (error: Error): boolean {
    if (this.#request === null || this.#hasHead || this.#aborted !== null) return false
    return isClosed(error) && performance.now() - this.#sentAt < CLOSED_BEFORE_MS
  }
}

/** What went wrong with an upstream, in the words of the error table. */
export function upstreamError (error: Error & { code?: string }, hasHead: boolean, { label, details }: ExchangeTarget): SvcError {
  const code = error.code ?? error.name
  const facts = { details: { ...details, cause: code }, cause: error }
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return svcError('dispatch.upstream_timeout', `${label} sent nothing for longer than its configured limit`, facts)
  }
  if (hasHead) return svcError('dispatch.upstream_failed', `${label} failed in the middle of its answer`, facts)
  return svcError('dispatch.upstream_unavailable', `${label} cannot be reached or closed the connection before it answered`, facts)
}
