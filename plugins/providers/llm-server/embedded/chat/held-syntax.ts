import type { Tell } from './answer-part.js'
import type { CallSyntax } from './call-syntax.js'

/** A syntax in tags: what may still be the beginning of one is held until it is known. */
export abstract class HeldSyntax implements CallSyntax {
  #state: CallSyntax['state'] = 'reading'
  protected held = ''
  /** Where this ended, in what was held. */
  #left = 0

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    const before = this.held.length
    this.held += text.slice(from)
    let at = 0
    for (let next: number | null = 0; next !== null && this.#state === 'reading';) {
      at = next
      next = this.step(at, tell)
    }
    if (this.#state === 'reading') {
      this.held = this.held.slice(at)
      return text.length
    }
    // what was held and turned out to be no tag
    if (this.#left < before && this.#state === 'done') tell({ kind: 'text', text: this.held.slice(this.#left, before) })
    return Math.max(from, from + this.#left - before)
  }

  /** Where to go on in what is held, or null when more has to come first. What is before the returned index has been told. */
  protected abstract step (at: number, tell: Tell): number | null

  protected stop (at: number, state: 'done' | 'broken'): null {
    this.#state = state
    this.#left = at
    return null
  }
}
