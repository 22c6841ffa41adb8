import type { SvcError } from '../errors/errors.js'

/** A stream that is no event stream: what the gateway itself writes into it. */
export interface StreamForm {
  readonly contentType: string
  /** A sign of life before the answer has begun. It must change nothing of what follows it. */
  readonly ping: string
  /** What ends a stream that broke off. `begun`: some of the answer is out. */
  readonly failure: (failure: object, begun: boolean) => string
}

/**
 * What the gateway itself says on a route whose wire format is not OpenAI's: refusals, the last event of a stream
 * that broke off, signs of life. Pure; asked only when there is something to say. What engines say passes unchanged.
 */
export interface WireDialect {
  /** Schema of `failure`, for the OpenAPI document. */
  readonly failureSchema?: Readonly<Record<string, unknown>>
  /** Body of a refusal. */
  readonly failure: (error: SvcError, requestId: string) => object
  /**
   * Body for an engine's own refusal, when engines on this route may use another format: gets the status and the
   * parsed body, null when it is not JSON. Null, or absent: the body passes byte for byte.
   */
  readonly upstreamFailure?: (status: number, body: object | null, requestId: string) => object | null
  /** The event that tells a failure inside a stream, from the body above; absent: an event without a name. */
  readonly failureEvent?: (failure: object) => { readonly event: string, readonly data: object }
  /** A sign of life on a stream that has nothing to say yet: whole lines, ending in a blank one. Absent: a comment. */
  readonly ping?: string
  /** Form of its streams, where they are no event streams. */
  readonly stream?: StreamForm
  /** Name of a header that carries the request id, besides X-Request-ID. */
  readonly requestIdHeader?: string
}
