import { isDeepStrictEqual } from 'node:util'
import { parse, patch } from '@decimalturn/toml-patch'
import { stringify } from 'smol-toml'
import { parseToml, type Table } from './toml-file.js'
import { editToml, FORMAT, withKnown } from './toml-edit.js'

/**
 * The text of a TOML file with other values: comments, formatting, order and placement of what did not change stay.
 * The result always parses to exactly `next`. Three ways, the next one only when the result of the one before is not right:
 * change single lines; let the patcher change the document; write it anew, without its comments. `onRewrite` is told of
 * the last. Values must be TOML's (no null). Throws what parsing `text` throws.
 */
export function patchToml (text: string, next: Table, onRewrite: (reason: string) => void): string {
  const base = parseToml(text)
  if (isDeepStrictEqual(base, next)) return text
  if (text.trim() === '') return stringifyToml(next)
  for (const way of [editToml, patchDocument]) {
    const result = attempt(() => way(text, base, next))
    if (result !== null && attempt(() => isDeepStrictEqual(parseToml(result), next)) === true) return result
  }
  onRewrite('it is written in a form that cannot be edited in place')
  return stringifyToml(next)
}

export function stringifyToml (value: Table): string {
  const text = stringify(value)
  return text.endsWith('\n') ? text : text + '\n'
}

function patchDocument (text: string, base: Table, next: Table): string {
  return patch(text, withKnown(parse(text), base, next), FORMAT)
}

function attempt<T> (work: () => T): T | null {
  try {
    return work()
  } catch {
    return null
  }
}
