import { argvSegmentNames, type ArgvSegmentName, type FlagGrammar, type ResolvedArgv } from '../../../contract/index.js'

export type ArgvSegments = Readonly<Partial<Record<ArgvSegmentName, readonly string[]>>>

/** A flag with its values, or words that belong to no flag. */
interface Unit {
  /** Canonical name without dashes; null for words that belong to no flag. */
  readonly key: string | null
  readonly tokens: readonly string[]
  readonly value: string | null
  readonly segment: ArgvSegmentName
}

export type MergedArgv = ResolvedArgv & { readonly argv: readonly string[] }

/** A word that begins with a dash is a flag, unless a digit follows: `-1` is a value. */
export function isFlag (token: string): boolean {
  return token.length > 1 && token.startsWith('-') && !/^-\.?\d/.test(token)
}

/**
 * Canonical name of a flag: dashes and `=value` stripped, short forms spelled out. Engines read `--ctx_size` as
 * `--ctx-size`, so it is one flag here too.
 */
export function flagKey (token: string, grammar: FlagGrammar = {}): string {
  const flag = flagOf(token)
  const bare = flag.startsWith('--') ? flag.replace(/^-+/, '').replaceAll('_', '-') : flag.replace(/^-+/, '')
  const { aliases = {} } = grammar
  return Object.hasOwn(aliases, bare) ? aliases[bare]! : bare
}

/**
 * Merges segments into one argv, lowest precedence first. The last occurrence of a flag wins, keeps its own
 * spelling and stands where it stood; the others are dropped and counted. Pure.
 */
export function mergeArgv (segments: ArgvSegments, grammar: FlagGrammar = {}): MergedArgv {
  const units = argvSegmentNames.flatMap(name => parse(segments[name] ?? [], name, grammar))
  const repeatable = new Set(grammar.repeatable)
  const last = new Map<string, Unit>()
  for (const unit of units) {
    if (unit.key !== null && !repeatable.has(unit.key)) last.set(unit.key, unit)
  }
  const kept = units.filter(unit => unit.key === null || repeatable.has(unit.key) || last.get(unit.key) === unit)
  return {
    argv: kept.flatMap(unit => unit.tokens),
    provenance: kept.filter(unit => unit.key !== null)
      .map(({ tokens, value, segment }) => ({ flag: flagOf(tokens[0]!), value, segment })),
    removed: units.length - kept.length
  }
}

function parse (tokens: readonly string[], segment: ArgvSegmentName, grammar: FlagGrammar): Unit[] {
  const units: Unit[] = []
  let i = 0
  while (i < tokens.length) {
    const first = tokens[i]!
    let end = i + 1
    while (end < tokens.length && !isFlag(tokens[end]!)) end++
    const words = tokens.slice(i, end)
    units.push(isFlag(first)
      ? { key: flagKey(first, grammar), tokens: words, value: valueOf(words), segment }
      : { key: null, tokens: words, value: null, segment })
    i = end
  }
  return units
}

/** As it was spelled, without `=value`. */
export function flagOf (token: string): string {
  const equals = token.indexOf('=')
  return equals === -1 ? token : token.slice(0, equals)
}

function valueOf (words: readonly string[]): string | null {
  const [flag = '', ...rest] = words
  const equals = flag.indexOf('=')
  const values = equals === -1 ? rest : [flag.slice(equals + 1), ...rest]
  return values.length === 0 ? null : values.join(' ')
}
