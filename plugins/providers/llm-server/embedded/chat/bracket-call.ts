import type { Tell } from './answer-part.js'
import { CallList } from './call-list.js'
import { LONGEST_NAME, pastSpace, type CallSyntax } from './call-syntax.js'
import { ValueEnd } from './value-end.js'

const ARGUMENTS = '[ARGS]'

/** What follows `[TOOL_CALLS]`: a list of objects, or the name of a tool, with `[ARGS]` or without, and its arguments. */
export class BracketCall implements CallSyntax {
  #list: CallList | null = null
  #step: 'open' | 'name' | 'arguments' | 'in-arguments' = 'open'
  #head = ''
  readonly #end = new ValueEnd()
  #state: CallSyntax['state'] = 'reading'

  get state (): CallSyntax['state'] {
    return this.#list?.state ?? this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    let at = from
    if (this.#step === 'open') {
      at = pastSpace(text, at)
      if (at === text.length) return at
      this.#step = 'name'
      if (text[at] === '[') {
        this.#list = new CallList(null, ']')
        at++
      }
    }
    if (this.#list !== null) return this.#list.read(text, at, tell)
    if (this.#step === 'name') at = this.#name(text, at, tell)
    return this.#step === 'name' || this.#state !== 'reading' ? at : this.#arguments(text, at, tell)
  }

  /** Between the name and its arguments there may be an id of the model's own. */
  #name (text: string, from: number, tell: Tell): number {
    for (let at = from; at < text.length; at++) {
      if (text[at] === '{' || this.#head.endsWith(ARGUMENTS)) {
        const name = this.#head.replace(/\[.*$/s, '').trim()
        if (name === '') return this.#break(at)
        tell({ kind: 'call', name })
        this.#step = 'arguments'
        return at
      }
      this.#head += text[at]!
      if (this.#head.length > LONGEST_NAME) return this.#break(at)
    }
    return text.length
  }

  #arguments (text: string, from: number, tell: Tell): number {
    let at = from
    if (this.#step === 'arguments') {
      at = pastSpace(text, at)
      if (at === text.length) return at
      this.#step = 'in-arguments'
    }
    const end = this.#end.find(text, at)
    const piece = text.slice(at, end ?? text.length)
    if (piece !== '') tell({ kind: 'arguments', text: piece })
    if (end !== null) this.#state = 'done'
    return end ?? text.length
  }

  #break (at: number): number {
    this.#state = 'broken'
    return at
  }
}
