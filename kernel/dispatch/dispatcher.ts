import type { ServerResponse } from 'node:http'
import {
  handled, type AdaptedAnswer, type CallAnswer, type ComposeOptions, type DispatchService,
  type DispatchTarget, type ForwardOptions, type Interceptor, type Logger, type ModelObject, type OutgoingWatch, type PluginCall,
  type RouteCall, type SurfaceName, type SvcError, type TakenAnswer, type TakenRequest, type TargetRequest, type UploadOptions,
  type UpstreamView
} from '../contract/index.js'
import { ActiveRequests } from './requests/active-requests.js'
import type { HoldTimes } from './answer/answer-sink.js'
import { keepBody } from './body/body-blocks.js'
import { BodyView } from './body/body-view.js'
import type { Breakers } from './upstream/breakers.js'
import type { CallContext } from './call/call-context.js'
import { CallSink } from './call/call-sink.js'
import type { Catalog } from './route/catalog.js'
import { isGone } from './answer/client-gone.js'
import { writeError } from './answer/client-sink.js'
import { composeAnswer } from './answer/composed-answer.js'
import { toldFailure } from './answer/told-failure.js'
import { EnginePassage, passageOff } from './call/engine-passage.js'
import { Interceptors } from './route/interceptors.js'
import { gatewaysOf, VIA_HEADER } from './requests/loop-guard.js'
import type { RequestHistory } from './requests/request-history.js'
import { prepare, type Asked, type PrepareDeps, type Prepared } from './call/prepared.js'
import { bodyError, missingModel } from './route/resolution-errors.js'
import { OtherSurface } from './call/other-surface.js'
import { ModelLookup } from './route/model-lookup.js'
import { isRoute, type Route } from './route/resolve.js'
import { PRIORITY_HEADER } from './requests/priority.js'
import { SlotTrips } from './call/slot-trips.js'
import { OutgoingWatchHolder } from './call/watched-call.js'
import { UploadMemory } from './upload/upload-memory.js'
import { UploadRun, type UploadCall, type UploadDeps } from './upload/upload-run.js'
import type { UpstreamPool } from './upstream/upstream-pool.js'
import { UpstreamTrip, type TripDeps } from './call/upstream-trip.js'

export interface DispatcherDeps extends CallContext {
  readonly catalog: Catalog
  readonly upstreams: UpstreamPool
  readonly breakers: Breakers
  readonly history: RequestHistory
  readonly log: Logger
  /** Folder for uploads that have to wait. */
  readonly spool: string
  /** Names this gateway among those that a request comes through. */
  readonly token: string
}

type ClientCall = RouteCall<unknown, unknown, Buffer>

/** The one path of every `/v1` request: resolve, wait for the slot, forward, answer. */
export class GatewayDispatcher implements DispatchService {
  readonly #deps: DispatcherDeps
  readonly active: ActiveRequests
  readonly #interceptors = new Interceptors()
  readonly #outgoing = new OutgoingWatchHolder()
  readonly #preparing: PrepareDeps
  readonly #toSlots: SlotTrips
  readonly #toUpstreams: TripDeps
  readonly #lookup: ModelLookup
  readonly #uploads: UploadDeps
  readonly #passage: EnginePassage
  readonly #elsewhere: OtherSurface
  readonly #told: (error: unknown) => SvcError

  constructor (deps: DispatcherDeps) {
    this.#deps = deps
    this.active = new ActiveRequests(({ sink, surface, startedAt }) => {
      if (sink.isClients) deps.history.ended(surface, startedAt, sink.failed)
    })
    this.#lookup = new ModelLookup(deps)
    const told = (error: unknown): SvcError => toldFailure(error, deps.log)
    this.#told = told
    const holdTimes = (): HoldTimes => this.#holdTimes()
    const memory = new UploadMemory(deps.config.snapshot.svc.server.upload_memory_bytes)
    this.#uploads = { ...deps, outgoing: this.#outgoing, lookup: this.#lookup, active: this.active, memory, told }
    this.#passage = new EnginePassage({ ...deps, resolve: name => deps.catalog.resolveAnywhere(name), active: this.active, told })
    this.#preparing = { clock: deps.clock, log: deps.log, active: this.active }
    this.#toSlots = new SlotTrips({ ...deps, holdTimes, told })
    this.#toUpstreams = {
      ...deps,
      outgoing: this.#outgoing,
      resolve: (model, surface) => deps.catalog.resolve(model, surface),
      holdTimes,
      told,
      random: Math.random
    }
    this.#elsewhere = new OtherSurface({ ...this.#toUpstreams, active: this.active })
  }

  forward (call: ClientCall, options: ForwardOptions): typeof handled {
    call.reply.hijack()
    if (isGone(call.reply.raw)) return handled
    const refusal = this.#send(call, options, call.reply.raw, null)
    if (refusal !== null) {
      this.#deps.history.ended(options.surface, this.#deps.clock.monotonic(), true)
      writeError(call.reply.raw, refusal, call.requestId, options.dialect)
    }
    return handled
  }

  async call (call: PluginCall): Promise<CallAnswer> {
    const { body, contentType = 'application/json', model, priority, requestId, origin, signal } = call
    signal.throwIfAborted()
    keepBody(body)
    const sink = new CallSink(signal)
    // the chain of gateways goes on: a part of a request that came back is refused like the whole
    const via = origin?.[VIA_HEADER]
    const place = priority ?? origin?.[PRIORITY_HEADER]
    const headers = { 'content-type': contentType, [PRIORITY_HEADER]: place, [VIA_HEADER]: via }
    const asked: Asked = {
      requestId, body, origin, request: { headers, raw: { rawHeaders: ['content-type', contentType] } }
    }
    const refusal = this.#send(asked, call, sink, model ?? null)
    if (refusal !== null) sink.fail(refusal)
    sink.watch()
    return await sink.answer
  }

  compose (call: RouteCall, options: ComposeOptions, work: (signal: AbortSignal) => Promise<AdaptedAnswer>): typeof handled {
    call.reply.hijack()
    const { active } = this
    const told = (error: unknown): SvcError => this.#told(error)
    composeAnswer({ active, clock: this.#deps.clock, holdTimes: this.#holdTimes(), told }, call, options, work)
    return handled
  }

  intercept (
    surface: SurfaceName, flag: string, take: Interceptor, { first = false }: { readonly first?: boolean } = {}
  ): () => void {
    return this.#interceptors.add(surface, flag, take, first)
  }

  taken (request: TakenRequest, options: ForwardOptions): TakenAnswer | null {
    const view = BodyView.of(request.body)
    return typeof view === 'string' ? null : this.#interceptors.taken(request, options, view)
  }

  watchOutgoing (watch: OutgoingWatch): () => void {
    return this.#outgoing.use(watch)
  }

  target (model: string, surface: SurfaceName, request?: TargetRequest): DispatchTarget | null {
    const found = this.#deps.catalog.resolve(model, surface)
    if (found.kind === 'upstream') return { slot: null, upstream: found.upstream, modelId: found.modelId }
    if (found.kind !== 'slot') return null
    const { slot, modelId } = request === undefined ? found : this.#deps.catalog.ableSlotFor(found, request)
    return { slot, upstream: null, modelId }
  }

  upload (call: UploadCall, options: UploadOptions): typeof handled {
    call.reply.hijack()
    if (isGone(call.reply.raw)) return handled
    new UploadRun(this.#uploads, call, options).start()
    return handled
  }

  engine (call: RouteCall<unknown, unknown, Buffer | undefined>, target: string): typeof handled {
    if (!this.#deps.config.snapshot.svc.dispatcher.engine_passage) throw passageOff()
    call.reply.hijack()
    this.#passage.pass(call, target)
    return handled
  }

  models (
    signal: AbortSignal, via?: string | readonly string[], { waitsForFailed = false }: { readonly waitsForFailed?: boolean } = {}
  ): Promise<readonly ModelObject[]> {
    return this.#lookup.rows(signal, gatewaysOf(via), waitsForFailed)
  }

  model (id: string, signal: AbortSignal): Promise<ModelObject> {
    return this.#lookup.row(id, signal)
  }

  upstreams (): readonly UpstreamView[] {
    return this.#deps.upstreams.views()
  }

  /**
   * Puts the request on its way, or says why not.
   * @param named the model, for a body that is not JSON
   */
  #send (asked: Asked, options: ForwardOptions, reader: ServerResponse | CallSink, named: string | null): SvcError | null {
    try {
      const view = named === null ? BodyView.of(asked.body) : null
      if (typeof view === 'string') return bodyError(view)
      const model = (view === null ? named : view.string('model'))?.trim() ?? ''
      if (model === '') return missingModel(options.path)
      // only a client's request has a socket to answer on
      const isClients = view !== null && !(reader instanceof CallSink)
      const taken = isClients ? this.#interceptors.taken(asked as ClientCall, options, view) : null
      if (taken !== null) {
        keepBody(asked.body)
        const { stream } = taken
        this.compose(asked as ClientCall, { surface: options.surface, model, stream }, signal => taken.answer(signal))
        return null
      }
      const found = this.#lookup.now(model, options.surface)
      const deadEnd = found === null || isRoute(found) ? null : found
      const elsewhere = deadEnd === null ? null : this.#elsewhere.routeOf(deadEnd, model, options)
      // made when it is told and not before: its stack costs as much as a translation
      if (deadEnd !== null && elsewhere === null) return this.#lookup.refusal(deadEnd, model, options.surface)
      const prepared = prepare(this.#preparing, asked, options, view, model, reader)
      if (elsewhere !== null) this.#goElsewhere(prepared, elsewhere)
      else if (found === null) this.#askUpstreams(prepared)
      else this.#go(prepared, found as Route)
      return null
    } catch (error) {
      return this.#told(error)
    }
  }

  /** From here on the client's answer is the sink's: nothing may escape. */
  #go (prepared: Prepared, found: Route): void {
    try {
      const route = this.#deps.catalog.ableRoute(found, prepared)
      if (this.#elsewhere.takes(prepared, route)) return
      if (route.kind === 'slot') this.#toSlots.start(prepared, route)
      else new UpstreamTrip(this.#toUpstreams, prepared, route).start()
    } catch (error) {
      prepared.sink.fail(this.#told(error))
      prepared.settle()
    }
  }

  /** The same for a request whose own surface leads nowhere. */
  #goElsewhere (prepared: Prepared, found: Route): void {
    try {
      this.#elsewhere.answer(prepared, this.#deps.catalog.ableRoute(found, prepared))
    } catch (error) {
      prepared.sink.fail(this.#told(error))
      prepared.settle()
    }
  }

  #askUpstreams (prepared: Prepared): void {
    const { sink, settle, model, surface } = prepared
    const leave = this.#lookup.ask(model, surface, found => {
      if (isRoute(found)) return this.#go(prepared, found)
      const elsewhere = this.#elsewhere.routeOf(found, model, prepared.options)
      if (elsewhere !== null) return this.#goElsewhere(prepared, elsewhere)
      sink.fail(this.#lookup.refusal(found, model, surface))
      settle()
    })
    const giveUp = (reason: Error): void => {
      leave(reason)
      settle()
    }
    prepared.giveUp = giveUp
  }

  #holdTimes (): HoldTimes {
    const { hold_headers_s: hold, ping_interval_s: ping } = this.#deps.config.snapshot.svc.dispatcher
    return { holdMs: hold * 1000, pingMs: ping * 1000 }
  }
}
