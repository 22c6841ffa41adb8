import { svcError, type ChunkTranslator } from 'svc-gateway/plugin'
import {
  countOf, DeltaFrame, EventReader, isObject, Outbox, textOr, type EventListener, type Json, type OnlyText, type TextKind
} from '../over-chat/ref.js'

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

const keys = { text: 'content', reasoning: 'reasoning_content' } as const

/** The events of a streamed message as the chunks of a chat completion. Keeps nothing of what it has written. */
export class ChatChunks implements ChunkTranslator, EventListener {
  readonly #events = new EventReader(this, onlyText)
  readonly #tellsUsage: boolean
  readonly #id: string
  readonly #created: number
  #model: string
  #head = ''
  readonly #out = new Outbox()
  #frames: Partial<Record<TextKind, DeltaFrame>> = {}
  #reason = 'stop'
  #isOver = false
  #hasTold = false
  /** The calls, by the number of their block. */
  readonly #calls = new Map<unknown, number>()
  readonly #spent = new Spent()
  #early: (piece: Buffer) => void = () => {}

  constructor ({ id, created, model }: ChunkHead, tellsUsage: boolean) {
    this.#id = id
    this.#created = created
    this.#model = model
    this.#tellsUsage = tellsUsage
  }

  /** Throws what the upstream tells of a failure, and for what is no event of a message. */
  chunk (bytes: Buffer, early: (piece: Buffer) => void): Buffer | null {
    this.#early = early
    this.#events.push(bytes, this.#handOn)
    return this.#out.take()
  }

  readonly #handOn = (): void => {
    const piece = this.#out.take()
    if (piece !== null) this.#early(piece)
  }

  /** Throws when the answer cannot be complete. */
  end (): null {
    if (this.#isOver) return null
    throw svcError('dispatch.upstream_failed', 'the answer of the upstream ended early')
  }

  /** A connection that breaks behind the end of the answer takes nothing from it. */
  failed (): { readonly last: Buffer | null, readonly isTold: boolean } {
    return { last: this.#out.take(), isTold: this.#isOver }
  }

  /** A piece of text, of thinking or of a call was told. */
  get hasTold (): boolean { return this.#hasTold }

  event (data: string): Json | null {
    if (this.#isOver) return null
    const event = parsed(data)
    this.#tell(event)
    return event
  }

  json (kind: TextKind, bytes: Buffer, from: number, to: number): void {
    if (this.#isOver) return
    this.#frames[kind] ??= this.#frame(keys[kind])
    this.#out.bytes(this.#frames[kind].event(0, bytes, from, to))
  }

  #tell (event: Json): void {
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

  #begin ({ model, usage }: Json): void {
    this.#spent.add(usage)
    this.#model = textOr(model, this.#model)
    const head = { id: this.#id, object: 'chat.completion.chunk', created: this.#created, model: this.#model }
    this.#head = JSON.stringify(head).slice(0, -1)
    this.#frames = {}
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
    this.#hasTold = true
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
    this.#chunk('{}', `"${this.#reason}"`)
    this.#isOver = true
    if (this.#tellsUsage) this.#out.write(`data: ${this.#head},"choices":[],"usage":${JSON.stringify(this.#spent.chat())}}\n\n`)
    this.#out.write('data: [DONE]\n\n')
  }

  #chunk (delta: string, reason = 'null'): void {
    if (this.#head === '') throw notMessage()
    this.#out.write(this.#chunkOf(delta, reason))
  }

  #chunkOf (delta: string, reason = 'null'): string {
    return `data: ${this.#head},"choices":[{"index":0,"delta":${delta},"finish_reason":${reason}}]}\n\n`
  }

  /** Of chunks that say a text and nothing else. */
  #frame (key: 'content' | 'reasoning_content'): DeltaFrame {
    const [before, behind] = this.#chunkOf(`{"${key}":"\0"}`).split('\0')
    return new DeltaFrame(before!, null, behind!)
  }
}

/** The text of an event that says nothing else; else null. */
function onlyText ({ type, delta }: Json): OnlyText | null {
  if (type !== 'content_block_delta' || !isObject(delta)) return null
  const [key, kind] = delta.type === 'thinking_delta' ? ['thinking', 'reasoning'] as const : ['text', 'text'] as const
  const text = delta[key]
  return delta.type === `${key}_delta` && typeof text === 'string' && text !== '' ? { key, kind, text } : null
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
  return svcError('dispatch.upstream_failed', 'the upstream answered with something that is not a message')
}

function toldError (error: unknown): Error {
  const message = isObject(error) ? error.message : error
  return svcError('dispatch.upstream_failed', typeof message === 'string' ? message.slice(0, 2000) : 'the upstream failed while it answered')
}
