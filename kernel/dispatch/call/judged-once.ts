import type { Clock, Upstream } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { Attempt } from './attempt.js'
import type { Verdict } from '../upstream/breaker.js'
import type { Breakers } from '../upstream/breakers.js'

/**
 * The sink for a call to an upstream that is made once, whatever comes of it: the breaker hears how it went. `settled` is to be
 * called when nothing of the call is left. Throws `dispatch.circuit_open`.
 */
export function judgedOnce (
  breakers: Breakers, upstream: Upstream, clock: Clock, sink: AnswerSink
): { readonly sink: AnswerSink, readonly settled: () => void } {
  let ticket: number | null = breakers.enter(upstream)
  const judge = (verdict: Verdict): void => {
    if (ticket !== null) breakers.judge(upstream, ticket, verdict)
    ticket = null
  }
  const owner = {
    judged: (isIll: boolean) => judge(isIll ? 'ill' : 'alive'),
    instead: () => null,
    hasMore: () => false,
    now: () => clock.now()
  }
  return { sink: new Attempt(owner, sink), settled: () => judge('unknown') }
}
