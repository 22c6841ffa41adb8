import type {
  Clock, EngineProvider, ForwardOptions, NamedSlotConfig, Otherwise, SlotStatus, SurfaceName, SvcError, Upstream
} from '../../contract/index.js'
import type { ActiveRequests } from '../requests/active-requests.js'
import type { HoldTimes } from '../answer/answer-sink.js'
import { LackWatch } from '../answer/lack-watch.js'
import { runProduced } from '../answer/produced-answer.js'
import { isRoute, type DeadEnd, type Resolution, type Route } from '../route/resolve.js'
import type { Prepared } from './prepared.js'

export interface OtherSurfaceDeps {
  readonly clock: Clock
  readonly slots: {
    status (slot: string): SlotStatus
    config (slot: string): NamedSlotConfig
    provider (slot: string): EngineProvider | null
  }
  readonly upstreams: { get (name: string): Upstream | undefined }
  readonly active: ActiveRequests
  readonly resolve: (model: string, surface: SurfaceName) => Resolution
  readonly holdTimes: () => HoldTimes
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
}

/** What is known when the request's own surface was tried first. */
interface Tried {
  /** What to remember it of. */
  readonly place?: object | null
  /** The client's connection is kept alive already. */
  readonly isHeld?: boolean
}

/** How long it is remembered that an upstream does not know a path: it may learn it with its next release. */
const KNOWN_MS = 10 * 60_000

/**
 * Requests of a surface that the place they lead to does not speak, and that their route can say on another one (contract
 * `ForwardOptions.otherwise`). A slot's provider says what it speaks; of an upstream, and of an engine that knows less than its
 * provider, the first refusal tells it.
 */
export class OtherSurface {
  readonly #deps: OtherSurfaceDeps
  /** By upstream or by run of a slot; until when, by surface. */
  readonly #lacking = new WeakMap<object, Map<SurfaceName, number>>()
  readonly #runs = new Map<string, { readonly generation: number }>()

  constructor (deps: OtherSurfaceDeps) {
    this.#deps = deps
  }

  /** Where a request goes on the other surface that leads nowhere on its own; null if it leads nowhere there either. */
  routeOf (deadEnd: DeadEnd, model: string, { otherwise }: ForwardOptions): Route | null {
    if (otherwise === undefined || deadEnd.kind !== 'no-route') return null
    const found = this.#deps.resolve(model, otherwise.surface)
    return isRoute(found) ? found : null
  }

  /** True when the request is answered over the other surface; else the answer of its own is watched. */
  takes (prepared: Prepared, route: Route): boolean {
    const { options: { otherwise, surface }, sink } = prepared
    if (otherwise === undefined || !this.#isMeant(otherwise, route)) return false
    if (this.#isIgnored(prepared, route, otherwise)) {
      this.answer(prepared, route)
      return true
    }
    const place = this.#placeOf(route)
    const until = place === null ? undefined : this.#lacking.get(place)?.get(surface)
    if (until !== undefined && this.#deps.clock.monotonic() < until) {
      this.answer(prepared, route)
      return true
    }
    prepared.sink = new LackWatch(sink, () => {
      prepared.sink = sink
      // a stream to a slot is kept alive already
      this.answer(prepared, route, { place, isHeld: route.kind === 'slot' })
    })
    return false
  }

  /** From here on the request is answered by calls on the other surface. */
  answer (prepared: Prepared, route: Route, { place = null, isHeld = false }: Tried = {}): void {
    const { clock, active, told, holdTimes } = this.#deps
    const { asked, options: { otherwise, surface }, sink } = prepared
    prepared.isElsewhere = true
    prepared.slot = null
    prepared.upstream = null
    prepared.sent = true
    prepared.attempt = 1
    const settle = (): void => active.remove(prepared)
    prepared.giveUp = settle
    try {
      const { slot, upstream, modelId } = route.kind === 'slot' ? { ...route, upstream: null } : { ...route, slot: null }
      const taken = otherwise!.take({
        body: asked.body,
        requestId: asked.requestId,
        headers: prepared.headers,
        slot: slot === null ? null : this.#deps.slots.config(slot),
        upstream,
        modelId
      })
      prepared.giveUp = runProduced(async signal => {
        const answer = await taken.answer(signal)
        if (place !== null && answer.status < 400) this.#learn(place, surface)
        return answer
      }, sink, told, settle)
      // what it needs is asked for before its own reader is seen to
      if (taken.stream && !isHeld) sink.hold(clock, holdTimes())
    } catch (error) {
      sink.fail(told(error))
      settle()
    }
  }

  /** Whether the engine would pass over what is asked for, and speaks the other surface. */
  #isIgnored ({ view, options: { surface } }: Prepared, route: Route, otherwise: Otherwise): boolean {
    if (route.kind !== 'slot' || view === null) return false
    const surfaces = this.#deps.slots.provider(route.slot)?.surfaces
    return surfaces?.[surface]?.ignores?.(view) === true && surfaces[otherwise.surface] !== undefined
  }

  #isMeant ({ authStyles }: Otherwise, route: Route): boolean {
    if (authStyles === undefined) return true
    const upstream = route.kind === 'upstream' ? this.#deps.upstreams.get(route.upstream) : undefined
    return upstream !== undefined && authStyles.includes(upstream.auth_style)
  }

  #learn (place: object, surface: SurfaceName): void {
    const known = this.#lacking.get(place) ?? new Map<SurfaceName, number>()
    this.#lacking.set(place, known.set(surface, this.#deps.clock.monotonic() + KNOWN_MS))
  }

  /** What the knowledge is about: an upstream as it is configured, or an engine from its start to its end. */
  #placeOf (route: Route): object | null {
    if (route.kind === 'upstream') return this.#deps.upstreams.get(route.upstream) ?? null
    const { generation } = this.#deps.slots.status(route.slot)
    let run = this.#runs.get(route.slot)
    if (run?.generation !== generation) this.#runs.set(route.slot, run = { generation })
    return run
  }
}
