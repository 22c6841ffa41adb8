import type { Tell } from './answer-part.js'
import { CallObject } from './call-object.js'
import { pastSpace, type CallSyntax } from './call-syntax.js'
import { FunctionTags } from './function-tags.js'
import type { ToolTypes } from './tool-types.js'

const CLOSE = '</tool_call>'

/** One call behind `<tool_call>`, as an object or in tags of its own, up to the closing tag, which may be missing. */
export class TagCall implements CallSyntax {
  readonly #types: ToolTypes
  #inner: CallSyntax | null = null
  #matched = 0
  #state: CallSyntax['state'] = 'reading'

  constructor (types: ToolTypes) {
    this.#types = types
  }

  get state (): CallSyntax['state'] {
    return this.#state
  }

  read (text: string, from: number, tell: Tell): number {
    let at = from
    if (this.#inner === null) {
      at = pastSpace(text, at)
      if (at === text.length) return at
      if (text[at] === '{') this.#inner = new CallObject(null)
      else if (text[at] === '<') this.#inner = new FunctionTags(this.#types)
      else return this.#end('broken', at)
    }
    if (this.#inner.state === 'reading') at = this.#inner.read(text, at, tell)
    if (this.#inner.state === 'broken') return this.#end('broken', at)
    return this.#inner.state === 'done' ? this.#close(text, at, tell) : at
  }

  #close (text: string, from: number, tell: Tell): number {
    let at = this.#matched === 0 ? pastSpace(text, from) : from
    while (at < text.length) {
      if (text[at] !== CLOSE[this.#matched]) {
        if (this.#matched > 0) tell({ kind: 'text', text: CLOSE.slice(0, this.#matched) })
        return this.#end('done', at)
      }
      at++
      if (++this.#matched === CLOSE.length) return this.#end('done', at)
    }
    return at
  }

  #end (state: 'done' | 'broken', at: number): number {
    this.#state = state
    return at
  }
}
