import { tagGroup, tagModes } from '../memories/tag-filter.js'
import { factTypes } from '../store/memory-table.js'
import { WireError } from '../wire/error.js'
import { bool, int, listOf, maybe, nullable, number, object, oneOf, optional, readBody, required, text } from '../wire/shape.js'
import { parseTime } from '../wire/times.js'

const tokens = (preset: number) => object({ max_tokens: optional(int({ min: 0 }), preset) })
const recallRequest = object({
  query: required(text),
  types: maybe(listOf(oneOf(...factTypes))),
  prefer_observations: maybe(bool),
  budget: optional(nullable(oneOf('low', 'mid', 'high')), 'mid'),
  max_tokens: optional(int({ min: 0 }), 4096),
  trace: optional(nullable(bool), false),
  query_timestamp: maybe(text),
  include: optional(nullable(object({
    entities: optional(nullable(tokens(500)), { max_tokens: 500 }),
    chunks: maybe(tokens(8192)),
    source_facts: maybe(object({ max_tokens: optional(int(), 4096), max_tokens_per_observation: optional(int(), -1) }))
  })), null),
  tags: maybe(listOf(text)),
  tags_match: optional(nullable(oneOf(...tagModes)), 'any'),
  // beyond the wire
  tags_aside: maybe(listOf(text)),
  tag_groups: maybe(listOf(tagGroup)),
  min_scores: maybe(object({
    semantic: maybe(number()), keyword: maybe(number()), reranker: maybe(number()), final: maybe(number())
  })),
  temporal_window: maybe(object({ start: required(text), end: required(text) }))
})

/** A recall as it is asked for, read and checked. */
export interface RecallRequest extends ReturnType<typeof recallRequest> {
  /** Milliseconds. */
  readonly window: { readonly start: number, readonly end: number } | null
  /** Milliseconds; the present unless the client names another time. */
  readonly at: number
}

/** The wire cuts a query here, and does not refuse it. */
const LONGEST_QUERY = 500 * 4

/** Throws the wire's 422. */
export function readRecall (
  body: Buffer, headers: Readonly<Record<string, string>>, ignored: Set<string>, now: number
): RecallRequest {
  const read = readBody(body, headers, ignored, recallRequest)
  const { query, query_timestamp: at, temporal_window: window } = read
  if (query.trim() === '') throw refusal(['query'], 'query must not be empty', query)
  return {
    ...read,
    query: query.slice(0, LONGEST_QUERY),
    at: at === null ? now : timeOf(['query_timestamp'], at),
    window: window === null ? null
      : { start: timeOf(['temporal_window', 'start'], window.start), end: timeOf(['temporal_window', 'end'], window.end) }
  }
}

function timeOf (path: readonly string[], value: string): number {
  const ms = parseTime(value)
  if (ms === null) throw refusal(path, 'Invalid time: use ISO 8601', value)
  return ms
}

function refusal (path: readonly string[], msg: string, input: string): WireError {
  return new WireError(422, [{ type: 'value_error', loc: ['body', ...path], msg: `Value error, ${msg}`, input: input.slice(0, 200) }])
}
