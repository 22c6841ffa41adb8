import type {
  AnyPlugin, BootPhase, ErrorCode, NamedSlotConfig, PluginKind, PluginReport, PluginStanding, PluginState, SvcError,
  WaitingVersion
} from '../../contract/index.js'
import type { KnownPlugin } from './plugin-findings.js'
import { namesOf, problemsOf } from '../../tools/plugin-tools.js'
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
    own: new AbortController(),
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
  return { revision, table, report: { version, state: 'failed', phase, code, message: message ?? 'it did not come up' } }
}

export function isAlive (record: PluginRecord): boolean {
  return record.state === 'booting' || record.state === 'active'
}

export function knownPlugin ({ name, candidate, plugin, phase, state, code, message }: PluginRecord): KnownPlugin {
  const isUnread = state === 'failed' && plugin === null && phase !== 'discover'
  const reason = { code: code ?? 'plugin.import_failed', message: message ?? '', isMissing: isMissing(candidate) } as const
  return { name: plugin?.name ?? name, origin: candidate.origin, plugin, fault: isUnread ? reason : null }
}

interface Neighbours {
  /** The plugins that require a service, by its id: `usersOf`. */
  readonly users: ReadonlyMap<string, readonly PluginRecord[]>
  /** All that are configured. */
  readonly slots: ReadonlyArray<Pick<NamedSlotConfig, 'name' | 'provider' | 'runtime'>>
}

/** Those that are up, by the services that they require. */
export function usersOf (records: readonly PluginRecord[]): Neighbours['users'] {
  const users = new Map<string, PluginRecord[]>()
  for (const record of records.filter(isAlive)) {
    for (const id of new Set(Object.values(record.plugin?.requires ?? {}).map(({ id }) => id))) {
      const known = users.get(id)
      if (known === undefined) users.set(id, [record])
      else known.push(record)
    }
  }
  return users
}

type Brought = Pick<PluginReport, 'routes' | 'providers' | 'tools' | 'tool_problems' | 'about'>

const nothing: Brought = { routes: [], providers: [], tools: [], tool_problems: [], about: {} }
/** Reports are asked for all day, and what a plugin has brought stays what it is. */
const broughtBy = new WeakMap<Stage, Brought>()
/** Apart: who asks for the health of the gateway needs no tools, and the first to ask for those makes the schemas of all. */
const routesBy = new WeakMap<Stage, Brought['routes']>()

export function toStanding (record: PluginRecord): PluginStanding {
  const { stage } = record
  return { name: nameIn(record), state: stateOf(record), routes: stage === null ? [] : routesOf(record, stage) }
}

function stateOf ({ state }: PluginRecord): PluginState {
  return state === 'booting' ? 'active' : state
}

/** What became of a plugin: the part of its report that costs nothing to make. */
export function outcomeOf (record: PluginRecord): Pick<PluginReport, 'name' | 'state' | 'phase' | 'code' | 'message' | 'ms' | 'origin'> {
  return {
    name: nameIn(record),
    state: stateOf(record),
    phase: record.phase,
    code: record.code,
    message: record.message,
    ms: Math.round(record.ms * 10) / 10,
    origin: record.candidate.origin
  }
}

export function toReport (record: PluginRecord, neighbours: Neighbours): PluginReport {
  const { stage } = record
  const health = stage === null || record.state !== 'active' ? {} : healthOf(stage)
  return {
    ...outcomeOf(record),
    kind: record.plugin === null ? record.candidate.manifest?.kind ?? null : kindText(record.plugin.kind),
    version: record.candidate.version,
    waiting: record.waiting?.report ?? null,
    late_failures: record.late.count,
    last_late_failure: record.late.count === 0 ? null : record.late.last,
    ...(stage === null ? nothing : brought(record, stage)),
    dependents: dependentsOf(record, neighbours),
    ...(Object.keys(health).length === 0 ? {} : { health })
  }
}

function nameIn ({ plugin, name }: PluginRecord): string {
  return plugin?.name ?? name
}

function routesOf (record: PluginRecord, stage: Stage): Brought['routes'] {
  const known = routesBy.get(stage)
  if (known !== undefined) return known
  const routes = stage.routes.map(({ method, url }) => `${method} ${url}`)
  // one that is coming up may bring more
  if (record.state === 'active') routesBy.set(stage, routes)
  return routes
}

function brought (record: PluginRecord, stage: Stage): Brought {
  const known = broughtBy.get(stage)
  if (known !== undefined) return known
  const { providers } = stage
  const problems = problemsOf(nameIn(record), stage)
  const odd = new Set(problems.map(({ tool }) => tool))
  const told: Brought = {
    routes: routesOf(record, stage),
    providers: providers.map(({ name }) => name),
    // those that servers list: without the ones that do not fit
    tools: namesOf(stage).filter(tool => !odd.has(tool)),
    tool_problems: problems,
    about: Object.fromEntries(providers.flatMap(({ name, about }) => about === undefined ? [] : [[name, about]]))
  }
  if (record.state === 'active') broughtBy.set(stage, told)
  return told
}

function dependentsOf (record: PluginRecord, { users, slots }: Neighbours): PluginReport['dependents'] {
  const providers = new Set((record.stage?.providers ?? []).map(({ name }) => name))
  const runtimes = new Set<string | null>((record.stage?.runtimes ?? []).map(({ name }) => name))
  const using = new Set((record.plugin?.provides ?? []).flatMap(({ id }) => users.get(id) ?? []))
  return {
    slots: slots.filter(({ provider, runtime }) => providers.has(provider) || runtimes.has(runtime)).map(({ name }) => name),
    plugins: [...using].filter(other => other !== record).map(nameIn)
  }
}

export function healthOf (stage: Stage): Record<string, unknown> {
  const health: Record<string, unknown> = {}
  for (const probe of stage.healthProbes) {
    try {
      Object.assign(health, probe())
    } catch (error) {
      health.error = error instanceof Error ? error.message : String(error)
    }
  }
  return health
}
