import { jsonExcess, svcError, type SvcError } from 'svc-gateway/plugin'

export type Json = Readonly<Record<string, unknown>>

export function isObject (value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function textOr (value: unknown, other: string): string {
  return typeof value === 'string' ? value : other
}

export function countOf (value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}

/** What was read in this turn. */
let read: { readonly bytes: Buffer, readonly object: Json } | null = null

function forget (): void {
  read = null
}

/**
 * The body of a request, read once in a turn: several look at it before it goes out, and a large one takes long to read. Throws
 * `request.invalid_json`, `request.not_an_object`.
 */
export function bodyObject (bytes: Buffer): Json {
  if (read?.bytes === bytes) return read.object
  const object = parsed(bytes)
  if (read === null) process.nextTick(forget)
  read = { bytes, object }
  return object
}

function parsed (bytes: Buffer): Json {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8', hasMark(bytes) ? 3 : 0))
  } catch {
    throw svcError('request.invalid_json', 'the body is not valid JSON')
  }
  if (isObject(value)) return value
  throw svcError('request.not_an_object', 'the body is JSON but not an object')
}

/** Whether a byte order mark stands before it. */
function hasMark (bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** Arguments that are no JSON object are the model's mistake: the client sees them, and its tool can say so. */
export function argumentsOf (args: string): Json {
  if (args.trim() === '') return {}
  try {
    const value = JSON.parse(args) as unknown
    if (isObject(value)) return value
  } catch {
    // told below
  }
  return { arguments: args }
}

/** As deep and wide as what the dispatcher takes. */
const bounds = { depth: 1_000, keys: 10_000, values: 1_000_000 }

/** The body of a request that no dispatcher has looked at. Throws `request.too_complex` besides what `bodyObject` throws. */
export function requestObject (bytes: Buffer): Json {
  const excess = jsonExcess(bytes, bounds)
  if (excess !== null) throw excess
  return bodyObject(bytes)
}

/** The members of an object that are there; null is "not given". */
export function given (members: Json): Record<string, unknown> {
  const there: Record<string, unknown> = {}
  for (const key of Object.keys(members)) {
    const value = members[key]
    if (value === undefined || value === null) continue
    // a client's own member may be called as what objects have already
    if (key === '__proto__') Object.defineProperty(there, key, { value, enumerable: true, configurable: true, writable: true })
    else there[key] = value
  }
  return there
}

/** A list whose members are objects. @param at where it stands in the request. Throws `validation.invalid`. */
export function objectsIn (value: unknown, at: string): readonly Json[] {
  if (!Array.isArray(value)) throw malformed(at, 'must be a list')
  value.forEach((member, i) => {
    if (!isObject(member)) throw malformed(`${at}.${i}`, 'must be an object')
  })
  return value as Json[]
}

export function stringIn (value: unknown, at: string): string {
  if (typeof value !== 'string') throw malformed(at, 'must be a string')
  return value
}

export function malformed (at: string, problem: string): SvcError {
  return svcError('validation.invalid', `'${at}' ${problem}`, { param: at })
}

/** A type as a client wrote it, for messages: of any length, and perhaps no text at all. */
export function typeName (type: unknown): string {
  return `'${typeof type === 'string' ? type.slice(0, 64) : typeof type}'`
}

/** Refuses what the other wire format has no words for: leaving it out would be another request than the client's. */
export function untranslatable (at: string, what: string): SvcError {
  return svcError('validation.invalid', `'${at}': ${what} cannot be passed to this model, which speaks another wire format`, { param: at })
}
