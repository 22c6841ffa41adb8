import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { svcError, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { Connections } from './connections.js'

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
  readonly connectTimeoutMs?: number
  /** Whether to send it once more when it met a connection that the other side had just closed. */
  readonly resend?: boolean
  /** No failure is told when the request never left: `settled` says `unsent`, and it may be asked again elsewhere. */
  readonly mayReturn?: boolean
}

/** `unsent`: there was no connection, and nobody was told. */
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
 * exactly once: `settled` is called after the sink's `end` or `fail`, or after an abort. Written against
 * undici's callback interface, which gives raw headers and copies nothing.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #sink: AnswerSink
  readonly #target: ExchangeTarget
  readonly #settled: (outcome: ExchangeOutcome) => void
  #abort: ((reason?: Error) => void) | null = null
  /** What may be sent once more; null when nothing may. */
  #request: ExchangeRequest | null = null
  #connections: Pick<Connections, 'to'> | null = null
  #sentAt = 0
  #mayReturn = false
  #aborted: Error | null = null
  #hasHead = false
  #open = true

  constructor (sink: AnswerSink, target: ExchangeTarget, settled: (outcome: ExchangeOutcome) => void) {
    this.#sink = sink
    this.#target = target
    this.#settled = settled
  }

  /** Never throws: whatever is wrong with the call is told to the sink. */
  send (connections: Pick<Connections, 'to'>, request: ExchangeRequest): void {
    const options: Dispatcher.DispatchOptions = {
      origin: request.origin,
      path: request.path,
      method: request.method,
      headers: request.headers,
      body: request.body,
      headersTimeout: request.headersTimeoutMs,
      bodyTimeout: request.bodyTimeoutMs
    }
    if (request.alone === true) options.reset = true
    if (request.resend === true) {
      this.#request = request
      this.#connections = connections
      this.#sentAt = performance.now()
    }
    this.#mayReturn = request.mayReturn === true
    try {
      connections.to(request.origin, request.connectTimeoutMs).dispatch(options, this)
    } catch (error) {
      this.onError(error as Error)
    }
  }

  /** The client left, or nobody wants the answer any more. Frees the upstream's socket at once. */
  abort (reason: Error): void {
    if (!this.#open || this.#aborted !== null) return
    this.#aborted = reason
    if (this.#abort !== null) return this.#abort(reason)
    // not connected yet: nothing was sent, and `onConnect` will see that nothing is to be
    this.#open = false
    this.#settled('aborted')
  }

  onConnect (abort: (reason?: Error) => void): void {
    this.#abort = abort
    if (this.#aborted !== null) abort(this.#aborted)
  }

  onHeaders (status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true
    this.#hasHead = true
    this.#sink.onDrain(resume)
    this.#sink.head(status, rawHeaders)
    return true
  }

  onData (chunk: Buffer): boolean {
    return this.#sink.data(chunk)
  }

  onComplete (): void {
    if (!this.#open) return
    this.#open = false
    this.#sink.end()
    this.#settled('ended')
  }

  onError (error: Error): void {
    if (!this.#open) return
    if (this.#metClosedConnection(error)) {
      const request = this.#request!
      this.#request = null
      this.#abort = null
      // the engine may have seen it and fallen over it, so it is not asked a third time
      return this.send(this.#connections!, { ...request, resend: false, mayReturn: false })
    }
    this.#open = false
    // what has no connection yet has sent nothing
    if (this.#mayReturn && this.#abort === null && this.#aborted === null) return this.#settled('unsent')
    if (this.#aborted === null) this.#sink.fail(upstreamError(error, this.#hasHead, this.#target))
    this.#settled(this.#aborted === null ? 'failed' : 'aborted')
  }

  #metClosedConnection (error: Error): boolean {
    if (this.#request === null || this.#hasHead || this.#aborted !== null) return false
    return isClosed(error) && performance.now() - this.#sentAt < CLOSED_BEFORE_MS
  }
}

/**
 * Whether a connection may have been closed before the request came. llama-server ends the connection behind each event
 * stream without saying so, so that the next request can be on its way into it already. A fresh connection that the
 * other side closes in good order was closed because of the request.
 */
function isClosed (error: Error & { code?: string, socket?: { bytesRead?: number } | null }): boolean {
  if (error.code === 'UND_ERR_SOCKET') return (error.socket?.bytesRead ?? 0) > 0
  return error.code === 'EPIPE' || error.code === 'ECONNRESET'
}

/** What went wrong with an upstream, in the words of the error table. */
export function upstreamError (error: Error & { code?: string }, hasHead: boolean, { label, details }: ExchangeTarget): SvcError {
  const code = error.code ?? error.name
  const facts = { details: { ...details, cause: code }, cause: error }
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return svcError('dispatch.upstream_timeout', `${label} stayed silent longer than its configured limit`, facts)
  }
  if (hasHead) return svcError('dispatch.upstream_failed', `${label} broke off in the middle of its answer`, facts)
  return svcError('dispatch.upstream_unavailable', `${label} cannot be reached or dropped the request before it answered`, facts)
}
