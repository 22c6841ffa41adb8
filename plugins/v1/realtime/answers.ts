import type { SvcError } from 'svc-gateway/plugin'
import { isObject, malformed, stringIn, type Json } from '../over-chat/ref.js'
import { chatRequest } from './chat-request.js'
import { assertSize, heardParts, saysSomething, type Conversation } from './conversation.js'
import { errorEvent } from './error-words.js'
import { realtimeError } from './errors.js'
import { readItem, weightOf, type Item, type MessageItem } from './items.js'
import type { Decided, SessionDeps } from './outcome.js'
import { Response, type AnswerNews, type CancelReason, type ServerEvent } from './response.js'
import { changedSettings, type Settings } from './settings.js'
import type { Transcript, Transcripts } from './transcripts.js'

/** Besides the one that goes to the conversation. */
const MOST_ASIDE = 4

export interface AnswersDeps {
  readonly session: SessionDeps
  readonly decided: Decided
  readonly conversation: Conversation
  readonly conversationId: string
  readonly transcripts: Transcripts
  readonly settings: () => Settings
  /** Puts an item into the conversation; returns the id of the one in front of it. */
  readonly add: (item: Item) => string | null
  /** Has sound that came with a response listened to. */
  readonly transcribe: (item: Item) => void
}

interface Wish {
  readonly isAside: boolean
  readonly metadata: unknown
  /** What the model reads in place of the conversation; null without. */
  readonly items: readonly Item[] | null
}

/** The responses that are being made. One of them may go to the conversation, others are beside it. */
export class Answers {
  readonly #deps: AnswersDeps
  readonly #responses = new Map<string, Response>()
  /** A turn that is to be answered as soon as it can be. */
  #turn: Item | null = null

  constructor (deps: AnswersDeps) {
    this.#deps = deps
  }

  /** A turn that is answered once it is known what was said, if anything, and nothing else is being answered. */
  await (turn: Item): void {
    this.#turn = turn
  }

  /** The user speaks again: what is being answered is old. */
  interrupt (): void {
    this.#turn = null
    const response = this.#active()
    if (response !== null) this.#end(response, response.cancel('turn_detected'))
  }

  /** @param told `response` of `response.create`. Throws why it cannot be made. */
  create (told: unknown): void {
    if (!isObject(told)) throw malformed('response', 'must be an object')
    const { session, transcripts, conversationId } = this.#deps
    const present = this.#deps.settings()
    if (present.type === 'transcription') {
      throw realtimeError('realtime.unsupported', 'this session only transcribes: open one of type realtime for responses', { param: 'type' })
    }
    const { conversation = 'auto', metadata = null, input, ...changes } = told
    const settings = changedSettings(present, changes, 'response')
    const isAside = conversation === 'none'
    if (!isAside && conversation !== 'auto' && conversation !== conversationId) throw malformed('response.conversation', 'must be auto or none')
    const active = this.#active()
    if (!isAside && active !== null) {
      throw realtimeError('realtime.response_active',
        `the conversation already has an active response, '${active.id}': wait for its response.done, or send response.cancel`)
    }
    if (this.#responses.size > MOST_ASIDE) throw realtimeError('realtime.full', `a session makes at most ${MOST_ASIDE + 1} responses at a time`)
    const missing = session.missing('llm', settings) ?? (settings.modality === 'audio' ? session.missing('tts', settings) : null)
    if (missing !== null) throw missing
    if (input !== undefined && !Array.isArray(input)) throw malformed('response.input', 'must be a list')
    const items = input === undefined ? null : this.#inputItems(input as readonly unknown[], settings)
    transcripts.assertRoom(items ?? [])
    this.#begin(settings, { isAside, metadata, items })
  }

  /** An item was listened to. */
  heard (item: MessageItem, transcript: Transcript): void {
    for (const response of [...this.#responses.values()].filter(({ waitsFor }) => waitsFor.delete(item))) {
      if ('error' in transcript) this.#fail(response, transcript.error)
      else if (response.waitsFor.size === 0) this.#launch(response)
    }
    this.#answerTurn()
  }

  /** What is told of an answer that is over is not heard. */
  told (response: Response, news: AnswerNews): void {
    const { decided } = this.#deps
    if (!this.#responses.has(response.id)) return
    switch (news.kind) {
      case 'text': return decided.tell(...response.text(news.text))
      case 'call': return decided.tell(...response.call(news.index, news.id, news.name, news.args))
      case 'sentence': return response.sentence(news.text)
      case 'sound': return decided.tell(...response.sound(news.bytes))
      case 'end': return this.#end(response, response.end(news.end))
      case 'failed': return this.#fail(response, news.error)
    }
  }

  /** @param event `response.cancel`. Throws `realtime.no_response`. */
  cancel (event: Json, reason: CancelReason = 'client_cancelled'): void {
    const { response_id: id } = event
    const response = id == null ? this.#active() : this.#responses.get(stringIn(id, 'response_id')) ?? null
    if (response === null) throw realtimeError('realtime.no_response', 'there is no active response to cancel', { param: 'response_id' })
    this.#end(response, response.cancel(reason))
  }

  #answerTurn (): void {
    const turn = this.#turn
    const { conversation, decided, transcripts } = this.#deps
    if (turn === null || !transcripts.isIdle || this.#active() !== null) return
    this.#turn = null
    // noise is no question
    if (conversation.has(turn.id) && saysSomething(turn)) decided.guarded(null, () => this.create({}))
  }

  #begin (settings: Settings, { isAside, metadata, items }: Wish): void {
    const { session: { newId }, decided, conversation, conversationId, transcripts, add } = this.#deps
    if (!isAside) this.#turn = null
    const pending = (items ?? conversation.items).filter(item => transcripts.isPending(item))
    const unheard = (items ?? []).filter(item => !transcripts.isPending(item) && heardParts(item).some(part => part.isUnheard))
    const waitsFor = new Set([...pending, ...unheard])
    const response = new Response({
      id: newId('resp'), settings, metadata, conversationId: isAside ? null : conversationId, input: items, newId, add
    }, waitsFor)
    this.#responses.set(response.id, response)
    decided.tell(...response.begin())
    if (waitsFor.size === 0) this.#launch(response)
    for (const item of unheard) this.#deps.transcribe(item)
  }

  /** Throws `realtime.full` for more than a conversation may have: items that are referred to count each time. */
  #inputItems (input: readonly unknown[], settings: Settings): Item[] {
    assertSize(input.length, 0, 'response.input')
    const items = input.map((item, i) => this.#inputItem(item, i, settings))
    assertSize(items.length, items.reduce((sum, item) => sum + weightOf(item), 0), 'response.input')
    return items
  }

  #inputItem (told: unknown, index: number, { inputFormat: format }: Settings): Item {
    const at = `response.input.${index}`
    if (isObject(told) && told.type === 'item_reference') return this.#deps.conversation.get(stringIn(told.id, `${at}.id`), `${at}.id`)
    return readItem(told, { at, format, newId: this.#deps.session.newId })
  }

  #launch (response: Response): void {
    const { settings, input } = response.plan
    this.#deps.decided.want({ kind: 'answer', response, body: chatRequest(settings, input ?? this.#deps.conversation.items) })
  }

  #fail (response: Response, error: SvcError): void {
    this.#deps.decided.tell(errorEvent(error, null))
    this.#end(response, response.fail(error))
  }

  #end (response: Response, events: readonly ServerEvent[]): void {
    this.#responses.delete(response.id)
    this.#deps.decided.want({ kind: 'stop', response })
    this.#deps.decided.tell(...events)
    this.#answerTurn()
  }

  /** The one that goes to the conversation. */
  #active (): Response | null {
    return [...this.#responses.values()].find(({ plan }) => plan.conversationId !== null) ?? null
  }
}
