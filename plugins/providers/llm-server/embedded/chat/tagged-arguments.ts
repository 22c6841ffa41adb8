import type { Tell } from './answer-part.js'
import { HeldSyntax } from './held-syntax.js'
import { TagValue, type ValueWords } from './tag-value.js'
import type { ToolTypes } from './tool-types.js'

/** A call whose arguments stand in tags one by one, told as one JSON object. */
export abstract class TaggedArguments extends HeldSyntax {
  readonly #types: ToolTypes
  readonly #words: ValueWords
  #name = ''
  #count = 0
  #value: TagValue

  constructor (types: ToolTypes, words: ValueWords) {
    super()
    this.#types = types
    this.#words = words
    this.#value = new TagValue('string', words)
  }

  protected called (name: string, tell: Tell): void {
    this.#name = name
    tell({ kind: 'call', name })
  }

  /** The value of this argument comes next. */
  protected argument (key: string, tell: Tell): void {
    this.#value = new TagValue(this.#types(this.#name, key), this.#words)
    tell({ kind: 'arguments', text: `${this.#count++ === 0 ? '{' : ', '}${JSON.stringify(key)}: ` })
  }

  protected readValue (from: number, tell: Tell): ReturnType<TagValue['read']> {
    return this.#value.read(this.held, from, tell)
  }

  protected finish (at: number, tell: Tell): null {
    tell({ kind: 'arguments', text: this.#count === 0 ? '{}' : '}' })
    return this.stop(at, 'done')
  }
}
