import type { NamedSlotConfig, PluginReport, PluginStanding, PluginState } from '../../contract/index.js'
import { namesOf, problemsOf } from '../../tools/plugin-tools.js'
import { isAlive, kindText, nameOf, type PluginRecord } from './record.js'
import type { Stage } from './stage.js'

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
  const routes = stage === null ? [] : routesOf(record, stage)
  return { name: nameOf(record), kind: kindOf(record), state: stateOf(record), routes }
}

function kindOf ({ plugin, candidate }: PluginRecord): PluginReport['kind'] {
  return plugin === null ? candidate.manifest?.kind ?? null : kindText(plugin.kind)
}

function stateOf ({ state }: PluginRecord): PluginState {
  return state === 'booting' ? 'active' : state
}

/** What became of a plugin: the part of its report that costs nothing to make. */
export function outcomeOf (record: PluginRecord): Pick<PluginReport, 'name' | 'state' | 'phase' | 'code' | 'message' | 'ms' | 'origin'> {
  return {
    name: nameOf(record),
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
    kind: kindOf(record),
    version: record.candidate.version,
    waiting: record.waiting?.report ?? null,
    late_failures: record.late.count,
    last_late_failure: record.late.count === 0 ? null : record.late.last,
    ...(stage === null ? nothing : brought(record, stage)),
    dependents: dependentsOf(record, neighbours),
    ...(Object.keys(health).length === 0 ? {} : { health })
  }
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
  const problems = problemsOf(nameOf(record), stage)
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
    plugins: [...using].filter(other => other !== record).map(nameOf)
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
