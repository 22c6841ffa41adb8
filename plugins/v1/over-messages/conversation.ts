import { isObject, malformed, objectsIn, stringIn, textOr, typeName, untranslatable, type Json } from '../over-chat/ref.js'

interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: object[]
}

export interface Conversation {
  /** Empty without any. */
  readonly system: string
  readonly messages: readonly Turn[]
}

/** Chat messages as a conversation of the Messages API, in which turns alternate. Throws `validation.invalid`. */
export function conversationOf (asked: unknown): Conversation {
  const system: string[] = []
  const messages: Turn[] = []
  const add = (role: Turn['role'], blocks: readonly object[]): void => {
    const last = messages.at(-1)
    if (blocks.length === 0) return
    if (last?.role !== role) messages.push({ role, content: [...blocks] })
    else for (const block of blocks) last.content.push(block)
  }
  for (const [i, message] of objectsIn(asked, 'messages').entries()) {
    const at = `messages.${i}`
    const { role, content } = message
    switch (role) {
      case 'system':
      case 'developer': system.push(textOf(content, `${at}.content`)); break
      case 'user': add('user', blocksOf(content, `${at}.content`)); break
      case 'assistant': add('assistant', [...saidOf(message, at), ...callsOf(message.tool_calls, `${at}.tool_calls`)]); break
      case 'tool': add('user', [{
        type: 'tool_result', tool_use_id: stringIn(message.tool_call_id, `${at}.tool_call_id`), content: blocksOf(content, `${at}.content`)
      }]); break
      default: throw malformed(`${at}.role`, 'must be system, developer, user, assistant or tool')
    }
  }
  return { system: system.join('\n\n'), messages }
}

function textOf (content: unknown, at: string): string {
  if (typeof content === 'string') return content
  return objectsIn(content, at).map(({ text }, i) => stringIn(text, `${at}.${i}.text`)).join('\n')
}

/** Earlier reasoning is not said: without its maker's signature it is refused. */
function saidOf ({ content, refusal }: Json, at: string): object[] {
  const said = content == null ? textOr(refusal, '') : content
  return typeof said === 'string' ? texts(said) : objectsIn(said, `${at}.content`).flatMap(part => texts(textOr(part.text ?? part.refusal, '')))
}

/** Blocks without a text are refused. */
function texts (text: string): object[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function callsOf (calls: unknown, at: string): object[] {
  return (calls == null ? [] : objectsIn(calls, at)).map(({ id, function: said }, i) => {
    if (!isObject(said)) throw malformed(`${at}.${i}.function`, 'must be an object')
    const name = stringIn(said.name, `${at}.${i}.function.name`)
    return { type: 'tool_use', id: stringIn(id, `${at}.${i}.id`), name, input: inputOf(textOr(said.arguments, '')) }
  })
}

/** Arguments that are no JSON object were a model's mistake: it sees them again. */
function inputOf (args: string): object {
  try {
    const value = JSON.parse(args === '' ? '{}' : args) as unknown
    if (isObject(value)) return value
  } catch {
    // told below
  }
  return { arguments: args }
}

function blocksOf (content: unknown, at: string): object[] {
  if (content == null) return []
  return typeof content === 'string' ? texts(content) : objectsIn(content, at).flatMap((part, i) => blockOf(part, `${at}.${i}`))
}

function blockOf (part: Json, at: string): object[] {
  switch (part.type) {
    case 'text': return texts(stringIn(part.text, `${at}.text`))
    case 'image_url': {
      const url = stringIn(isObject(part.image_url) ? part.image_url.url : part.image_url, `${at}.image_url.url`)
      return [{ type: 'image', source: sourceOf(url) ?? { type: 'url', url } }]
    }
    case 'file': {
      const { file_data: data, filename } = isObject(part.file) ? part.file : {} as Json
      const source = typeof data === 'string' ? sourceOf(data) : null
      if (source === null) throw untranslatable(at, 'a file that is not in the request')
      return [{ type: 'document', source, ...typeof filename === 'string' ? { title: filename } : {} }]
    }
    default: throw untranslatable(at, `a part of type ${typeName(part.type)}`)
  }
}

/** Null for what is no `data:` URL. */
function sourceOf (url: string): object | null {
  const head = /^data:([^;,]+)[^,]*;base64,/.exec(url)
  return head === null ? null : { type: 'base64', media_type: head[1], data: url.slice(head[0].length) }
}
