import { isObject, leave, leaveStrangers, malformed, objectsIn, stringIn, textOr, typeName, untranslatable, type Json } from '../over-chat/ref.js'

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: object[]
}

export interface Conversation {
  /** Empty without any. */
  readonly system: string
  readonly messages: readonly Turn[]
}

const known: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['assistant', new Set(['role', 'content', 'refusal', 'annotations', 'tool_calls', 'reasoning_content', 'reasoning', 'audio', 'function_call'])],
  ['tool', new Set(['role', 'content', 'tool_call_id'])]
])
const spoken: ReadonlySet<string> = new Set(['role', 'content'])
const partKeys: ReadonlySet<string> = new Set(['type', 'text', 'image_url', 'file'])
const textKeys: ReadonlySet<string> = new Set(['type', 'text'])
const saidKeys: ReadonlySet<string> = new Set([...textKeys, 'refusal'])
const callKeys: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function'])
const functionKeys: ReadonlySet<string> = new Set(['name', 'arguments'])
const imageKeys: ReadonlySet<string> = new Set(['url'])
const fileKeys: ReadonlySet<string> = new Set(['file_data', 'filename'])

/**
 * Chat messages as a conversation of the Messages API, in which turns alternate. What it has no place for goes into `warnings`.
 * Throws `validation.invalid`.
 */
export function conversationOf (asked: unknown, warnings: string[]): Conversation {
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
    leaveStrangers(message, known.get(role) ?? spoken, 'messages.*', warnings)
    switch (role) {
      case 'system':
      case 'developer': system.push(textOf(content, `${at}.content`, warnings)); break
      case 'user': add('user', blocksOf(content, `${at}.content`, warnings)); break
      case 'assistant': add('assistant', [...saidOf(message, at, warnings), ...callsOf(message.tool_calls, `${at}.tool_calls`, warnings)]); break
      case 'tool': add('user', [{
        type: 'tool_result', tool_use_id: stringIn(message.tool_call_id, `${at}.tool_call_id`), content: blocksOf(content, `${at}.content`, warnings)
      }]); break
      default: throw malformed(`${at}.role`, 'must be system, developer, user, assistant or tool')
    }
  }
  return { system: system.join('\n\n'), messages }
}

function textOf (content: unknown, at: string, warnings: string[]): string {
  if (typeof content === 'string') return content
  return objectsIn(content, at).map((part, i) => {
    leaveStrangers(part, textKeys, 'messages.*.content.*', warnings)
    return stringIn(part.text, `${at}.${i}.text`)
  }).join('\n')
}

/** Earlier reasoning is not said: without its maker's signature it is refused. */
function saidOf (message: Json, at: string, warnings: string[]): object[] {
  const { content, refusal, audio, function_call: call } = message
  for (const key of ['reasoning_content', 'reasoning']) {
    if (textOr(message[key], '') !== '') leave(warnings, `messages.*.${key}: left out, a model takes back only what its provider signed`)
  }
  if (audio != null) throw untranslatable(`${at}.audio`, 'an earlier audio answer')
  if (call != null) throw untranslatable(`${at}.function_call`, 'the legacy form of tools')
  const said = content == null ? textOr(refusal, '') : content
  if (typeof said === 'string') return texts(said)
  return objectsIn(said, `${at}.content`).flatMap((part, i) => {
    const { type, text, refusal: refused } = part
    leaveStrangers(part, saidKeys, 'messages.*.content.*', warnings)
    if (type === 'text') return texts(stringIn(text, `${at}.content.${i}.text`))
    if (type === 'refusal') return texts(stringIn(refused, `${at}.content.${i}.refusal`))
    throw untranslatable(`${at}.content.${i}`, `a part of type ${typeName(type)} that is not the user's`)
  })
}

/** Blocks without a text are refused. */
function texts (text: string): object[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function callsOf (calls: unknown, at: string, warnings: string[]): object[] {
  return (calls == null ? [] : objectsIn(calls, at)).map((call, i) => {
    const { id, function: said } = call
    if (!isObject(said)) throw malformed(`${at}.${i}.function`, 'must be an object')
    leaveStrangers(call, callKeys, 'messages.*.tool_calls.*', warnings)
    leaveStrangers(said, functionKeys, 'messages.*.tool_calls.*.function', warnings)
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

function blocksOf (content: unknown, at: string, warnings: string[]): object[] {
  if (content == null) return []
  if (typeof content === 'string') return texts(content)
  return objectsIn(content, at).flatMap((part, i) => {
    leaveStrangers(part, partKeys, 'messages.*.content.*', warnings)
    return blockOf(part, `${at}.${i}`, warnings)
  })
}

function blockOf (part: Json, at: string, warnings: string[]): object[] {
  switch (part.type) {
    case 'text': return texts(stringIn(part.text, `${at}.text`))
    case 'image_url': {
      if (isObject(part.image_url)) leaveStrangers(part.image_url, imageKeys, 'messages.*.content.*.image_url', warnings)
      const url = stringIn(isObject(part.image_url) ? part.image_url.url : part.image_url, `${at}.image_url.url`)
      return [{ type: 'image', source: sourceOf(url) ?? { type: 'url', url } }]
    }
    case 'file': {
      const { file_data: data, filename } = isObject(part.file) ? part.file : {} as Json
      const source = typeof data === 'string' ? sourceOf(data) : null
      if (source === null) throw untranslatable(at, 'a file that is not in the request')
      leaveStrangers(part.file as Json, fileKeys, 'messages.*.content.*.file', warnings)
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
