import { nameOf } from './boot.js'
import type { Candidate, PluginRecord } from './record.js'

export interface ReloadPlan {
  /** Go on as they are. */
  readonly staying: readonly PluginRecord[]
  /** Stop, or are forgotten if they had fallen. */
  readonly leaving: readonly PluginRecord[]
  /** Go through all steps: what is new, what had fallen and may have been mended, what lost a service it requires. */
  readonly fresh: readonly Candidate[]
}

/** What a reload changes. Pure. */
export function planReload (
  records: readonly PluginRecord[], wanted: readonly Candidate[], disabled: ReadonlySet<string>
): ReloadPlan {
  const keys = new Set(wanted.map(keyOf))
  let staying = records.filter(record =>
    record.state === 'active' && keys.has(keyOf(record.candidate)) && !disabled.has(record.name) && !disabled.has(nameOf(record)))
  for (let before = -1; before !== staying.length;) {
    before = staying.length
    const lost = lostServices(records, staying)
    staying = staying.filter(({ plugin }) => !Object.values(plugin?.requires ?? {}).some(({ id }) => lost.has(id)))
  }
  const standing = new Set(staying.map(record => keyOf(record.candidate)))
  return {
    staying,
    leaving: records.filter(record => !staying.includes(record)),
    fresh: wanted.filter(candidate => !standing.has(keyOf(candidate)))
  }
}

/** Services of plugins that run and do not stay. */
function lostServices (records: readonly PluginRecord[], staying: readonly PluginRecord[]): ReadonlySet<string> {
  const going = records.filter(record => record.state === 'active' && !staying.includes(record))
  return new Set(going.flatMap(({ plugin }) => (plugin?.provides ?? []).map(({ id }) => id)))
}

/** A package of another version is the same candidate: what runs goes on. */
function keyOf ({ name, origin }: Candidate): string {
  return `${name} ${origin.replace(/@[^@]*$/, '')}`
}
