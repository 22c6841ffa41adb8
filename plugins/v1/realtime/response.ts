import { errorType, type SvcError } from 'svc-gateway/plugin'
import type { ChatEnd, ChatUsage, Json } from '../over-chat/ref.js'
import { itemWords, type CallItem, type Item, type MessageItem, type SpokenPart, type TextPart } from './items.js'
import { formatWords } from './session-words.js'
import type { Settings } from './settings.js'
import { rateOf } from './sound/sound-format.js'

export interface ServerEvent extends Json {
  readonly type: string
}

/** What is told of an answer while it is made. */
export type AnswerNews =
  | { readonly kind: 'text', readonly text: string }
  | { readonly kind: 'call', readonly index: number, readonly id: string | null, readonly name: string | null, readonly args: string }
  /** A sentence is about to be spoken. */
  | { readonly kind: 'sentence', readonly text: string }
  /** Bytes in the response's output format. */
  | { readonly kind: 'sound', readonly bytes: Buffer }
  | { readonly kind: 'end', readonly end: Pick<ChatEnd, 'reason' | 'usage'> }
  | { readonly kind: 'failed', readonly error: SvcError }

export type CancelReason = 'turn_detected' | 'client_cancelled'

export interface ResponsePlan {
  readonly id: string
  readonly settings: Settings
  readonly metadata: unknown
  /** Of the conversation that its items go to; null where they go to none. */
  readonly conversationId: string | null
  /** What the model reads in place of the conversation; null without. */
  readonly input: readonly Item[] | null
  readonly newId: (prefix: string) => string
  /** Puts an item that begins into the conversation; returns the id of the one in front of it. */
  readonly add: (item: Item) => string | null
}

/** An answer that is made: what becomes of its news in events. */
export class Response {
  readonly plan: ResponsePlan
  /** Items that are still listened to and that the model needs. */
  readonly waitsFor: Set<Item>
  #message: { readonly item: MessageItem, readonly part: TextPart | SpokenPart, readonly index: number } | null = null
  readonly #calls = new Map<number, { readonly item: CallItem, readonly index: number }>()
  readonly #output: Item[] = []
  #usage: ChatUsage | null = null

  constructor (plan: ResponsePlan, waitsFor: ReadonlySet<Item>) {
    this.plan = plan
    this.waitsFor = new Set(waitsFor)
  }

  get id (): string { return this.plan.id }

  get isSpoken (): boolean { return this.plan.settings.modality === 'audio' }

  begin (): ServerEvent[] {
    return [{ type: 'response.created', response: this.#words('in_progress', null) }]
  }

  text (text: string): ServerEvent[] {
    const events = this.#message === null ? this.#beginMessage() : []
    const { part } = this.#message!
    if (part.type === 'output_audio') part.transcript += text
    else part.text += text
    return [...events, this.#ofPart(this.isSpoken ? 'response.output_audio_transcript.delta' : 'response.output_text.delta', { delta: text })]
  }

  sentence (text: string): void {
    const part = this.#message?.part
    if (part?.type === 'output_audio') part.spoken.push({ text, ms: 0 })
  }

  sound (bytes: Buffer): ServerEvent[] {
    const part = this.#message?.part
    const sentence = part?.type === 'output_audio' ? part.spoken.at(-1) : undefined
    if (sentence === undefined || bytes.length === 0) return []
    const { outputFormat: format } = this.plan.settings
    sentence.ms += bytes.length / (format === 'audio/pcm' ? 2 : 1) / rateOf(format) * 1000
    return [this.#ofPart('response.output_audio.delta', { delta: bytes.toString('base64') })]
  }

  call (index: number, id: string | null, name: string | null, args: string): ServerEvent[] {
    const events: ServerEvent[] = []
    let call = this.#calls.get(index)
    if (call === undefined) {
      const { newId } = this.plan
      const item: CallItem = { id: newId('item'), status: 'in_progress', type: 'function_call', callId: id ?? newId('call'), name: name ?? '', args: '' }
      call = { item, index: this.#output.length }
      this.#calls.set(index, call)
      events.push(...this.#beginItem(item))
    }
    const { item } = call
    if (item.name === '' && name !== null) item.name = name
    item.args += args
    if (args !== '') {
      events.push(this.#event('response.function_call_arguments.delta', { item_id: item.id, output_index: call.index, call_id: item.callId, delta: args }))
    }
    return events
  }

  end ({ reason, usage }: Pick<ChatEnd, 'reason' | 'usage'>): ServerEvent[] {
    this.#usage = usage
    if (reason === 'length') return this.#finish('incomplete', { type: 'incomplete', reason: 'max_output_tokens' })
    if (reason === 'content_filter') return this.#finish('incomplete', { type: 'incomplete', reason: 'content_filter' })
    return this.#finish('completed', null)
  }

  cancel (reason: CancelReason): ServerEvent[] {
    return this.#finish('cancelled', { type: 'cancelled', reason })
  }

  fail (error: SvcError): ServerEvent[] {
    const { code, message, status } = error
    return this.#finish('failed', { type: 'failed', error: { type: errorType(status), code, message } })
  }

  #beginMessage (): ServerEvent[] {
    const part: TextPart | SpokenPart = this.isSpoken ? { type: 'output_audio', transcript: '', spoken: [] } : { type: 'output_text', text: '' }
    const item: MessageItem = { id: this.plan.newId('item'), status: 'in_progress', type: 'message', role: 'assistant', parts: [] }
    this.#message = { item, part, index: this.#output.length }
    const events = this.#beginItem(item)
    item.parts.push(part)
    return [...events, this.#ofPart('response.content_part.added', { part: partWords(part) })]
  }

  #beginItem (item: Item): ServerEvent[] {
    const index = this.#output.push(item) - 1
    const added = this.#event('response.output_item.added', { output_index: index, item: itemWords(item) })
    if (this.plan.conversationId === null) return [added]
    const before = this.plan.add(item)
    return [added, { type: 'conversation.item.added', previous_item_id: before, item: itemWords(item) }]
  }

  #finish (status: 'completed' | 'incomplete' | 'cancelled' | 'failed', details: Json | null): ServerEvent[] {
    const ending = status === 'completed' ? 'completed' : 'incomplete'
    const events: ServerEvent[] = []
    if (this.#message !== null) {
      const { item, part } = this.#message
      item.status = ending
      // what was never spoken was never said
      if (part.type === 'output_audio' && (status === 'cancelled' || status === 'failed')) part.transcript = part.spoken.map(({ text }) => text).join('')
      events.push(...this.#endPart(part), ...this.#endItem(item))
    }
    for (const { item, index } of this.#calls.values()) {
      item.status = ending
      const { id, callId, name, args } = item
      events.push(
        this.#event('response.function_call_arguments.done', { item_id: id, output_index: index, call_id: callId, name, arguments: args }),
        ...this.#endItem(item)
      )
    }
    return [...events, { type: 'response.done', response: this.#words(status, details) }]
  }

  #endPart (part: TextPart | SpokenPart): ServerEvent[] {
    const done = part.type === 'output_audio'
      ? [this.#ofPart('response.output_audio.done', {}), this.#ofPart('response.output_audio_transcript.done', { transcript: part.transcript })]
      : [this.#ofPart('response.output_text.done', { text: part.text })]
    return [...done, this.#ofPart('response.content_part.done', { part: partWords(part) })]
  }

  #endItem (item: Item): ServerEvent[] {
    const done = this.#event('response.output_item.done', { output_index: this.#output.indexOf(item), item: itemWords(item) })
    return this.plan.conversationId === null ? [done] : [done, { type: 'conversation.item.done', item: itemWords(item) }]
  }

  #event (type: string, members: Json): ServerEvent {
    return { type, response_id: this.id, ...members }
  }

  #ofPart (type: string, members: Json): ServerEvent {
    const { item, index } = this.#message!
    return this.#event(type, { item_id: item.id, output_index: index, content_index: 0, ...members })
  }

  #words (status: string, details: Json | null): Json {
    const { settings, conversationId, metadata } = this.plan
    return {
      object: 'realtime.response',
      id: this.id,
      status,
      status_details: details,
      output: this.#output.map(item => itemWords(item)),
      conversation_id: conversationId,
      output_modalities: [settings.modality],
      max_output_tokens: settings.maxOutputTokens,
      audio: { output: { format: formatWords(settings.outputFormat), voice: settings.voice } },
      usage: this.#usage === null ? null : usageWords(this.#usage),
      metadata: metadata ?? null
    }
  }
}

function partWords (part: TextPart | SpokenPart): Json {
  return part.type === 'output_audio' ? { type: 'audio', transcript: part.transcript } : { type: 'text', text: part.text }
}

function usageWords ({ input, output, cached }: ChatUsage): Json {
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    // models here read and write text alone
    input_token_details: {
      text_tokens: input, audio_tokens: 0, image_tokens: 0, cached_tokens: cached,
      cached_tokens_details: { text_tokens: cached, audio_tokens: 0, image_tokens: 0 }
    },
    output_token_details: { text_tokens: output, audio_tokens: 0 }
  }
}
