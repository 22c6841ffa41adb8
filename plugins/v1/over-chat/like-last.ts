import { isUtf8 } from 'node:buffer'
import type { Json } from './json.js'

const EMPTY = Buffer.alloc(0)
const PROBE = 'another text'
/** An engine whose chunks differ in more than their text is not tried any longer. */
const MOST_TRIES = 8
/** The name of an event may stand before its data. */
const FRAME = /^(?:event: ?[\w.]{1,64}\n)?data: ?/
const LONGEST_FRAME = 80
/** What OpenAI adds to each chunk, so that its length tells nothing about its text. */
const PADDING = /("obfuscation"\s*:\s*")[\w]*/
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** What JSON writes behind a backslash where a text has no other form: `"`, `\`, b, f, n, r, t. */
const ESCAPED = new Uint8Array(256)
for (const letter of '"\\bfnrt') ESCAPED[letter.charCodeAt(0)] = 1

export type TextKind = 'text' | 'reasoning'

/** What an event says that says nothing but a text. */
export interface OnlyText {
  /** Of the member that holds it, of the object that is called `delta`. */
  readonly key: string
  readonly kind: TextKind
  readonly text: string
}

interface Lesson {
  readonly event: Buffer
  readonly data: string
  readonly said: OnlyText
}

/**
 * Most events of a stream differ from the one before in their text alone. The bytes around that are compared, which costs a
 * fraction of reading them, and the text stays as JSON has it.
 */
export class LikeLast {
  /** What stands before the text, and right behind it what stands behind the text. */
  #around: Buffer = EMPTY
  #before = 0
  /** Where in that the padding stands, which differs too and says nothing; at its end without any. */
  #padding = 0
  readonly #onlyText: (said: Json) => OnlyText | null
  #tries = 0
  #lesson: Lesson | null = null
  /** Of the event that was found last: what its text is, and where that begins and ends. */
  kind: TextKind = 'text'
  from = 0
  to = 0

  constructor (onlyText: (said: Json) => OnlyText | null) {
    this.#onlyText = onlyText
  }

  /** Whether there is anything left to be found or learned. */
  get mayFind (): boolean { return this.#before > 0 || this.#tries < MOST_TRIES }

  /** Where the event ends that begins at `at`; -1 for one that differs in more than its text from what was learned. */
  find (bytes: Buffer, at: number): number {
    if (this.#lesson !== null) this.#learn(this.#lesson)
    const [around, before, padding] = [this.#around, this.#before, this.#padding]
    const { length } = around
    if (before === 0 || at + length >= bytes.length) return -1
    for (let i = 0; i < before; i++) if (bytes[at + i] !== around[i]) return -1
    const from = at + before
    const to = textEnd(bytes, from)
    if (to === -1 || to + length - before > bytes.length) return -1
    let read = to
    for (let i = before; i < padding; i++) if (bytes[read++] !== around[i]) return -1
    if (padding < length) {
      while (isPlain(bytes[read])) read++
      if (read + length - padding > bytes.length) return -1
      for (let i = padding; i < length; i++) if (bytes[read++] !== around[i]) return -1
    }
    this.from = from
    this.to = to
    this.#tries = 0
    return read
  }

  /**
   * Learned when the next event is looked at: what is told now, which may be the first of an answer, does not wait for it.
   * @param event the bytes of one event
   * @param data what its `data` line says, learned if that is a text and nothing else
   */
  learn (event: Buffer, data: string, chunk: Json): void {
    if (this.#tries >= MOST_TRIES) return
    const said = this.#onlyText(chunk)
    if (said === null) return
    this.#tries++
    this.#lesson = { event, data, said }
  }

  /** The bytes that were looked at will be used again. */
  letGo (): void {
    if (this.#lesson !== null) this.#lesson = { ...this.#lesson, event: Buffer.from(this.#lesson.event) }
  }

  #learn ({ event, data, said }: Lesson): void {
    this.#lesson = null
    this.#before = 0
    const key = new RegExp(`"${said.key}"\\s*:\\s*`, 'g')
    key.lastIndex = Math.max(0, data.indexOf('"delta"'))
    const text = JSON.stringify(said.text)
    if (key.exec(data) === null || !data.startsWith(text, key.lastIndex)) return
    const [before, behind] = [data.slice(0, key.lastIndex + 1), data.slice(key.lastIndex + text.length - 1)]
    // whatever the chunk has besides: this is where its text stands, or it is not learned
    const probed = JSON.parse(before + PROBE + behind) as Json
    const found = this.#onlyText(probed)
    if (found?.text !== PROBE || found.key !== said.key) return
    const frame = FRAME.exec(event.toString('latin1', 0, LONGEST_FRAME))?.[0]
    const end = event.toString('latin1', event.length - 4) === '\r\n\r\n' ? '\r\n\r\n' : '\n\n'
    if (frame === undefined || !Buffer.from(frame + data + end).equals(event)) return
    const [first, second] = this.#withoutPadding(before, behind)
    this.#around = Buffer.from(frame + before + first + second + end)
    this.#before = Buffer.byteLength(frame + before)
    this.#padding = second === '' ? this.#around.length : this.#before + Buffer.byteLength(first)
    this.kind = said.kind
  }

  /** What stands before the content of the padding and behind it; nothing behind it where there is none. */
  #withoutPadding (before: string, behind: string): readonly [string, string] {
    const padding = PADDING.exec(behind)
    if (padding === null) return [behind, '']
    const [first, second] = [behind.slice(0, padding.index) + padding[1]!, behind.slice(padding.index + padding[0].length)]
    const probed = JSON.parse(before + PROBE + first + PROBE + second) as Json
    return probed.obfuscation === PROBE && this.#onlyText(probed)?.text === PROBE ? [first, second] : [behind, '']
  }
}

/**
 * Where the text of a JSON string ends that begins at `from`; -1 for one that is empty, has no end here, or is not written as
 * `JSON.stringify` does.
 */
function textEnd (bytes: Buffer, from: number): number {
  let isAscii = true
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) return at > from && (isAscii || isUtf8(bytes.subarray(from, at))) ? at : -1
    if (byte < 0x20) return -1
    if (byte === BACKSLASH && ESCAPED[bytes[++at] ?? 0] === 0) return -1
    if (byte > 0x7f) isAscii = false
  }
  return -1
}

/** A letter, a digit, or any other byte of a JSON string that stands for itself alone. */
function isPlain (byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH
}
