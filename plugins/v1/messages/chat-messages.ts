import {
  isObject, leave, leaveStrangers, malformed, objectsIn, plainOr, saidMessage, stringIn, textOr, Turns, typeName, untranslatable,
  type Json
} from '../over-chat/ref.js'

const messageKeys: ReadonlySet<string> = new Set(['role', 'content'])
const textKeys: ReadonlySet<string> = new Set(['type', 'text', 'cache_control', 'citations'])
const blockKeys: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(Object.entries({
  text: [],
  image: ['source'],
  document: ['source', 'title', 'context'],
  search_result: ['source', 'title', 'content'],
  tool_result: ['tool_use_id', 'content', 'is_error'],
  tool_use: ['id', 'name', 'input', 'caller'],
  thinking: ['thinking', 'signature']
}).map(([type, keys]) => [type, new Set([...textKeys, ...keys])]))
const sourceKeys: ReadonlySet<string> = new Set(['type', 'media_type', 'data', 'url', 'content'])

/**
 * The conversation of a request of the Messages API as chat messages. What chat has no place for goes into `warnings`. Throws
 * `validation.invalid` for what it has no words for.
 * @param keepsThoughts whether earlier reasoning goes along; upstreams refuse it
 */
export function chatMessages ({ system, messages }: Json, keepsThoughts: boolean, warnings: string[]): readonly object[] {
  const turns = new Turns()
  if (system != null) turns.put({ role: 'system', content: systemText(system, 'system', warnings, 'system.*') })
  for (const [i, message] of objectsIn(messages, 'messages').entries()) {
    const at = `messages.${i}.content`
    const { role, content } = message
    leaveStrangers(message, messageKeys, 'messages.*', warnings)
    switch (role) {
      case 'assistant': turns.put(assistantMessage(blocksOf(content, at), at, keepsThoughts, warnings)); break
      case 'user': putUser(turns, blocksOf(content, at), at, warnings); break
      case 'system': turns.put({ role, content: systemText(content, at, warnings, 'messages.*.content.*') }); break
      default: throw malformed(`messages.${i}.role`, 'must be user, assistant or system')
    }
  }
  turns.end()
  return turns.list
}

function blocksOf (content: unknown, at: string): readonly Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content, at)
}

/** @param place where such blocks stand, without numbers */
function systemText (system: unknown, at: string, warnings: string[], place: string): string {
  return blocksOf(system, at).map((block, i) => {
    leaveStrangers(block, textKeys, place, warnings)
    if (block.type !== 'text') throw untranslatable(`${at}.${i}`, `a block of type ${typeName(block.type)}`)
    return stringIn(block.text, `${at}.${i}.text`)
  }).join('\n\n')
}

/** Results of tools are messages of their own and stand before what the user says to them. */
function putUser (turns: Turns, blocks: readonly Json[], at: string, warnings: string[]): void {
  const parts: object[] = []
  for (const [i, block] of blocks.entries()) {
    tellLeftOut(block, 'messages.*.content.*', warnings)
    if (block.type === 'tool_result') {
      if (Array.isArray(block.content)) for (const inner of block.content) if (isObject(inner)) tellLeftOut(inner, 'messages.*.content.*.content.*', warnings)
      const { text, others } = resultOf(block, `${at}.${i}`, warnings)
      turns.result(stringIn(block.tool_use_id, `${at}.${i}.tool_use_id`), text, others)
    } else {
      parts.push(partOf(block, `${at}.${i}`, warnings))
    }
  }
  if (parts.length > 0) turns.put({ role: 'user', content: plainOr(parts) })
}

/** Documents and search results may be cited where the model's maker does it; chat has no place for that. */
function tellLeftOut (block: Json, place: string, warnings: string[]): void {
  const { type, citations } = block
  leaveStrangers(block, blockKeys.get(type) ?? textKeys, place, warnings)
  if (isObject(block.source)) leaveStrangers(block.source, sourceKeys, `${place}.source`, warnings)
  if (isObject(citations) && citations.enabled === true) leave(warnings, 'messages.*.content.*.citations: left out, citations are not supported here')
}

function resultOf (
  { content, is_error: isError }: Json, at: string, warnings: string[]
): { readonly text: string, readonly others: readonly object[] } {
  const parts = content == null ? [] : blocksOf(content, `${at}.content`).map((block, i) => partOf(block, `${at}.content.${i}`, warnings))
  const texts = parts.filter(part => 'text' in part).map(part => String(part.text))
  const others = parts.filter(part => !('text' in part))
  const text = texts.join('\n')
  return { text: isError === true && !/^error/i.test(text) ? `Error: ${text}` : text, others }
}

function partOf (block: Json, at: string, warnings: string[]): object {
  switch (block.type) {
    case 'text': return { type: 'text', text: stringIn(block.text, `${at}.text`) }
    case 'image': return { type: 'image_url', image_url: { url: imageUrl(block.source, at) } }
    case 'document': return documentPart(block, at, warnings)
    case 'search_result': {
      const { source, title, content } = block
      return { type: 'text', text: [title, source, ...blocksOf(content, `${at}.content`).map(({ text }) => text)].filter(said => typeof said === 'string' && said !== '').join('\n') }
    }
    default: throw untranslatable(at, `a block of type ${typeName(block.type)}`)
  }
}

function imageUrl (source: unknown, at: string): string {
  if (isObject(source)) {
    if (source.type === 'url') return stringIn(source.url, `${at}.source.url`)
    if (source.type === 'base64') return dataUrl(source, at)
  }
  throw untranslatable(`${at}.source`, 'an image that is not in the request and has no URL')
}

function dataUrl ({ media_type: type, data }: Json, at: string): string {
  return `data:${stringIn(type, `${at}.source.media_type`)};base64,${stringIn(data, `${at}.source.data`)}`
}

function documentPart ({ source, title, context }: Json, at: string, warnings: string[]): object {
  const about = [title, context].filter(text => typeof text === 'string' && text !== '')
  const told = (text: string): object => ({ type: 'text', text: [...about, text].join('\n\n') })
  if (isObject(source)) {
    if (source.type === 'text') return told(stringIn(source.data, `${at}.source.data`))
    if (source.type === 'content') return told(systemText(source.content, `${at}.source.content`, warnings, 'messages.*.content.*.source.content.*'))
    if (source.type === 'base64') return { type: 'file', file: { filename: textOr(title, 'document.pdf'), file_data: dataUrl(source, at) } }
  }
  throw untranslatable(`${at}.source`, 'a document that is not in the request')
}

function assistantMessage (blocks: readonly Json[], at: string, keepsThoughts: boolean, warnings: string[]): Json {
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: object[] = []
  for (const [i, block] of blocks.entries()) {
    const { id, name, input = {} } = block
    const known = blockKeys.get(block.type)
    if (known !== undefined) leaveStrangers(block, known, 'messages.*.content.*', warnings)
    switch (block.type) {
      case 'text': texts.push(stringIn(block.text, `${at}.${i}.text`)); break
      case 'thinking': thoughts.push(textOr(block.thinking, '')); break
      case 'redacted_thinking': leave(warnings, `${at}.${i}: left out, only its provider can read it`); break
      case 'tool_use': calls.push({
        id: stringIn(id, `${at}.${i}.id`),
        type: 'function',
        function: { name: stringIn(name, `${at}.${i}.name`), arguments: JSON.stringify(input) }
      }); break
      default: throw untranslatable(`${at}.${i}`, `a block of type ${typeName(block.type)}`)
    }
  }
  return saidMessage(texts, keepsThoughts ? thoughts : [], calls)
}
