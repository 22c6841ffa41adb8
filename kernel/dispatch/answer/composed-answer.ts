import type { AdaptedAnswer, Clock, ComposeOptions, RouteCall, SvcError } from '../../contract/index.js'
import type { ActiveRequest, ActiveRequests } from '../requests/active-requests.js'
import type { HoldTimes } from './answer-sink.js'
import { clientLeft, isGone } from './client-gone.js'
import { ClientSink } from './client-sink.js'
import { runProduced } from './produced-answer.js'

export interface ComposerDeps {
  readonly active: ActiveRequests
  readonly clock: Clock
  readonly holdTimes: HoldTimes
  readonly told: (error: unknown) => SvcError
}

/** Answers a client with what a plugin puts together (contract `DispatchService.compose`). */
export function composeAnswer (
  { active, clock, holdTimes, told }: ComposerDeps, call: RouteCall, { surface, model, stream, dialect }: ComposeOptions,
  work: (signal: AbortSignal) => Promise<AdaptedAnswer>
): void {
  if (isGone(call.reply.raw)) return
  const sink = new ClientSink(call.reply.raw, call.requestId, () => giveUp(clientLeft(call.requestId)), dialect)
  const request: ActiveRequest = {
    id: call.requestId,
    model,
    surface,
    slot: null,
    upstream: null,
    priority: 'normal',
    // what it waits for is its calls, which are requests of their own
    sent: true,
    attempt: 1,
    note: null,
    startedAt: clock.monotonic(),
    bytesIn: Buffer.isBuffer(call.body) ? call.body.length : 0,
    headers: call.request.headers,
    tokens: 0,
    shared: null,
    index: -1,
    sink,
    stop: error => {
      sink.fail(error)
      giveUp(error)
    }
  }
  active.add(request)
  const giveUp = runProduced(work, sink, told, () => active.remove(request))
  // what it needs is asked for before its own reader is seen to
  if (stream) sink.hold(clock, holdTimes)
}
