import { EventData } from './event-data.js'
import type { Json } from './json.js'
import { LikeLast, type OnlyText, type TextKind } from './like-last.js'

const EVENT_END = Buffer.from('\n\n')

export interface EventListener {
  /** Whether something was told that the reader of an answer waits for. */
  readonly hasTold: boolean
  /** The data of one event; what it says, or null for what is no piece of the answer. */
  event (data: string): Json | null
  /** A piece of text as JSON has it, without its quotes: UTF-8 in `bytes[from..to)`, of a buffer that may be used again. */
  json (kind: TextKind, bytes: Buffer, from: number, to: number): void
}

/**
 * Reads the events of a stream, however its bytes are cut. Those that differ from the one before in their text alone are not
 * parsed.
 */
export class EventReader {
  readonly #listener: EventListener
  readonly #cutter = new EventData()
  readonly #likeLast: LikeLast

  /** @param onlyText the text of an event in which there is nothing else to be told; else null. Pure */
  constructor (listener: EventListener, onlyText: (said: Json) => OnlyText | null) {
    this.#listener = listener
    this.#likeLast = new LikeLast(onlyText)
  }

  /**
   * Throws for an event without an end, and what the listener throws.
   * @param early called behind the first event that told something, where these bytes have more than that
   */
  push (bytes: Buffer, early: () => void): void {
    const likeLast = this.#likeLast
    let isEarly = !this.#listener.hasTold
    let at = 0
    while (at < bytes.length) {
      const isBegin = this.#cutter.isBetween
      const found = isBegin ? likeLast.find(bytes, at) : -1
      if (found !== -1) {
        this.#listener.json(likeLast.kind, bytes, likeLast.from, likeLast.to)
        at = found
        continue
      }
      const end = likeLast.mayFind ? bytes.indexOf(EVENT_END, at) + EVENT_END.length : bytes.length
      const part = bytes.subarray(at, end < EVENT_END.length ? bytes.length : end)
      for (const data of this.#cutter.push(part)) {
        const said = this.#listener.event(data)
        if (isBegin && said !== null) likeLast.learn(part, data, said)
      }
      at += part.length
      if (!isEarly || !this.#listener.hasTold) continue
      isEarly = false
      if (at < bytes.length) early()
    }
    likeLast.letGo()
  }
}
