import type { SurfaceName } from '../surface-names.js'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { hasBrand, ROUTE_BRAND, SSE_BRAND } from '../brand.js'
import type { ErrorKind } from '../errors/define-errors.js'
import type { ErrorCode } from '../errors/error-codes.js'
import type { Logger } from '../logger.js'
import type { RouteTool } from '../tool.js'
import type { WireDialect } from './wire-dialect.js'

export const httpMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type HttpMethod = typeof httpMethods[number]

/** What a handler gets. Inputs are validated and typed by the route's schema. */
export interface RouteCall<P = unknown, Q = unknown, B = unknown> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly requestId: string
  /** Who asked, for audit rows: `mcp:<agent>` or `dashboard`. */
  readonly actor: string
  /** Aborts when the client is gone before the answer is complete. */
  readonly signal: AbortSignal
  /** Tells a client that called the route as a tool how far it is; absent where none asked for it. Never throws. */
  readonly progress?: (message: string, done?: number, total?: number) => void
  readonly log: Logger
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/**
 * What requests and answers of a route are checked against. A part may be a getter, which is read with the first request,
 * tool list or API document that needs it, and then with each: it keeps what it made.
 */
export interface RouteSchema {
  readonly params?: z.ZodType
  readonly querystring?: z.ZodType
  readonly body?: z.ZodType
  /** Schema of the success answer; documents it, and tests check every answer against it. */
  readonly response?: z.ZodType
}

type OutputOf<S, Fallback> = S extends z.ZodType ? z.output<S> : Fallback

export type CallOf<S extends RouteSchema, B extends BodyKind> = RouteCall<
  OutputOf<S['params'], Record<never, never>>,
  OutputOf<S['querystring'], Record<never, never>>,
  B extends 'buffer' ? Buffer : B extends 'stream' ? Readable : OutputOf<S['body'], undefined>
>

/**
 * `json` parses and validates; `buffer` hands over the raw bytes; `stream` hands over the body unread, with no limit
 * on its size but the handler's; `none` refuses nothing and reads nothing.
 */
export type BodyKind = 'json' | 'buffer' | 'stream' | 'none'

export interface RouteDefinition<S extends RouteSchema = RouteSchema, B extends BodyKind = BodyKind> {
  readonly method: HttpMethod
  /** Path with `:param` and a trailing `*`, as the router spells it. */
  readonly url: string
  /** Other places of the same route, for clients that look for it there; the OpenAPI document has the first alone. */
  readonly alsoAt?: readonly string[]
  /** Where its requests go: the OpenAPI document shows the options of the engines that serve it (`Surface.options`). */
  readonly surface?: SurfaceName
  /** One line for the OpenAPI document. */
  readonly summary: string
  readonly description?: string
  /** Groups the route in the OpenAPI document; default is the plugin's name. */
  readonly tag?: string
  readonly schema?: S
  /** Default: `json` when `schema.body` is given, else `none`. */
  readonly bodyKind?: B
  /** Refuses a query or body which does not fit its schema, where the group has a code of its own: `notesError.kind(code)`. */
  readonly queryError?: ErrorCode | ErrorKind
  readonly bodyError?: ErrorCode | ErrorKind
  /** Refuses a body that is no JSON object, where the group has a code of its own for that too. */
  readonly unreadableBody?: ErrorKind
  /** Serves models as `/v1` does: its bodies may be as large, and it is documented beside it. */
  readonly inference?: boolean
  /** Largest body in bytes; default is the server's limit for the kind of route. */
  readonly bodyLimit?: number
  /** Status of a plain success answer; default what the handler set on `reply`, else 200, or 204 when it returned undefined. */
  readonly status?: number
  /** Content type of the body for the OpenAPI document; default `application/json`, for streams `multipart/form-data`. */
  readonly consumes?: string
  /** Content type of the success answer for the OpenAPI document; default `application/json`. */
  readonly produces?: string
  /** Further success answers for the OpenAPI document: another status, another content type, null for one without a body. */
  readonly answers?: ReadonlyArray<{ readonly status?: number | '2XX' | '3XX', readonly type?: string | null, readonly description?: string }>
  /** A body that works, for the OpenAPI document. */
  readonly example?: unknown
  /** The tool of a tool server that this route is. Not for event streams, raw bodies, or handlers that take over the reply. */
  readonly tool?: RouteTool
  /** Bounds of a WebSocket, which is then what a request has to ask for: see `defineWebSocket`, which sets it. */
  readonly webSocket?: { readonly maxMessageBytes: number, readonly maxUnsentBytes: number, readonly maxSockets: number }
  /** How refusals of this route look, when it is not the error envelope. */
  readonly dialect?: WireDialect
  /**
   * Returns the JSON answer, a `jsonAnswer(...)`, an `sse(...)` stream, or `handled` when it took over `call.reply` itself.
   * Throw a `SvcError` to refuse.
   */
  readonly handler: (call: CallOf<S, B>) => unknown
}

export type AnyRoute = RouteDefinition<RouteSchema, BodyKind>

/** A handler returns this when it has taken over the reply. */
export const handled: unique symbol = Symbol.for('svc.handled')

export function defineRoute<const S extends RouteSchema, B extends BodyKind = 'json'> (route: RouteDefinition<S, B>): AnyRoute {
  return Object.freeze({ ...route, [ROUTE_BRAND]: true }) as unknown as AnyRoute
}

export function isRoute (value: unknown): value is AnyRoute {
  return hasBrand(value, ROUTE_BRAND)
}

export interface SseEvent {
  readonly data: unknown
  readonly event?: string
  readonly id?: string | number
}

export interface SseReply {
  readonly events: (signal: AbortSignal) => AsyncIterable<SseEvent>
  /** Each event is its data as JSON on a line of its own, and nothing else. */
  readonly asLines?: boolean
}

/**
 * An event stream as the answer of a handler. The host writes each event as `data: <JSON>`, keeps the line
 * alive with comments, stops iterating when the client leaves, and applies backpressure.
 */
export function sse (events: (signal: AbortSignal) => AsyncIterable<SseEvent>): SseReply {
  return { events, [SSE_BRAND]: true } as SseReply
}

/**
 * JSON values, a line each (`application/x-ndjson`), as the answer of a handler, on the terms of `sse`. A sign of life is a
 * space, which becomes part of the next line. A source that fails ends with what the route's dialect says of it.
 */
export function jsonLines (values: (signal: AbortSignal) => AsyncIterable<unknown>): SseReply {
  const events = async function* (signal: AbortSignal): AsyncGenerator<SseEvent, void, undefined> {
    for await (const data of values(signal)) yield { data }
  }
  return { events, asLines: true, [SSE_BRAND]: true } as SseReply
}

export function isSse (value: unknown): value is SseReply {
  return hasBrand(value, SSE_BRAND)
}
