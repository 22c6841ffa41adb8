import type { Clock, EventAsk, EventEditor, StreamEvent, Surface, SvcError } from '../../contract/index.js'
import type { AnswerSink } from './answer-sink.js'
import { isEventStream, without } from './headers.js'

/** An event longer than this passes as it is, in pieces: nothing is held without bound. */
const LONGEST_EVENT = 1024 * 1024
const LONGEST_WHOLE = 8 * 1024 * 1024
const EMPTY = Buffer.alloc(0)

export interface AskedFor {
  readonly model: string
  /** Asked when the answer begins: of an upload, not everything is known before. */
  readonly stream: () => boolean
}

interface Whole {
  readonly rawHeaders: readonly Buffer[] | readonly string[]
  readonly contentType: string
  readonly chunks: Buffer[]
  size: number
}

/**
 * Stands before a sink and lets a provider complete the engine's events (contract `Surface.events`). Behind a
 * `StreamShaper`, so streams come in whole lines.
 */
export class EventEdits implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #edit: NonNullable<Surface['events']>
  readonly #asked: AskedFor
  readonly #clock: Clock
  #editor: EventEditor | null = null
  #whole: Whole | null = null
  #held: Buffer = EMPTY
  /** Inside an event that is too long to be held. */
  #isPassing = false

  constructor (sink: AnswerSink, edit: NonNullable<Surface['events']>, asked: AskedFor, clock: Clock) {
    this.#sink = sink
    this.#edit = edit
    this.#asked = asked
    this.#clock = clock
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (status === 200) {
      const ask: EventAsk = { model: this.#asked.model, stream: this.#asked.stream(), now: this.#clock.now() }
      const editor = this.#edit(ask)
      if (isEventStream(rawHeaders)) this.#editor = editor
      else if (ask.stream && editor.whole !== undefined) {
        this.#editor = editor
        this.#whole = { rawHeaders, contentType: contentTypeOf(rawHeaders), chunks: [], size: 0 }
        return
      }
    }
    this.#sink.head(status, rawHeaders)
  }

  data (chunk: Buffer): boolean {
    if (this.#whole !== null) return this.#keep(this.#whole, chunk)
    if (this.#editor === null) return this.#sink.data(chunk)
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const { parts, rest } = this.#edited(bytes)
    this.#held = rest
    return parts.length === 0 ? true : this.#sink.data(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
  }

  end (): void {
    if (this.#whole !== null) this.#answer(this.#whole)
    if (this.#held.length > 0) this.#sink.data(this.#held)
    this.#held = EMPTY
    this.#sink.end()
  }

  fail (error: SvcError): void {
    // whole lines of an event that will not be complete: the client sees what came, as without an editor
    if (this.#held.length > 0) this.#sink.data(this.#held)
    this.#held = EMPTY
    this.#whole = null
    this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  #edited (bytes: Buffer): { parts: Buffer[], rest: Buffer } {
    const parts: Buffer[] = []
    let from = 0
    for (let end = eventEnd(bytes, from); end !== -1; end = eventEnd(bytes, from)) {
      const event = bytes.subarray(from, end)
      parts.push(this.#isPassing ? event : this.#editedEvent(event))
      this.#isPassing = false
      from = end
    }
    const rest = bytes.subarray(from)
    if (rest.length <= LONGEST_EVENT && !this.#isPassing) return { parts, rest }
    this.#isPassing = true
    return { parts: [...parts, rest], rest: EMPTY }
  }

  #editedEvent (bytes: Buffer): Buffer {
    const event = parsedEvent(bytes.toString('utf8'))
    const edited = event === null ? null : this.#editor!.event(event)
    return edited === null ? bytes : Buffer.from(edited.map(written).join(''))
  }

  #keep (whole: Whole, chunk: Buffer): boolean {
    whole.chunks.push(chunk)
    whole.size += chunk.length
    return whole.size > LONGEST_WHOLE ? this.#pass(whole) : true
  }

  #pass ({ rawHeaders, chunks }: Whole): boolean {
    this.#whole = null
    this.#editor = null
    this.#sink.head(200, rawHeaders)
    return this.#sink.data(Buffer.concat(chunks))
  }

  #answer (whole: Whole): void {
    const events = this.#editor!.whole!(whole.contentType, Buffer.concat(whole.chunks).toString('utf8'))
    if (events === null) {
      this.#pass(whole)
      return
    }
    const headers = without(whole.rawHeaders.map(String), ['content-type', 'content-length', 'etag'])
    this.#sink.head(200, [...headers, 'content-type', 'text/event-stream; charset=utf-8'])
    this.#sink.data(Buffer.from(events.map(written).join('')))
  }
}

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Behind the blank line that ends the next event; -1 when it is not there yet. */
function eventEnd (bytes: Buffer, from: number): number {
  let isBlank = true
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] !== LINE_FEED && bytes[at] !== CARRIAGE_RETURN) {
      isBlank = false
      continue
    }
    if (bytes[at] === CARRIAGE_RETURN && bytes[at + 1] === LINE_FEED) at++
    if (isBlank) return at + 1
    isBlank = true
  }
  return -1
}

/** Null for what has no data: comments, and blank lines on their own. */
function parsedEvent (text: string): StreamEvent | null {
  let [event, data]: [string, string | null] = ['', null]
  for (const line of text.split(/\r\n|\n|\r/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!
    if (name === 'event') event = value!
    if (name === 'data') data = data === null ? value! : `${data}\n${value!}`
  }
  return data === null ? null : { event, data }
}

function written ({ event, data }: StreamEvent): string {
  return `${event === '' ? '' : `event: ${event}\n`}data: ${data.replaceAll('\n', '\ndata: ')}\n\n`
}

function contentTypeOf (rawHeaders: readonly Buffer[] | readonly string[]): string {
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toString().toLowerCase() === 'content-type')
  return at === -1 ? '' : rawHeaders[at + 1]!.toString()
}
