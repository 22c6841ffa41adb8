import type { ErrorCode } from '../../contract/index.js'
import { nameOf, type Candidate, type PluginRecord } from '../record/record.js'

export interface ReloadWish {
  readonly wanted: readonly Candidate[]
  readonly disabled: ReadonlySet<string>
  /** Failures that are judged again although nothing changed, by the name of the plugin or of its package. */
  readonly again: ReadonlySet<string>
  /** Plugins that go on although there is something newer: it was judged and failed. */
  readonly held: ReadonlySet<PluginRecord>
  /** A plugin's table of svc.toml as it is now, as JSON. */
  readonly tableOf: (record: PluginRecord) => string
}

export interface ReloadPlan {
  /** Go on as they are. */
  readonly staying: readonly PluginRecord[]
  /** Fell earlier, and nothing that they fell for has changed. */
  readonly settled: readonly PluginRecord[]
  /** Stop, or are forgotten if they had fallen. */
  readonly leaving: readonly PluginRecord[]
  /** Go through all steps: new, changed, fallen for the sake of others, or without a service that they require. */
  readonly fresh: readonly Candidate[]
  /** Found to be newer than what stays, and only taken by a restart. */
  readonly late: ReadonlyMap<PluginRecord, Candidate>
}

/** These depend on what else is there. */
const relational: ReadonlySet<ErrorCode> = new Set(
  ['plugin.missing_service', 'plugin.cycle', 'plugin.conflict', 'plugin.dependency_failed', 'plugin.disabled'])

/** It fell for the sake of others, and may stand when they have changed. */
export function isRelational (code: ErrorCode | null): boolean {
  return code !== null && relational.has(code)
}

/** What a reload changes. Pure. */
export function planReload (records: readonly PluginRecord[], wish: ReloadWish): ReloadPlan {
  const bySource = new Map(wish.wanted.map(candidate => [candidate.source, candidate]))
  const found = (record: PluginRecord): Candidate | undefined => bySource.get(record.candidate.source)
  const present = records.filter(record => found(record) !== undefined)
  const held = withProviders(records.filter(record => wish.held.has(record)), present)
  const mayStay = (record: PluginRecord): boolean => {
    const candidate = found(record)
    if (record.state !== 'active' || candidate === undefined || isDisabled(record, wish.disabled)) return false
    return isCurrent(record, candidate, wish) || held.has(record) || needsRestart(record, candidate) ||
      isJudged(record, candidate, wish)
  }
  let staying = records.filter(mayStay)
  for (let before = -1; before !== staying.length;) {
    before = staying.length
    const lost = lostServices(records, staying)
    staying = staying.filter(({ plugin }) => !Object.values(plugin?.requires ?? {}).some(({ id }) => lost.has(id)))
  }
  const settled = records.filter(record => record.state !== 'active' && isSettled(record, found(record), wish))
  const done = new Set([...staying, ...settled].map(({ candidate }) => candidate.source))
  const known = new Map(records.map(record => [record.candidate.source, record]))
  return {
    staying,
    settled,
    leaving: records.filter(record => !staying.includes(record) && !settled.includes(record)),
    fresh: wish.wanted.filter(({ source }) => !done.has(source))
      .map(candidate => imported(known.get(candidate.source), candidate, wish)),
    late: new Map(staying.flatMap(record => {
      const candidate = found(record)!
      if (isCurrent(record, candidate, wish) || held.has(record) || !needsRestart(record, candidate)) return []
      return [[record, candidate] as const]
    }))
  }
}

function needsRestart (record: PluginRecord, candidate: Candidate): boolean {
  return record.candidate.restarts || candidate.restarts || bringsRuntime(record)
}

/** Engines run on it, and two versions of a driver cannot have them at once. */
export function bringsRuntime ({ stage }: Pick<PluginRecord, 'stage'>): boolean {
  return (stage?.runtimes.length ?? 0) > 0
}

function isSame (record: PluginRecord, candidate: Candidate): boolean {
  return record.candidate.revision === candidate.revision
}

/** Also with the settings that it was given; what ships with the gateway takes its own at the next start. */
export function isCurrent (record: PluginRecord, candidate: Candidate, { tableOf }: Pick<ReloadWish, 'tableOf'>): boolean {
  return isSame(record, candidate) && (candidate.origin === 'builtin' || tableOf(record) === record.table)
}

/** It fell before, beside the version that runs. */
function isJudged (record: PluginRecord, candidate: Candidate, { again, tableOf }: ReloadWish): boolean {
  const { waiting } = record
  if (waiting === null || isNamed(record, candidate, again)) return false
  return waiting.revision === candidate.revision && waiting.table === tableOf(record)
}

function isSettled (record: PluginRecord, candidate: Candidate | undefined, wish: ReloadWish): boolean {
  const { again, disabled, tableOf } = wish
  if (candidate === undefined || !isSame(record, candidate) || isNamed(record, candidate, again)) return false
  if (record.state === 'disabled') return isDisabled(record, disabled)
  return !isDisabled(record, disabled) && !isRelational(record.code) && tableOf(record) === record.table
}

/** What was imported and has not changed is not imported again, unless that is asked for. */
function imported (record: PluginRecord | undefined, candidate: Candidate, { again }: ReloadWish): Candidate {
  if (record === undefined || !isSame(record, candidate) || record.plugin === null) return candidate
  return record.state !== 'active' && isNamed(record, candidate, again) ? candidate : record.candidate
}

type Named = Pick<PluginRecord, 'name' | 'plugin'>

function isNamed ({ name, plugin }: Named, { name: found, source }: Candidate, names: ReadonlySet<string>): boolean {
  return [name, plugin?.name, found, source.replace(/^package:/, '')].some(each => each !== undefined && names.has(each))
}

function isDisabled (record: PluginRecord, disabled: ReadonlySet<string>): boolean {
  return disabled.has(record.name) || disabled.has(nameOf(record))
}

/** With those whose services they require, so that these stay, too. */
function withProviders (held: readonly PluginRecord[], all: readonly PluginRecord[]): ReadonlySet<PluginRecord> {
  const result = new Set(held)
  for (const { plugin } of result) {
    const needed = new Set(Object.values(plugin?.requires ?? {}).map(({ id }) => id))
    for (const other of all) {
      if (other.state === 'active' && (other.plugin?.provides ?? []).some(({ id }) => needed.has(id))) result.add(other)
    }
  }
  return result
}

/** Services of plugins that run and do not stay. */
function lostServices (records: readonly PluginRecord[], staying: readonly PluginRecord[]): ReadonlySet<string> {
  const going = records.filter(record => record.state === 'active' && !staying.includes(record))
  return new Set(going.flatMap(({ plugin }) => (plugin?.provides ?? []).map(({ id }) => id)))
}
