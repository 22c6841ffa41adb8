import { isObject, textOr, type Json } from '../../over-chat/ref.js'

/** Characters of a text in one event. */
const PIECE = 2048

/** What is added while a response is told again, and where it stands. */
interface At {
  readonly output_index: number
  readonly item_id: string
}

export interface ReplayedEvent extends Json {
  readonly type: string
  readonly sequence_number: number
}

/**
 * A kept response as the events of a stream. Their numbers are the same each time, so a reader goes on where it left off.
 * @param started its first events alone may come before it is over: it is asked for when they have been taken
 */
export async function* replayed (started: Json, over: () => Promise<Json>): AsyncGenerator<ReplayedEvent, void, undefined> {
  let number = 0
  const numbered = ({ type, ...members }: Json): ReplayedEvent => ({ type: String(type), sequence_number: number++, ...members })
  for (const event of begun(started)) yield numbered(event)
  const response = await over()
  for (const event of eventsOf(response)) yield numbered(event)
  yield lastEvent(response, number)
}

/** How a stream begins, before anything is said. */
export function begun (started: Json): readonly Json[] {
  const { error: _, incomplete_details: __, usage: ___, completed_at: ____, ...head } = started
  const beginning = { ...head, error: null, incomplete_details: null, output: [], usage: null }
  const isBackground = started.background === true
  const kinds = isBackground ? ['created', 'queued', 'in_progress'] : ['created', 'in_progress']
  return kinds.map(kind => {
    const status = isBackground && kind !== 'in_progress' ? 'queued' : 'in_progress'
    return { type: `response.${kind}`, response: { ...beginning, status } }
  })
}

/** What a response says, between how its stream begins and the last event. */
export function* eventsOf ({ output }: Json): Generator<Json, void, undefined> {
  const items = Array.isArray(output) ? output.filter(isObject) : []
  for (const [index, item] of items.entries()) yield* itemEvents(item, index)
}

export function lastEvent (response: Json, number: number): ReplayedEvent {
  const { status } = response
  // the API has no event of its own for one that was cancelled
  const last = status === 'completed' || status === 'failed' ? status : 'incomplete'
  return { type: `response.${last}`, sequence_number: number, response }
}

function* itemEvents (item: Json, index: number): Generator<Json, void, undefined> {
  const { type } = item
  const at = { output_index: index, item_id: textOr(item.id, '') }
  yield { type: 'response.output_item.added', output_index: index, item: emptied(item) }
  if (type === 'function_call') yield* argumentEvents(item, at)
  else if (type === 'custom_tool_call') yield* textEvents('custom_tool_call_input', textOr(item.input, ''), at, 'input')
  else yield* partEvents(item, at)
  yield { type: 'response.output_item.done', output_index: index, item }
}

function* argumentEvents (item: Json, at: At): Generator<Json, void, undefined> {
  const args = textOr(item.arguments, '')
  for (const delta of pieces(args)) yield { type: 'response.function_call_arguments.delta', ...at, delta }
  yield { type: 'response.function_call_arguments.done', ...at, name: textOr(item.name, ''), arguments: args }
}

function* partEvents ({ content, summary }: Json, at: At): Generator<Json, void, undefined> {
  for (const [place, part] of parts(summary)) {
    const where = { ...at, summary_index: place }
    yield { type: 'response.reasoning_summary_part.added', ...where, part: { ...part, text: '' } }
    yield* textEvents('reasoning_summary_text', textOr(part.text, ''), where, 'text')
    yield { type: 'response.reasoning_summary_part.done', ...where, part }
  }
  for (const [place, part] of parts(content)) {
    const where = { ...at, content_index: place }
    yield { type: 'response.content_part.added', ...where, part: emptyPart(part) }
    yield* contentEvents(part, where)
    yield { type: 'response.content_part.done', ...where, part }
  }
}

function* contentEvents (part: Json, at: Json): Generator<Json, void, undefined> {
  if (part.type === 'refusal') return yield* textEvents('refusal', textOr(part.refusal, ''), at, 'refusal')
  if (part.type === 'reasoning_text') return yield* textEvents('reasoning_text', textOr(part.text, ''), at, 'text')
  if (part.type !== 'output_text') return
  const logprobs = Array.isArray(part.logprobs) ? part.logprobs as readonly unknown[] : []
  yield* textEvents('output_text', textOr(part.text, ''), at, 'text', { logprobs: [] }, { logprobs })
  const notes: readonly unknown[] = Array.isArray(part.annotations) ? part.annotations : []
  for (const [place, annotation] of notes.entries()) {
    yield { type: 'response.output_text.annotation.added', ...at, annotation_index: place, annotation }
  }
}

function* textEvents (
  what: string, text: string, at: Json, key: string, inDelta: Json = {}, inDone: Json = {}
): Generator<Json, void, undefined> {
  for (const delta of pieces(text)) yield { type: `response.${what}.delta`, ...at, delta, ...inDelta }
  yield { type: `response.${what}.done`, ...at, [key]: text, ...inDone }
}

/** Never cut within a character. */
function* pieces (text: string): Generator<string, void, undefined> {
  for (let at = 0; at < text.length;) {
    const end = at + PIECE
    const isPair = end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800
    yield text.slice(at, isPair ? end + 1 : end)
    at = isPair ? end + 1 : end
  }
}

/** An item as it is before anything of it has been said. */
function emptied (item: Json): Json {
  const { content, summary, arguments: args, input, status, encrypted_content: _, ...rest } = item
  return {
    ...rest,
    ...status === undefined ? {} : { status: 'in_progress' },
    ...Array.isArray(content) ? { content: [] } : {},
    ...Array.isArray(summary) ? { summary: [] } : {},
    ...typeof args === 'string' ? { arguments: '' } : {},
    ...typeof input === 'string' ? { input: '' } : {}
  }
}

function emptyPart (part: Json): Json {
  if (part.type === 'refusal') return { ...part, refusal: '' }
  if (part.type === 'output_text') return { ...part, text: '', annotations: [], ...part.logprobs === undefined ? {} : { logprobs: [] } }
  return typeof part.text === 'string' ? { ...part, text: '' } : part
}

function parts (value: unknown): Array<[number, Json]> {
  return (Array.isArray(value) ? value.filter(isObject) : []).map((part, i) => [i, part])
}
