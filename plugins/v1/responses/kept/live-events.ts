import { Changes, svcError } from 'svc-gateway/plugin'
import type { Json } from '../../over-chat/ref.js'
import { packed, type EventBatch } from './event-batch.js'

/** What is held in memory before it is written, in characters. */
const BATCH = 64 * 1024
/** As much waits for a database that cannot be written just now. */
const MOST_WAITING = 1024 * 1024
/** Of all events of a response. */
const LONGEST = 64 * 1024 * 1024

/**
 * The events of a response that is being made, by their numbers, but for its last one. What has not been written yet is here,
 * the rest is in the database, so that what they take does not grow with their number or with slow readers.
 */
export class LiveEvents {
  readonly #write: (batch: EventBatch) => void
  /** As JSON, not written yet. */
  #lines: string[] = []
  /** Number of the next one. */
  #next = 0
  #waiting = 0
  #writeAt = BATCH
  #length = 0
  #isOver = false
  readonly #changes = new Changes()

  /** @param write throws where the database takes nothing */
  constructor (write: (batch: EventBatch) => void) {
    this.#write = write
  }

  get next (): number { return this.#next }

  get isOver (): boolean { return this.#isOver }

  /** The first ones, of any length: they are written with the response that they belong to, and not before it. */
  begin (events: readonly Json[]): void {
    for (const event of events) this.#add(event)
  }

  /** Numbers an event. Throws for what does not come to an end, and where too much waits for the database. */
  push (event: Json): void {
    this.#add(event)
    if (this.#waiting >= this.#writeAt) this.#writeWaiting()
    this.#changes.wake()
  }

  /** Those that were not written yet; null without any. */
  batch (): EventBatch | null {
    return this.#lines.length === 0 ? null : packed(this.#lines, this.#next - 1)
  }

  /** What `batch` returned is in the database. */
  written (): void {
    this.#lines = []
    this.#waiting = 0
    this.#writeAt = BATCH
  }

  end (): void {
    this.#isOver = true
    this.#changes.wake()
  }

  /** All events behind a number, where none of them is in the database alone; else null. */
  behind (number: number): readonly string[] | null {
    const first = this.#next - this.#lines.length
    return number + 1 < first ? null : this.#lines.slice(number + 1 - first)
  }

  /** Resolves with the next event, and at the end. Rejects with the reason of the signal. */
  changed (signal: AbortSignal): Promise<void> {
    return this.#changes.next(signal)
  }

  #add ({ type, sequence_number: _, ...members }: Json): void {
    const line = JSON.stringify({ type, sequence_number: this.#next, ...members })
    this.#length += line.length
    if (this.#length > LONGEST) throw svcError('dispatch.upstream_failed', `the events of the response are longer than ${LONGEST} characters`)
    this.#lines.push(line)
    this.#next++
    this.#waiting += line.length
  }

  #writeWaiting (): void {
    try {
      this.#write(packed(this.#lines, this.#next - 1))
    } catch (error) {
      if (this.#waiting > MOST_WAITING) throw error
      // another program may hold the database for a while
      this.#writeAt = this.#waiting + BATCH
      return
    }
    this.written()
  }
}
