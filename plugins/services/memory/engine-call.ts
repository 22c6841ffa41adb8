import { SvcError } from 'svc-gateway/plugin'
import type { EngineAnswer, MemoryEngine } from './engine.js'
import { memoryError } from './errors.js'

/** Larger than any list that the gateway reads itself. */
const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const LONGEST_TEXT = 500

export type Row = Readonly<Record<string, unknown>>

export interface EngineQuestion {
  readonly method: string
  /** Names in it are escaped: see `bankPath`. */
  readonly path: string
  readonly query?: string
  /** Sent as JSON. */
  readonly body?: unknown
  readonly signal: AbortSignal
}

export interface EngineReply {
  readonly status: number
  readonly headers: EngineAnswer['headers']
  readonly bytes: Buffer
  /** The JSON of the answer; null for what is none. */
  readonly value: unknown
}

/** One call of the gateway's own. An answer of any status is an answer. */
export async function askEngine (engine: MemoryEngine, { method, path, query = '', body, signal }: EngineQuestion): Promise<EngineReply> {
  const bytes = body === undefined ? null : Buffer.from(JSON.stringify(body))
  const headers = bytes === null
    ? { accept: 'application/json' }
    : { 'accept': 'application/json', 'content-type': 'application/json', 'content-length': String(bytes.length) }
  return await readReply(await engine.request({ method, path, query, headers, body: bytes, signal }))
}

/** The same for what must succeed: see `valueOf`. */
export async function engineValue (engine: MemoryEngine, question: EngineQuestion): Promise<unknown> {
  return valueOf(await askEngine(engine, question), question.path)
}

/**
 * The JSON of what the engine did. Throws what it refuses, as `engineFailure` words it, and `memory.engine_shape` for an answer
 * that is none of an engine's, such as the page of another server at its address: nothing was remembered or deleted then.
 */
export function valueOf (reply: EngineReply, path: string): unknown {
  if (reply.status > 299) throw engineFailure(reply, path)
  if (reply.value === null && reply.status !== 204) throw noObject(path)
  return reply.value
}

/** Throws `memory.engine_shape` where the list is missing. */
export function rowsIn (value: unknown, key: string, path: string): readonly Row[] {
  const rows = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
  if (Array.isArray(rows)) return rows as readonly Row[]
  throw shapeFailure(value, { key, type: 'list', path })
}

/** The most that every list of an engine gives at once. */
const ROWS_AT_ONCE = 100

export interface EngineList {
  readonly path: string
  /** Of its own, such as a filter; without limit and offset. */
  readonly query?: string
  /** Where the answer has the rows. */
  readonly key: string
  /** Where a row has its id: one that moves on while the list is read is told once. */
  readonly id: string
}

/** A list that changes each time it is read is left then. */
const MOST_PASSES = 5

/**
 * All rows of a list, page by page. Of a list of several pages a row that moves to the front is missed where that part is read
 * already, as a bank is when it is written to: it is read again until that brings nothing new.
 */
export async function* engineRows (engine: MemoryEngine, list: EngineList, signal: AbortSignal): AsyncGenerator<Row> {
  const seen = new Set<unknown>()
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const before = seen.size
    let pages = 0
    for await (const rows of pagesOf(engine, list, signal)) {
      pages++
      for (const row of rows) {
        if (seen.has(row[list.id])) continue
        seen.add(row[list.id])
        yield row
      }
    }
    if (pages < 2 || seen.size === before) return
  }
}

/** Ends where a page brings nothing new: an engine may know no offset. */
async function* pagesOf (
  engine: MemoryEngine, { path, query, key, id }: EngineList, signal: AbortSignal
): AsyncGenerator<readonly Row[]> {
  const told = new Set<unknown>()
  for (let offset = 0; ;) {
    const asked = `${query === undefined ? '' : `${query}&`}limit=${ROWS_AT_ONCE}&offset=${offset}`
    const rows = rowsIn(await engineValue(engine, { method: 'GET', path, query: asked, signal }), key, path)
    const before = told.size
    for (const row of rows) told.add(row[id])
    yield rows
    if (rows.length < ROWS_AT_ONCE || told.size === before) return
    offset += rows.length
  }
}

export function shapeFailure (
  value: unknown, { key, type, path }: { readonly key: string, readonly type: string, readonly path: string }
): Error {
  const got = typeof value === 'object' && value !== null ? Object.keys(value).slice(0, 50) : []
  return memoryError('memory.engine_shape', `the memory engine answered without \`${key}\`; its version may be incompatible`,
    { details: { upstream: path, expected_key: key, expected_type: type, got_keys: got } })
}

export function noObject (path: string): SvcError {
  return memoryError('memory.engine_shape', 'the memory engine answered with something that is not a JSON object; check that [memory] url is that of a Hindsight server',
    { details: { upstream: path, expected_key: '', expected_type: 'object', got_keys: [] } })
}

export async function readReply ({ status, headers, body }: EngineAnswer): Promise<EngineReply> {
  const bytes = Buffer.isBuffer(body) ? body : await readAll(body)
  return { status, headers, bytes, value: parsed(bytes) }
}

/**
 * What the engine says when it does not do it. Its refusals keep their status, and a full engine its `Retry-After`; what is
 * the engine's own fault is a 502.
 */
export function engineFailure ({ status, headers, value }: Omit<EngineReply, 'bytes'>, path: string): SvcError {
  const { detail: given, error } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  const detail = given ?? (error as { readonly message?: unknown } | null | undefined)?.message
  const text = typeof detail === 'string' ? detail : detail === undefined ? `status ${status}` : JSON.stringify(detail)
  const message = `the memory engine: ${text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text}`
  if (status === 501) return memoryError('memory.engine_unsupported', message, { details: { upstream_status: status, upstream: path } })
  const wait = status === 429 || status === 503 ? Number(headers['retry-after']) : NaN
  const details = {
    upstream_status: status,
    upstream: path,
    ...detail === undefined ? {} : { detail },
    ...wait > 0 ? { retry_after_s: wait } : {}
  }
  const kept = (status >= 400 && status < 500) || status === 503 ? status : 502
  const code: string = 'memory.engine_error'
  return new SvcError(code, kept, message, { details, heals: status === 429 || status >= 500 })
}

/**
 * Of work that goes on once it has begun, as a deletion does: its client may leave, and its audit row still tells how it ended.
 * An engine that is silent is given up by itself, and one that takes long has not failed.
 */
export function committedSignal (): AbortSignal {
  return new AbortController().signal
}

/** A path of the engine below a bank. Names are escaped, so that none of them can lead elsewhere. */
export function bankPath (bank: string, ...names: readonly string[]): string {
  return ['/v1/default/banks', ...[bank, ...names].map(escaped)].join('/')
}

/** Dots alone would be steps in the path. */
function escaped (name: string): string {
  return /^\.{1,2}$/.test(name) ? name.replaceAll('.', '%2E') : encodeURIComponent(name)
}

async function readAll (body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > LONGEST_ANSWER_BYTES) throw memoryError('memory.engine_error', `the answer of the memory engine is larger than ${LONGEST_ANSWER_BYTES / 1024 / 1024} MiB; ask for less`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function parsed (bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    return null
  }
}
