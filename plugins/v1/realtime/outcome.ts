import { isSvcError, type SvcError } from 'svc-gateway/plugin'
import type { Json } from '../over-chat/ref.js'
import { errorEvent } from './error-words.js'
import type { MessageItem } from './items.js'
import type { Response, ServerEvent } from './response.js'
import type { Settings } from './settings.js'

/** What a session wants to be done. What comes of it is told to the session. */
export type Effect =
  | { readonly kind: 'transcribe', readonly item: MessageItem, readonly settings: Settings }
  | { readonly kind: 'answer', readonly response: Response, readonly body: Json }
  | { readonly kind: 'stop', readonly response: Response }

export interface Outcome {
  readonly events: readonly ServerEvent[]
  readonly effects: readonly Effect[]
}

export const everyNeed = ['llm', 'transcription', 'tts'] as const
export type Need = typeof everyNeed[number]

export interface SessionDeps {
  readonly id: string
  /** Seconds since the epoch. */
  readonly expiresAt: number
  readonly newId: (prefix: string) => string
  /** Why nothing serves this; null where something does, loaded or not. */
  readonly missing: (need: Need, settings: Settings) => SvcError | null
}

/** Events and effects in the order in which the parts of a session decide on them. */
export class Decided {
  #events: ServerEvent[] = []
  #effects: Effect[] = []

  tell (...events: readonly ServerEvent[]): void {
    for (const event of events) this.#events.push(event)
  }

  want (effect: Effect): void {
    this.#effects.push(effect)
  }

  /** Tells what is refused. Throws what is no refusal. */
  guarded (event: Json | null, work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!isSvcError(error)) throw error
      this.tell(errorEvent(error, event))
    }
  }

  take (): Outcome {
    const outcome = { events: this.#events, effects: this.#effects }
    this.#events = []
    this.#effects = []
    return outcome
  }
}
