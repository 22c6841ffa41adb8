import type { BodyEdits, JsonBody } from 'svc-gateway/plugin'
import { forcedInResponses } from './forced-tool.js'
import { responseFormat } from './response-format.js'

/** What llama-server needs in a request of the Responses API besides what the client said. Pure. */
export function responseRequest (body: JsonBody): BodyEdits | null {
  const edits = [responseFormat(body), fullInput(body), forcedInResponses(body)].filter(edit => edit !== null)
  if (edits.length === 0) return null
  return { add: Object.assign({}, ...edits.map(({ add }) => add)), set: Object.assign({}, ...edits.map(({ set }) => set)) }
}

/** llama-server knows an answer of the model in its full form alone; clients also send it as a role and a text. */
function fullInput (body: JsonBody): BodyEdits | null {
  if (!body.has('input')) return null
  const input = body.value('input')
  if (!Array.isArray(input) || !input.some(isShort)) return null
  return { set: { input: input.map((item: unknown) => isShort(item) ? full(item) : item) } }
}

type Item = Readonly<Record<string, unknown>>

function isShort (item: unknown): item is Item {
  if (typeof item !== 'object' || item === null) return false
  const { role, type, content } = item as Item
  return role === 'assistant' && (type === undefined || typeof content === 'string')
}

function full (item: Item): Item {
  const { content } = item
  return {
    ...item, type: 'message', status: item.status ?? 'completed',
    content: typeof content === 'string' ? [{ type: 'output_text', text: content, annotations: [] }] : content
  }
}
