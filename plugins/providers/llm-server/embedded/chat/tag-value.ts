import type { Tell } from './answer-part.js'
import { firstMark, openEnd, type Found } from './marks.js'
import type { ToolTypes } from './tool-types.js'

/** Characters that are held until it is clear what a value is: a number, a word, or white space before what may be JSON. */
const MOST_HELD = 256
const jsonStart = new RegExp(`^\\s{0,${MOST_HELD}}[[{]`)

export interface ValueWords {
  readonly ends: readonly string[]
  /** A line break before the value is none of its own. */
  readonly afterBreak: boolean
}

/** The value of one argument as plain text, told as JSON of its kind. */
export class TagValue {
  readonly #kind: ReturnType<ToolTypes>
  readonly #words: ValueWords
  /** How it is told; null while that is open. */
  #as: 'string' | 'json' | null = null

  constructor (kind: ReturnType<ToolTypes>, words: ValueWords) {
    this.#kind = kind
    this.#words = words
  }

  /** Index behind what was told of the text, or what ended the value; null when more has to come first. */
  read (text: string, from: number, tell: Tell): number | Found | null {
    const { ends, afterBreak } = this.#words
    const start = this.#as === null && afterBreak && text[from] === '\n' ? from + 1 : from
    const mark = firstMark(text, ends, from)
    if (mark === null) {
      const end = text.length - openEnd(text.slice(from), ends)
      const isJson = this.#kind === 'json' && /\S/.test(text.slice(start, end))
      const ready = this.#as !== null || this.#kind === 'string' || end - start > MOST_HELD || isJson
      if (!ready || end <= start) return null
      this.#say(text.slice(start, end), tell)
      return end
    }
    const whole = text.slice(start, Math.max(start, mark.start))
    if (this.#as === null && this.#kind === 'scalar' && whole.length <= MOST_HELD) {
      tell({ kind: 'arguments', text: scalar(whole) })
      return mark
    }
    this.#say(whole, tell)
    if (this.#as === 'string') tell({ kind: 'arguments', text: '"' })
    return mark
  }

  #say (text: string, tell: Tell): void {
    if (this.#as === null) {
      this.#as = this.#kind === 'json' && jsonStart.test(text) ? 'json' : 'string'
      if (this.#as === 'string') tell({ kind: 'arguments', text: '"' })
    }
    const told = this.#as === 'json' ? text : JSON.stringify(text).slice(1, -1)
    if (told !== '') tell({ kind: 'arguments', text: told })
  }
}

/** A number, a truth value or null as JSON; words that are none of these as a string. */
function scalar (text: string): string {
  const word = text.trim()
  const small = word.toLowerCase()
  if (small === 'true' || small === 'false' || small === 'null' || small === 'none') return small === 'none' ? 'null' : small
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(word) ? word : JSON.stringify(text)
}
