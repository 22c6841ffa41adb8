import { inClass, type Gbnf } from './gbnf.js'

interface Letter {
  readonly next: Map<string, Letter>
  ends: boolean
}

/** Longest key that is told from others; a grammar nests once per letter. */
const LONGEST = 64

/** A JSON string that is none of `names`, for keys that a schema does not list. */
export function otherKeys (gbnf: Gbnf, names: readonly string[]): string {
  const told = names.filter(name => name.length <= LONGEST && JSON.stringify(name) === `"${name}"`)
  if (told.length === 0) return gbnf.basic('string')
  gbnf.basic('char')
  const first: Letter = { next: new Map(), ends: false }
  for (const name of told) {
    let letter = first
    for (const char of name) {
      if (!letter.next.has(char)) letter.next.set(char, { next: new Map(), ends: false })
      letter = letter.next.get(char)!
    }
    letter.ends = true
  }
  return gbnf.rule(`"\\"" ${rest(first)} "\\""`)
}

function rest ({ next, ends }: Letter): string {
  const known = [...next].map(([char, letter]) => `[${inClass(char)}] ${rest(letter)}`)
  const other = String.raw`[^"\\\x7F\x00-\x1F${[...next.keys()].map(inClass).join('')}] char*`
  return `(${[...known, other].join(' | ')})${ends ? '' : '?'}`
}
