import {
  given, isObject, leaveStrangers, malformed, objectsIn, OpenCalls, stringIn, textOr, Turns, typeName, type Json
} from '../../../v1/over-chat/ref.js'
import { pictureParts } from './pictures.js'

const spoken: ReadonlySet<string> = new Set(['role', 'content', 'images'])
const known: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['assistant', new Set([...spoken, 'thinking', 'tool_calls'])],
  ['tool', new Set([...spoken, 'tool_call_id', 'tool_name', 'name'])]
])
const callKeys: ReadonlySet<string> = new Set(['id', 'type', 'function'])
const functionKeys: ReadonlySet<string> = new Set(['index', 'name', 'arguments'])

/**
 * The conversation of a request as chat messages. Calls and results that have no ids are told apart by their order. Only users
 * show pictures in chat: those of others follow in the user's words, behind all results of the calls before them. What chat has
 * no place for goes into `warnings`. Throws `validation.invalid`. Pure.
 * @param keepsThoughts whether earlier thinking goes along; upstreams refuse it
 */
export function chatMessages (messages: unknown, keepsThoughts: boolean, warnings: string[]): readonly object[] {
  const open = new OpenCalls()
  const turns = new Turns()
  for (const [i, message] of objectsIn(messages, 'messages').entries()) {
    const { role } = message
    leaveStrangers(message, known.get(role) ?? spoken, 'messages.*', warnings)
    turns.put(chatMessage(message, i, open, keepsThoughts, warnings))
    if (role !== 'user') turns.show(pictureParts(message.images, `messages.${i}.images`))
  }
  turns.end()
  return turns.list
}

function chatMessage (message: Json, i: number, open: OpenCalls, keepsThoughts: boolean, warnings: string[]): Json {
  const at = `messages.${i}`
  const { role } = message
  const content = message.content == null ? '' : stringIn(message.content, `${at}.content`)
  switch (role) {
    case 'system': return { role, content }
    case 'user': return { role, content: withPictures(content, message.images, `${at}.images`) }
    case 'assistant': {
      const made = toolCalls(message.tool_calls, `${at}.tool_calls`, open, warnings)
      return {
        role,
        content: content === '' && made.length > 0 ? null : content,
        ...given({
          reasoning_content: keepsThoughts && textOr(message.thinking, '') !== '' ? message.thinking : null,
          tool_calls: made.length > 0 ? made : null
        })
      }
    }
    case 'tool': {
      const { tool_call_id: id, tool_name: toolName, name } = message
      return { role, tool_call_id: open.answered(textOr(id, ''), textOr(toolName, '') || textOr(name, '')), content }
    }
    default: throw malformed(`${at}.role`, `must be system, user, assistant or tool, not ${typeName(role)}`)
  }
}

export function withPictures (text: string, images: unknown, at: string): unknown {
  const pictures = pictureParts(images, at)
  return pictures.length === 0 ? text : [...text === '' ? [] : [{ type: 'text', text }], ...pictures]
}

function toolCalls (calls: unknown, at: string, open: OpenCalls, warnings: string[]): object[] {
  if (calls === undefined || calls === null) return []
  return objectsIn(calls, at).map((call, i) => {
    const { id, function: said } = call
    if (!isObject(said)) throw malformed(`${at}.${i}.function`, 'must be an object')
    leaveStrangers(call, callKeys, 'messages.*.tool_calls.*', warnings)
    leaveStrangers(said, functionKeys, 'messages.*.tool_calls.*.function', warnings)
    const { arguments: args = {} } = said
    const name = stringIn(said.name, `${at}.${i}.function.name`)
    const text = typeof args === 'string' ? args : JSON.stringify(args)
    return { id: open.made(textOr(id, ''), name), type: 'function', function: { name, arguments: text } }
  })
}
