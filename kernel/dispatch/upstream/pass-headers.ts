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

/** Lists as they stand in upstreams, judged once for each. */
const compiled = new WeakMap<readonly string[], (name: string) => boolean>()

/**
 * The headers of a client that an upstream gets, in a flat list of names and values. Pure.
 * @param allowed names, or beginnings that end in `*`; absent takes those of the usual APIs
 */
export function passedHeaders (headers: readonly string[], allowed: readonly string[] = usual): string[] {
  const passes = compiled.get(allowed) ?? compile(allowed)
  const passed: string[] = []
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (passes(headers[i]!.toLowerCase())) passed.push(headers[i]!, headers[i + 1]!)
  }
  return passed
}

function compile (allowed: readonly string[]): (name: string) => boolean {
  const lower = allowed.map(name => name.toLowerCase())
  const names = new Set(lower.filter(name => !name.endsWith('*')))
  const beginnings = lower.filter(name => name.endsWith('*')).map(name => name.slice(0, -1))
  const isNamed = (name: string): boolean => names.has(name) || beginnings.some(start => name.startsWith(start))
  const passes = (name: string): boolean => always.has(name) || isNamed(name)
  compiled.set(allowed, passes)
  return passes
}
