import { given, isObject, malformed, objectsIn, OpenCalls, stringIn, textOr, typeName } from '../../v1/over-chat/ref.js'
import { pictureParts } from './pictures.js'

/**
 * The conversation of a request as chat messages. Calls and results that have no ids are told apart by their order. Throws
 * `validation.invalid`. Pure.
 * @param keepsThoughts whether earlier thinking goes along; upstreams refuse it
 */
export function chatMessages (messages: unknown, keepsThoughts: boolean): object[] {
  const open = new OpenCalls()
  return objectsIn(messages, 'messages').map((message, i) => {
    const at = `messages.${i}`
    const { role } = message
    const content = message.content == null ? '' : stringIn(message.content, `${at}.content`)
    switch (role) {
      case 'system': return { role, content }
      case 'user': return { role, content: withPictures(content, message.images, `${at}.images`) }
      case 'assistant': {
        const made = toolCalls(message.tool_calls, `${at}.tool_calls`, open)
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
  })
}

export function withPictures (text: string, images: unknown, at: string): unknown {
  const pictures = pictureParts(images, at)
  return pictures.length === 0 ? text : [...text === '' ? [] : [{ type: 'text', text }], ...pictures]
}

function toolCalls (calls: unknown, at: string, open: OpenCalls): object[] {
  if (calls === undefined || calls === null) return []
  return objectsIn(calls, at).map(({ id, function: said }, i) => {
    if (!isObject(said)) throw malformed(`${at}.${i}.function`, 'must be an object')
    const { arguments: args = {} } = said
    const name = stringIn(said.name, `${at}.${i}.function.name`)
    const text = typeof args === 'string' ? args : JSON.stringify(args)
    return { id: open.made(textOr(id, ''), name), type: 'function', function: { name, arguments: text } }
  })
}
