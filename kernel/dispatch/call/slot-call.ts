import { atPort } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { runAdapted } from './adapted-call.js'
import { originOf } from './connections.js'
import { EventEdits } from '../answer/event-edits.js'
import { Exchange, type ExchangeOutcome, type ExchangeRequest } from './exchange.js'
import { forEngine } from '../answer/headers.js'
import { RefusalFilter } from '../answer/refusal-filter.js'
import { StreamShaper } from '../answer/stream-shaper.js'
import type { CallContext } from './call-context.js'
import type { SlotCallInput } from './slot-call-input.js'

/**
 * Sends one request to a leased engine and its answer to a sink. Owns the lease: it is released exactly once,
 * when the call has settled. Returns the function that gives the call up. The client's JSON, a form that still arrives
 * and a request that passes untouched all go through here.
 * @param unsent called in place of `settled`, with the sink untouched, when the engine could not be reached at all
 */
export function callSlot (
  context: CallContext, input: SlotCallInput, sink: AnswerSink, settled: () => void, unsent: (() => void) | null = null
): (reason: Error) => void {
  const { lease, surface, body } = input
  const release = (outcome: ExchangeOutcome): void => {
    lease.release(outcome === 'failed' || outcome === 'unsent')
    // not before the caller has got what this function returns
    if (outcome === 'unsent' && unsent !== null) queueMicrotask(unsent)
    else settled()
  }
  input.throughput.request()
  const answer = slotAnswer(context, input, sink)
  const shaper = new StreamShaper(answer, input.throughput, input.counter, context.clock, () => lease.heard())
  const giveUp = surface.adapt === undefined || !Buffer.isBuffer(body)
    ? sendPlain(context, input, shaper, release, unsent !== null)
    : runAdapted(context, surface.adapt, input, body, shaper, release)
  lease.onRevoked(error => {
    shaper.fail(error)
    giveUp(error)
  })
  return giveUp
}

function sendPlain (
  context: CallContext, input: SlotCallInput, sink: AnswerSink, settled: (outcome: ExchangeOutcome) => void, mayReturn: boolean
): (reason: Error) => void {
  const { lease, surface, body } = input
  const { slots, dispatcher } = context.config.snapshot.svc
  const exchange = new Exchange(sink, { label: `slot '${lease.slot}'`, details: { slot: lease.slot } }, settled)
  const request: ExchangeRequest = {
    origin: originOf(atPort(lease.address, surface.port)),
    path: surface.path,
    method: input.method ?? 'POST',
    headers: forEngine(input.headers, lease.address),
    body,
    alone: lease.provider.keepsConnections === false,
    headersTimeoutMs: slots.first_token_timeout_s * 1000,
    bodyTimeoutMs: dispatcher.direct_read_timeout_s * 1000,
    resend: body === null || Buffer.isBuffer(body),
    mayReturn
  }
  exchange.send(context.connections, request)
  return reason => exchange.abort(reason)
}

/** A sink behind what a provider has to say about its engine's answers. */
function slotAnswer ({ clock }: CallContext, { surface, asked }: SlotCallInput, sink: AnswerSink): AnswerSink {
  const edited = surface.events === undefined ? sink : new EventEdits(sink, surface.events, asked, clock)
  return surface.refusal === undefined ? edited : new RefusalFilter(edited, surface.refusal, surface.refusalFrom ?? 0)
}
