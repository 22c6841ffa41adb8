import { isUtf8 } from 'node:buffer'
import { isObject, type Json } from './json.js'

const EMPTY = Buffer.alloc(0)
const PROBE = 'another text'
/** An engine whose chunks differ in more than their text is not tried any longer. */
const MOST_TRIES = 8
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** What JSON writes behind a backslash where a text has no other form: `"`, `\`, b, f, n, r, t. */
const ESCAPED = new Uint8Array(256)
for (const letter of '"\\bfnrt') ESCAPED[letter.charCodeAt(0)] = 1

export type TextKind = 'text' | 'reasoning'

interface OnlyText {
  readonly key: 'content' | 'reasoning_content' | 'reasoning'
  readonly text: string
}

/**
 * Most events of a stream differ from the one before in their text alone. The bytes around that are compared, which costs a
 * fraction of reading them, and the text stays as JSON has it.
 */
export class LikeLast {
  /** What stands before the text, and right behind it what stands behind the text. */
  #around: Buffer = EMPTY
  #before = 0
  #tries = 0
  /** Of the event that was found last: what its text is, and where that begins and ends. */
  kind: TextKind = 'text'
  from = 0
  to = 0

  /** Whether there is anything left to be found or learned. */
  get mayFind (): boolean { return this.#before > 0 || this.#tries < MOST_TRIES }

  /** Where the event ends that begins at `at`; -1 for one that differs in more than its text from what was learned. */
  find (bytes: Buffer, at: number): number {
    const [around, before] = [this.#around, this.#before]
    const { length } = around
    if (before === 0 || at + length >= bytes.length) return -1
    for (let i = 0; i < before; i++) if (bytes[at + i] !== around[i]) return -1
    const from = at + before
    const to = textEnd(bytes, from)
    if (to === -1 || to + length - before > bytes.length) return -1
    for (let i = before, read = to; i < length; i++) if (bytes[read++] !== around[i]) return -1
    this.from = from
    this.to = to
    this.#tries = 0
    return to + length - before
  }

  /**
   * @param event the bytes of one event
   * @param data what its `data` line says, learned if that is a text and nothing else
   */
  learn (event: Buffer, data: string, chunk: Json): void {
    if (this.#tries >= MOST_TRIES) return
    const said = onlyText(chunk)
    if (said === null) return
    this.#tries++
    this.#before = 0
    const key = new RegExp(`"${said.key}"\\s*:\\s*`, 'g')
    key.lastIndex = Math.max(0, data.indexOf('"delta"'))
    const text = JSON.stringify(said.text)
    if (key.exec(data) === null || !data.startsWith(text, key.lastIndex)) return
    const [before, behind] = [data.slice(0, key.lastIndex + 1), data.slice(key.lastIndex + text.length - 1)]
    // whatever the chunk has besides: this is where its text stands, or it is not learned
    const probed = onlyText(JSON.parse(before + PROBE + behind) as Json)
    if (probed?.text !== PROBE || probed.key !== said.key) return
    const frame = /^data: ?/.exec(event.toString('latin1', 0, 6))?.[0]
    const end = event.toString('latin1', event.length - 4) === '\r\n\r\n' ? '\r\n\r\n' : '\n\n'
    if (frame === undefined || !Buffer.from(frame + data + end).equals(event)) return
    this.#around = Buffer.from(frame + before + behind + end)
    this.#before = Buffer.byteLength(frame + before)
    this.kind = said.key === 'content' ? 'text' : 'reasoning'
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

/** The text of a chunk in which there is nothing else to be told; else null. */
function onlyText ({ choices, usage, error, timings }: Json): OnlyText | null {
  if (!Array.isArray(choices) || choices.length !== 1 || isObject(usage) || isObject(timings) || error != null) return null
  const [choice] = choices as readonly unknown[]
  if (!isObject(choice) || (choice.index ?? 0) !== 0) return null
  const { delta, finish_reason: reason, logprobs, stop_reason: stop } = choice
  if (reason != null || logprobs != null || stop != null || !isObject(delta)) return null
  const [said, more] = Object.entries(delta).filter(([key, value]) => key !== 'role' && value !== null)
  if (said === undefined || more !== undefined) return null
  const [key, text] = said
  if (typeof text !== 'string' || text === '') return null
  return key === 'content' || key === 'reasoning_content' || key === 'reasoning' ? { key, text } : null
}
