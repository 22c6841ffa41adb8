import { setMaxListeners } from 'node:events'
import type { AnyPlugin, BootPhase, ErrorCode, PluginKind, PluginState, SvcError, WaitingVersion } from '../../contract/index.js'
import type { KnownPlugin } from './plugin-findings.js'
import type { Stage } from './stage.js'

/** One word for what a plugin contributes, whatever the order of a list. */
export function kindText (kind: PluginKind | readonly PluginKind[]): string {
  return [...new Set([kind].flat())].sort().join(', ')
}

/** Where a plugin comes from and how to get at it, before anything of it was run. */
export interface Candidate {
  readonly name: string
  readonly origin: string
  /** Where it was found, whatever its version or its contents: two candidates with one source replace each other. */
  readonly source: string
  /** Version of its package; null for what has none. */
  readonly version: string | null
  /** Another value whenever it changed; null for what cannot change. */
  readonly revision: unknown
  /** Its author says that a new version takes a restart of the gateway. */
  readonly restarts: boolean
  /** Read without importing; null for what ships with the gateway. */
  readonly manifest: PluginManifest | null
  /** A problem found while it was looked up. */
  readonly problem: SvcError | null
  /** Folder its code comes from, as it shows in stacks; null when unknown, and before it is loaded. */
  readonly root: () => string | null
  /** Imports it; the same module every time. */
  readonly load: () => Promise<unknown>
}

/** Something newer than what runs. */
export interface Waiting {
  readonly revision: unknown
  /** As `PluginRecord.table`. */
  readonly table: string
  readonly report: WaitingVersion
}

/** The allow-list names a package that is not installed. */
export function isMissing ({ origin, source }: Candidate): boolean {
  return origin === source && source.startsWith('package:')
}

export interface PluginManifest {
  readonly apiVersion: number
  readonly kind: string
}

/** One plugin on its way through the boot steps. Only the host writes it. */
export interface PluginRecord {
  readonly name: string
  readonly candidate: Candidate
  state: PluginState | 'booting'
  phase: BootPhase
  code: ErrorCode | null
  message: string | null
  ms: number
  plugin: AnyPlugin | null
  stage: Stage | null
  config: unknown
  /** Its table of svc.toml when it was judged, as JSON. */
  table: string
  /** Something newer that was found where it comes from and is not in force. */
  waiting: Waiting | null
  /** Aborts when it has left: what it left behind in services ends. */
  readonly own: AbortController
  /** Work of its own that failed unhandled: how often, and the last time. */
  late: { readonly count: number, readonly last: string }
  /** Routes it really makes, found in the dry run. */
  routeKeys: ReadonlySet<string>
  /** Settles when its onStart is over; requests that come earlier wait for it. */
  started: Promise<void> | null
}

export function newRecord (candidate: Candidate): PluginRecord {
  const own = new AbortController()
  setMaxListeners(0, own.signal) // one for each timer and subscription of the plugin
  return {
    name: candidate.name,
    candidate,
    state: 'booting',
    phase: 'discover',
    code: null,
    message: null,
    ms: 0,
    plugin: null,
    stage: null,
    config: undefined,
    table: '{}',
    waiting: null,
    own,
    late: { count: 0, last: '' },
    routeKeys: new Set(),
    started: null
  }
}

/** Marks the end of a plugin's way. The first reason stands. */
export function fail (record: PluginRecord, phase: BootPhase, code: ErrorCode, message: string): void {
  if (record.state === 'failed' || record.state === 'skipped') return
  Object.assign(record, { state: 'failed', phase, code, message })
}

export function skip (record: PluginRecord, phase: BootPhase, culprit: string): void {
  if (record.state === 'failed' || record.state === 'skipped') return
  Object.assign(record, {
    state: 'skipped', phase, code: 'plugin.dependency_failed', message: `it requires a service of plugin '${culprit}', which is not active`
  })
}

/** What is told of a version that fell beside the one that runs. */
export function waitingFor ({ candidate, table, phase, code, message }: PluginRecord): Waiting {
  const { revision, version } = candidate
  return { revision, table, report: { version, state: 'failed', phase, code, message: message ?? 'it did not start' } }
}

export function nameOf ({ plugin, name }: PluginRecord): string {
  return plugin?.name ?? name
}

export function isAlive (record: PluginRecord): boolean {
  return record.state === 'booting' || record.state === 'active'
}

export function knownPlugin ({ name, candidate, plugin, phase, state, code, message }: PluginRecord): KnownPlugin {
  const isUnread = state === 'failed' && plugin === null && phase !== 'discover'
  const reason = { code: code ?? 'plugin.import_failed', message: message ?? '', isMissing: isMissing(candidate) } as const
  return { name: plugin?.name ?? name, origin: candidate.origin, plugin, fault: isUnread ? reason : null }
}

/** The name of a plugin that provides something `plugin` requires and is not active; null when all is well. */
export function deadDependency (plugin: AnyPlugin, all: readonly PluginRecord[]): string | null {
  const needed = new Set(Object.values(plugin.requires ?? {}).map(ref => ref.id))
  const dead = all.find(other => !isAlive(other) && (other.plugin?.provides ?? []).some(ref => needed.has(ref.id)))
  return dead?.name ?? null
}
