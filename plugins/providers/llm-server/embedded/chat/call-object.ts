import type { Tell } from './answer-part.js'
import { LONGEST_NAME, pastSpace, type CallSyntax } from './call-syntax.js'
import { ValueEnd } from './value-end.js'

/** Most characters of arguments that come before the name of their tool, or inside of a string. */
const MOST_HELD = 64 * 1024

const argumentKeys = new Set(['arguments', 'parameters'])

/**
 * `{"name": …, "arguments": {…}}`, with `parameters` for `arguments` in some families, keys in any order and others passed over.
 * Arguments are told as they come, in the model's own spelling.
 */
export class CallObject implements CallSyntax {
  readonly #known: ReadonlySet<string> | null
  #state: CallSyntax['state'] = 'reading'
  #step: 'open' | 'key' | 'in-key' | 'colon' | 'value' | 'in-value' = 'open'
  #end = new ValueEnd()
  #key = ''
  #held = ''
  #name: string | null = null
  /** What comes of the value that is read: told at once, held until it is complete, or passed over. */
  #as: 'told' | 'held' | 'passed' = 'passed'
  #arguments = ''

  /** @param known names of which it has to be one to be a call; null takes any */
  constructor (known: ReadonlySet<string> | null) {
    this.#known = known
  }

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    let at = from
    while (at < text.length && this.#state === 'reading') at = this.#step.startsWith('in-') ? this.#inside(text, at, tell) : this.#between(text, at, tell)
    return at
  }

  #between (text: string, from: number, tell: Tell): number {
    const at = pastSpace(text, from)
    const char = text[at]
    if (char === undefined) return at
    switch (this.#step) {
      case 'open':
        if (char !== '{') return this.#break(at)
        this.#step = 'key'
        return at + 1
      case 'key':
        if (char === ',') return at + 1
        if (char === '}') return this.#close(at + 1, tell)
        if (char !== '"') return this.#break(at)
        this.#begin('in-key', 'held')
        return at
      case 'colon':
        if (char !== ':') return this.#break(at)
        this.#step = 'value'
        return at + 1
      default:
        this.#begin('in-value', this.#key === 'name' ? 'held' : !this.#areArguments() ? 'passed' : char === '{' ? 'told' : 'held')
        return at
    }
  }

  /** Only the first: two of them together would be no JSON. */
  #areArguments (): boolean {
    return argumentKeys.has(this.#key) && this.#arguments === ''
  }

  #begin (step: 'in-key' | 'in-value', as: 'told' | 'held' | 'passed'): void {
    this.#step = step
    this.#as = as
    this.#end = new ValueEnd()
    this.#held = ''
  }

  #inside (text: string, from: number, tell: Tell): number {
    const end = this.#end.find(text, from)
    const at = end ?? text.length
    const piece = text.slice(from, at)
    if (this.#as === 'held') this.#held += piece
    if (this.#as === 'told') this.#argue(piece, tell)
    const most = this.#step === 'in-key' || this.#key === 'name' ? LONGEST_NAME : MOST_HELD
    if (this.#held.length > most || (this.#name === null && this.#arguments.length > MOST_HELD)) return this.#break(at)
    if (end === null) return at
    if (this.#step === 'in-key') {
      this.#key = String(parsed(this.#held))
      this.#step = 'colon'
      return at
    }
    this.#step = 'key'
    if (this.#key === 'name') return this.#called(at, tell)
    if (this.#as === 'held') this.#argue(argumentsIn(this.#held), tell)
    return at
  }

  #called (at: number, tell: Tell): number {
    const name = parsed(this.#held)
    if (this.#name !== null) return at
    if (typeof name !== 'string' || name === '' || this.#known?.has(name) === false) return this.#break(at)
    this.#name = name
    tell({ kind: 'call', name })
    if (this.#arguments !== '') tell({ kind: 'arguments', text: this.#arguments })
    return at
  }

  #argue (text: string, tell: Tell): void {
    // once there was something, only whether there was counts
    if (this.#name === null || this.#arguments === '') this.#arguments += text
    if (this.#name !== null && text !== '') tell({ kind: 'arguments', text })
  }

  #close (at: number, tell: Tell): number {
    if (this.#name === null) return this.#break(at)
    if (this.#arguments === '') tell({ kind: 'arguments', text: '{}' })
    this.#state = 'done'
    return at
  }

  #break (at: number): number {
    this.#state = this.#name === null ? 'broken' : 'done'
    return at
  }
}

/** Arguments that are no object: some models write the object once more as a string, or null for none. */
function argumentsIn (text: string): string {
  const value = parsed(text)
  return value === null ? '{}' : typeof value === 'string' ? value : text
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
