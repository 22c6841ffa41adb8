import type { GatewayEvent } from '../contract/index.js'
import { gapEvent } from './event-filter.js'

/**
 * What one subscriber has not read yet: the events it starts with, then at most `capacity` new ones. Beyond that the oldest
 * of the new ones go, and the reader gets one gap in their place. No writer ever waits for a reader.
 */
export class EventQueue implements AsyncIterableIterator<GatewayEvent> {
  readonly #first: GatewayEvent[]
  #events: GatewayEvent[] = []
  #lost: { count: number, id: number, ts: string } | null = null
  #waiting: ((result: IteratorResult<GatewayEvent, undefined>) => void)[] = []
  #closed = false

  constructor (first: readonly GatewayEvent[], readonly capacity: number, readonly onClose: () => void) {
    this.#first = [...first]
  }

  push (event: GatewayEvent): void {
    if (this.#closed) return
    const reader = this.#waiting.shift()
    if (reader !== undefined) {
      reader({ done: false, value: event })
      return
    }
    this.#events.push(event)
    if (this.#events.length <= this.capacity) return
    const { id, ts } = this.#events.shift()!
    this.#lost = { count: (this.#lost?.count ?? 0) + 1, id, ts }
  }

  /** Forgets what was not read and ends the reader's loop. Idempotent. */
  close (): void {
    if (this.#closed) return
    this.#closed = true
    this.#first.length = 0
    this.#events = []
    this.#lost = null
    for (const reader of this.#waiting.splice(0)) reader({ done: true, value: undefined })
    this.onClose()
  }

  next (): Promise<IteratorResult<GatewayEvent, undefined>> {
    const event = this.#take()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    if (this.#closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise(resolve => { this.#waiting.push(resolve) })
  }

  return (): Promise<IteratorResult<GatewayEvent, undefined>> {
    this.close()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  #take (): GatewayEvent | undefined {
    if (this.#first.length > 0) return this.#first.shift()
    if (this.#lost === null) return this.#events.shift()
    const { id, ts, count } = this.#lost
    this.#lost = null
    return gapEvent(id, ts, count)
  }
}
