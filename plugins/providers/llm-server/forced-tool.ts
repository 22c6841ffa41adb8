import type { BodyEdits, JsonBody } from 'svc-gateway/plugin'

type Member = Readonly<Record<string, unknown>>

/** How an API says which tool must be called. */
interface Naming {
  /** What a choice or a tool is called; null for one that has no name. */
  readonly nameOf: (value: Member) => unknown
  /** The choice that says "one of those that are there". */
  readonly any: (choice: Member) => unknown
}

const chat: Naming = { nameOf: ({ function: called }) => isMember(called) ? called.name : null, any: () => 'required' }
const responses: Naming = { nameOf: ({ name }) => name, any: () => 'required' }
const messages: Naming = { nameOf: ({ name }) => name, any: choice => ({ ...choice, type: 'any', name: undefined }) }

/**
 * llama-server passes over the name in a `tool_choice` and lets its model choose: it gets the named tool alone, and must call
 * one. A name that no tool has is left to it. Pure.
 */
function forcedTool (body: JsonBody, { nameOf, any }: Naming): BodyEdits | null {
  // most say auto, none or required
  if (!body.has('tool_choice') || body.string('tool_choice') !== null) return null
  const choice = body.value('tool_choice')
  const name = isMember(choice) && (choice.type === 'function' || choice.type === 'tool') ? nameOf(choice) : null
  if (typeof name !== 'string') return null
  const tools = body.value('tools')
  if (!Array.isArray(tools)) return null
  const named = tools.filter(tool => isMember(tool) && nameOf(tool) === name)
  return named.length === 0 ? null : { set: { tools: named, tool_choice: any(choice as Member) } }
}

export const forcedInChat = (body: JsonBody): BodyEdits | null => forcedTool(body, chat)
export const forcedInResponses = (body: JsonBody): BodyEdits | null => forcedTool(body, responses)
export const forcedInMessages = (body: JsonBody): BodyEdits | null => forcedTool(body, messages)

function isMember (value: unknown): value is Member {
  return typeof value === 'object' && value !== null
}
