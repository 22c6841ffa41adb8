import { isSvcError, type Surface } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { CallContext } from './call-context.js'
import { upstreamError } from './exchange.js'
import { runProduced } from '../answer/produced-answer.js'
import type { SlotCallInput } from './slot-call-input.js'

/**
 * Runs a provider's own translation of a request (contract `Surface.adapt`) and hands its answer to the sink,
 * with the same cancellation and the same single end as a plain forward.
 */
export function runAdapted (
  context: CallContext, adapt: NonNullable<Surface['adapt']>, { lease, contentType, requestId }: SlotCallInput, body: Buffer,
  sink: AnswerSink, settled: (outcome: 'ended' | 'failed') => void
): (reason: Error) => void {
  const target = { label: `slot '${lease.slot}'`, details: { slot: lease.slot } }
  let broken = false
  return runProduced(
    async signal => {
      const client = context.slots.clientOf(lease.address, lease.provider)
      return await adapt({ body, contentType, slot: context.slots.config(lease.slot), client, requestId, signal })
    },
    sink,
    (error, started) => {
      if (isSvcError(error)) return error
      broken = true
      return upstreamError(error as Error, started, target)
    },
    () => settled(broken ? 'failed' : 'ended')
  )
}
