import type { Tell } from './answer-part.js'
import { LONGEST_NAME, type CallSyntax } from './call-syntax.js'
import { firstMark, openEnd } from './marks.js'
import type { ToolTypes } from './tool-types.js'

const [OPEN, PARAMETER, CLOSE, CLOSE_VALUE] = ['<function=', '<parameter=', '</function>', '</parameter>'] as const
/** The line break before a tag is not part of the value. */
const valueEnds = [CLOSE_VALUE, `\n${CLOSE_VALUE}`, `\n${PARAMETER}`, `\n${CLOSE}`]

/** Characters that are held until it is clear what a value is: a number, a word, or white space before what may be JSON. */
const MOST_HELD = 256
const jsonStart = new RegExp(`^\\s{0,${MOST_HELD}}[[{]`)

/** `<function=name>`, a `<parameter=key>` for each argument with its value as plain text, `</function>`. */
export class FunctionTags implements CallSyntax {
  readonly #types: ToolTypes
  #state: CallSyntax['state'] = 'reading'
  #step: 'open' | 'between' | 'value' = 'open'
  #held = ''
  #name = ''
  #count = 0
  /** How the value that is read is told; null while that is open. */
  #as: 'string' | 'json' | null = null
  #kind: ReturnType<ToolTypes> = 'string'

  constructor (types: ToolTypes) {
    this.#types = types
  }

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    const before = this.#held.length
    this.#held += text.slice(from)
    let at = 0
    for (let next: number | null = 0; next !== null && this.#state === 'reading';) {
      at = next
      next = this.#step === 'value' ? this.#value(at, tell) : this.#tag(at, tell)
    }
    if (this.#state === 'reading') {
      this.#held = this.#held.slice(at)
      return text.length
    }
    // what was held and turned out to be no tag
    if (this.#left < before && this.#state === 'done') tell({ kind: 'text', text: this.#held.slice(this.#left, before) })
    return Math.max(from, from + this.#left - before)
  }

  /** Where this ended, in what was held. */
  #left = 0

  /** Where to go on, or null when more has to come first. What is before the returned index has been told. */
  #tag (from: number, tell: Tell): number | null {
    const text = this.#held
    let at = from
    while (at < text.length && /\s/.test(text[at]!)) at++
    const rest = text.slice(at, at + LONGEST_NAME + PARAMETER.length + 2)
    const tags = this.#step === 'open' ? [OPEN] : [PARAMETER, CLOSE]
    const tag = tags.find(one => rest.startsWith(one))
    if (tag === undefined && !tags.some(one => one.startsWith(rest))) return this.#stop(at, tell)
    // white space is not looked at again with all that comes
    if (tag === undefined) return at > from ? at : null
    if (tag === CLOSE) return this.#stop(at + CLOSE.length, tell)
    const end = rest.indexOf('>')
    if (end === -1) return rest.length > LONGEST_NAME ? this.#stop(at, tell) : null
    const name = rest.slice(tag.length, end).trim()
    if (tag === OPEN) {
      this.#name = name
      this.#step = 'between'
      tell({ kind: 'call', name })
    } else {
      this.#step = 'value'
      this.#as = null
      this.#kind = this.#types(this.#name, name)
      tell({ kind: 'arguments', text: `${this.#count++ === 0 ? '{' : ', '}${JSON.stringify(name)}: ` })
    }
    return at + end + 1
  }

  #value (from: number, tell: Tell): number | null {
    const text = this.#held
    // nor is the one behind its own
    const start = this.#as === null && text[from] === '\n' ? from + 1 : from
    const mark = firstMark(text, valueEnds, from)
    if (mark === null) {
      const end = text.length - openEnd(text.slice(from), valueEnds)
      const ready = this.#as !== null || this.#kind === 'string' || end - start > MOST_HELD || (this.#kind === 'json' && /\S/.test(text.slice(start, end)))
      if (!ready || end <= start) return null
      this.#say(text.slice(start, end), tell)
      return this.#say('', tell, end)
    }
    const whole = text.slice(start, Math.max(start, mark.start))
    if (this.#as === null && this.#kind === 'scalar' && whole.length <= MOST_HELD) tell({ kind: 'arguments', text: scalar(whole) })
    else {
      this.#say(whole, tell)
      if (this.#as === 'string') tell({ kind: 'arguments', text: '"' })
    }
    this.#step = 'between'
    // a tag that was forgotten ends the value, and is read again as what it is
    return text.slice(mark.start, mark.end).endsWith(CLOSE_VALUE) ? mark.end : mark.start
  }

  #say (text: string, tell: Tell, next = 0): number {
    if (this.#as === null) {
      this.#as = this.#kind === 'json' && jsonStart.test(text) ? 'json' : 'string'
      if (this.#as === 'string') tell({ kind: 'arguments', text: '"' })
    }
    const told = this.#as === 'json' ? text : JSON.stringify(text).slice(1, -1)
    if (told !== '') tell({ kind: 'arguments', text: told })
    return next
  }

  #stop (at: number, tell: Tell): null {
    if (this.#step === 'open') this.#state = 'broken'
    else {
      tell({ kind: 'arguments', text: this.#count === 0 ? '{}' : '}' })
      this.#state = 'done'
    }
    this.#left = at
    return null
  }
}

/** A number, a truth value or null as JSON; words that are none of these as a string. */
function scalar (text: string): string {
  const word = text.trim()
  const small = word.toLowerCase()
  if (small === 'true' || small === 'false' || small === 'null' || small === 'none') return small === 'none' ? 'null' : small
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(word) ? word : JSON.stringify(text)
}
