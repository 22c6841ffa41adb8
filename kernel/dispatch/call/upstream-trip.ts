import type { Logger, SurfaceName, SvcError, Timer, Upstream } from '../../contract/index.js'
import type { HoldTimes } from '../answer/answer-sink.js'
import { Attempt, type AttemptOwner } from './attempt.js'
import { boardSlot } from './board-slot.js'
import type { Breakers } from '../upstream/breakers.js'
import { fallbackRoute } from '../route/fallback-route.js'
import { outgoingBody, type Prepared } from './prepared.js'
import { configured } from '../route/resolution-errors.js'
import type { Resolution, Route } from '../route/resolve.js'
import { afterTry, type Outcome } from './retry-policy.js'
import { callSlot } from './slot-call.js'
import { planSlotCall } from './slot-plan.js'
import { callUpstream, type UpstreamContext } from './upstream-call.js'

export interface TripDeps extends UpstreamContext {
  readonly breakers: Breakers
  readonly upstreams: { get (name: string): Upstream | undefined }
  readonly resolve: (model: string, surface: SurfaceName) => Resolution
  readonly holdTimes: () => HoldTimes
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
  readonly log: Logger
  /** From 0 up to 1. */
  readonly random: () => number
}

type UpstreamPlace = Extract<Route, { kind: 'upstream' }>
type SlotPlace = Extract<Route, { kind: 'slot' }>

/**
 * A request to an upstream: its tries there, and in the places of its fallback chain, until one has an answer for the
 * client. At most one of them runs. Settles the request exactly once.
 */
export class UpstreamTrip implements AttemptOwner {
  readonly #deps: TripDeps
  readonly #prepared: Prepared
  readonly #first: Upstream
  readonly #modelId: string
  /** Entries of the fallback chain that were used up. */
  #used = 0
  #place: Route
  /** In this place. */
  #tries = 0
  #attempt: Attempt | null = null
  #ticket: { readonly upstream: Upstream, readonly number: number } | null = null
  /** Gives up what runs or waits. */
  #leave: (reason: Error) => void = nothing
  #isHeld = false

  /** Throws `model.not_found` for an upstream that is gone. */
  constructor (deps: TripDeps, prepared: Prepared, place: UpstreamPlace) {
    this.#deps = deps
    this.#prepared = prepared
    this.#first = configured(deps.upstreams, place.upstream)
    this.#modelId = place.modelId
    this.#place = place
  }

  start (): void {
    const giveUp = (reason: Error): void => this.#giveUp(reason)
    this.#prepared.giveUp = giveUp
    this.#try()
  }

  #try (): void {
    const { sink } = this.#prepared
    // what it waited for is over; a try that fails at once must not end it again
    this.#leave = nothing
    this.#tries++
    this.#prepared.attempt++
    this.#prepared.note = null
    const attempt = this.#attempt = new Attempt(this, sink)
    const settled = (): void => {
      if (this.#isCurrent(attempt)) this.#prepared.settle()
    }
    try {
      const place = this.#place
      const leave = place.kind === 'upstream' ? this.#toUpstream(place, attempt, settled) : this.#toSlot(place, attempt, settled)
      if (this.#isCurrent(attempt)) this.#leave = leave
    } catch (error) {
      this.#judge('unknown')
      attempt.fail(this.#deps.told(error), false)
      settled()
    }
  }

  /** One that failed at once has made room for the next before it says how it can be given up. */
  #isCurrent (attempt: Attempt): boolean {
    return this.#attempt === attempt && !attempt.dropped
  }

  #toUpstream ({ upstream: name, modelId }: UpstreamPlace, attempt: Attempt, settled: () => void): (reason: Error) => void {
    const { breakers, upstreams } = this.#deps
    const prepared = this.#prepared
    const upstream = configured(upstreams, name)
    prepared.slot = null
    prepared.upstream = name
    this.#ticket = { upstream, number: breakers.enter(upstream) }
    prepared.sent = true
    const { asked, surface, view, options: { path } } = prepared
    const body = outgoingBody(prepared, modelId, null)
    return callUpstream(this.#deps, { upstream, modelId, surface, view, path, asked, body, counter: prepared }, attempt, settled)
  }

  /** A slot at the end of a chain is loaded if it must be, as for a request that names it. */
  #toSlot ({ slot, modelId }: SlotPlace, attempt: Attempt, settled: () => void): (reason: Error) => void {
    const { clock, slots, holdTimes, told } = this.#deps
    const prepared = this.#prepared
    prepared.upstream = null
    prepared.slot = slot
    prepared.sent = false
    const plan = planSlotCall(this.#deps, prepared, slot, modelId)
    if (prepared.view?.isTrue('stream') === true && !this.#isHeld) {
      this.#isHeld = true
      prepared.sink.hold(clock, holdTimes())
    }
    return boardSlot({
      acquire: signal => slots.acquire(slot, signal, plan.surface.light, prepared.priority),
      send: lease => {
        prepared.sent = true
        return callSlot(this.#deps, plan.input(lease, prepared), attempt, settled)
      },
      failed: error => {
        attempt.fail(told(error))
        settled()
      },
      left: settled
    })
  }

  judged (isIll: boolean): void {
    this.#judge(isIll ? 'ill' : 'alive')
  }

  now (): number {
    return this.#deps.clock.now()
  }

  #judge (verdict: 'alive' | 'ill' | 'unknown'): void {
    if (this.#ticket === null) return
    const { upstream, number } = this.#ticket
    this.#ticket = null
    this.#deps.breakers.judge(upstream, number, verdict)
  }

  instead (outcome: Outcome): (() => void) | null {
    const { clock, breakers, log, random } = this.#deps
    const { sink, id } = this.#prepared
    if (sink.done) return null
    const upstream = this.#upstream()
    const decision = afterTry(outcome, this.#tries, settingsOf(upstream), random())
    if (decision.kind === 'answer') return null
    const from = { request_id: id, ...placeOf(this.#place), status: outcome.status }
    if (decision.kind === 'again' && (upstream === undefined || breakers.wouldAdmit(upstream))) {
      return () => {
        log.info({ ...from, try: this.#tries, wait_ms: Math.round(decision.waitMs) }, 'no answer yet: trying again')
        const timer = clock.setTimer(decision.waitMs, () => this.#try())
        this.#pause(timer, `${nameOf(this.#place)} gave no answer (${outcome.status}); try ${this.#tries + 1} follows`)
      }
    }
    const next = this.#nextPlace()
    if (next === null) return null
    return () => {
      log.warn({ ...from, next: nameOf(next) }, 'no answer: trying the next place of the fallback chain')
      this.#end(new Error('another place is asked'))
      this.#place = next
      this.#tries = 0
      this.#try()
    }
  }

  #pause (timer: Timer, note: string): void {
    this.#end(new Error('it is tried again'))
    this.#prepared.sent = false
    this.#prepared.note = note
    const leave = (): void => {
      timer.cancel()
      this.#prepared.settle()
    }
    this.#leave = leave
  }

  /** Frees what the last attempt still holds. */
  #end (reason: Error): void {
    const leave = this.#leave
    this.#leave = nothing
    leave(reason)
  }

  #giveUp (reason: Error): void {
    this.#judge('unknown')
    this.#end(reason)
  }

  hasMore (): boolean {
    const upstream = this.#upstream()
    return this.#used < this.#first.fallback.length || (upstream !== undefined && this.#tries <= upstream.retries)
  }

  /** The next place of the chain that may be asked. */
  #nextPlace (): Route | null {
    const { upstreams, breakers, resolve, slots } = this.#deps
    const enabled = (name: string): Upstream | undefined => {
      const upstream = upstreams.get(name)
      return upstream?.enabled === true ? upstream : undefined
    }
    while (this.#used < this.#first.fallback.length) {
      const entry = this.#first.fallback[this.#used++]!
      const look = { resolve: (model: string): Resolution => resolve(model, this.#prepared.surface), upstream: enabled }
      const route = fallbackRoute(entry, this.#modelId, look)
      if (route === null) continue
      if (route.kind === 'slot' && slots.provider(route.slot) !== null) return route
      const upstream = route.kind === 'upstream' ? enabled(route.upstream) : undefined
      if (upstream !== undefined && breakers.wouldAdmit(upstream)) return route
    }
    return null
  }

  #upstream (): Upstream | undefined {
    return this.#place.kind === 'upstream' ? this.#deps.upstreams.get(this.#place.upstream) : undefined
  }
}

function nothing (): void {}

function settingsOf (upstream: Upstream | undefined): Parameters<typeof afterTry>[2] {
  if (upstream === undefined) return { retries: 0, waitMs: 0, maxWaitMs: 0 }
  const { retries, retry_wait_seconds: wait, retry_max_wait_seconds: most } = upstream
  return { retries, waitMs: wait * 1000, maxWaitMs: most * 1000 }
}

function placeOf (place: Route): { readonly slot: string } | { readonly upstream: string, readonly model: string } {
  return place.kind === 'slot' ? { slot: place.slot } : { upstream: place.upstream, model: place.modelId }
}

function nameOf (place: Route): string {
  return place.kind === 'slot' ? `slot '${place.slot}'` : `upstream '${place.upstream}'`
}
