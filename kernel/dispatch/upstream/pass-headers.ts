/**
 * What the usual APIs read in a request. Everything else that a client sends is between it and this gateway: programs tell
 * servers who installed them, in which session, on which machine.
 */
const usual: readonly string[] = [
  'accept', 'accept-language', 'content-type', 'content-length', 'anthropic-version', 'anthropic-beta', 'openai-beta',
  'openai-organization', 'openai-project', 'idempotency-key', 'http-referer', 'x-title', 'x-goog-api-client', 'x-svc-priority', 'traceparent',
  'tracestate'
]

/** Headers of the request itself, which every upstream needs. */
const always: ReadonlySet<string> = new Set(['content-type', 'accept', 'x-request-id', 'x-svc-via'])

/**
 * Which headers of a client an upstream gets, by their names in lower case.
 * @param allowed names, or beginnings that end in `*`; absent takes those of the usual APIs
 */
export function passRule (allowed: readonly string[] = usual): (lower: string) => boolean {
  const rows = allowed.map(name => name.toLowerCase())
  const names = new Set(rows.filter(name => !name.endsWith('*')))
  const beginnings = rows.filter(name => name.endsWith('*')).map(name => name.slice(0, -1))
  return lower => always.has(lower) || names.has(lower) || beginnings.some(start => lower.startsWith(start))
}
