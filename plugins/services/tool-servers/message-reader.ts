/** Larger than any sensible answer: models refuse a hundredth of it. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
const NEWLINE = 0x0A
const SHOWN = 200

export type ReadItem =
  | { readonly kind: 'message', readonly value: unknown, readonly bytes: number }
  /** A line that is no message, blank ones included: the program prints where the protocol is spoken. */
  | { readonly kind: 'noise', readonly text: string, readonly bytes: number }
  /** A line over the bound, of which nothing was kept but the id of the request that it answers, if it has one. */
  | { readonly kind: 'oversize', readonly id: string | number | null, readonly bytes: number }

/** Takes lines of JSON apart, cut anywhere. Holds at most one line below the bound. */
export class MessageReader {
  readonly #limit: number
  #held: Buffer[] = []
  #size = 0
  #scanner: IdScanner | null = null

  constructor (limit: number = MAX_MESSAGE_BYTES) {
    this.#limit = limit
  }

  * push (chunk: Buffer): Iterable<ReadItem> {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, at))
      yield* this.#line()
      from = at + 1
    }
    this.#take(chunk.subarray(from))
  }

  #take (part: Buffer): void {
    if (part.length === 0) return
    this.#size += part.length
    if (this.#scanner === null && this.#size <= this.#limit) {
      this.#held.push(part)
      return
    }
    this.#scanner ??= new IdScanner()
    for (const held of this.#held.splice(0)) this.#scanner.push(held)
    this.#scanner.push(part)
  }

  * #line (): Iterable<ReadItem> {
    const [bytes, scanner, held] = [this.#size, this.#scanner, this.#held]
    this.#size = 0
    this.#scanner = null
    this.#held = []
    if (scanner !== null) {
      yield { kind: 'oversize', id: scanner.id, bytes }
      return
    }
    const text = (held.length === 1 ? held[0]! : Buffer.concat(held)).toString('utf8').trim()
    if (text === '') {
      yield { kind: 'noise', text, bytes }
      return
    }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      yield { kind: 'noise', text: text.slice(0, SHOWN), bytes }
      return
    }
    // a batch, which one revision of the protocol allows
    const messages = Array.isArray(value) ? value as unknown[] : [value]
    if (messages.length === 0) yield { kind: 'noise', text, bytes }
    // together they count once
    for (const each of messages) yield { kind: 'message', value: each, bytes: bytes / messages.length }
  }
}

/** Finds the top-level `id` of a JSON object that is too large to be kept. */
class IdScanner {
  id: string | number | null = null
  #depth = 0
  #inString = false
  #escaped = false
  #isKey = true
  #key = ''
  #text = ''

  push (bytes: Buffer): void {
    for (const byte of bytes) this.#step(byte)
  }

  #step (byte: number): void {
    if (this.#inString) {
      this.#inText(byte)
      return
    }
    switch (byte) {
      case 0x22: // "
        this.#inString = true
        this.#text = ''
        return
      case 0x7B: case 0x5B: // { [
        this.#depth++
        return
      case 0x7D: case 0x5D: // } ]
        if (this.#depth === 1) this.#endValue()
        this.#depth--
        return
      case 0x3A: // :
        if (this.#depth !== 1) return
        this.#isKey = false
        this.#text = ''
        return
      case 0x2C: // ,
        if (this.#depth === 1) this.#endValue()
        return
      default:
        if (this.#depth === 1 && !this.#isKey && byte > 0x20 && this.#text.length < 32) this.#text += String.fromCharCode(byte)
    }
  }

  #inText (byte: number): void {
    if (this.#escaped) this.#escaped = false
    else if (byte === 0x5C) this.#escaped = true
    else if (byte === 0x22) {
      this.#inString = false
      if (this.#depth !== 1) return
      if (this.#isKey) this.#key = this.#text
      else if (this.#key === 'id') this.id = this.#text
      return
    }
    if (this.#depth === 1 && this.#text.length < 128) this.#text += String.fromCharCode(byte)
  }

  #endValue (): void {
    if (this.#key === 'id' && !this.#isKey && this.id === null && /^-?\d+$/.test(this.#text)) this.id = Number(this.#text)
    this.#isKey = true
    this.#key = ''
  }
}
