import type { OutgoingCall, OutgoingUsage } from 'svc-gateway/plugin'
import type { Tokens } from './prices.js'

/** Text has about four bytes a token; what a picture takes as base64 is far more than it costs. */
const BYTES_PER_TOKEN = 4
const MOST_INPUT = 200_000
/** No answer is as long: a request may name any number, and the ledger counts in whole ones. */
const MOST_OUTPUT = 10_000_000
const LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens']
const GENERATES: ReadonlySet<string> = new Set(['chat', 'completions', 'messages', 'responses'])

/** What a request may come to, from its size and the limit that it sets itself. */
export function estimate ({ surface, body, bodyBytes }: OutgoingCall, defaultOutput: number): Tokens {
  const input = Math.min(Math.ceil((bodyBytes ?? 0) / BYTES_PER_TOKEN), MOST_INPUT)
  if (!GENERATES.has(surface)) return { input, cached: 0, output: 0 }
  const given = LIMITS.map(key => body?.value(key)).filter(value => typeof value === 'number' && value >= 0) as number[]
  const answers = body?.value('n')
  const times = typeof answers === 'number' && answers >= 1 && answers <= 128 ? Math.ceil(answers) : 1
  const output = Math.ceil(given.length === 0 ? defaultOutput : Math.max(...given)) * times
  return { input, cached: 0, output: Math.min(output, MOST_OUTPUT) }
}

/**
 * What it came to: the usage that the upstream named; for a stream that was cut before it came, the pieces that passed. Null for
 * nothing: it was refused, or never reached.
 */
export function actual (estimated: Tokens, usage: OutgoingUsage): Tokens | null {
  const { status, whole, left, inputTokens, cachedTokens, outputTokens, pieces } = usage
  const input = inputTokens ?? estimated.input
  // who leaves before the answer has had the request read all the same
  if (status === null) return left ? { input, cached: 0, output: 0 } : null
  if (status >= 400) return null
  const counted = whole ? outputTokens ?? (pieces > 0 ? pieces : estimated.output) : Math.max(outputTokens ?? 0, pieces)
  return { input, cached: cachedTokens, output: counted }
}
