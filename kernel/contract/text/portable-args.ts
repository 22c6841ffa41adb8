import { shellText, shellWords } from './shell-words.js'

export interface PortableArgs {
  readonly words: readonly string[]
  /** Flags that were left out, without their values. */
  readonly omitted: readonly string[]
}

/** A flag begins with a dash, so that one stands before each of its words. */
const SECRET_FLAG = /[-_](api[-_]?keys?|(hf|auth|access|bearer)[-_]?token|passw(or)?d|secret)([-_]|$)|^-+token$/i
const SECRET_VALUE = /^(sk|pk|hf|gh[opsu]|xox[abp])[-_][\w-]{8,}$|:\/\/[^/\s]*@/
const HOST_PATH = /(^|[=,])(~|\.{1,2})?\/|^[A-Za-z]:[\\/]|^file:/

/**
 * Engine flags as they may leave this host: without paths that mean something only here, and without secrets.
 * A flag goes together with its values. Pure.
 */
export function portableArgs (words: readonly string[]): PortableArgs {
  const kept: string[] = []
  const omitted: string[] = []
  let i = 0
  while (i < words.length) {
    const first = words[i]!
    let end = i + 1
    if (isFlag(first)) while (end < words.length && !isFlag(words[end]!)) end++
    const unit = words.slice(i, end)
    if (staysHere(unit)) omitted.push(isFlag(first) ? first.split('=', 1)[0]! : 'a value without a flag')
    else kept.push(...unit)
    i = end
  }
  return { words: kept, omitted }
}

/** The same for a string of flags; one that may leave as it is keeps its spelling. */
export function portableFlags (text: string): { readonly flags: string, readonly omitted: readonly string[] } {
  let words: readonly string[]
  try {
    words = shellWords(text)
  } catch {
    // an open quote: no engine would start with it either
    return { flags: '', omitted: ['flags with an open quote'] }
  }
  const { words: kept, omitted } = portableArgs(words)
  return { flags: omitted.length === 0 ? text : shellText(kept), omitted }
}

function staysHere (unit: readonly string[]): boolean {
  const [first = '', ...rest] = unit
  const [flag = '', inline] = isFlag(first) ? splitOnce(first) : [undefined, first]
  if (SECRET_FLAG.test(flag)) return true
  return [...(inline === undefined ? [] : [inline]), ...rest].some(value => HOST_PATH.test(value) || SECRET_VALUE.test(value))
}

function splitOnce (word: string): readonly [string, string | undefined] {
  const equals = word.indexOf('=')
  return equals === -1 ? [word, undefined] : [word.slice(0, equals), word.slice(equals + 1)]
}

/** As the merging of flags sees it: `-1` is a value. */
function isFlag (word: string): boolean {
  return word.length > 1 && word.startsWith('-') && !/^-\.?\d/.test(word)
}
