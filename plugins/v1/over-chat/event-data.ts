import { StringDecoder } from 'node:string_decoder'
import { svcError } from 'svc-gateway/plugin'

/** Longest event that is put together, in characters. */
const LONGEST_EVENT = 8 * 1024 * 1024
const LINE_FEED = 0x0a

/** What the `data` lines of an event stream say, event by event, however its bytes are cut on their way. */
export class EventData {
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  /** Of the event that is not over yet; null without any. */
  #data: string | null = null
  #isLine = true

  /** Whether an event begins with the next byte. */
  get isBetween (): boolean { return this.#isLine && this.#rest === '' && this.#data === null }

  /** The events that these bytes complete. Throws for one without an end. */
  push (chunk: Buffer): string[] {
    const events: string[] = []
    const piece = this.#decoder.write(chunk)
    // else the decoder may hold the beginning of a character
    if (chunk.length > 0) this.#isLine = chunk[chunk.length - 1] === LINE_FEED
    // looked for in the piece alone: a look into the whole would put a long line together again with every piece of it
    const first = piece.indexOf('\n')
    const text = this.#rest + piece
    let start = 0
    let end = first === -1 ? -1 : this.#rest.length + first
    while (end !== -1) {
      this.#line(text, start, text.charCodeAt(end - 1) === 13 ? end - 1 : end, events)
      start = end + 1
      end = text.indexOf('\n', start)
    }
    this.#rest = start === 0 ? text : text.slice(start)
    if (this.#rest.length + (this.#data?.length ?? 0) > LONGEST_EVENT) {
      throw svcError('dispatch.upstream_failed', 'the engine sent an event without an end')
    }
    return events
  }

  #line (text: string, start: number, end: number, events: string[]): void {
    if (end <= start) {
      if (this.#data !== null) events.push(this.#data)
      this.#data = null
    } else if (text.startsWith('data:', start)) {
      const said = text.slice(text.charCodeAt(start + 5) === 32 ? start + 6 : start + 5, end)
      this.#data = this.#data === null ? said : `${this.#data}\n${said}`
    }
  }
}
