import type { Tell } from './answer-part.js'
import { CallObject } from './call-object.js'
import { pastSpace, type CallSyntax } from './call-syntax.js'

/** One call after the other, each an object, between the brackets of whatever list or object they stand in. */
export class CallList implements CallSyntax {
  readonly #known: ReadonlySet<string> | null
  readonly #closing: string[]
  #object: CallObject | null = null
  #some = false
  #state: CallSyntax['state'] = 'reading'

  /** @param closing the brackets that are open, the inner one first */
  constructor (known: ReadonlySet<string> | null, closing: string) {
    this.#known = known
    this.#closing = [...closing]
  }

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    let at = from
    while (at < text.length && this.#state === 'reading') {
      if (this.#object !== null) {
        at = this.#object.read(text, at, tell)
        if (this.#object.state === 'reading') break
        if (this.#object.state === 'broken' && !this.#some) this.#state = 'broken'
        else if (this.#object.state === 'broken') this.#state = 'done'
        this.#some = true
        this.#object = null
      } else at = this.#between(text, at)
    }
    return at
  }

  #between (text: string, from: number): number {
    const at = pastSpace(text, from)
    const char = text[at]
    if (char === undefined) return at
    if (char === '{') {
      this.#object = new CallObject(this.#known)
      return at
    }
    if (this.#some && (char === ',' || char === ';')) return at + 1
    if (char !== this.#closing[0]) {
      this.#state = this.#some ? 'done' : 'broken'
      return at
    }
    this.#closing.shift()
    if (this.#closing.length === 0) this.#state = this.#some ? 'done' : 'broken'
    return at + 1
  }
}
