import type { Tell } from './answer-part.js'
import { LONGEST_NAME, pastSpace } from './call-syntax.js'
import { TaggedArguments } from './tagged-arguments.js'
import type { ToolTypes } from './tool-types.js'

const [KEY, CLOSE_KEY, VALUE, CLOSE_VALUE, CLOSE] = ['<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>', '</tool_call>'] as const
const value = { ends: [CLOSE_VALUE], afterBreak: false }
const toolName = /^[\w.:/-]+$/

/** The name of a tool, an `<arg_key>` and an `<arg_value>` as plain text for each argument, `</tool_call>`: GLM. */
export class ArgumentTags extends TaggedArguments {
  #step: 'name' | 'between' | 'key' | 'gap' | 'value' = 'name'

  constructor (types: ToolTypes) {
    super(types, value)
  }

  protected step (at: number, tell: Tell): number | null {
    switch (this.#step) {
      case 'name': return this.#tool(at, tell)
      case 'between': return this.#between(at, tell)
      case 'key': return this.#key(at, tell)
      case 'gap': return this.#gap(at, tell)
      case 'value': return this.#inValue(at, tell)
    }
  }

  #tool (from: number, tell: Tell): number | null {
    const at = pastSpace(this.held, from)
    const rest = this.held.slice(at, at + LONGEST_NAME + 1)
    const end = rest.search(/[\n<]/)
    if (end === -1) return rest.length > LONGEST_NAME ? this.stop(at, 'broken') : at > from ? at : null
    const name = rest.slice(0, end).trim()
    if (!toolName.test(name)) return this.stop(at, 'broken')
    this.#step = 'between'
    this.called(name, tell)
    return at + end
  }

  #between (from: number, tell: Tell): number | null {
    const found = this.#word(from, [KEY, CLOSE])
    if (found === null || typeof found === 'number') return found
    const { word, at } = found
    if (word !== KEY) return this.finish(word === CLOSE ? at + CLOSE.length : at, tell)
    this.#step = 'key'
    return at + KEY.length
  }

  #key (from: number, tell: Tell): number | null {
    const rest = this.held.slice(from, from + LONGEST_NAME + CLOSE_KEY.length)
    const end = rest.indexOf(CLOSE_KEY)
    if (end === -1) return rest.length === LONGEST_NAME + CLOSE_KEY.length ? this.finish(from, tell) : null
    const key = rest.slice(0, end).trim()
    this.#step = 'gap'
    this.argument(key, tell)
    return from + end + CLOSE_KEY.length
  }

  #gap (from: number, tell: Tell): number | null {
    const found = this.#word(from, [VALUE])
    if (found === null || typeof found === 'number') return found
    if (found.word === VALUE) {
      this.#step = 'value'
      return found.at + VALUE.length
    }
    tell({ kind: 'arguments', text: 'null' })
    return this.finish(found.at, tell)
  }

  #inValue (from: number, tell: Tell): number | null {
    const read = this.readValue(from, tell)
    if (read === null || typeof read === 'number') return read
    this.#step = 'between'
    return read.end
  }

  /** Which of the words comes next, if any, and where; an index to go on from, or null, while that is open. */
  #word (from: number, words: readonly string[]): { readonly word: string | null, readonly at: number } | number | null {
    const at = pastSpace(this.held, from)
    const rest = this.held.slice(at, at + CLOSE.length)
    const word = words.find(one => rest.startsWith(one)) ?? null
    if (word !== null || !words.some(one => one.startsWith(rest))) return { word, at }
    return at > from ? at : null
  }
}
