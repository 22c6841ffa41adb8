import { WireError } from '../wire/error.js'
import {
  anything, bool, invalid, listOf, mapOf, maybe, nullable, object, oneOf, optional, readBody, required, text, type Shape
} from '../wire/shape.js'
import { MOST_TAGS, storedTags } from '../wire/tags.js'
import { parseTime } from '../wire/times.js'
import { UUID } from '../wire/uuid.js'

export interface EntityInput { readonly text: string, readonly type: string | null }

/** One item of a retain, read and checked. It is plain data, so that a queue can keep it. */
export interface RetainItem {
  readonly content: string
  /** Milliseconds; null for none. */
  readonly mentionedAt: number | null
  /** As it was given. */
  readonly timestamp: string | null
  readonly context: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly documentId: string | null
  readonly entities: readonly EntityInput[]
  readonly tags: readonly string[]
  readonly observationScopes: unknown
  readonly strategy: string | null
  readonly updateMode: 'replace' | 'append'
  /** It is not kept where its text is already: see `known.ts`. Of a retain that is not asynchronous. */
  readonly unlessKnown?: boolean
  /** Of a document that this very retain has begun before. */
  readonly goesOn?: boolean
  /** Where a text comes in several: which of them it is. They follow each other as they are. */
  readonly piece?: { readonly isFirst: boolean, readonly isLast: boolean }
}

export interface RetainRequest {
  readonly items: readonly RetainItem[]
  readonly async: boolean
  readonly operationId: string | null
}

const source = object({ type: optional(oneOf('base64'), 'base64'), media_type: required(text), data: required(text) })
const textBlock = object({ type: required(oneOf('text')), text: required(text) })
const fileBlock = object({ type: required(oneOf('image', 'file')), source: required(source), filename: maybe(text) })

/** Blocks are kept as text: a file of text as its text, another by its name. */
export const content: Shape<string> = (value, at, reading) => {
  const kept = (whole: string): string => whole.trim() === '' ? invalid(reading, at, 'content must not be empty', value) : whole
  if (typeof value === 'string') return kept(text(value, at, reading))
  if (!Array.isArray(value)) return text(value, at, reading)
  const parts = value.map((block: unknown, i) => {
    const { type } = (typeof block === 'object' && block !== null ? block : {}) as { readonly type?: unknown }
    if (type !== 'image' && type !== 'file') return textBlock(block, [...at, i], reading)?.text ?? ''
    const file = fileBlock(block, [...at, i], reading)
    if (file?.source === undefined) return ''
    if (/^text\/|json|xml|yaml/.test(file.source.media_type)) return Buffer.from(file.source.data, 'base64').toString('utf8')
    return `[${type} ${file.filename ?? file.source.media_type}]`
  })
  return kept(text(parts.join('\n\n'), at, reading))
}

const item = object({
  content: required(content),
  timestamp: maybe(text),
  context: maybe(text),
  metadata: maybe(mapOf(text)),
  document_id: maybe(text),
  entities: maybe(listOf(object({ text: required(text), type: maybe(text) }))),
  resolve_entities: optional(nullable(bool), true),
  tags: maybe(storedTags),
  observation_scopes: maybe(anything),
  strategy: maybe(text),
  update_mode: maybe(oneOf('replace', 'append')),
  // beyond the wire
  unless_known: maybe(bool)
})
const MOST_ITEMS = 100_000
/** Counted before they are read: one retain is one transaction. */
const items: Shape<ReadonlyArray<ReturnType<typeof item>>> = (value, at, reading) =>
  Array.isArray(value) && value.length > MOST_ITEMS ? invalid(reading, at, `at most ${MOST_ITEMS} items in one call`, value.length)
    : listOf(item)(value, at, reading)

const request = object({
  items: required(items), async: optional(nullable(bool), false), document_tags: maybe(storedTags),
  operation_id: maybe(text)
})

const LONGEST_DOCUMENT_ID = 512
/** Of what stands at each memory of an item, one for each chunk of its text. */
const MOST_REPEATED_CHARS = 32_768

/** Throws the wire's 422. `now` is the time of items that name none. */
export function readRetain (
  body: Buffer, headers: Readonly<Record<string, string>>, ignored: Set<string>, now: number
): RetainRequest {
  const { items, async, document_tags: shared, operation_id: operationId } = readBody(body, headers, ignored, request)
  if (operationId !== null && !UUID.test(operationId)) {
    throw new WireError(422, [
      { type: 'uuid_parsing', loc: ['body', 'operation_id'], msg: 'Input should be a valid UUID', input: operationId.slice(0, 200) }
    ])
  }
  return {
    async: async ?? false, operationId,
    items: items.map((each, i) => {
      const { document_id: documentId } = each
      if (documentId !== null && (documentId.trim() === '' || documentId.length > LONGEST_DOCUMENT_ID)) {
        throw refusal(i, 'document_id', `document_id must have 1 to ${LONGEST_DOCUMENT_ID} characters`, documentId)
      }
      const tags = distinct([...each.tags ?? [], ...shared ?? []])
      if (tags.length > MOST_TAGS) throw refusal(i, 'tags', `at most ${MOST_TAGS} tags`, tags.length)
      const repeated = JSON.stringify([tags, each.context, each.metadata, each.entities, each.observation_scopes]).length
      if (repeated > MOST_REPEATED_CHARS) {
        throw refusal(i, 'content', `tags, context, metadata, entities and observation_scopes of an item take at most ${MOST_REPEATED_CHARS} characters together`, repeated)
      }
      return {
        content: each.content, mentionedAt: timeOf(each.timestamp, i, now), timestamp: each.timestamp, context: each.context,
        metadata: each.metadata ?? {}, documentId, tags, entities: each.entities ?? [],
        observationScopes: each.observation_scopes, strategy: each.strategy, updateMode: each.update_mode ?? 'replace',
        ...each.unless_known === true ? { unlessKnown: true } : {}
      }
    })
  }
}

function timeOf (timestamp: string | null, i: number, now: number): number | null {
  if (timestamp === null) return now
  if (timestamp.trim().toLowerCase() === 'unset') return null
  const ms = parseTime(timestamp)
  if (ms === null) throw refusal(i, 'timestamp', 'Invalid timestamp: use ISO 8601 or "unset"', timestamp)
  return ms
}

function refusal (i: number, field: string, msg: string, input: unknown): WireError {
  const quoted = typeof input === 'string' ? input.slice(0, 200) : input
  return new WireError(422, [
    { type: 'value_error', loc: ['body', 'items', i, field], msg: `Value error, ${msg}`, input: quoted }
  ])
}

function distinct (values: readonly string[]): string[] {
  return [...new Set(values.filter(value => value.trim() !== ''))]
}
