import { realtimeError } from './errors.js'
import { saidIn, weightOf, type HeardPart, type Item, type SpokenPart } from './items.js'

const MOST_ITEMS = 1_024
const MOST_CHARACTERS = 8 * 1024 * 1024
/** Of what users said; the sound of the oldest items goes first. */
const MOST_SAMPLES = 2 * 1024 * 1024

/** The items of a session, in order. */
export class Conversation {
  readonly #items: Item[] = []

  get items (): readonly Item[] { return this.#items }

  has (id: string): boolean { return this.#items.some(item => item.id === id) }

  /** Throws `realtime.item_not_found`. */
  get (id: string, param = 'item_id'): Item {
    const item = this.#items.find(each => each.id === id)
    if (item === undefined) throw realtimeError('realtime.item_not_found', `the conversation has no item '${id.slice(0, 128)}'`, { param })
    return item
  }

  /** The id of the item in front of it; null for the first. */
  before (item: Item): string | null {
    return this.#items[this.#items.indexOf(item) - 1]?.id ?? null
  }

  /**
   * @param after id of an item, or `root`; null is at the end. Throws `realtime.item_exists`, `realtime.item_not_found`,
   * `realtime.full`.
   */
  insert (item: Item, after: string | null): void {
    if (this.has(item.id)) throw realtimeError('realtime.item_exists', `the conversation already has an item '${item.id}'`, { param: 'item.id' })
    const at = after === null ? this.#items.length : after === 'root' ? 0 : this.#items.indexOf(this.get(after, 'previous_item_id')) + 1
    const weight = this.#items.reduce((sum, each) => sum + weightOf(each), weightOf(item))
    assertSize(this.#items.length + 1, weight)
    this.#items.splice(at, 0, item)
    this.forgetSound()
  }

  /** Makes room for an item that is made here. Returns the id of the oldest one, which went for it; null where there is room. */
  makeRoom (): string | null {
    return this.#items.length < MOST_ITEMS ? null : this.#items.shift()!.id
  }

  /** Throws `realtime.item_not_found`. */
  remove (id: string): void {
    this.#items.splice(this.#items.indexOf(this.get(id)), 1)
  }

  /** What was listened to already and is more than is kept. */
  forgetSound (): void {
    let samples = 0
    for (const item of this.#items.toReversed()) {
      for (const part of heardParts(item)) {
        samples += part.samples?.length ?? 0
        if (samples > MOST_SAMPLES && !part.isUnheard) part.samples = null
      }
    }
  }
}

/**
 * What a model may be given to read.
 * @param at what the client sends as a list of its own; null is the conversation. Throws `realtime.full`.
 */
export function assertSize (items: number, weight: number, at: string | null = null): void {
  if (items <= MOST_ITEMS && weight <= MOST_CHARACTERS) return
  const [what, wayOut] = at === null ? ['a conversation', 'delete some, or open another session'] : [`'${at}'`, 'send less']
  throw realtimeError('realtime.full', `${what} has at most ${MOST_ITEMS} items and ${MOST_CHARACTERS / 1024 ** 2} MiB of text: ${wayOut}`,
    at === null ? {} : { param: at })
}

export function heardParts (item: Item): HeardPart[] {
  return item.type === 'message' ? item.parts.filter(part => part.type === 'input_audio') : []
}

/** Whether there is speech in it. Transcription engines put noise in brackets. Pure. */
export function saysSomething (item: Item): boolean {
  return item.type === 'message' && item.parts.some(part => part.type === 'input_image' || /[\p{L}\p{N}]/u.test(saidIn(part).replace(/[[(*][^\])*]*[\])*]/g, '')))
}

/** Takes from an answer what was not heard of it: the sentence that was cut off keeps the words up to there. */
export function truncate (part: SpokenPart, endMs: number): void {
  let left = Math.max(0, endMs)
  for (const each of part.spoken) {
    if (left === 0) each.text = ''
    else if (left < each.ms) each.text = wordsIn(each.text, left / each.ms)
    each.ms = Math.min(each.ms, left)
    left -= each.ms
  }
  part.transcript = part.spoken.map(({ text }) => text).join('')
}

function wordsIn (sentence: string, share: number): string {
  const head = sentence.slice(0, Math.floor(sentence.length * share))
  return head.slice(0, head.lastIndexOf(' ') + 1)
}
