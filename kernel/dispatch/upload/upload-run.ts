import type { Readable } from 'node:stream'
import {
  svcError, type Logger, type RequestPriority, type RouteCall, type SlotLease, type Surface, type SurfaceName,
  type SvcError, type UploadOptions
} from '../../contract/index.js'
import type { ActiveRequest, ActiveRequests, TokenCount } from '../requests/active-requests.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import type { Breakers } from '../upstream/breakers.js'
import { boardSlot } from '../call/board-slot.js'
import { clientLeft } from '../answer/client-gone.js'
import { ClientSink } from '../answer/client-sink.js'
import type { FoundField } from './field-finder.js'
import { requestHeaders } from '../answer/headers.js'
import { PRIORITY_HEADER, priorityOf } from '../requests/priority.js'
import { RefusalFilter } from '../answer/refusal-filter.js'
import { configured, missingModel } from '../route/resolution-errors.js'
import type { ModelLookup } from '../route/model-lookup.js'
import { isRoute, type Resolution, type Route } from '../route/resolve.js'
import { callSlot } from '../call/slot-call.js'
import { surfaceOf } from '../call/slot-plan.js'
import { fieldParts } from '../../contract/http/form.js'
import type { Replacement } from './upload-body.js'
import type { UploadMemory } from './upload-memory.js'
import { UploadSource } from './upload-source.js'
import { judgedOnce } from '../call/judged-once.js'
import { callUpstream, type UpstreamContext } from '../call/upstream-call.js'
import type { UpstreamPool } from '../upstream/upstream-pool.js'

export interface UploadDeps extends UpstreamContext {
  readonly lookup: ModelLookup
  readonly upstreams: UpstreamPool
  readonly active: ActiveRequests
  readonly log: Logger
  readonly breakers: Breakers
  /** Folder for what has to wait on disk. */
  readonly spool: string
  readonly memory: UploadMemory
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
}

export type UploadCall = RouteCall<unknown, unknown, Readable>

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
  readonly headers: ActiveRequest['headers']
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
    this.headers = call.request.headers
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
    const { lookup } = this.#deps
    const found = lookup.now(this.model, this.surface)
    if (found !== null) this.#decided(field, found)
    else this.#waitFor(lookup.ask(this.model, this.surface, later => this.#decided(field, later)))
  }

  #decided (field: FoundField, found: Resolution): void {
    if (!isRoute(found)) return this.stop(this.#deps.lookup.refusal(found, this.model, this.surface))
    try {
      if (found.kind === 'slot') this.#toSlot(field, found)
      else this.#toUpstream(field, found)
    } catch (error) {
      this.stop(this.#deps.told(error))
    }
  }

  #toSlot (field: FoundField, { slot, modelId }: Extract<Route, { kind: 'slot' }>): void {
    const { slots, told } = this.#deps
    this.slot = slot
    const provider = slots.provider(slot)
    const config = slots.config(slot)
    const declared = formSurface(surfaceOf(provider, slot, this.surface), slot, this.surface)
    const { path = declared.path, fields = {} } = declared.form?.(config, modelId) ?? {}
    const surface = path === declared.path ? declared : { ...declared, path }
    const model = provider?.modelName?.(config, modelId) ?? modelId ?? this.model
    const send = (lease: SlotLease): (reason: Error) => void => {
      const { body, lengthHeader } = this.#outgoing(field, model, fields)
      const { headers, raw: { rawHeaders } } = this.#call.request
      return callSlot(this.#deps, {
        lease,
        surface,
        asked: { model, stream: () => this.#source.wantsStream },
        body,
        requestId: this.id,
        contentType: headers['content-type'] ?? '',
        headers: [...requestHeaders(rawHeaders, this.id), ...lengthHeader],
        throughput: slots.throughput(slot),
        counter: this
      }, this.#answer(), () => this.#finish())
    }
    const lease = slots.tryAcquire(slot)
    if (lease !== null) return void (this.#giveUp = send(lease))
    this.#giveUp = boardSlot({
      acquire: signal => slots.acquire(slot, signal, false, this.priority),
      send,
      failed: error => {
        this.sink.fail(told(error))
        this.#finish()
      },
      left: () => this.#finish()
    })
  }

  #toUpstream (field: FoundField, { upstream: name, modelId }: Extract<Route, { kind: 'upstream' }>): void {
    const { upstreams, breakers, clock } = this.#deps
    this.upstream = name
    const upstream = configured(upstreams, name)
    const { sink, settled } = judgedOnce(breakers, upstream, clock, this.#answer())
    const outgoing = this.#outgoing(field, modelId)
    const { path } = this.#options
    try {
      this.#giveUp = callUpstream(this.#deps, {
        upstream, modelId, surface: this.surface, view: null, path, asked: this.#call, counter: this, ...outgoing
      }, sink, () => {
        settled()
        this.#finish()
      })
    } catch (error) {
      settled()
      throw error
    }
  }

  /**
   * @param name what stands in the place of `model` on the way out
   * @param fields what the form gets behind it
   */
  #outgoing (
    { value, start, end }: FoundField, name: string, fields: Readonly<Record<string, string>> = {}
  ): { readonly body: Readable, readonly lengthHeader: string[] } {
    const more = fieldParts(this.#call.request.headers['content-type'] ?? '', fields)
    const replacement: Replacement | null = name === value && more === '' ? null : { start, end, bytes: Buffer.from(`${name}${more}`) }
    this.sent = true
    this.attempt = 1
    return { body: this.#source.body(replacement), lengthHeader: this.#source.lengthHeader(replacement) }
  }

  #answer (): AnswerSink {
    const { refusal } = this.#options
    return refusal === undefined ? this.sink : new RefusalFilter(this.sink, refusal)
  }

  /** Gives the request up while it waits. */
  #waitFor (leave: (reason: Error) => void): void {
    const giveUp = (reason: Error): void => {
      leave(reason)
      this.#finish()
    }
    this.#giveUp = giveUp
  }

  #finish (): void {
    if (this.#finished) return
    this.#finished = true
    this.#deps.active.remove(this)
    this.#source.close()
  }
}

function formSurface (surface: Surface, slot: string, name: SurfaceName): Surface {
  if (surface.body === 'multipart') return surface
  throw svcError('dispatch.no_route', `slot '${slot}' takes ${name} requests as JSON, not as a form`, { details: { slot, surface: name } })
}
