import { badRequest } from '../wire-error.js'

/** What every grammar of JSON is made of, as llama.cpp writes it. White space is bounded: some models never stop. */
const basics = {
  ws: '| " " | "\\n" [ \\t]{0,20}',
  char: String.raw`[^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})`,
  string: '"\\"" char* "\\""',
  whole: '"0" | [1-9] [0-9]{0,14}',
  integer: '"-"? whole',
  fraction: '"." [0-9]{1,15}',
  number: '"-"? whole fraction? ([eE] [-+]? [0-9]{1,3})?',
  boolean: '"true" | "false"',
  null: '"null"',
  member: 'string ":" ws value',
  object: '"{" ws (member ("," ws member)* ws)? "}"',
  array: '"[" ws (value ("," ws value)* ws)? "]"',
  value: 'object | array | string | number | boolean | null'
} as const

export type Basic = keyof typeof basics

/** Most rules of one grammar, and most repetitions of one item that llama.cpp takes. */
const MOST_RULES = 4000
export const MOST_REPETITIONS = 2000

/** Rules of one grammar in llama.cpp's notation. Rule names are made here, so nothing of a request becomes syntax. */
export class Gbnf {
  readonly #rules = new Map<string, string>()

  basic (name: Basic): string {
    if (this.#rules.has(name)) return name
    this.#rules.set(name, basics[name])
    for (const word of basics[name].split(/[\s()*?]+/)) if (Object.hasOwn(basics, word)) this.basic(word as Basic)
    return name
  }

  /** Adds a rule and returns its name. */
  rule (body: string): string {
    return this.define(this.reserve(), body)
  }

  /** A name whose rule follows with `define`: for rules that lead back to themselves. */
  reserve (): string {
    if (this.#rules.size >= MOST_RULES) throw badRequest(`The schema is too large: it needs more than ${MOST_RULES} grammar rules`)
    const name = `r${this.#rules.size}`
    this.#rules.set(name, '')
    return name
  }

  define (name: string, body: string): string {
    this.#rules.set(name, body)
    return name
  }

  /** The whole grammar, which begins with `body`. */
  text (body: string): string {
    return [['root', body] as const, ...this.#rules].map(([name, rule]) => `${name} ::= ${rule}`).join('\n')
  }
}

/** Text that must come exactly like that. Pure. */
export function literal (text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`
}

/** A character as it stands in a class, where signs have a meaning. Pure. */
export function inClass (char: string): string {
  if (char === '\n') return '\\n'
  return /^[!-~]$/.test(char) && !/^\w$/.test(char) ? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}` : char
}

/** `item`, separated by commas, `min` to `max` times; null is without end. Empty for none. Pure. */
export function listOf (item: string, min: number, max: number | null): string {
  if (max === 0) return ''
  const more = max === null ? `{${Math.max(0, min - 1)},}` : `{${Math.max(0, min - 1)},${max - 1}}`
  const some = `${item} ("," ws ${item})${more} ws`
  return min === 0 ? `(${some})?` : some
}
