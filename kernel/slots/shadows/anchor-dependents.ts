import {
  svcError, type ConfigDraft, type ConfigFileDefinition, type SlotDependents, type SvcError
} from '../../contract/index.js'

/** What is configured to be served by a slot's engine, and by no other. */
export interface AnchorDependents {
  /** Slots with a file that names it in `served_by`. */
  readonly slots: readonly string[]
  /** What files of plugins have, by kind; a kind without any is here too. */
  readonly others: ReadonlyArray<{ readonly kind: SlotDependents, readonly names: readonly string[] }>
}

/**
 * Who goes with a slot when it is deleted. Children without a file of their own are not counted: they are part of the slot.
 * Pure.
 */
export function dependentsOf (
  name: string, { slots, files }: Pick<ConfigDraft, 'slots' | 'files'>, owned: readonly ConfigFileDefinition[]
): AnchorDependents {
  const anchor = slots.get(name)
  const served = [...slots.values()].filter(slot => slot.served_by === name).map(slot => slot.name)
  const others = owned.flatMap(({ file, dependents: kind }) => kind === undefined ? []
    : [{ kind, names: anchor === undefined || !files.has(file) ? [] : kind.of(files.get(file), anchor, slots) }])
  return { slots: served, others }
}

/** Null if none. */
export function inUse (name: string, { slots, others }: AnchorDependents): SvcError | null {
  const named = others.flatMap(({ kind, names }) => names.map(other => `${kind.one} '${other}'`))
  if (slots.length + named.length === 0) return null
  const who = [...slots.map(slot => `slot '${slot}'`), ...named].join(', ')
  return svcError('slot.in_use', `${who} runs in the engine of slot '${name}'; move or delete that first, or take it along with \`svc slot delete ${name} --force\``,
    { details: { slot: name, slots, ...Object.fromEntries(others.map(({ kind, names }) => [kind.all, names])) } })
}
