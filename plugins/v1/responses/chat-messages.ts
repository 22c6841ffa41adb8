import {
  given, isObject, leave, leaveStrangers, malformed, objectsIn, plainOr, stringIn, textOr, Turns, typeName, untranslatable,
  type Json
} from '../over-chat/ref.js'
import { flatName } from './chat-tools.js'
import { opened } from './sealed.js'

interface Assistant {
  readonly role: 'assistant'
  content: string | null
  reasoning_content?: string
  tool_calls?: object[]
}

const hosted: ReadonlySet<unknown> = new Set(['web_search_call', 'image_generation_call', 'tool_search_call', 'tool_search_output', 'compaction'])

const itemKeys: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(Object.entries({
  message: ['role', 'content', 'phase'],
  function_call: ['call_id', 'name', 'namespace', 'arguments'],
  custom_tool_call: ['call_id', 'name', 'namespace', 'input'],
  function_call_output: ['call_id', 'output'],
  custom_tool_call_output: ['call_id', 'output'],
  reasoning: ['summary', 'content', 'encrypted_content']
}).map(([type, keys]) => [type, new Set(['type', 'id', 'status', ...keys])]))
const textKeys: ReadonlySet<string> = new Set(['type', 'text', 'annotations', 'logprobs'])
const partKeys: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(Object.entries({
  refusal: ['refusal'],
  input_image: ['image_url', 'detail'],
  input_audio: ['input_audio'],
  input_file: ['file_data', 'filename']
}).map(([type, keys]) => [type, new Set(['type', ...keys])]))

/** The items of a request of the Responses API as chat messages. Throws `validation.invalid` for what chat has no words for. */
export class ChatMessages {
  readonly #turns = new Turns()
  /** What calls, text and reasoning that follow each other are parts of. */
  #open: Assistant | null = null
  readonly #keepsThoughts: boolean
  readonly #warnings: string[]

  /** @param keepsThoughts whether earlier reasoning goes along; upstreams refuse it */
  constructor (keepsThoughts: boolean, warnings: string[]) {
    this.#keepsThoughts = keepsThoughts
    this.#warnings = warnings
  }

  get list (): readonly object[] {
    return this.#turns.list
  }

  /** Instructions and what stands behind them are one message: many templates know one system message alone. */
  system (text: string): void {
    const first = this.list[0] as { role: string, content: string } | undefined
    if (this.list.length === 1 && first?.role === 'system') first.content += `\n\n${text}`
    else this.#put({ role: 'system', content: text })
  }

  input (input: unknown, at = 'input'): void {
    if (typeof input === 'string') return this.#put({ role: 'user', content: input })
    for (const [i, item] of objectsIn(input, at).entries()) this.#item(item, `${at}.${i}`)
    this.#turns.end()
  }

  #item (item: Json, at: string): void {
    const { type = 'message', call_id: callId, name, namespace, input, arguments: args } = item
    const known = itemKeys.get(type)
    if (known !== undefined) leaveStrangers(item, known, 'input.*', this.#warnings)
    switch (type) {
      case 'message': return this.#message(item, at)
      case 'function_call': return this.#call(item, at, textOr(args, '{}'))
      case 'custom_tool_call': return this.#call({ callId, name, namespace, call_id: callId }, at, JSON.stringify({ input }))
      case 'function_call_output':
      case 'custom_tool_call_output': return this.#output(item, at)
      case 'reasoning': return this.#reasoning(item)
      default: {
        if (!hosted.has(type)) throw untranslatable(at, `an item of type ${typeName(type)}`)
        this.#warnings.push(`${at}: ${typeName(type)} was left out`)
      }
    }
  }

  #message ({ role, content }: Json, at: string): void {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : this.#parts(content, `${at}.content`, 'input.*.content.*')
    switch (role) {
      case 'user': return this.#put({ role, content: plainOr(parts) })
      case 'assistant': {
        const open = this.#assistant()
        open.content = (open.content ?? '') + textsOf(parts, `${at}.content`)
        return
      }
      case 'system':
      case 'developer': return this.system(textsOf(parts, `${at}.content`))
      default: throw malformed(`${at}.role`, 'must be user, assistant, system or developer')
    }
  }

  #call ({ call_id: id, name, namespace }: Json, at: string, args: string): void {
    const flat = flatName(stringIn(name, `${at}.name`), typeof namespace === 'string' ? namespace : null)
    const open = this.#assistant()
    open.tool_calls ??= []
    open.tool_calls.push({ id: stringIn(id, `${at}.call_id`), type: 'function', function: { name: flat, arguments: args } })
  }

  #output ({ call_id: id, output }: Json, at: string): void {
    const parts = typeof output === 'string' ? [{ type: 'text', text: output }] : this.#parts(output, `${at}.output`, 'input.*.output.*')
    const others = parts.filter(part => !('text' in part))
    const texts = parts.filter(part => 'text' in part).map(({ text }) => String(text))
    this.#open = null
    this.#turns.result(stringIn(id, `${at}.call_id`), texts.join('\n'), others)
  }

  #reasoning ({ content, summary, encrypted_content: secret }: Json): void {
    const own = opened(secret)
    if (own === null && typeof secret === 'string' && secret !== '') {
      leave(this.#warnings, 'input.*.encrypted_content: left out, only its provider can read it')
    }
    if (!this.#keepsThoughts) return
    const open = own ?? [...listed(content), ...listed(summary)][0] ?? ''
    if (open === '') return
    const message = this.#assistant()
    message.reasoning_content = (message.reasoning_content ?? '') + open
  }

  /** @param place where such parts stand, without numbers */
  #parts (content: unknown, at: string, place: string): Part[] {
    return objectsIn(content, at).map((part, i) => {
      const said = partOf(part, `${at}.${i}`)
      leaveStrangers(part, partKeys.get(part.type) ?? textKeys, place, this.#warnings)
      return said
    })
  }

  #assistant (): Assistant {
    // an answer with calls is over once their results stand behind it
    if (this.#open === null) {
      this.#open = { role: 'assistant', content: null }
      this.#turns.put(this.#open as unknown as Json)
    }
    return this.#open
  }

  #put (message: Json): void {
    this.#open = null
    this.#turns.put(message)
  }
}

function listed (parts: unknown): string[] {
  if (!Array.isArray(parts)) return []
  const text = parts.map(part => isObject(part) ? textOr(part.text, '') : '').join('\n')
  return text === '' ? [] : [text]
}

type Part = Readonly<Record<string, unknown>>

function partOf (part: Json, at: string): Part {
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text': return { type: 'text', text: stringIn(part.text, `${at}.text`) }
    case 'refusal': return { type: 'text', text: stringIn(part.refusal, `${at}.refusal`) }
    case 'input_image': {
      if (typeof part.image_url !== 'string') throw untranslatable(at, 'an image that is not in the request and has no URL')
      return { type: 'image_url', image_url: given({ url: part.image_url, detail: part.detail }) }
    }
    case 'input_audio': return { type: 'input_audio', input_audio: part.input_audio }
    case 'input_file': return filePart(part, at)
    default: throw untranslatable(at, `a part of type ${typeName(part.type)}`)
  }
}

/** Files of text are told as text, which every model reads. */
function filePart ({ file_data: data, filename }: Json, at: string): Part {
  if (typeof data !== 'string') throw untranslatable(at, 'a file that is not in the request')
  const text = /^data:(text\/[\w.+-]+|application\/(?:json|xml|yaml))[^,]*;base64,/.exec(data)
  if (text === null) return { type: 'file', file: given({ filename, file_data: data }) }
  const said = Buffer.from(data.slice(text[0].length), 'base64').toString('utf8')
  return { type: 'text', text: typeof filename === 'string' ? `${filename}\n\n${said}` : said }
}

function textsOf (parts: readonly Part[], at: string): string {
  return parts.map(part => {
    if ('text' in part) return String(part.text)
    throw untranslatable(at, `a part of type ${typeName(part.type)} that is not the user's`)
  }).join('\n')
}
