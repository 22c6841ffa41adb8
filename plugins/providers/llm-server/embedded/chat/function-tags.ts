import type { Tell } from './answer-part.js'
import { LONGEST_NAME, pastSpace } from './call-syntax.js'
import { TaggedArguments } from './tagged-arguments.js'
import type { ToolTypes } from './tool-types.js'

const [OPEN, PARAMETER, CLOSE, CLOSE_VALUE] = ['<function=', '<parameter=', '</function>', '</parameter>'] as const
/** The line break before a tag is not part of the value. */
const value = { ends: [CLOSE_VALUE, `\n${CLOSE_VALUE}`, `\n${PARAMETER}`, `\n${CLOSE}`], afterBreak: true }

/** `<function=name>`, a `<parameter=key>` for each argument with its value as plain text, `</function>`. */
export class FunctionTags extends TaggedArguments {
  #step: 'open' | 'between' | 'value' = 'open'

  constructor (types: ToolTypes) {
    super(types, value)
  }

  protected step (at: number, tell: Tell): number | null {
    return this.#step === 'value' ? this.#inValue(at, tell) : this.#tag(at, tell)
  }

  #tag (from: number, tell: Tell): number | null {
    const text = this.held
    const at = pastSpace(text, from)
    const rest = text.slice(at, at + LONGEST_NAME + PARAMETER.length + 2)
    const tags = this.#step === 'open' ? [OPEN] : [PARAMETER, CLOSE]
    const tag = tags.find(one => rest.startsWith(one))
    if (tag === undefined && !tags.some(one => one.startsWith(rest))) return this.#end(at, tell)
    // white space is not looked at again with all that comes
    if (tag === undefined) return at > from ? at : null
    if (tag === CLOSE) return this.#end(at + CLOSE.length, tell)
    const end = rest.indexOf('>')
    if (end === -1) return rest.length > LONGEST_NAME ? this.#end(at, tell) : null
    const name = rest.slice(tag.length, end).trim()
    if (tag === OPEN) {
      this.#step = 'between'
      this.called(name, tell)
    } else {
      this.#step = 'value'
      this.argument(name, tell)
    }
    return at + end + 1
  }

  #inValue (from: number, tell: Tell): number | null {
    const read = this.readValue(from, tell)
    if (read === null || typeof read === 'number') return read
    this.#step = 'between'
    // a tag that was forgotten ends the value, and is read again as what it is
    return this.held.slice(read.start, read.end).endsWith(CLOSE_VALUE) ? read.end : read.start
  }

  #end (at: number, tell: Tell): null {
    return this.#step === 'open' ? this.stop(at, 'broken') : this.finish(at, tell)
  }
}
