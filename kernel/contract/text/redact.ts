/** What stands where a secret was. */
export const REDACTED = '***'

const SECRET_WORDS = ['apikey', 'token', 'secret', 'secrets', 'password', 'credential', 'credentials', 'authorization']
const MAX_DEPTH = 12

const HIDDEN_IN_LINE = '***REDACTED***'

export type CleanText = (text: string) => string

/**
 * A copy that JSON can hold, with every value under a secret's key replaced: api_key, apikey, key, token,
 * secret, password, credential, authorization, at any depth, however it is spelled, also as the end of a longer name
 * (`HF_TOKEN`, `x-api-key`). `clean` sees every other text, keys included. Cuts what is deeper than 12 levels or refers to
 * itself, and what comes after the first `most` items and members. Never throws for plain data.
 */
export function redact (value: unknown, clean: CleanText = text => text, most = Infinity): unknown {
  return copy(value, { above: new Set(), clean, left: most }, 0)
}

export function isSecretKey (key: string): boolean {
  const words = key.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase().split(/[^a-z0-9]+/).filter(word => word !== '')
  const joined = words.join('')
  return words.at(-1) === 'key' || SECRET_WORDS.some(word => joined.endsWith(word))
}

interface Walk {
  readonly above: Set<object>
  readonly clean: CleanText
  /** Items and members that are still looked at. */
  left: number
}

function copy (value: unknown, walk: Walk, depth: number): unknown {
  const { above, clean } = walk
  if (typeof value === 'string') return clean(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof Error) return { name: value.name, message: clean(value.message) }
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= MAX_DEPTH || above.has(value)) return '[…]'
  above.add(value)
  const result = Array.isArray(value) ? first(value, walk).map(item => copy(item, walk, depth + 1))
    : Object.fromEntries(first(entriesOf(value), walk).map(([key, item]) =>
        [clean(key), hides(key, item) ? REDACTED : copy(item, walk, depth + 1)]))
  above.delete(value)
  return result
}

function entriesOf (value: object): readonly (readonly [string, unknown])[] {
  return value instanceof Map ? [...value].map(([key, item]) => [String(key), item] as const) : Object.entries(value)
}

function first<T> (all: readonly T[], walk: Walk): readonly T[] {
  const taken = all.length > walk.left ? all.slice(0, walk.left) : all
  walk.left -= taken.length
  return taken
}

/** Whether a secret is set is no secret. */
function hides (key: string, item: unknown): boolean {
  return isSecretKey(key) && item !== null && item !== undefined
}

/**
 * A line without what could be a secret: authorization values, bearer tokens, `--api-key` values, user names
 * and passwords of URLs, keys by their usual beginning, and assignments of names that end in KEY, TOKEN, SECRET or
 * PASSWORD. Pure.
 */
export function redactLine (line: string): string {
  return line
    .replace(/\b(authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic)\s+)?[^\s"',]+/gi, `$1${HIDDEN_IN_LINE}`)
    .replace(/\b(bearer\s+)(?!\*{3})[\w.~+/=-]{8,}/gi, `$1${HIDDEN_IN_LINE}`)
    .replace(/(--api-key[\s=]+)[^\s"',]+/g, `$1${HIDDEN_IN_LINE}`)
    .replace(/(:\/\/)[^\s/@"']+@/g, `$1${HIDDEN_IN_LINE}@`)
    .replace(/([?&](?:api_?key|key|token|access_token)=)[^\s&"'#]+/gi, `$1${HIDDEN_IN_LINE}`)
    .replace(/(["']?\b(?:api_?key|x-api-key|secret|password)["']?\s*:\s*["'])[^"']+/gi, `$1${HIDDEN_IN_LINE}`)
    .replace(/\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,})/g, HIDDEN_IN_LINE)
    .replace(/\b([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=)(?:"[^"]*"|'[^']*'|[^\s"',]+)/g, `$1${HIDDEN_IN_LINE}`)
}
