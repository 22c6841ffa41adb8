import { isObject, type Json } from '../../over-chat/ref.js'
import { newId } from '../ids.js'

const prefixes: Readonly<Record<string, string>> = {
  message: 'msg', reasoning: 'rs', function_call: 'fc', function_call_output: 'fco', custom_tool_call: 'ctc', custom_tool_call_output: 'ctco'
}
const withStatus: ReadonlySet<unknown> = new Set(['message', 'function_call', 'function_call_output'])

/** What a request brings of its own, in the full form in which the API lists it. What is no item is left out. */
export function inputItems (input: unknown): Json[] {
  if (typeof input === 'string') return [fullItem({ type: 'message', role: 'user', content: input })]
  return Array.isArray(input) ? input.filter(isObject).map(fullItem) : []
}

function fullItem (item: Json): Json {
  const { type = 'message', id, content, role, status } = item
  return {
    ...item,
    id: typeof id === 'string' && id !== '' ? id : newId(prefixes[String(type)] ?? 'item'),
    type,
    ...withStatus.has(type) ? { status: status ?? 'completed' } : {},
    ...type === 'message' && typeof content === 'string' ? { content: [partOf(role, content)] } : {}
  }
}

function partOf (role: unknown, text: string): object {
  return role === 'assistant' ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text }
}

/**
 * A kept item as a part of another request. Its id says nothing to who gets it, and an upstream takes no thoughts but its own:
 * none for those.
 */
export function sentItem ({ id: _, ...item }: Json, toUpstream: boolean): Json[] {
  return toUpstream && item.type === 'reasoning' ? [] : [item]
}

/** A response that nothing comes of any more. */
export function failed (response: Json, message: string): Json {
  return { ...response, status: 'failed', error: { code: 'server_error', message } }
}

/** The id of a reference to a kept item; null for any other item. */
export function referenceOf (item: unknown): string | null {
  return isObject(item) && item.type === 'item_reference' && typeof item.id === 'string' ? item.id : null
}
