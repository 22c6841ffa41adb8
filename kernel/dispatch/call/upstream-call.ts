import type { Readable } from 'node:stream'
import type { JsonBody, SurfaceName, Upstream } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { CallContext } from './call-context.js'
import { Exchange, type ExchangeOutcome } from './exchange.js'
import { VIA_HEADER, viaFor } from '../requests/loop-guard.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { Asked } from './prepared.js'
import { StreamShaper } from '../answer/stream-shaper.js'
import { UpstreamAnswer } from '../upstream/upstream-answer.js'
import { wireTo } from '../upstream/upstream-wire.js'
import { WatchedCall, type OutgoingWatchHolder } from './watched-call.js'

export interface UpstreamContext extends CallContext {
  /** Names this gateway among those that a request comes through. */
  readonly token: string
  readonly outgoing: OutgoingWatchHolder
}

export interface UpstreamCallInput {
  readonly upstream: Upstream
  readonly modelId: string
  readonly surface: SurfaceName
  /** Null for what is not JSON. */
  readonly view: JsonBody | null
  /** Below the upstream's base URL. */
  readonly path: string
  readonly asked: Omit<Asked, 'body'>
  /** A stream is read at the upstream's pace and destroyed with the call. */
  readonly body: Buffer | Readable
  /** `content-length` of a stream, if it is known. */
  readonly lengthHeader?: readonly string[]
  readonly counter: TokenCount
}

/**
 * Sends one request to an upstream and its answer, without redirects and without the key, to a sink; `settled` is called
 * once, when nothing of the call is left. Returns the function that gives the call up. Throws `dispatch.loop`, and whatever the
 * watch of outgoing calls refuses it with.
 */
export function callUpstream (
  context: UpstreamContext, input: UpstreamCallInput, sink: AnswerSink, settled: () => void
): (reason: Error) => void {
  const { config, clock, connections, meters, token } = context
  const { upstream, asked: { request, requestId }, body, lengthHeader } = input
  const wire = wireTo(upstream, name => config.secret(name))
  const target = wire.target(input.path)
  const headers = wire.headers(request.raw.rawHeaders, requestId, viaFor(request.headers[VIA_HEADER], token))
  if (lengthHeader !== undefined) headers.push(...lengthHeader)
  const meter = meters.of(upstream.name)
  const watched = watchedCall(context.outgoing, input, sink)
  meter.request()
  const answer = new UpstreamAnswer(watched ?? sink, upstream.name, wire.hidden)
  const ended = watched === null ? settled : (outcome: ExchangeOutcome) => {
    watched.settled(outcome === 'aborted')
    settled()
  }
  const exchange = new Exchange(new StreamShaper(answer, meter, input.counter, clock), wire, ended)
  exchange.send(connections, {
    origin: target.origin,
    path: target.path,
    method: 'POST',
    headers,
    body,
    headersTimeoutMs: wire.headersTimeoutMs,
    bodyTimeoutMs: (upstream.idle_timeout_seconds ?? config.snapshot.svc.dispatcher.direct_read_timeout_s) * 1000,
    connectTimeoutMs: wire.connectTimeoutMs
  })
  return reason => exchange.abort(reason)
}

/** Null while nothing watches what goes out, or for a call that the watch lets pass: then nothing is made for it. */
function watchedCall ({ watch }: OutgoingWatchHolder, input: UpstreamCallInput, sink: AnswerSink): WatchedCall | null {
  if (watch === null) return null
  const { asked: { request, requestId, origin }, upstream, modelId, surface, view, body, counter } = input
  const end = watch({
    requestId,
    surface,
    upstream: upstream.name,
    modelId,
    headers: origin ?? request.headers,
    body: view,
    bodyBytes: Buffer.isBuffer(body) ? body.length : null
  })
  return end === null ? null : new WatchedCall(sink, end, counter)
}
