import { isSvcError, type SvcError } from 'svc-gateway/plugin'
import { countOf, isObject, malformed, stringIn, textOr, type Json } from '../over-chat/ref.js'
import { Answers } from './answers.js'
import { Conversation, truncate } from './conversation.js'
import { errorEvent } from './error-words.js'
import { realtimeError } from './errors.js'
import { HeardAudio } from './heard-audio.js'
import { HEARD_RATE, heardSamples, itemWords, readItem, type Item, type MessageItem } from './items.js'
import { Decided, everyNeed, type Need, type Outcome, type SessionDeps } from './outcome.js'
import type { AnswerNews, Response } from './response.js'
import { sessionWords } from './session-words.js'
import { changedSettings, modelsIn, type Settings } from './settings.js'
import { Transcripts, type Transcript } from './transcripts.js'

const LEAST_TURN = HEARD_RATE / 10

/** A session: what clients and engines say goes in, events and effects come out. Waits for nothing. */
export class Session {
  readonly #deps: SessionDeps
  readonly #decided = new Decided()
  readonly #conversation = new Conversation()
  readonly #conversationId: string
  readonly #heard = new HeardAudio()
  readonly #transcripts: Transcripts
  readonly #answers: Answers
  #settings: Settings
  /** The item that the turn which goes on will be, and where it begins. */
  #turn: { readonly id: string, readonly from: number } | null = null

  constructor (settings: Settings, deps: SessionDeps) {
    this.#deps = deps
    this.#settings = settings
    this.#conversationId = deps.newId('conv')
    this.#heard.use(settings)
    this.#transcripts = new Transcripts(deps, this.#decided, this.#conversation)
    this.#answers = new Answers({
      session: deps,
      decided: this.#decided,
      conversation: this.#conversation,
      conversationId: this.#conversationId,
      transcripts: this.#transcripts,
      settings: () => this.#settings,
      add: item => this.#add(item),
      transcribe: item => this.#transcribe(item)
    })
  }

  open (): Outcome {
    this.#decided.tell(
      { type: 'session.created', session: this.#words() },
      { type: 'conversation.created', conversation: { id: this.#conversationId, object: 'realtime.conversation' } }
    )
    const missing = this.#settings.type === 'realtime' ? this.#deps.missing('llm', this.#settings) : null
    if (missing !== null) this.#decided.tell(errorEvent(missing, null))
    return this.#decided.take()
  }

  /**
   * The settings that an event asks for, where it names a model that nothing known serves; null else. It changes nothing:
   * what is known may be more by the time that the event is heard.
   */
  unserved (event: Json): Settings | null {
    const named = modelsIn(event)
    if (named === null) return null
    try {
      const settings = changedSettings(this.#settings, named, 'session')
      return everyNeed.some(need => this.#unserved(need, settings) !== null) ? settings : null
    } catch (error) {
      if (!isSvcError(error)) throw error
      // told when it is heard
      return null
    }
  }

  /** An event of the client. What is refused of it is told, and the session goes on. */
  hear (event: Json): Outcome {
    this.#decided.guarded(event, () => this.#hear(event))
    return this.#decided.take()
  }

  /** An engine has listened to an item. */
  transcribed (item: MessageItem, transcript: Transcript): Outcome {
    this.#transcribed(item, transcript)
    return this.#decided.take()
  }

  /** Something is told of an answer. */
  told (response: Response, news: AnswerNews): Outcome {
    this.#answers.told(response, news)
    return this.#decided.take()
  }

  #hear (event: Json): void {
    switch (event.type) {
      case 'input_audio_buffer.append': return this.#append(event)
      case 'input_audio_buffer.commit': return this.#commit()
      case 'input_audio_buffer.clear': return this.#clear()
      case 'conversation.item.create': return this.#create(event)
      case 'conversation.item.retrieve': {
        const item = this.#conversation.get(stringIn(event.item_id, 'item_id'))
        return this.#decided.tell({ type: 'conversation.item.retrieved', item: itemWords(item, this.#settings.inputFormat) })
      }
      case 'conversation.item.delete': {
        const id = stringIn(event.item_id, 'item_id')
        this.#conversation.remove(id)
        return this.#decided.tell({ type: 'conversation.item.deleted', item_id: id })
      }
      case 'conversation.item.truncate': return this.#truncate(event)
      case 'response.create': return this.#answers.create(event.response ?? {})
      case 'response.cancel': return this.#answers.cancel(event)
      case 'session.update': return this.#update(event.session)
      case 'transcription_session.update':
        return this.#update(isObject(event.session) ? { ...event.session, type: 'transcription' } : event.session)
      default: {
        const type = JSON.stringify(textOr(event.type, '').slice(0, 64))
        throw realtimeError('realtime.unsupported', `'type' ${type} is not a client event`, { param: 'type' })
      }
    }
  }

  #append (event: Json): void {
    const samples = heardSamples(stringIn(event.audio, 'audio'), this.#settings.inputFormat, 'audio')
    if (!this.#heard.hasRoom(samples.length)) {
      throw realtimeError('realtime.full', 'the audio buffer holds more than two minutes: commit or clear it, or use turn detection', { param: 'audio' })
    }
    for (const { kind, at } of this.#heard.push(samples)) {
      if (kind === 'started') this.#beginTurn(at)
      else this.#endTurn(at)
    }
    this.#heard.trim()
  }

  #beginTurn (at: number): void {
    const { turns } = this.#settings
    const from = Math.max(this.#heard.from, at - (turns?.prefixMs ?? 0) * HEARD_RATE / 1000)
    this.#turn = { id: this.#deps.newId('item'), from }
    this.#decided.tell({ type: 'input_audio_buffer.speech_started', audio_start_ms: msOf(from), item_id: this.#turn.id })
    if (turns?.interruptsResponse === true) this.#answers.interrupt()
  }

  #endTurn (at: number): void {
    const turn = this.#turn
    if (turn === null) return
    this.#turn = null
    this.#decided.tell({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: msOf(at), item_id: turn.id })
    // the sound behind it is heard all the same
    const samples = this.#heard.take(turn.from, at)
    this.#decided.guarded(null, () => this.#keep(turn.id, samples, this.#settings.turns?.createsResponse === true))
  }

  /** The client says that the turn is over. */
  #commit (): void {
    this.#heard.close()
    const [from, to] = [this.#turn?.from ?? this.#heard.from, this.#heard.end]
    if (to - from < LEAST_TURN) {
      throw realtimeError('realtime.too_little_audio', `the audio buffer holds ${msOf(to - from)} ms, and at least 100 are needed to commit it`)
    }
    const id = this.#turn?.id ?? this.#deps.newId('item')
    this.#turn = null
    this.#keep(id, this.#heard.take(from, to), false)
  }

  #clear (): void {
    this.#turn = null
    this.#heard.close()
    this.#heard.drop(this.#heard.end)
    this.#decided.tell({ type: 'input_audio_buffer.cleared' })
  }

  #keep (id: string, samples: Int16Array, isAnswered: boolean): void {
    const item: MessageItem = {
      id, status: 'completed', type: 'message', role: 'user', parts: [{ type: 'input_audio', samples, transcript: null, isUnheard: true }]
    }
    this.#transcripts.assertRoom([item])
    const before = this.#add(item)
    this.#decided.tell({ type: 'input_audio_buffer.committed', previous_item_id: before, item_id: id })
    this.#tellItem(item, before)
    if (isAnswered && this.#settings.type === 'realtime') this.#answers.await(item)
    this.#transcribe(item)
  }

  /** Adds an item that is made here: the oldest one goes where there is no room. */
  #add (item: Item): string | null {
    const gone = this.#conversation.makeRoom()
    if (gone !== null) this.#decided.tell({ type: 'conversation.item.deleted', item_id: gone })
    this.#conversation.insert(item, null)
    return this.#conversation.before(item)
  }

  #tellItem (item: Item, before: string | null): void {
    for (const type of ['conversation.item.added', 'conversation.item.done']) {
      this.#decided.tell({ type, previous_item_id: before, item: itemWords(item) })
    }
  }

  #transcribe (item: Item): void {
    const transcript = this.#transcripts.begin(item, this.#settings)
    if (transcript !== null) this.#transcribed(item as MessageItem, transcript)
  }

  #transcribed (item: MessageItem, transcript: Transcript): void {
    this.#transcripts.end(item, transcript, this.#settings)
    this.#answers.heard(item, transcript)
  }

  #create (event: Json): void {
    const item = readItem(event.item, { at: 'item', format: this.#settings.inputFormat, newId: this.#deps.newId })
    this.#transcripts.assertRoom([item])
    this.#conversation.insert(item, event.previous_item_id == null ? null : stringIn(event.previous_item_id, 'previous_item_id'))
    this.#tellItem(item, this.#conversation.before(item))
    this.#transcribe(item)
  }

  #truncate (event: Json): void {
    const item = this.#conversation.get(stringIn(event.item_id, 'item_id'))
    const index = countOf(event.content_index)
    const part = item.type === 'message' ? item.parts[index] : undefined
    if (part?.type !== 'output_audio') throw malformed('item_id', 'must be that of a spoken answer, and content_index 0')
    const { audio_end_ms: end } = event
    const ms = Math.ceil(part.spoken.reduce((sum, each) => sum + each.ms, 0))
    if (typeof end !== 'number' || !(end >= 0)) throw malformed('audio_end_ms', 'must be a number of milliseconds')
    if (end > ms) throw malformed('audio_end_ms', `is ${end}, but the audio of this item ends at ${ms}`)
    truncate(part, end)
    this.#decided.tell({ type: 'conversation.item.truncated', item_id: item.id, content_index: index, audio_end_ms: end })
  }

  #update (told: unknown): void {
    const settings = changedSettings(this.#settings, told, 'session')
    for (const need of everyNeed) {
      const missing = this.#unserved(need, settings)
      if (missing !== null) throw missing
    }
    if (settings.turns !== this.#settings.turns) this.#turn = null
    this.#settings = settings
    this.#heard.use(settings)
    this.#decided.tell({ type: 'session.updated', session: this.#words() })
  }

  /** A model that is named anew has to lead somewhere; what is left to the gateway is told when it is needed. */
  #unserved (need: Need, settings: Settings): SvcError | null {
    const named = ({ model, speechModel, transcription }: Settings): string | null =>
      need === 'llm' ? model : need === 'tts' ? speechModel : transcription?.model ?? null
    const isNew = named(settings) !== null && named(settings) !== named(this.#settings)
    return isNew ? this.#deps.missing(need, settings) : null
  }

  #words (): Json {
    return sessionWords(this.#settings, this.#deps.id, this.#deps.expiresAt)
  }
}

function msOf (samples: number): number {
  return Math.round(samples * 1000 / HEARD_RATE)
}
