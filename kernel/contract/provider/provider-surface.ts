import type { z } from 'zod'
import type { EngineClient } from './engine-client.js'
import type { EventAsk, EventEditor } from '../http/event-editor.js'
import type { SvcError } from '../errors/errors.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'
import type { SurfaceName } from '../surface-names.js'
import type { BodyEdits, JsonBody } from '../http/json-body.js'

export interface AdaptRequest {
  /** The client's JSON body after the gateway's own rewrites. */
  readonly body: Buffer
  readonly contentType: string
  readonly slot: NamedSlotConfig
  readonly client: EngineClient
  /** Id of the client's request, for events and logs. */
  readonly requestId: string
  readonly signal: AbortSignal
}

export interface AdaptedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | AsyncIterable<Buffer>
}

/** What becomes of an uploaded form on its way to an engine. Names and values are plain words. */
export interface SurfaceForm {
  readonly path?: string
  readonly fields?: Readonly<Record<string, string>>
}

export interface Surface {
  /** Path on the engine, such as `/v1/chat/completions`. */
  readonly path: string
  /** One of the provider's `ports` that serves it; default: the main one. */
  readonly port?: string
  /** Whether the engine can stream its answer on this surface. */
  readonly streaming: boolean
  readonly body: 'json' | 'multipart'
  /**
   * What the engine takes in a request's body besides the wire format, each key with a description. For the OpenAPI
   * document, which shows them as options of this engine; the engine judges them.
   */
  readonly options?: z.ZodObject
  /** Answered at once, whatever else the engine works on: takes no worker of the slot and waits for none. */
  readonly light?: boolean
  /**
   * For an engine that does not speak the wire format: turns the client's request into engine calls and
   * their result into the wire answer. Must honour the signal. Without it bytes are forwarded unchanged. Not for
   * `multipart` surfaces, whose bodies are streamed.
   */
  readonly adapt?: (request: AdaptRequest) => Promise<AdaptedAnswer>
  /**
   * For an engine that reports failures in the guise of success, or of another failure: what to answer in place of such
   * an answer; null lets it pass as it is. Sees whole answers of at most 64 KiB that are no event stream. Pure. Not
   * together with `adapt`, which judges for itself.
   */
  readonly refusal?: (status: number, body: string) => SvcError | null
  /** Lowest status that `refusal` gets to see; answers below it are not held back. Default: all. */
  readonly refusalFrom?: number
  /**
   * What to change in a JSON body for an engine that takes something under another name than the wire format has it, after
   * the route's own edits. Null leaves the body alone. Throws `validation.invalid` for what the engine would fail on instead
   * of refusing it. Not together with `adapt`. Pure.
   */
  readonly edit?: (body: JsonBody, slot: NamedSlotConfig | null) => BodyEdits | null
  /**
   * For an engine that passes over something of the wire format without a word: whether the request asks for it. Such a request
   * is answered the route's other way (`ForwardOptions.otherwise`), as if the engine did not speak this surface, if the provider
   * has the surface for that; a route without another way sends it as it is. Not for `multipart`. Pure.
   */
  readonly ignores?: (body: JsonBody) => boolean
  /**
   * For a form that a client uploads to an engine which does by a field what the wire format has a path for, or whose path
   * depends on the slot: where it goes instead of `path`, and the fields that it gets besides its own. Gets the slot as its
   * file has it. Only for `multipart`. Pure.
   */
  readonly form?: (slot: NamedSlotConfig, modelId: string | null) => SurfaceForm
  /** Completes the events of an engine that leaves out what the wire format demands. Not together with `adapt`. */
  readonly events?: (ask: EventAsk) => EventEditor
}

export type Surfaces = Readonly<Partial<Record<SurfaceName, Surface>>>
