import { svcError } from 'svc-gateway/plugin'
import { countOf, isObject, textOr, type Json } from '../over-chat/ref.js'

const reasons: Readonly<Record<string, string>> = {
  end_turn: 'stop', stop_sequence: 'stop', pause_turn: 'stop', max_tokens: 'length', model_context_window_exceeded: 'length',
  tool_use: 'tool_calls', refusal: 'content_filter'
}

export interface ChunkHead {
  readonly id: string
  /** Epoch seconds. */
  readonly created: number
  /** As the client named it, until the answer says it. */
  readonly model: string
}

/** The usage of several events: later ones count, and need not repeat what an earlier one said. */
class Spent {
  #input = 0
  #cached = 0
  #written = 0
  #output = 0

  add (usage: unknown): void {
    if (!isObject(usage)) return
    if (usage.input_tokens != null) this.#input = countOf(usage.input_tokens)
    if (usage.cache_read_input_tokens != null) this.#cached = countOf(usage.cache_read_input_tokens)
    if (usage.cache_creation_input_tokens != null) this.#written = countOf(usage.cache_creation_input_tokens)
    if (usage.output_tokens != null) this.#output = countOf(usage.output_tokens)
  }

  chat (): object {
    const prompt = this.#input + this.#cached + this.#written
    return {
      prompt_tokens: prompt, completion_tokens: this.#output, total_tokens: prompt + this.#output,
      prompt_tokens_details: { cached_tokens: this.#cached }
    }
  }
}

/** A whole message as a chat completion. Throws for what is no message. */
export function completionOf (body: string, { id, created, model }: ChunkHead): object {
  const message = parsed(body)
  if (!Array.isArray(message.content)) throw notMessage()
  const blocks = message.content.filter(isObject)
  const said = (type: string, key: string): string | null => blocks.filter(block => block.type === type).map(block => textOr(block[key], '')).join('') || null
  const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ id: callId, name, input }) => ({
    id: callId, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) }
  }))
  const reasoning = said('thinking', 'thinking')
  const spent = new Spent()
  spent.add(message.usage)
  return {
    id,
    object: 'chat.completion',
    created,
    model: textOr(message.model, model),
    choices: [{
      index: 0,
      message: {
        role: 'assistant', content: said('text', 'text'),
        ...reasoning === null ? {} : { reasoning_content: reasoning }, ...calls.length === 0 ? {} : { tool_calls: calls }
      },
      finish_reason: reasons[textOr(message.stop_reason, '')] ?? 'stop'
    }],
    usage: spent.chat()
  }
}

/** The events of a streamed message as the chunks of a chat completion. Keeps nothing of what it has written. */
export class ChatChunks {
  readonly #tellsUsage: boolean
  readonly #id: string
  readonly #created: number
  #model: string
  #head = ''
  #out = ''
  #reason = 'stop'
  #isOver = false
  /** The calls, by the number of their block. */
  readonly #calls = new Map<unknown, number>()
  readonly #spent = new Spent()

  constructor ({ id, created, model }: ChunkHead, tellsUsage: boolean) {
    this.#id = id
    this.#created = created
    this.#model = model
    this.#tellsUsage = tellsUsage
  }

  /** The data of one event. Throws what it tells of a failure, and for what is no event of a message. */
  event (data: string): void {
    if (this.#isOver) return
    const event = parsed(data)
    switch (event.type) {
      case 'message_start': return this.#begin(isObject(event.message) ? event.message : {})
      case 'content_block_start': return this.#block(event)
      case 'content_block_delta': return this.#delta(event)
      case 'message_delta': {
        this.#spent.add(event.usage)
        const { stop_reason: reason } = isObject(event.delta) ? event.delta : {} as Json
        if (typeof reason === 'string') this.#reason = reasons[reason] ?? 'stop'
        return
      }
      case 'message_stop': return this.#end()
      case 'error': throw toldError(event.error)
      default:
    }
  }

  /** There is no more. Throws when the answer cannot be complete. */
  end (): void {
    if (!this.#isOver) throw svcError('dispatch.upstream_failed', 'the answer of the upstream ended early')
  }

  take (): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  #begin ({ model, usage }: Json): void {
    this.#spent.add(usage)
    this.#model = textOr(model, this.#model)
    const head = { id: this.#id, object: 'chat.completion.chunk', created: this.#created, model: this.#model }
    this.#head = JSON.stringify(head).slice(0, -1)
    this.#chunk('{"role":"assistant","content":""}')
  }

  #block ({ index, content_block: block }: Json): void {
    if (!isObject(block)) return
    if (block.type === 'text') return this.#text('content', block.text)
    if (block.type === 'thinking') return this.#text('reasoning_content', block.thinking)
    if (block.type !== 'tool_use') return
    const call = this.#calls.size
    this.#calls.set(index, call)
    const said = { index: call, id: block.id, type: 'function', function: { name: block.name, arguments: '' } }
    this.#chunk(`{"tool_calls":[${JSON.stringify(said)}]}`)
  }

  #delta ({ index, delta }: Json): void {
    if (!isObject(delta)) return
    if (delta.type === 'text_delta') return this.#text('content', delta.text)
    if (delta.type === 'thinking_delta') return this.#text('reasoning_content', delta.thinking)
    const call = this.#calls.get(index)
    if (delta.type !== 'input_json_delta' || call === undefined || textOr(delta.partial_json, '') === '') return
    this.#chunk(`{"tool_calls":[{"index":${call},"function":{"arguments":${JSON.stringify(delta.partial_json)}}}]}`)
  }

  #text (key: 'content' | 'reasoning_content', text: unknown): void {
    if (typeof text === 'string' && text !== '') this.#chunk(`{"${key}":${JSON.stringify(text)}}`)
  }

  #end (): void {
    this.#isOver = true
    this.#chunk('{}', `"${this.#reason}"`)
    if (this.#tellsUsage) this.#out += `data: ${this.#head},"choices":[],"usage":${JSON.stringify(this.#spent.chat())}}\n\n`
    this.#out += 'data: [DONE]\n\n'
  }

  #chunk (delta: string, reason = 'null'): void {
    if (this.#head === '') throw notMessage()
    this.#out += `data: ${this.#head},"choices":[{"index":0,"delta":${delta},"finish_reason":${reason}}]}\n\n`
  }
}

function parsed (text: string): Json {
  try {
    const value = JSON.parse(text) as unknown
    if (isObject(value)) return value
  } catch {
    // told below
  }
  throw notMessage()
}

function notMessage (): Error {
  return svcError('dispatch.upstream_failed', 'the upstream answered with something that is no message')
}

function toldError (error: unknown): Error {
  const message = isObject(error) ? error.message : error
  return svcError('dispatch.upstream_failed', typeof message === 'string' ? message.slice(0, 2000) : 'the upstream failed while it answered')
}
