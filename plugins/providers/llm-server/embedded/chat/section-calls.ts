import type { Tell } from './answer-part.js'
import { LONGEST_NAME, type CallSyntax } from './call-syntax.js'
import { ValueEnd } from './value-end.js'

/** The marks of a family that writes its calls in a section of their own. None is the beginning of another. */
export interface SectionWords {
  readonly opens: readonly string[]
  readonly closes: readonly string[]
  readonly call: string
  /** Between the head of a call and its arguments. */
  readonly behindHead: string
  readonly closeCall: string
  /** The name in the head of a call; null where the head tells its kind alone, and the name stands on a line behind it. */
  readonly nameOf: (head: string) => string | null
}

/**
 * A section of calls, each with a head, a mark, and its arguments as JSON, which may stand in a fence of code: DeepSeek, Kimi.
 * Begins at the mark of the section, or at that of a call. Looks at each character once.
 */
export class SectionCalls implements CallSyntax {
  readonly #words: SectionWords
  #step: 'section' | 'call' | 'head' | 'name' | 'lead' | 'arguments' | 'tail' = 'section'
  /** Of a mark, a head or a name that is not over yet. */
  #part = ''
  /** Since the last call was over; told where it turns out to be none. */
  #raw = ''
  #some = false
  #end = new ValueEnd()
  #state: CallSyntax['state'] = 'reading'

  constructor (words: SectionWords) {
    this.#words = words
  }

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    let at = from
    while (at < text.length && this.#state === 'reading') {
      if (this.#step === 'arguments') at = this.#arguments(text, at, tell)
      else if (this.#char(text[at]!, tell)) at++
    }
    return at
  }

  /** False for a character that is to be looked at once more, or is none of this. */
  #char (char: string, tell: Tell): boolean {
    const { opens, closes, call, closeCall } = this.#words
    switch (this.#step) {
      case 'section': return this.#mark(char, [...opens, call], tell)
      case 'call': return this.#mark(char, [call, ...closes], tell)
      case 'tail': return char === '`' && this.#part === '' ? true : this.#mark(char, [closeCall], tell)
      case 'head': return this.#head(char, tell)
      case 'name': return this.#name(char, tell)
      default: return this.#lead(char, tell)
    }
  }

  #mark (char: string, marks: readonly string[], tell: Tell): boolean {
    if (this.#part === '' && /\s/.test(char)) return true
    const part = this.#part + char
    if (!marks.some(mark => mark.startsWith(part))) return this.#stop(tell)
    this.#part = part
    this.#raw += char
    if (marks.includes(part)) this.#met(part)
    return true
  }

  #met (mark: string): void {
    const { opens, call, closeCall } = this.#words
    this.#part = ''
    if (mark === call) this.#step = 'head'
    else if (opens.includes(mark)) this.#step = 'call'
    else if (mark === closeCall) {
      this.#step = 'call'
      this.#raw = ''
    } else this.#state = this.#some ? 'done' : 'broken'
  }

  #head (char: string, tell: Tell): boolean {
    const { behindHead, nameOf } = this.#words
    this.#part += char
    this.#raw += char
    if (!this.#part.endsWith(behindHead)) return this.#part.length <= LONGEST_NAME + behindHead.length || this.#stop(tell, true)
    const name = nameOf(this.#part.slice(0, -behindHead.length).trim())
    this.#part = ''
    if (name === null) this.#step = 'name'
    else if (name === '') return this.#stop(tell, true)
    else this.#called(name, tell)
    return true
  }

  #name (char: string, tell: Tell): boolean {
    if (/[\n`{<]/.test(char)) {
      const name = this.#part.trim()
      // a line break in front of the name
      if (name === '' && char === '\n') return true
      this.#part = ''
      if (name === '') return this.#stop(tell)
      this.#called(name, tell)
      return false
    }
    this.#part += char
    this.#raw += char
    return this.#part.length <= LONGEST_NAME || this.#stop(tell, true)
  }

  #called (name: string, tell: Tell): void {
    this.#some = true
    this.#raw = ''
    this.#step = 'lead'
    tell({ kind: 'call', name })
  }

  /** White space, and the beginning of a fence with its language. */
  #lead (char: string, tell: Tell): boolean {
    if (/[\s`a-z]/.test(char)) return true
    this.#step = char === '{' ? 'arguments' : 'tail'
    this.#end = new ValueEnd()
    if (char !== '{') tell({ kind: 'arguments', text: '{}' })
    return false
  }

  #arguments (text: string, from: number, tell: Tell): number {
    const end = this.#end.find(text, from)
    tell({ kind: 'arguments', text: text.slice(from, end ?? text.length) })
    if (end !== null) this.#step = 'tail'
    return end ?? text.length
  }

  /** @param isTaken the character at hand is a part of what was no call */
  #stop (tell: Tell, isTaken = false): boolean {
    this.#state = this.#some ? 'done' : 'broken'
    if (this.#some && this.#raw !== '') tell({ kind: 'text', text: this.#raw })
    return isTaken
  }
}
