import type { CompletionNode, Values } from './tree.js'

export const NAMES_COMMAND = 'svc completion-names'

/** One branch of a shell's `case`: the words that it is for, and what holds there. */
export interface Branch {
  readonly patterns: readonly string[]
  readonly kind: string
}

/** `slot load --model` -> `names model`. Switches have no branch, and neither has what can be anything but a value. */
export function optionBranches (nodes: readonly CompletionNode[]): readonly Branch[] {
  return joined(nodes.flatMap(({ path, options }) => options.flatMap(({ spellings, value }) => value === null ? []
    : spellings.map(spelling => ({ pattern: [...path, spelling].join(' '), kind: kindOf(value) })))))
}

/** `slot load 0` -> `names slot`, for the first word that is no command and no option. */
export function argumentBranches (nodes: readonly CompletionNode[]): readonly Branch[] {
  return joined(nodes.flatMap(({ path, values }) => values.map((value, i) => ({ pattern: [...path, i].join(' '), kind: kindOf(value) }))))
}

/** In single quotes, for every shell here. */
export function quoted (text: string): string {
  return `'${text.replaceAll('\'', '\u2019')}'`
}

/** Branches as bash and zsh spell them. */
export function caseLines (branches: readonly Branch[]): string {
  return branches.map(({ patterns, kind }) => `    (${patterns.map(quoted).join('|')}) kind=${quoted(kind)} ;;`).join('\n')
}

function kindOf (value: Values): string {
  if (value.kind === 'words') return `words ${value.words.join(' ')}`
  return value.kind === 'names' ? `names ${value.of}` : value.kind
}

function joined (pairs: ReadonlyArray<{ readonly pattern: string, readonly kind: string }>): readonly Branch[] {
  const byKind = new Map<string, string[]>()
  for (const { pattern, kind } of pairs) byKind.set(kind, [...byKind.get(kind) ?? [], pattern])
  return [...byKind].map(([kind, patterns]) => ({ kind, patterns }))
}
