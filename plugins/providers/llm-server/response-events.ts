import type { EventAsk, EventEditor, StreamEvent } from 'svc-gateway/plugin'

type Fields = Record<string, unknown>

/** Where an item stands in the answer, and what is known of it. */
interface Item {
  readonly index: number
  /** Index of its last part; -1 before the first. */
  part: number
  argumentsDone: boolean
}

/** Events about a part of an item, by what they begin with. */
const ABOUT_PART = /^response\.(content_part|output_text|refusal|reasoning_text)\./

/**
 * The Responses API as its clients check it: llama-server leaves out numbers and indices in the events, and in their first
 * ones what the response is. Adds what is missing and nothing else; an event that has everything passes as it came.
 */
export function responseEvents ({ model, now }: EventAsk): EventEditor {
  const items = new Map<string, Item>()
  let sequence = 0
  let current: Item | null = null

  const itemOf = (id: unknown, given: unknown): Item => {
    const key = typeof id === 'string' ? id : ''
    const known = items.get(key)
    if (known !== undefined) return known
    const item = { index: typeof given === 'number' ? given : items.size, part: -1, argumentsDone: false }
    items.set(key, item)
    return item
  }

  /** What is missing in an event, as it would stand there. */
  const missing = (fields: Fields): Fields => {
    const { type, item, response, part } = fields
    const more: Fields = {}
    if (isObject(response)) {
      more.response = { ...without(responseHead(model, now), response), ...response, ...completeUsage(response.usage) }
    }
    if (isObject(item) || typeof fields.item_id === 'string') {
      current = itemOf(isObject(item) ? item.id : fields.item_id, fields.output_index)
      more.output_index = current.index
    }
    if (current !== null && ABOUT_PART.test(String(type))) {
      if (type === 'response.content_part.added') current.part++
      more.content_index = Math.max(0, current.part)
      if (isObject(part) && part.type === 'output_text') more.part = { ...part, annotations: part.annotations ?? [], logprobs: part.logprobs ?? [] }
      if (/output_text\.(delta|done)$/.test(String(type))) more.logprobs = []
    }
    return more
  }

  const numbered = (fields: Fields): Fields | null => {
    const more = missing(fields)
    const given = fields.sequence_number
    const number = typeof given === 'number' ? given : sequence
    sequence = number + 1
    const whole = { ...without(more, fields), sequence_number: number }
    const nested = ['response', 'part'].filter(key => isObject(more[key]) && size(more[key]) > size(fields[key]))
    if (Object.keys(without(whole, fields)).length === 0 && nested.length === 0) return null
    return { ...fields, ...without(whole, fields), ...Object.fromEntries(nested.map(key => [key, more[key]])) }
  }

  return {
    event ({ event, data }) {
      const fields = parsed(data)
      if (fields === null || typeof fields.type !== 'string' || !fields.type.startsWith('response.')) return null
      const before = argumentsDone(fields) ?? partAdded(fields)
      const added = before === null ? [] : [written(before.type as string, numbered(before) ?? before)]
      const edited = numbered(fields)
      if (edited === null && added.length === 0) return null
      return [...added, edited === null ? { event, data } : written(event, edited)]
    }
  }

  /** The event that begins a part, which the engine goes without for reasoning. */
  function partAdded ({ type, item_id: id, output_index: index }: Fields): Fields | null {
    const kind = /^response\.(output_text|reasoning_text)\.delta$/.exec(String(type))?.[1]
    if (kind === undefined || itemOf(id, index).part >= 0) return null
    return { type: 'response.content_part.added', item_id: id, part: { type: kind, text: '' } }
  }

  /** The event that ends the arguments of a call, which the engine goes without. */
  function argumentsDone (fields: Fields): Fields | null {
    const { type, item } = fields
    if (type === 'response.function_call_arguments.done') itemOf(fields.item_id, fields.output_index).argumentsDone = true
    if (type !== 'response.output_item.done' || !isObject(item) || item.type !== 'function_call') return null
    const known = itemOf(item.id, fields.output_index)
    if (known.argumentsDone) return null
    known.argumentsDone = true
    return { type: 'response.function_call_arguments.done', item_id: item.id, name: item.name, arguments: item.arguments }
  }
}

/** What a response says of itself from its first event on. */
function responseHead (model: string, now: number): Fields {
  return {
    created_at: Math.floor(now / 1000), model, output: [], error: null, incomplete_details: null, instructions: null,
    metadata: null, parallel_tool_calls: false, tool_choice: 'auto', tools: [], temperature: null, top_p: null
  }
}

/** Clients read how much of the output was reasoning; the engine does not tell. */
function completeUsage (usage: unknown): Fields {
  if (!isObject(usage) || isObject(usage.output_tokens_details)) return {}
  return { usage: { ...usage, output_tokens_details: { reasoning_tokens: 0 } } }
}

function written (event: string, fields: Fields): StreamEvent {
  return { event, data: JSON.stringify(fields) }
}

function without (fields: Fields, taken: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !Object.hasOwn(taken, key)))
}

/** Of what only ever grows, so that a longer text is another one. */
function size (value: unknown): number {
  return isObject(value) ? JSON.stringify(value).length : 0
}

function isObject (value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parsed (data: string): Fields | null {
  try {
    const value = JSON.parse(data) as unknown
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
