import type { Argument, Command, Option } from 'commander'
import type { NameKind } from './names.js'

/** What may stand in a place of the command line. `words` are known here, `names` are asked of the gateway. */
export type Values =
  | { readonly kind: 'words', readonly words: readonly string[] }
  | { readonly kind: 'names', readonly of: NameKind }
  | { readonly kind: 'files' | 'folders' | 'anything' }

export interface CompletionOption {
  /** `-m` and `--model`. */
  readonly spellings: readonly string[]
  readonly about: string
  /** Null for a switch. */
  readonly value: Values | null
}

export interface CompletionNode {
  /** Words from the program to the command, without the program's own. */
  readonly path: readonly string[]
  readonly commands: ReadonlyArray<{ readonly name: string, readonly about: string }>
  readonly options: readonly CompletionOption[]
  /** By position. */
  readonly values: readonly Values[]
}

/** Groups whose commands work on what is there, by the word for it in the command line. */
const kinds: Readonly<Record<string, NameKind>> = {
  slot: 'slot', model: 'model', upstream: 'upstream', profile: 'profile', from: 'profile', plugin: 'plugin', cancel: 'request', agent: 'approval',
  service: 'service'
}
/** These name something new. */
const makers = new Set(['create', 'add', 'register'])
const files = new Set(['file', 'archive'])
const folders = new Set(['dir', 'folder'])

/** Every command that a help text shows, in order, with what may follow it. Pure. */
export function completionNodes (program: Command): readonly CompletionNode[] {
  const help = program.createHelp()
  const shared = help.visibleOptions(program).filter(option => option.long !== '--version').map(optionOf)
  const walk = (command: Command, path: readonly string[]): CompletionNode[] => {
    const below = help.visibleCommands(command).filter(child => child.name() !== 'help')
    const own = help.visibleOptions(command).map(optionOf)
    const node = {
      path,
      commands: below.map(child => ({ name: child.name(), about: child.description() })),
      options: [...own, ...shared.filter(option => !own.some(other => other.spellings.at(-1) === option.spellings.at(-1)))],
      values: command.registeredArguments.map(argument => argumentValues(argument, path))
    }
    return [node, ...below.flatMap(child => walk(child, [...path, child.name()]))]
  }
  return walk(program, [])
}

function optionOf (option: Option): CompletionOption {
  const { short, long, required, optional, argChoices, flags, description } = option
  const word = /<([\w-]+)>/.exec(flags)?.[1] ?? ''
  return {
    spellings: [short, long].filter(spelling => spelling !== undefined),
    about: description,
    value: required || optional ? valuesOf(argChoices, word, kinds[long?.slice(2) ?? ''] ?? kinds[word]) : null
  }
}

function argumentValues (argument: Argument, path: readonly string[]): Values {
  const isNew = makers.has(path.at(-1) ?? '')
  const of = ['name', 'ref', 'id', 'service'].includes(argument.name()) && !isNew ? kinds[path[0] ?? ''] : undefined
  return valuesOf(argument.argChoices, argument.name(), of)
}

function valuesOf (choices: readonly string[] | undefined, word: string, of: NameKind | undefined): Values {
  if (choices !== undefined) return { kind: 'words', words: choices }
  if (of !== undefined) return { kind: 'names', of }
  return { kind: files.has(word) ? 'files' : folders.has(word) ? 'folders' : 'anything' }
}
