import type { Upstream } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { CallContext } from './call-context.js'
import { Exchange, type ExchangeRequest, type ExchangeTarget } from './exchange.js'
import { VIA_HEADER, viaFor } from '../requests/loop-guard.js'
import { outgoingBody, type Asked, type Prepared } from './prepared.js'
import { StreamShaper } from '../answer/stream-shaper.js'
import { UpstreamAnswer } from '../upstream/upstream-answer.js'
import { wireTo } from '../upstream/upstream-wire.js'

export type UpstreamEnvelope = ExchangeTarget & Omit<ExchangeRequest, 'method' | 'body'>

/** Everything of a call to an upstream but its body. Throws `dispatch.loop`. */
export function upstreamEnvelope (
  { config }: CallContext, token: string, upstream: Upstream, path: string, { request, requestId }: Omit<Asked, 'body'>
): UpstreamEnvelope {
  const wire = wireTo(upstream, name => config.secret(name))
  const target = wire.target(path)
  const { idle_timeout_seconds: idle } = upstream
  return {
    label: wire.label,
    details: wire.details,
    origin: target.origin,
    path: target.path,
    headers: wire.headers(request.raw.rawHeaders, requestId, viaFor(request.headers[VIA_HEADER], token)),
    headersTimeoutMs: wire.headersTimeoutMs,
    bodyTimeoutMs: (idle ?? config.snapshot.svc.dispatcher.direct_read_timeout_s) * 1000,
    connectTimeoutMs: wire.connectTimeoutMs
  }
}

/** A sink that gets an upstream's answer without its redirects and without the key. */
export function guardedAnswer ({ config }: CallContext, upstream: Upstream, sink: AnswerSink): AnswerSink {
  return new UpstreamAnswer(sink, upstream.name, wireTo(upstream, name => config.secret(name)).hidden)
}

/**
 * Sends one request to an upstream and its answer to a sink; `settled` is called once, when nothing of the call is left.
 * Returns the function that gives the call up. Throws `dispatch.loop`.
 * @param token of this gateway
 */
export function callUpstream (
  context: CallContext, token: string, prepared: Prepared, upstream: Upstream, modelId: string,
  sink: AnswerSink, settled: () => void
): (reason: Error) => void {
  const { asked, options } = prepared
  const envelope = upstreamEnvelope(context, token, upstream, options.path, asked)
  const meter = context.meters.of(upstream.name)
  meter.request()
  const answer = guardedAnswer(context, upstream, sink)
  const exchange = new Exchange(new StreamShaper(answer, meter, prepared, context.clock), envelope, settled)
  exchange.send(context.connections, { ...envelope, method: 'POST', body: outgoingBody(prepared, modelId, null) })
  return reason => exchange.abort(reason)
}
