import type { ServerResponse } from 'node:http'
import {
  handled, isSvcError, svcError, type AdaptedAnswer, type CallAnswer, type ComposeOptions, type DispatchService,
  type DispatchTarget, type ForwardOptions, type Interceptor, type Logger, type ModelObject, type OutgoingWatch, type PluginCall,
  type RouteCall, type SlotStatus, type SurfaceName, type SvcError, type TakenAnswer, type TakenRequest, type UploadOptions,
  type UpstreamView
} from '../contract/index.js'
import { isServing } from '../slots/schedule/slot-machine.js'
import { ActiveRequests } from './requests/active-requests.js'
import type { HoldTimes } from './answer/answer-sink.js'
import { keepBody } from './body/body-blocks.js'
import { BodyView } from './body/body-view.js'
import type { Breakers } from './upstream/breakers.js'
import type { CallContext } from './call/call-context.js'
import { CallSink } from './call/call-sink.js'
import type { Catalog } from './route/catalog.js'
import { clientLeft, isGone, leftRequest } from './answer/client-gone.js'
import { ClientSink, writeError } from './answer/client-sink.js'
import { composeAnswer } from './answer/composed-answer.js'
import { EnginePassage, passageOff } from './call/engine-passage.js'
import { embeddingTexts } from './body/embedding-body.js'
import { EmbeddingLine } from './call/embedding-line.js'
import { Flights } from './call/flights.js'
import { Interceptors } from './route/interceptors.js'
import { gatewaysOf, VIA_HEADER } from './requests/loop-guard.js'
import type { RequestHistory } from './requests/request-history.js'
import type { Asked, Prepared } from './call/prepared.js'
import { bodyError, missingModel } from './route/resolution-errors.js'
import { TappedSink } from './answer/tapped-sink.js'
import { tellLoading } from './answer/loading-notes.js'
import { OtherSurface } from './call/other-surface.js'
import { ModelLookup } from './route/model-lookup.js'
import type { Route } from './route/resolve.js'
import { callSlot } from './call/slot-call.js'
import { planSlotCall, type SlotPlan } from './call/slot-plan.js'
import { PRIORITY_HEADER, priorityOf } from './requests/priority.js'
import { OutgoingDesk } from './call/watched-call.js'
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
  readonly #flights = new Flights(error => this.#told(error))
  readonly #embeddings = new EmbeddingLine(
    error => this.#told(error), () => this.#deps.config.snapshot.svc.dispatcher.embedding_line_bytes
  )

  readonly active: ActiveRequests
  readonly #interceptors = new Interceptors()
  readonly #outgoing = new OutgoingDesk()
  readonly #trips: TripDeps
  readonly #lookup: ModelLookup
  readonly #uploads: UploadDeps
  readonly #passage: EnginePassage
  readonly #elsewhere: OtherSurface

  constructor (deps: DispatcherDeps) {
    this.#deps = deps
    this.active = new ActiveRequests(({ sink, surface, startedAt }) => {
      if (sink.isClients) deps.history.ended(surface, startedAt, sink.failed)
    })
    this.#lookup = new ModelLookup(deps)
    const told = (error: unknown): SvcError => this.#told(error)
    const memory = new UploadMemory(deps.config.snapshot.svc.server.upload_memory_bytes)
    this.#uploads = { ...deps, outgoing: this.#outgoing, lookup: this.#lookup, active: this.active, memory, told }
    this.#passage = new EnginePassage({ ...deps, resolve: name => deps.catalog.resolveAnywhere(name), active: this.active, told })
    this.#trips = {
      ...deps,
      outgoing: this.#outgoing,
      resolve: (model, surface) => deps.catalog.resolve(model, surface),
      holdTimes: () => this.#holdTimes(),
      told,
      random: Math.random
    }
    this.#elsewhere = new OtherSurface({ ...this.#trips, active: this.active })
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

  async call ({ body, contentType = 'application/json', model, priority, requestId, origin, signal, ...options }: PluginCall): Promise<CallAnswer> {
    signal.throwIfAborted()
    keepBody(body)
    const sink = new CallSink(signal)
    // the chain of gateways goes on: a part of a request that came back is refused like the whole
    const via = origin?.[VIA_HEADER]
    const headers = {
      'content-type': contentType,
      ...priority === undefined ? {} : { [PRIORITY_HEADER]: priority },
      ...via === undefined ? {} : { [VIA_HEADER]: via }
    }
    const asked: Asked = {
      requestId, body, origin, request: { headers, raw: { rawHeaders: ['content-type', contentType] } }
    }
    const refusal = this.#send(asked, options, sink, model ?? null)
    if (refusal !== null) sink.fail(refusal)
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

  target (model: string, surface: SurfaceName): DispatchTarget | null {
    const found = this.#deps.catalog.resolve(model, surface)
    if (found.kind === 'slot') return { slot: found.slot, upstream: null, modelId: found.modelId }
    return found.kind === 'upstream' ? { slot: null, upstream: found.upstream, modelId: found.modelId } : null
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

  models (signal: AbortSignal, via?: string | readonly string[]): Promise<readonly ModelObject[]> {
    return this.#lookup.rows(signal, gatewaysOf(via))
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
      const elsewhere = isSvcError(found) ? this.#elsewhere.routeOf(found, model, options) : null
      if (isSvcError(found) && elsewhere === null) return found
      const prepared = this.#prepare(asked, options, view, model, reader)
      if (elsewhere !== null) {
        this.#elsewhere.answer(prepared, elsewhere)
        return null
      }
      if (found === null) this.#askUpstreams(prepared)
      else this.#go(prepared, found as Route)
      return null
    } catch (error) {
      return this.#told(error)
    }
  }

  #prepare (
    asked: Asked, options: ForwardOptions, view: BodyView | null, model: string, reader: ServerResponse | CallSink
  ): Prepared {
    const gone = (): void => prepared.giveUp(clientLeft(asked.requestId))
    const left = (): void => {
      const before = prepared.sent ? 'its answer was complete' : 'its request reached an engine'
      this.#deps.log.debug({ request_id: asked.requestId }, `the client left before ${before}`)
      gone()
    }
    const sink = reader instanceof CallSink ? reader : new ClientSink(reader, asked.requestId, left, options.dialect)
    if (sink instanceof CallSink) sink.onGone = gone
    const prepared: Prepared = {
      asked,
      options,
      view,
      sink,
      id: asked.requestId,
      model,
      surface: options.surface,
      priority: priorityOf(asked.request.headers[PRIORITY_HEADER], options.surface, view?.isTrue('stream') === true),
      slot: null,
      upstream: null,
      sent: false,
      attempt: 0,
      note: null,
      startedAt: this.#deps.clock.monotonic(),
      bytesIn: asked.body.length,
      headers: asked.origin ?? asked.request.headers,
      tokens: 0,
      shared: null,
      index: -1,
      giveUp: () => prepared.settle(),
      isElsewhere: false,
      settle: () => {
        if (!prepared.isElsewhere) this.active.remove(prepared)
      },
      stop: error => {
        sink.fail(error)
        prepared.giveUp(error)
      }
    }
    if (options.tap !== undefined) prepared.sink = new TappedSink(sink, options.tap, () => prepared.upstream, this.#deps.log)
    this.active.add(prepared)
    return prepared
  }

  /** From here on the client's answer is the sink's: nothing may escape. */
  #go (prepared: Prepared, found: Route): void {
    try {
      const route = this.#deps.catalog.ableRoute(found, prepared)
      if (this.#elsewhere.takes(prepared, route)) return
      if (route.kind === 'slot') this.#toSlot(prepared, route)
      else new UpstreamTrip(this.#trips, prepared, route).start()
    } catch (error) {
      prepared.sink.fail(this.#told(error))
      prepared.settle()
    }
  }

  #askUpstreams (prepared: Prepared): void {
    const { sink, settle, model, surface } = prepared
    const leave = this.#lookup.ask(model, surface, found => {
      if (!isSvcError(found)) return this.#go(prepared, found)
      const elsewhere = this.#elsewhere.routeOf(found, model, prepared.options)
      if (elsewhere !== null) return this.#elsewhere.answer(prepared, elsewhere)
      sink.fail(found)
      settle()
    })
    prepared.giveUp = reason => {
      leave(reason)
      settle()
    }
  }

  #toSlot (prepared: Prepared, { slot, modelId }: Extract<Route, { kind: 'slot' }>): void {
    const { slots, clock } = this.#deps
    const { view, sink, settle } = prepared
    prepared.slot = slot
    prepared.attempt = 1
    const plan = planSlotCall(this.#deps, prepared, slot, modelId)
    const { surface, input } = plan
    if (view?.isTrue('stream') === true) sink.hold(clock, this.#holdTimes())
    const lease = slots.tryAcquire(slot, surface.light)
    if (lease !== null) {
      prepared.sent = true
      prepared.giveUp = callSlot(this.#deps, input(lease, prepared), sink, settle, () => this.#inLine(prepared, slot, plan, true))
      return
    }
    if (surface.body === 'json' && prepared.surface === 'embeddings' && this.#joinOthers(prepared, slot, plan)) return
    this.#inLine(prepared, slot, plan, false)
  }

  /** Puts texts in the line where they share calls with others; false for a body that is not about texts. */
  #joinOthers (prepared: Prepared, slot: string, { surface, body, input }: SlotPlan): boolean {
    const texts = embeddingTexts(body)
    if (texts === null) return false
    const { slots } = this.#deps
    prepared.giveUp = this.#embeddings.join({
      slot,
      priority: prepared.priority,
      acquire: async (signal, again) => {
        if (again) assertNotStopped(slots.status(slot))
        return await slots.acquire(slot, signal, surface.light, prepared.priority)
      },
      send: (lease, joined, requests, sink, settled, unsent) => {
        const plain = input(lease, { tokens: 0 })
        for (let i = 1; i < requests; i++) plain.throughput.request()
        return callSlot(this.#deps, { ...plain, body: joined }, sink, settled, unsent)
      }
    }, { texts, body, sink: prepared.sink, sent: isSent => { prepared.sent = isSent }, done: prepared.settle })
    return true
  }

  /** @param back it was given to an engine that turned out not to be there, and was told nothing */
  #inLine (prepared: Prepared, slot: string, { surface, body, input }: SlotPlan, back: boolean): void {
    const { slots, config } = this.#deps
    prepared.sent = false
    const endNotes = this.#noteLoading(prepared, slot)
    const seat = this.#flights.board({
      slot,
      path: surface.path,
      body,
      limitBytes: config.snapshot.svc.dispatcher.slow_reader_buffer_kb * 1024,
      shared: !back && !isServing(slots.status(slot).state),
      acquire: async (signal, again) => {
        if (back || again) assertNotStopped(slots.status(slot))
        return await slots.acquire(slot, signal, surface.light, prepared.priority)
      },
      send: (lease, fanOut, settled, unsent) => callSlot(this.#deps, input(lease, fanOut), fanOut, settled, unsent)
    }, prepared.sink, {
      sent: counter => {
        endNotes()
        prepared.sent = true
        prepared.shared = counter
      },
      returned: () => { prepared.sent = false },
      done: () => {
        endNotes()
        prepared.settle()
      }
    })
    prepared.giveUp = seat.leave
  }

  /** Only chat completions have a place for it in their streams; the others are kept alive with comment lines. */
  #noteLoading ({ options, view, sink, id, model }: Prepared, slot: string): () => void {
    const { clock, config, slots } = this.#deps
    const { show_loading: isOn, ping_interval_s: pingS } = config.snapshot.svc.dispatcher
    const isChatStream = options.surface === 'chat' && options.dialect === undefined && view?.isTrue('stream') === true
    if (!isOn || !isChatStream || !sink.isClients || isServing(slots.status(slot).state)) return () => {}
    return tellLoading({
      statuses: signal => slots.watch(slot, signal),
      model,
      requestId: id,
      now: () => clock.now(),
      write: event => sink.note(event, clock, pingS * 1000)
    })
  }

  #holdTimes (): HoldTimes {
    const { hold_headers_s: hold, ping_interval_s: ping } = this.#deps.config.snapshot.svc.dispatcher
    return { holdMs: hold * 1000, pingMs: ping * 1000 }
  }

  /** What a client learns of a failure: what was not expected stays in the log. */
  #told (error: unknown): SvcError {
    if (isSvcError(error)) return error
    const left = leftRequest(error)
    if (left !== null) {
      this.#deps.log.debug({ request_id: left }, 'the client left before its request was answered')
      return svcError('request.cancelled', 'the client closed its connection')
    }
    this.#deps.log.error({ err: error }, 'a request could not be dispatched')
    return svcError('system.internal', 'internal error; the log of the gateway has it', { cause: error })
  }
}

/** A request that was on its way to an engine when that was told to stop does not bring it back. */
function assertNotStopped ({ name, state }: SlotStatus): void {
  if (state !== 'unloading' && state !== 'offline') return
  throw svcError('slot.stopped', `slot '${name}' was unloaded while the request was on its way to it`, { details: { slot: name, retry_after_s: 1 } })
}
