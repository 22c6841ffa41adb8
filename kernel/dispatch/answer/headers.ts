import type { EngineAddress } from '../../contract/index.js'

/** Headers that belong to one connection, and those the gateway sets itself. */
const notForwarded = new Set([
  'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding',
  'upgrade', 'host', 'content-length', 'expect', 'origin', 'referer',
  // whatever a client's SDK takes for a key: it must not be seen behind the gateway
  'authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie',
  // answers must stay readable for the meter and the error event
  'accept-encoding', 'content-encoding',
  'x-request-id'
])

const notReturned = new Set([
  'connection', 'keep-alive', 'proxy-authenticate', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
  'x-request-id', 'set-cookie'
])

/** Names as clients and engines spell them: few, so each is judged once. Bounded against made-up names. */
export class NameCache {
  readonly #known = new Map<string, boolean>()
  readonly #judge: (lower: string) => boolean

  constructor (judge: (lower: string) => boolean) {
    this.#judge = judge
  }

  passes (name: string): boolean {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const verdict = this.#judge(name.toLowerCase())
    if (this.#known.size < 1024) this.#known.set(name, verdict)
    return verdict
  }
}

/** Whether a client's header, its name in lower case, may go on to an engine or upstream. */
export function isForwarded (lower: string): boolean {
  return !notForwarded.has(lower)
}

const forwarded = new NameCache(isForwarded)
const returned = new NameCache(lower => !notReturned.has(lower) && !lower.startsWith('access-control-'))

/** The client's headers that an engine or upstream gets, as a flat list of names and values. */
export function requestHeaders (raw: readonly string[], requestId: string): string[] {
  let headers: string[] = []
  let hopByHop: readonly string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (forwarded.passes(raw[i]!)) headers.push(raw[i]!, raw[i + 1]!)
    else if (raw[i]!.length === 10) hopByHop = [...hopByHop, ...namedByConnection(raw[i]!, raw[i + 1]!)]
  }
  if (hopByHop.length > 0) headers = without(headers, hopByHop)
  headers.push('x-request-id', requestId)
  return headers
}

/** As above, for requests that pass untouched: the client says which encodings it reads, and gets them. */
export function untouchedHeaders (raw: readonly string[], requestId: string): string[] {
  const headers = requestHeaders(raw, requestId)
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.toLowerCase() === 'accept-encoding') headers.push(raw[i]!, raw[i + 1]!)
  }
  return headers
}

/** Whether an engine's header may reach a client. */
export function isReturned (name: string): boolean {
  return returned.passes(name)
}

/**
 * Headers with the gateway's own laid over them: a name that is among `own` is not taken from the client, one that
 * is among `fallback` only from the client when it has it.
 */
export function overlaid (headers: readonly string[], own: readonly string[], fallback: readonly string[] = []): string[] {
  return [...without(headers, namesOf(own)), ...without(fallback, namesOf(headers)), ...own]
}

/** As an engine gets them: with those that all requests to it carry. */
export function forEngine (headers: string[], { headers: own }: EngineAddress): string[] {
  return own === undefined ? headers : overlaid(headers, Object.entries(own).flat())
}

function namesOf (headers: readonly string[]): string[] {
  return headers.filter((_, i) => i % 2 === 0).map(name => name.toLowerCase())
}

/** A flat list without some names, given in lower case. */
export function without (headers: readonly string[], names: readonly string[]): string[] {
  return headers.filter((_, i) => !names.includes(headers[i - i % 2]!.toLowerCase()))
}

/** Headers that a client says are for this connection alone. */
export function namedByConnection (name: string, value: string): readonly string[] {
  if (name.toLowerCase() !== 'connection' || value === 'keep-alive' || value === 'close') return []
  return value.toLowerCase().split(',').map(token => token.trim())
}

export interface AnswerHead {
  readonly status: number
  /** Flat list of names and values. */
  readonly headers: string[]
  readonly isStream: boolean
  /** -1 when the answer does not say. */
  readonly contentLength: number
}

/**
 * An answer's head for the client: hop-by-hop and cross-origin headers taken out, the gateway's own added.
 * @param idHeader a further name under which this route's clients look for the request id
 * @param streamType what the route's streams are
 */
export function answerHead (
  status: number, raw: readonly Buffer[] | readonly string[], requestId: string, idHeader?: string, streamType = 'text/event-stream'
): AnswerHead {
  let headers: string[] = ['x-request-id', requestId]
  if (idHeader !== undefined) headers.push(idHeader, requestId)
  let isStream = false
  let contentLength = -1
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = text(raw[i]!)
    if (!returned.passes(name)) continue
    if (idHeader !== undefined && name.toLowerCase() === idHeader) continue
    const value = text(raw[i + 1]!)
    if (name.length === 12 && name.toLowerCase() === 'content-type') isStream = value.startsWith(streamType)
    if (name.length === 14 && name.toLowerCase() === 'content-length') contentLength = Number(value)
    headers.push(name, value)
  }
  // what an engine cannot do it cannot do a second later either; SDKs ask again after any 5xx that does not say so
  if (status === 501 && without(headers, ['x-should-retry']).length === headers.length) headers.push('x-should-retry', 'false')
  if (isStream) {
    // the gateway may have to add an event at the end, so the length is not the engine's to promise
    headers = without(headers, ['content-length', 'x-accel-buffering'])
    pushEventStreamHeaders(headers)
  }
  return { status, headers, isStream, contentLength }
}

/** Head of a stream that the gateway opens before the engine has answered. */
export function openedStreamHeaders (requestId: string, idHeader?: string, contentType = 'text/event-stream; charset=utf-8'): string[] {
  const headers = ['x-request-id', requestId, 'content-type', contentType]
  if (idHeader !== undefined) headers.push(idHeader, requestId)
  pushEventStreamHeaders(headers)
  return headers
}

function pushEventStreamHeaders (headers: string[]): void {
  headers.push('x-accel-buffering', 'no')
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() === 'cache-control') return
  }
  headers.push('cache-control', 'no-cache')
}

function text (value: Buffer | string): string {
  return typeof value === 'string' ? value : value.toString('latin1')
}

/** Whether an answer with these headers, names and values in a flat list, is an event stream. */
export function isEventStream (rawHeaders: readonly Buffer[] | readonly string[]): boolean {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 12 && name.toString().toLowerCase() === 'content-type') {
      return rawHeaders[i + 1]!.toString().startsWith('text/event-stream')
    }
  }
  return false
}
