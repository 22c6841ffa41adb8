import type { Readable } from 'node:stream'
import type { SvcError } from '../errors/errors.js'
import type { RouteCall, handled } from '../http/route.js'
import type { AdaptedAnswer } from '../provider/provider-surface.js'
import type { SurfaceName } from '../surface-names.js'
import type { BodyEdits, JsonBody } from '../http/json-body.js'
import type { WireDialect } from '../http/wire-dialect.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'
import type { AuthStyle } from '../schemas/upstream.js'
import type { OutgoingCall, OutgoingWatch } from './outgoing.js'
import type { RequestPriority } from './requests.js'

export type { BodyEdits, JsonBody }

export const modelStatuses = ['loaded', 'loading', 'unloaded'] as const
export type ModelStatus = typeof modelStatuses[number]

/**
 * An entry of `GET /v1/models`. `created` in epoch seconds, `context_length` and `max_model_len` in tokens. Upstreams' entries
 * keep whatever else the upstream tells, `status` and `capabilities` in its own form too.
 */
export interface ModelObject {
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
  readonly name: string
  /** As the Messages API has it: `type`, `display_name` and the date in ISO form. */
  readonly type: string
  readonly display_name: string
  readonly created_at: string
  readonly context_length?: unknown
  readonly max_model_len?: unknown
  /** Of an entry that leads to a slot: one of `modelStatuses`. */
  readonly status?: unknown
  /** Of an entry that leads to a slot: what it is for (`modelCapabilities`), and what it can do for sure (`slotAbilities`). */
  readonly capabilities?: unknown
  readonly _svc?: unknown
  readonly [field: string]: unknown
}

export interface ForwardOptions {
  readonly surface: SurfaceName
  /** Path below `/v1`, such as `/chat/completions`, for upstreams; slots use their provider's path. */
  readonly path: string
  /**
   * What to change in the body besides `model`, once it is known who serves the request: with the configuration of
   * that slot, null for an upstream. Returns null to leave the body alone. Pure.
   */
  readonly edit?: (body: JsonBody, slot: NamedSlotConfig | null) => BodyEdits | null
  /** Names of top-level keys to take out before forwarding. */
  readonly drop?: readonly string[]
  /** How failures look on this route, when it is not the error envelope. */
  readonly dialect?: WireDialect
  /** What to do where a request leads to a slot or upstream that does not speak the surface. Absent: it is refused. */
  readonly otherwise?: Otherwise | undefined
  /** Sees the answer on its way out. */
  readonly tap?: AnswerTap
}

/**
 * Sees an answer as its reader gets it, each part before the reader does: what it has done when `end` returns is done before the
 * reader knows that the answer is complete. An answer that fails, or whose reader leaves, has no end. Waits for nothing; what it
 * throws is logged and ends it, and the answer goes on.
 */
export interface AnswerTap {
  head (head: AnswerTapHead): void
  /** The bytes are the answer's own and may be used again after the call. Null lets all of them go out. */
  data (chunk: Buffer): HeldPart | null
  end (): void
}

/** A part of a chunk that the reader gets only after work; what stands before it is with the reader by then. */
export interface HeldPart {
  /** Where in the chunk it begins. */
  readonly from: number
  work (): void
}

export interface AnswerTapHead {
  readonly status: number
  readonly isEventStream: boolean
  /** The upstream whose own words these are; null for those of a slot, and where the answer was made another way. */
  readonly upstream: string | null
}

/**
 * Another way to answer a request: by calls on a surface that the place does speak. Used where the provider of a slot does not
 * declare the request's own surface or says that its engine would pass over what the request asks for (`Surface.ignores`), and
 * where an engine or upstream answers with 404, 405 or 501 on its path; the latter is remembered for ten minutes, or as long as
 * the engine runs, once the other way has worked.
 */
export interface Otherwise {
  /** What the place has to speak instead. */
  readonly surface: SurfaceName
  /**
   * Only for upstreams that are called in one of these ways: slots and other upstreams speak the route's own surface, and their
   * answers are not watched. Absent: for all.
   */
  readonly authStyles?: readonly AuthStyle[]
  /**
   * The answer, made of calls of its own. Asked only when it is needed. Throws for a request that cannot be said on the other
   * surface; starts nothing by itself.
   */
  take (request: OtherwiseRequest): TakenAnswer
}

/** A request that is to be answered another way, with where it leads. */
export interface OtherwiseRequest {
  readonly body: Buffer
  readonly requestId: string
  /** Of the client's request: by them it is known who pays. */
  readonly headers: OutgoingCall['headers']
  /** The slot that would serve it; null for an upstream's model. */
  readonly slot: NamedSlotConfig | null
  readonly upstream: string | null
  readonly modelId: string | null
}

export interface UploadOptions {
  readonly surface: SurfaceName
  /** Path below `/v1`, such as `/audio/transcriptions`, for upstreams; slots use their provider's path. */
  readonly path: string
  /**
   * What to answer in place of a refusal (status 300 and above) of an engine or upstream; null lets it pass. Gets as
   * much of its body as is worth reading, at most 64 KiB. Pure.
   */
  readonly refusal?: (status: number, body: string) => SvcError | null
}

export interface UpstreamView {
  readonly name: string
  readonly kind: 'slot' | 'remote'
  readonly url: string
  /** Another gateway like this one. */
  readonly svc: boolean
  readonly enabled: boolean
  readonly models: readonly string[]
  /** ISO time of the last good model list, or null. */
  readonly refreshed_at: string | null
  readonly error: string | null
}

/** A request of a plugin's own, for `DispatchService.call`. */
export interface PluginCall extends Omit<ForwardOptions, 'dialect'> {
  /** What a client would send, `model` included. */
  readonly body: Buffer
  /** Default `application/json`. */
  readonly contentType?: string
  /** Who is asked, for a body that is not JSON: it then goes out as it is, and edits do not apply. */
  readonly model?: string
  /** Where it stands in the line of a busy slot; by default as `origin` says, else as a client's request of this body would. */
  readonly priority?: RequestPriority
  /** Engines and logs see it; the id of the client's request that this is a part of. */
  readonly requestId: string
  /**
   * Headers of the client's request that this is a part of: by them it is known who pays. Only `X-Svc-Via` and
   * `X-Svc-Priority` are sent on.
   */
  readonly origin?: OutgoingCall['headers'] | undefined
  readonly signal: AbortSignal
}

/** What came back, also when it is an engine's refusal. */
export interface CallAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** At the reader's pace. Throws the `SvcError` of an answer that broke off. */
  readonly body: AsyncIterable<Buffer>
}

/** Who would serve a request. */
export type DispatchTarget =
  | { readonly slot: string, readonly upstream: null, readonly modelId: string | null }
  | { readonly slot: null, readonly upstream: string, readonly modelId: string }

/** A request whose target is looked for. */
export interface TargetRequest {
  readonly body: Buffer
  /** The surface in whose words it is. */
  readonly surface: SurfaceName
}

/** A client's request as a taker of a flag reads it. */
export type TakenRequest = Pick<RouteCall<unknown, unknown, Buffer>, 'body' | 'request' | 'requestId'>

/** What a taker of a flag puts together in place of the plain answer. */
export interface TakenAnswer {
  /** Whether the client waits for an event stream. */
  readonly stream: boolean
  /** Rejects with what a client would be answered, or the signal's reason; must honour the signal. */
  answer (signal: AbortSignal): Promise<AdaptedAnswer>
}

/** Null lets the request go on as it is. Throws for a flag that it does not understand. Starts nothing by itself. */
export type Interceptor = (request: TakenRequest, options: ForwardOptions) => TakenAnswer | null

export interface ComposeOptions {
  /** For the list of requests in flight. */
  readonly surface: SurfaceName
  readonly model: string
  /** Whether the client waits for an event stream: its connection is then kept alive until the first byte. */
  readonly stream: boolean
  readonly dialect?: WireDialect
}

/** The dispatcher: the one path of every `/v1` request. */
export interface DispatchService {
  /**
   * Resolves the body's `model`, waits for its slot, forwards, and answers on `call.reply`, which it takes over at
   * once. Never throws: every failure is answered in the error envelope, or as the last event of a stream. The memory of a
   * large body is used again when the answer has ended, and `call.body` is empty then: what is to be kept of it is copied.
   */
  forward (call: RouteCall<unknown, unknown, Buffer>, options: ForwardOptions): typeof handled
  /**
   * A call inside the gateway, on the same path as a client's: resolution, waiting for the slot, edits, meters,
   * shared cold calls, the list of requests in flight. Rejects with the `SvcError` that a client would be answered,
   * or the signal's reason. The body must be read to its end or left: until then it holds its engine.
   */
  call (request: PluginCall): Promise<CallAnswer>
  /**
   * Answers with what a plugin puts together, as `forward` does: takes over the reply at once, shows up among the
   * requests in flight, ends with the client or the gateway, tells failures in the envelope or as the last event.
   * `work` must honour its signal.
   */
  compose (call: RouteCall, options: ComposeOptions, work: (signal: AbortSignal) => Promise<AdaptedAnswer>): typeof handled
  /**
   * Takes over those client requests of a surface whose body has a top-level flag that is neither false nor null. `take` gets
   * the request with the route's own options; what it returns is answered as `compose` answers. A flag has one taker: throws
   * `plugin.conflict`. One that is `first` is asked before the others. Returns the function that unregisters it.
   */
  intercept (surface: SurfaceName, flag: string, take: Interceptor, options?: { readonly first?: boolean }): () => void
  /**
   * What the takers of flags would answer to a request; null if it would go the plain way. For a taker that does more with the
   * answer of the next one, which it asks with a body without its own flag. Throws as they do. Starts nothing.
   */
  taken (request: TakenRequest, options: ForwardOptions): TakenAnswer | null
  /**
   * Watches what goes to remote upstreams: slots of this gateway are free and never asked about. There is one watch: throws
   * `plugin.conflict`. Returns the function that ends it; calls that it let pass are still told of.
   */
  watchOutgoing (watch: OutgoingWatch): () => void
  /**
   * Who would serve a request for this model at this moment; null if none would. Which of several slots it is may depend on what
   * is asked: without the request it is the first of them. Starts nothing.
   */
  target (model: string, surface: SurfaceName, request?: TargetRequest): DispatchTarget | null
  /**
   * As `forward`, for a `multipart/form-data` body that is streamed and never held as a whole. The form's `model`,
   * wherever it stands, says where to; its value is the only thing that is changed on the way. What comes before it,
   * and what comes while the slot loads, waits in memory and then on disk, up to `[server] upload_limit_bytes`.
   */
  upload (call: RouteCall<unknown, unknown, Readable>, options: UploadOptions): typeof handled
  /**
   * Hands a request to the engine of a slot as it came, method, path and all, and WebSockets too: the slot is loaded if it must
   * be, leased, metered, and in the list of requests, where it can be cancelled. `target` is `<slot or model>/<path>` with the
   * query, as the request line has it. Throws `dispatch.passage_off`.
   */
  engine (call: RouteCall<unknown, unknown, Buffer | undefined>, target: string): typeof handled
  /**
   * The aggregated list: slots, aliases, upstream models, virtual names. Waits at most the prefetch timeout, and only for
   * upstreams that were never asked; old lists are served and asked for again behind the answer.
   * @param via the `X-Svc-Via` header of the request: gateways that list each other do not wait for each other
   * @param options `waitsForFailed`: waits, after a pause, for upstreams too whose lists could not be had so far
   */
  models (
    signal: AbortSignal, via?: string | readonly string[], options?: { readonly waitsForFailed?: boolean }
  ): Promise<readonly ModelObject[]>
  /**
   * One row of that list; waits for upstreams that were never asked only while it is not there. Rejects with
   * `model.not_loaded` for a name that is not listed and that a request would load anyway, else `model.not_found`.
   */
  model (id: string, signal: AbortSignal): Promise<ModelObject>
  upstreams (): readonly UpstreamView[]
}
