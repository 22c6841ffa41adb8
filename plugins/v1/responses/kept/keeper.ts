import type { AnswerTap, AnswerTapHead, HeldPart } from 'svc-gateway/plugin'
import type { Json } from '../../over-chat/ref.js'
import { isUnguessable } from '../ids.js'
import { AnswerReader } from './answer-reader.js'
import type { KeptResponses } from './kept-responses.js'

/** What a request brought, as far as it is kept. */
export interface OwnPart {
  /** False where it asked not to be kept. */
  readonly isKept: boolean
  readonly input: readonly Json[]
  readonly previous: string | null
  /** Id of a conversation that is kept here and takes what it brought and what is made of it. */
  readonly conversation: string | null
}

/**
 * Keeps the response to a request, before its client knows that it is complete. What an upstream answers in its own words is kept
 * there. A response under an id that could be guessed is not kept, and the first of two under one id stays.
 */
export class Keeper implements AnswerTap {
  readonly #store: KeptResponses
  readonly #now: () => number
  readonly #isTurn: boolean
  readonly #own: () => OwnPart
  #isElsewhere = false
  #hasKept = false
  #reader: AnswerReader | null = null

  /**
   * @param isTurn its answer belongs to a conversation, also one that an upstream makes
   * @param own asked when there is something to keep: most requests need not be read for it
   */
  constructor (store: KeptResponses, now: () => number, isTurn: boolean, own: () => OwnPart) {
    this.#isTurn = isTurn
    this.#store = store
    this.#now = now
    this.#own = own
  }

  /** Whether the response is on the disk, under its own id. */
  get hasKept (): boolean { return this.#hasKept }

  head ({ status, isEventStream, upstream }: AnswerTapHead): void {
    this.#isElsewhere = upstream !== null
    if (status === 200 && (this.#isTurn || !this.#isElsewhere)) this.#reader = new AnswerReader(isEventStream)
  }

  /** A reader that waits for the first words of an answer does not wait for the database, also where all of it comes at once. */
  data (chunk: Buffer): HeldPart | null {
    const reader = this.#reader
    if (reader === null) return null
    reader.push(chunk)
    if (!reader.hasCome) return null
    this.#reader = null
    return { from: reader.from, work: () => this.#keep(reader.response()) }
  }

  end (): void {
    const reader = this.#reader
    if (reader === null) return
    this.#reader = null
    reader.end()
    this.#keep(reader.response())
  }

  #keep (response: Json | null): void {
    if (response === null) return
    const { isKept, input, previous, conversation } = this.#own()
    const { id } = response
    const now = this.#now()
    if (isKept && !this.#isElsewhere && isUnguessable(id)) {
      const inside = conversation === null ? {} : { conversation: { id: conversation } }
      const kept = { ...response, store: true, previous_response_id: previous, ...inside }
      this.#hasKept = this.#store.add({ id, previous, input, conversation, response: kept }, now)
      if (this.#hasKept) return
    }
    if (conversation !== null) this.#store.appendTurn(conversation, input, response, now)
  }
}
