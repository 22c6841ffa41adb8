import { isTable, type Table } from '../toml/toml-file.js'

/**
 * One value of a slot file: where the schema wants it, and where the user wrote it. `rank` 0 is the present spelling,
 * 1 a deprecated key, 2 the legacy `[defaults]` table; the lowest rank wins.
 */
export interface SlotEntry {
  readonly canonical: readonly string[]
  readonly user: readonly string[]
  readonly value: unknown
  readonly rank: 0 | 1 | 2
}

/** Keys that stand for a key of a table when they are written flat. */
const flatHomes: ReadonlyMap<string, readonly string[]> = new Map([
  ['ctx_size', ['model', 'context_size']],
  ['context_size', ['model', 'context_size']],
  ['n_gpu_layers', ['model', 'n_gpu_layers']],
  ['rope_freq_base', ['model', 'rope_freq_base']],
  ['extra_args', ['server', 'extra_args']],
  ['env', ['server', 'env']]
])

/** Tables whose keys are merged one by one; everything else is one value. */
const mergedTables = new Set(['model', 'server', 'npu', 'image', 'meta', 'options'])

/** What readers accept at the top level besides the keys of the schema; for suggestions. */
export const acceptedFlatKeys: readonly string[] = ['name', 'backend', ...flatHomes.keys()]

/** Takes a slot file, or a patch of one, apart. Unknown keys stay where they are. Pure. */
export function slotEntries (raw: Table): readonly SlotEntry[] {
  const { slot, ...top } = raw
  const flat = levelEntries(top, [])
  if (slot === undefined) return flat
  return isTable(slot) ? [...flat, ...levelEntries(slot, ['slot'])] : [...flat, { canonical: ['slot'], user: ['slot'], value: slot, rank: 0 }]
}

function levelEntries (level: Table, prefix: readonly string[]): readonly SlotEntry[] {
  return Object.entries(level).flatMap(([key, value]) => keyEntries(key, value, [...prefix, key]))
}

function keyEntries (key: string, value: unknown, user: readonly string[]): readonly SlotEntry[] {
  const one = (canonical: readonly string[], rank: SlotEntry['rank'] = 0): readonly SlotEntry[] => [{ canonical, user, value, rank }]
  if (key === 'defaults' && isTable(value)) return legacyDefaults(value, user)
  if (key === 'backend') return one(['device'], 1)
  if (key === 'model' && typeof value === 'string') return one(['model', 'default'])
  if (key === 'image' && typeof value === 'string') return one(['container_image'])
  if (mergedTables.has(key) && isTable(value)) return tableEntries(key, value, user)
  return one(flatHomes.get(key) ?? [key])
}

/** An empty table is an entry too: `[image]` alone says that there are image settings. */
function tableEntries (table: string, value: Table, user: readonly string[]): readonly SlotEntry[] {
  const keys = Object.entries(value)
  if (keys.length === 0) return [{ canonical: [table], user, value: {}, rank: 0 }]
  return keys.map(([key, item]) => {
    const name = table === 'model' && key === 'ctx_size' ? 'context_size' : key
    return { canonical: [table, name], user: [...user, key], value: item, rank: 0 as const }
  })
}

function legacyDefaults (value: Table, user: readonly string[]): readonly SlotEntry[] {
  return Object.entries(value).map(([key, item]) => {
    const home = key === 'model' ? ['model', 'default'] : flatHomes.get(key)
    return { canonical: home ?? ['defaults', key], user: [...user, key], value: item, rank: 2 as const }
  })
}
