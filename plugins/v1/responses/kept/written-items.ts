import { isObject, type Json } from '../../over-chat/ref.js'

/** An item as it is in the database. */
export interface WrittenItem {
  readonly id: string
  readonly text: string
  readonly isOutput: 0 | 1
}

export function written (items: readonly Json[], isOutput: 0 | 1): readonly WrittenItem[] {
  return items.map(item => ({ id: String(item.id), text: JSON.stringify(item), isOutput }))
}

/** What a response adds to its conversation. */
export function turnOf (input: readonly Json[], response: Json): readonly WrittenItem[] {
  return isComplete(response) ? [...written(input, 0), ...written(apart(response).output, 1)] : []
}

export function isComplete ({ status }: Json): boolean {
  return status === 'completed' || status === 'incomplete'
}

export function sizeOf (response: string, items: readonly WrittenItem[]): number {
  return items.reduce((bytes, { text }) => bytes + Buffer.byteLength(text), Buffer.byteLength(response))
}

/** A response without its output, which is kept item by item. */
export function apart (response: Json): { readonly text: string, readonly output: readonly Json[] } {
  const output = Array.isArray(response.output) ? response.output.filter(isObject) : []
  return { text: JSON.stringify({ ...response, output: [] }), output }
}

export function parsed (text: string): Json {
  return JSON.parse(text) as Json
}
