import { isObject, type Json } from './json.js'

/** Text that stands in JSON as it is. */
const PLAIN = /^[^"\\\u0000-\u001f]+$/
const PROBE = 'another text'
/** An engine whose chunks differ in more than their text is not tried any longer. */
const MOST_TRIES = 8

/**
 * Most chunks of a stream differ from the one before in their text alone. What stands around that is compared, which costs a
 * fraction of reading it.
 */
export class LikeLast {
  #before = ''
  #behind = ''
  #tries = 0

  /** The text of a chunk that differs in nothing else from the one that was learned; null for any other. */
  textOf (data: string): string | null {
    const { length } = this.#before
    if (length === 0 || data.length <= length + this.#behind.length) return null
    if (!data.startsWith(this.#before) || !data.endsWith(this.#behind)) return null
    const text = data.slice(length, data.length - this.#behind.length)
    if (!PLAIN.test(text)) return null
    this.#tries = 0
    return text
  }

  /** @param chunk what `data` says; learned if it says a text and nothing else */
  learn (data: string, chunk: Json): void {
    if (this.#tries >= MOST_TRIES) return
    const text = onlyText(chunk)
    if (text === null) return
    this.#tries++
    this.#before = ''
    const key = /"content"\s*:\s*/g
    key.lastIndex = Math.max(0, data.indexOf('"delta"'))
    if (key.exec(data) === null || !data.startsWith(JSON.stringify(text), key.lastIndex)) return
    const [before, behind] = [data.slice(0, key.lastIndex + 1), data.slice(key.lastIndex + JSON.stringify(text).length - 1)]
    // whatever the chunk has besides: this is where its text stands, or it is not learned
    if (onlyText(JSON.parse(before + PROBE + behind) as Json) !== PROBE) return
    this.#before = before
    this.#behind = behind
  }
}

/** The text of a chunk in which there is nothing else to be told; else null. */
function onlyText ({ choices, usage, error }: Json): string | null {
  if (!Array.isArray(choices) || choices.length !== 1 || isObject(usage) || error != null) return null
  const [choice] = choices as readonly unknown[]
  if (!isObject(choice) || (choice.index ?? 0) !== 0) return null
  const { delta, finish_reason: reason, logprobs, stop_reason: stop } = choice
  if (reason != null || logprobs != null || stop != null) return null
  if (!isObject(delta) || typeof delta.content !== 'string' || delta.content === '') return null
  return Object.entries(delta).every(([key, value]) => key === 'content' || key === 'role' || value === null) ? delta.content : null
}
