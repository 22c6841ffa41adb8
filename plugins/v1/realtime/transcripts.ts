import type { SvcError } from 'svc-gateway/plugin'
import { heardParts, type Conversation } from './conversation.js'
import { errorEvent, errorWords } from './error-words.js'
import { realtimeError } from './errors.js'
import { HEARD_RATE, type Item, type MessageItem } from './items.js'
import type { Decided, SessionDeps } from './outcome.js'
import type { Settings } from './settings.js'

/** Of what engines have still to listen to. */
const MOST_SAMPLES = 4 * 1024 * 1024

export type Transcript = { readonly text: string } | { readonly error: SvcError }

/** Items that an engine listens to, those beside the conversation too. */
export class Transcripts {
  readonly #deps: SessionDeps
  readonly #decided: Decided
  readonly #conversation: Conversation
  /** Themselves and not their ids: clients choose those, and the same one more than once. */
  readonly #pending = new Set<Item>()
  /** Of all that is pending. */
  #samples = 0

  constructor (deps: SessionDeps, decided: Decided, conversation: Conversation) {
    this.#deps = deps
    this.#decided = decided
    this.#conversation = conversation
  }

  get isIdle (): boolean { return this.#pending.size === 0 }

  isPending (item: Item): boolean { return this.#pending.has(item) }

  /** Throws `realtime.full` where these would be more than may wait. */
  assertRoom (items: readonly Item[]): void {
    const further = [...new Set(items)].filter(item => !this.#pending.has(item))
    if (this.#samples + samplesIn(further) <= MOST_SAMPLES) return
    throw realtimeError('realtime.full', 'the transcription engine has more than four minutes of audio waiting: the new audio is not transcribed')
  }

  /** Has it listened to; an item without sound is none. Null where that is under way, else what came of it at once. */
  begin (item: Item, settings: Settings): Transcript | null {
    const parts = heardParts(item)
    if (item.type !== 'message' || parts.length === 0) return null
    this.#pending.add(item)
    this.#samples += samplesIn([item])
    const error = this.#deps.missing('transcription', settings)
    if (error === null) {
      this.#decided.want({ kind: 'transcribe', item, settings })
      return null
    }
    this.#decided.tell(errorEvent(error, null))
    return { error }
  }

  end (item: MessageItem, transcript: Transcript, { transcription }: Settings): void {
    if (this.#pending.delete(item)) this.#samples -= samplesIn([item])
    const parts = heardParts(item)
    const seconds = samplesIn([item]) / HEARD_RATE
    parts.forEach((part, i) => {
      part.isUnheard = false
      part.transcript = 'error' in transcript ? null : i === 0 ? transcript.text : ''
    })
    this.#conversation.forgetSound()
    if (transcription === null || !this.#conversation.has(item.id)) return
    const head = { item_id: item.id, content_index: item.parts.indexOf(parts[0]!) }
    const event = 'conversation.item.input_audio_transcription'
    if ('error' in transcript) {
      this.#decided.tell({ type: `${event}.failed`, ...head, error: errorWords(transcript.error, null) })
    } else {
      const { text } = transcript
      if (text !== '') this.#decided.tell({ type: `${event}.delta`, ...head, delta: text })
      this.#decided.tell({ type: `${event}.completed`, ...head, transcript: text, usage: { type: 'duration', seconds } })
    }
  }
}

function samplesIn (items: readonly Item[]): number {
  return items.flatMap(heardParts).reduce((sum, { samples }) => sum + (samples?.length ?? 0), 0)
}
