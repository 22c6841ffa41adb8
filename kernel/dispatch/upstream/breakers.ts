import { svcError, type CircuitView, type Clock, type SvcError, type Upstream } from '../../contract/index.js'
import { admit, judge, newBreaker, reset, wouldAdmit, type Breaker, type BreakerSettings, type Verdict } from './breaker.js'

export interface BreakersDeps {
  readonly clock: Clock
  /** Called when an upstream fell ill, or is well again. Must not throw. */
  readonly changed: (upstream: string, circuit: CircuitView) => void
}

/** The circuit breakers of the upstreams, by name. What they decide is in breaker.ts. */
export class Breakers {
  readonly #deps: BreakersDeps
  readonly #breakers = new Map<string, Breaker>()

  constructor (deps: BreakersDeps) {
    this.#deps = deps
  }

  /**
   * A ticket for one call, to be handed back with `judge` exactly once. Throws `dispatch.circuit_open` when the upstream is left
   * alone for now.
   */
  enter (upstream: Upstream): number {
    const { breaker, ticket } = admit(this.#of(upstream.name), settingsOf(upstream), this.#now())
    this.#keep(upstream.name, breaker)
    if (ticket === null) throw circuitOpen(upstream.name, this.view(upstream))
    return ticket
  }

  wouldAdmit (upstream: Upstream): boolean {
    return wouldAdmit(this.#of(upstream.name), settingsOf(upstream), this.#now())
  }

  judge (upstream: Upstream, ticket: number, verdict: Verdict): void {
    const before = this.#of(upstream.name)
    const breaker = judge(before, ticket, verdict, settingsOf(upstream), this.#now())
    if (breaker === before) return
    this.#keep(upstream.name, breaker)
    const fell = breaker.state === 'open' && before.state === 'closed'
    const rose = breaker.state === 'closed' && before.state !== 'closed'
    if (fell || rose) this.#deps.changed(upstream.name, this.view(upstream))
  }

  /** Forgets what was: an operator says so, or the name stands for another upstream now. */
  reset (name: string): void {
    if (this.#breakers.has(name)) this.#keep(name, reset(this.#of(name)))
  }

  view (upstream: Upstream): CircuitView {
    const { state, failures, until } = this.#of(upstream.name)
    if (state === 'closed' || upstream.breaker_failures === 0) return { state: 'closed', failures, retry_in_ms: 0 }
    const left = Math.max(0, Math.ceil(until - this.#now()))
    return { state: left === 0 ? 'half-open' : state, failures, retry_in_ms: left }
  }

  #of (name: string): Breaker {
    return this.#breakers.get(name) ?? newBreaker
  }

  #keep (name: string, breaker: Breaker): void {
    if (breaker !== this.#breakers.get(name)) this.#breakers.set(name, breaker)
  }

  #now (): number {
    return this.#deps.clock.monotonic()
  }
}

function circuitOpen (name: string, { failures, retry_in_ms: waitMs }: CircuitView): SvcError {
  const wait = Math.max(1, Math.ceil(waitMs / 1000))
  return svcError('dispatch.circuit_open',
    `upstream '${name}' failed ${failures} times in a row and is not used for ${wait} s; \`svc upstream test ${name}\` tests it now`,
    { details: { upstream: name, failures, retry_after_s: wait } })
}

function settingsOf ({ breaker_failures: failures, breaker_seconds: seconds }: Upstream): BreakerSettings {
  return { failures, openMs: seconds * 1000 }
}
