import type { Readable } from 'node:stream'
import {
  atPort, svcError, type EngineProvider, type Logger, type RequestPriority, type RouteCall, type SlotLease, type Surface,
  type SurfaceName, type SvcError, type UploadOptions
} from '../../contract/index.js'
import type { Throughput } from '../../slots/life/throughput.js'
import type { ActiveRequest, ActiveRequests, TokenCount } from '../requests/active-requests.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { Breakers } from '../upstream/breakers.js'
import type { CallContext } from '../call/call-context.js'
import { clientLeft } from '../answer/client-gone.js'
import { ClientSink } from '../answer/client-sink.js'
import { originOf } from '../call/connections.js'
import { Exchange, type ExchangeOutcome, type ExchangeRequest, type ExchangeTarget } from '../call/exchange.js'
import type { FoundField } from './field-finder.js'
import { forEngine, requestHeaders } from '../answer/headers.js'
import { PRIORITY_HEADER, priorityOf } from '../requests/priority.js'
import { RefusalFilter } from '../answer/refusal-filter.js'
import { missingModel } from '../route/resolution-errors.js'
import type { ModelLookup } from '../route/model-lookup.js'
import { isRoute, type Route } from '../route/resolve.js'
import { slotAnswer } from '../call/slot-call.js'
import { StreamShaper } from '../answer/stream-shaper.js'
import type { Replacement } from './upload-body.js'
import type { UploadMemory } from './upload-memory.js'
import { UploadSource } from './upload-source.js'
import { judgedOnce } from '../call/judged-once.js'
import { guardedAnswer, upstreamEnvelope } from '../call/upstream-call.js'
import type { UpstreamPool } from '../upstream/upstream-pool.js'

export interface UploadDeps extends CallContext {
  readonly lookup: ModelLookup
  readonly upstreams: UpstreamPool
  readonly active: ActiveRequests
  readonly log: Logger
  readonly breakers: Breakers
  /** Names this gateway among those that a request comes through. */
  readonly token: string
  /** Folder for what has to wait on disk. */
  readonly spool: string
  readonly memory: UploadMemory
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
}

export type UploadCall = RouteCall<unknown, unknown, Readable>

interface Target extends ExchangeTarget, Omit<ExchangeRequest, 'method' | 'body'> {
  readonly throughput: Throughput
  readonly heard?: () => void
}

/**
 * One upload on its way. The form's `model` is looked for while the form arrives; as soon as it is there the request
 * is resolved and sent, while the rest still comes in. Whatever ends it (the answer, a failure, the client's leaving,
 * a stop) ends in `#finish`, once.
 */
export class UploadRun implements ActiveRequest, TokenCount {
  readonly id: string
  readonly surface: SurfaceName
  readonly priority: RequestPriority
  readonly startedAt: number
  readonly sink: ClientSink
  readonly shared = null
  model = ''
  slot: string | null = null
  upstream: string | null = null
  sent = false
  attempt = 0
  readonly note = null
  tokens = 0
  index = -1
  readonly #deps: UploadDeps
  readonly #call: UploadCall
  readonly #options: UploadOptions
  readonly #source: UploadSource
  #finished = false
  /** Frees what the request waits for or runs on; in the end `#finish` is called. */
  #giveUp: (reason: Error) => void = () => this.#finish()

  constructor (deps: UploadDeps, call: UploadCall, options: UploadOptions) {
    const { clock, spool, memory } = deps
    const { upload_limit_bytes: limitBytes, upload_idle_timeout_s: idleS } = deps.config.snapshot.svc.server
    this.#deps = deps
    this.#call = call
    this.#options = options
    this.id = call.requestId
    this.surface = options.surface
    this.priority = priorityOf(call.request.headers[PRIORITY_HEADER], options.surface, false)
    this.startedAt = clock.monotonic()
    this.#source = new UploadSource(call.request.raw, 'model', {
      clock,
      spool,
      memory,
      limitBytes,
      idleMs: idleS * 1000,
      found: field => this.#resolve(field),
      failed: error => {
        if (error.status >= 500) deps.log.error({ err: error.cause, folder: spool }, error.message)
        this.stop(error)
      }
    })
    this.sink = new ClientSink(call.reply.raw, call.requestId, () => this.#giveUp(clientLeft(call.requestId)))
  }

  get bytesIn (): number { return this.#source.bytes }

  /** Never throws: every failure is answered. */
  start (): void {
    this.#deps.active.add(this)
    this.#source.start()
  }

  stop (error: SvcError): void {
    this.sink.fail(error)
    this.#giveUp(error)
  }

  #resolve (field: FoundField | null): void {
    this.model = field?.value.trim() ?? ''
    if (field === null || this.model === '') return this.stop(missingModel(this.#options.path))
    const resolution = this.#deps.lookup.now(this.model, this.surface)
    if (resolution === null) this.#askUpstreams(field)
    else if (isRoute(resolution)) this.#go(field, resolution)
    else this.stop(this.#deps.lookup.refusal(resolution, this.model, this.surface))
  }

  /** No list has the model: those that are missing are asked for before that is the last word. */
  #askUpstreams (field: FoundField): void {
    void this.#deps.lookup.later(this.model, this.surface, this.#waiting()).then(resolution => {
      if (this.#finished) return
      if (isRoute(resolution)) this.#go(field, resolution)
      else this.stop(this.#deps.lookup.refusal(resolution, this.model, this.surface))
    })
  }

  #go (field: FoundField, route: Route): void {
    try {
      if (route.kind === 'slot') this.#toSlot(field, route)
      else this.#toUpstream(field, route)
    } catch (error) {
      this.stop(this.#deps.told(error))
    }
  }

  #toSlot (field: FoundField, { slot, modelId }: Extract<Route, { kind: 'slot' }>): void {
    const { slots, config } = this.#deps
    this.slot = slot
    const provider = slots.provider(slot)
    const { path, port } = streamedSurface(provider, slot, this.surface)
    const name = provider?.modelName?.(slots.config(slot), modelId) ?? modelId ?? this.model
    const send = (lease: SlotLease): void => {
      lease.onRevoked(error => this.stop(error))
      this.#send(field, name, {
        label: `slot '${slot}'`,
        details: { slot },
        origin: originOf(atPort(lease.address, port)),
        path,
        headers: forEngine(this.#headers(), lease.address),
        alone: lease.provider.keepsConnections === false,
        headersTimeoutMs: config.snapshot.svc.slots.first_token_timeout_s * 1000,
        bodyTimeoutMs: config.snapshot.svc.dispatcher.direct_read_timeout_s * 1000,
        throughput: slots.throughput(slot),
        heard: () => lease.heard()
      }, this.#answer(provider?.surfaces[this.surface], name), outcome => lease.release(outcome === 'failed'))
    }
    const lease = slots.tryAcquire(slot)
    if (lease !== null) return send(lease)
    slots.acquire(slot, this.#waiting(), false, this.priority).then(late => {
      if (this.#finished) late.release()
      else send(late)
    }).catch((error: unknown) => {
      if (!this.#finished) this.stop(this.#deps.told(error))
    })
  }

  #toUpstream (field: FoundField, { upstream: name, modelId }: Extract<Route, { kind: 'upstream' }>): void {
    const { upstreams, breakers, clock, token } = this.#deps
    this.upstream = name
    const upstream = upstreams.get(name)
    if (upstream === undefined) throw svcError('model.not_found', `upstream '${name}' is no longer configured`, { param: 'model' })
    const envelope = upstreamEnvelope(this.#deps, token, upstream, this.#options.path, this.#call)
    const { sink: judged, settled } = judgedOnce(breakers, upstream, clock, this.#answer())
    const sink = guardedAnswer(this.#deps, upstream, judged)
    this.#send(field, modelId, { ...envelope, throughput: this.#deps.meters.of(name) }, sink, settled)
  }

  /** @param name what stands in the place of `model` on the way out */
  #send (
    { value, start, end }: FoundField, name: string, target: Target, answer: AnswerSink,
    release: (outcome: ExchangeOutcome) => void
  ): void {
    const { clock, connections } = this.#deps
    const replacement: Replacement | null = name === value ? null : { start, end, bytes: Buffer.from(name) }
    const exchange = new Exchange(new StreamShaper(answer, target.throughput, this, clock, target.heard), target, outcome => {
      release(outcome)
      this.#finish()
    })
    target.throughput.request()
    this.sent = true
    this.attempt = 1
    this.#giveUp = reason => exchange.abort(reason)
    exchange.send(connections, {
      ...target,
      method: 'POST',
      headers: [...target.headers, ...this.#source.lengthHeader(replacement)],
      body: this.#source.body(replacement)
    })
  }

  /** @param surface of the slot's provider, @param name what the engine reads in place of `model` */
  #answer (surface?: Surface, name = ''): AnswerSink {
    const { refusal } = this.#options
    const sink = refusal === undefined ? this.sink : new RefusalFilter(this.sink, refusal)
    if (surface === undefined) return sink
    return slotAnswer(surface, sink, { model: name, stream: () => this.#source.wantsStream }, this.#deps.clock)
  }

  #headers (): string[] {
    return requestHeaders(this.#call.request.raw.rawHeaders, this.id)
  }

  /** Aborts when the request is given up while it waits. */
  #waiting (): AbortSignal {
    const controller = new AbortController()
    this.#giveUp = reason => {
      controller.abort(reason)
      this.#finish()
    }
    return controller.signal
  }

  #finish (): void {
    if (this.#finished) return
    this.#finished = true
    this.#deps.active.remove(this)
    this.#source.close()
  }
}

/** Where an engine takes the form. */
function streamedSurface (provider: EngineProvider | null, slot: string, surface: SurfaceName): Surface {
  const target = provider?.surfaces[surface]
  if (target === undefined) throw svcError('plugin.unavailable', `the provider of slot '${slot}' is not there at the moment; see GET /api/plugins`)
  if (target.body === 'multipart') return target
  throw svcError('dispatch.no_route', `slot '${slot}' takes ${surface} requests as JSON, not as a form`, { details: { slot, surface } })
}
