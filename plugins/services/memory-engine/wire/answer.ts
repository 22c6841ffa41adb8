import type { Core } from '../core.js'

export { bankNotFound, WireError } from './error.js'

/** What a handler gets. */
export interface WireCall {
  readonly core: Core
  /** The parts of the path, decoded, by their names in the route's pattern. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal
  /** Names of the query and the body that nothing here reads; they are named in `x-ignored-params`. */
  readonly ignored: Set<string>
}

export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** In pieces where it may be large: each is asked for when the one before it has gone. */
  readonly body: Buffer | WrittenBody | AsyncIterable<Buffer>
}

/** A body that is written to where it is sent from. */
export interface WrittenBody {
  readonly size: number
  /** @param all of `size` bytes */
  writeInto (all: Buffer): void
}

export type Handler = (call: WireCall) => WireAnswer | Promise<WireAnswer>

export interface WireRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/v1/default/banks/{bank_id}/memories`; a last `{key*}` takes the rest of the path. */
  readonly path: string
  readonly handler: Handler
}

/** The path of a bank, and what its parts begin with. */
export const BANK = '/v1/default/banks/{bank_id}'

/**
 * A list for which the wire has no pages and no total: `x-total-count` says how many there are. Which of them it has is said by
 * `limit` and `offset`, beyond the wire.
 */
export function listed (value: unknown, total: number, status = 200): WireAnswer {
  return json(value, status, { 'x-total-count': String(total) })
}

export function json (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): WireAnswer {
  return jsonBytes(Buffer.from(JSON.stringify(value)), status, headers)
}

/** Of what is JSON already. */
export function jsonBytes (body: Buffer | WrittenBody, status = 200, headers: Readonly<Record<string, string>> = {}): WireAnswer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body }
}
