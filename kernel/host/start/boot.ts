import {
  isSvcError, messageOf, svcError, type AnyPlugin, type BootPhase, type Clock, type ConfigService, type ErrorCode, type Logger
} from '../../contract/index.js'
import { dotted } from '../../config/check/shape-check.js'
import type { MountDeps } from '../../http/mount-route.js'
import { claimOf, findConflicts, routeKey } from '../mount/conflicts.js'
import { definitionOf, failureText, placed } from '../watch/failure-text.js'
import { withDeadline } from './deadline.js'
import { orderPlugins } from './order.js'
import { ownServices } from './owned-services.js'
import { whileDeclaring } from '../watch/plugin-scope.js'
import { checkPluginTable } from '../record/plugin-findings.js'
import { preflight, preflightTogether } from '../mount/preflight.js'
import { deadDependency, fail, isAlive, nameOf, skip, type PluginRecord } from '../record/record.js'
import { Services } from '../mount/services.js'
import { checkPluginShape } from '../record/shape.js'
import { createContext, type PluginState } from '../record/stage.js'

export interface BootDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly config: ConfigService
  readonly mount: MountDeps
  /** Laid over `[plugins.config.<name>]` for this run. */
  readonly pluginConfig: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What a plugin keeps from one run to the next. */
  readonly stateOf: (plugin: string) => PluginState
  /** A logger that carries the plugin's name. */
  readonly logOf: (plugin: string) => Logger
}

const STEP_DEADLINE_MS = 5_000
/** They are read from the disk all at once: a slow or busy machine must not start without its routes. */
const BUILTIN_IMPORT_MS = 60_000

/**
 * The boot steps from manifest to preflight. Each takes what is still alive and marks what falls; no
 * failure reaches another plugin, except those that need the fallen one.
 */
export class Boot {
  readonly #deps: BootDeps
  #running: readonly PluginRecord[] = []
  #services = new Services()

  constructor (deps: BootDeps) {
    this.#deps = deps
  }

  /** What went through the steps last. */
  get running (): readonly PluginRecord[] { return this.#running }

  /**
   * Takes the new records through all steps. `standing` are the plugins that are there already: their services,
   * routes and names are taken. What the new ones provide goes into `services`. Returns the new ones in dependency order.
   */
  async run (
    fresh: readonly PluginRecord[], standing: readonly PluginRecord[], services: Services
  ): Promise<readonly PluginRecord[]> {
    this.#running = fresh
    this.#services = services
    this.#refuseDisabled(fresh)
    this.#manifest(fresh)
    await Promise.all(fresh.filter(isAlive).map(record => this.#import(record)))
    this.#refuseDisabled(fresh.filter(isAlive))
    this.#uniqueNames(fresh, standing)
    const ordered = this.#order(fresh)
    for (const record of ordered.filter(isAlive)) this.#config(record)
    for (const record of ordered) await this.#register(record, ordered)
    this.#conflicts(ordered, standing)
    await this.#preflight(ordered, standing)
    this.#cascade(ordered, 'preflight')
    return ordered
  }

  /** `[plugins.config.<name>]` as it is now. */
  tableOf (record: PluginRecord): Readonly<Record<string, unknown>> {
    const name = nameOf(record)
    return { ...this.#deps.config.snapshot.svc.plugins.config[name], ...this.#deps.pluginConfig[name] }
  }

  #refuseDisabled (records: readonly PluginRecord[]): void {
    const disabled = new Set(this.#deps.config.snapshot.svc.plugins.disabled)
    for (const record of records) {
      if (!disabled.has(record.name) && !disabled.has(nameOf(record))) continue
      Object.assign(record, { state: 'disabled', phase: 'discover', code: 'plugin.disabled', message: 'it is listed in [plugins] disabled' })
    }
  }

  #manifest (records: readonly PluginRecord[]): void {
    for (const record of records.filter(isAlive)) {
      record.phase = 'manifest'
      const { problem } = record.candidate
      if (problem !== null) fail(record, 'manifest', problem.code as ErrorCode, problem.message)
    }
  }

  async #import (record: PluginRecord): Promise<void> {
    await this.#timed(record, 'import', 'plugin.import_failed', async () => {
      const patience = record.candidate.origin === 'builtin' ? BUILTIN_IMPORT_MS : STEP_DEADLINE_MS
      const module = await withDeadline(this.#deps.clock, patience, `importing '${record.name}'`, () =>
        whileDeclaring(record, () => record.candidate.load()))
      record.phase = 'shape'
      const checked = checkPluginShape(module, record.name, record.candidate.manifest)
      if ('code' in checked) {
        const definition = definitionOf((module as { default?: unknown } | null)?.default)
        return fail(record, 'shape', checked.code, placed(checked.message, definition, record.candidate.root()))
      }
      record.plugin = checked
    })
  }

  #uniqueNames (fresh: readonly PluginRecord[], standing: readonly PluginRecord[]): void {
    const taken = new Set(standing.filter(isAlive).map(nameOf))
    for (const record of fresh.filter(isAlive)) {
      const name = nameOf(record)
      if (taken.has(name)) this.#refuse(record, 'shape', 'plugin.conflict', `plugin '${name}' already exists; give it another name`)
      taken.add(name)
    }
  }

  #order (records: readonly PluginRecord[]): readonly PluginRecord[] {
    const alive = records.filter(isAlive)
    for (const record of alive) record.phase = 'order'
    const result = orderPlugins(alive.map(record => ({
      name: record.name,
      requires: Object.values(record.plugin!.requires ?? {}).map(ref => ref.id),
      provides: (record.plugin!.provides ?? []).map(ref => ref.id)
    })), this.#services.ids)
    const byName = new Map(alive.map(record => [record.name, record]))
    for (const [name, id] of result.missing) {
      this.#refuse(byName.get(name)!, 'order', 'plugin.missing_service', `it requires the service '${id}', which nothing provides`)
    }
    for (const [name, path] of result.cycles) this.#refuse(byName.get(name)!, 'order', 'plugin.cycle', `plugins require each other: ${path}`)
    for (const [name, id] of result.duplicates) {
      this.#refuse(byName.get(name)!, 'order', 'plugin.conflict', `it provides the service '${id}', which is already provided`)
    }
    for (const [name, culprit] of result.skipped) skip(byName.get(name)!, 'order', culprit)
    return result.order.map(name => byName.get(name)!)
  }

  #config (record: PluginRecord): void {
    record.phase = 'config'
    const table = this.tableOf(record)
    record.table = JSON.stringify(table)
    const checked = checkPluginTable(record.plugin!, table)
    if (checked.problems.length === 0) {
      record.config = checked.value
      return
    }
    const listed = checked.problems.map(({ path, message }) => `${dotted(path)} ${message}`).join('; ')
    fail(record, 'config', 'plugin.config_invalid', listed)
  }

  async #register (record: PluginRecord, all: readonly PluginRecord[]): Promise<void> {
    if (!isAlive(record)) return
    const culprit = deadDependency(record.plugin!, all)
    if (culprit !== null) return skip(record, 'register', culprit)
    const plugin = record.plugin!
    await this.#timed(record, 'register', 'plugin.register_failed', async () => {
      const { clock, logOf, log, stateOf } = this.#deps
      const services = this.#services
      const required = this.#servicesOf(record, plugin)
      const staged = createContext(plugin, record.config, required, logOf(plugin.name), stateOf(plugin.name), {
        signal: record.own.signal, traced: record.candidate.root() !== null
      })
      const late = (error: unknown): void => log.warn({ plugin: plugin.name, error: messageOf(error) }, 'register failed after its deadline')
      try {
        await withDeadline(clock, STEP_DEADLINE_MS, `register of '${plugin.name}'`, () =>
          whileDeclaring(record, () => plugin.register(staged.context as never)), late)
      } finally {
        staged.seal()
      }
      // an unhandled rejection shows after this turn of the event loop, and counts as part of register
      await new Promise(resolve => { setImmediate(resolve) })
      if (!isAlive(record)) return
      for (const ref of plugin.provides ?? []) {
        if (!staged.stage.provided.has(ref.id)) throw new Error(`it lists '${ref.id}' in \`provides\` but never provided it`)
      }
      for (const [id, implementation] of staged.stage.provided) services.add({ id }, implementation)
      record.stage = staged.stage
    })
  }

  /** Code that came with the gateway leaves nothing behind. */
  #servicesOf (record: PluginRecord, { requires = {} }: AnyPlugin): Record<string, unknown> {
    const services = this.#services.of(requires)
    return record.candidate.root() === null ? services : ownServices(services, requires, record.own.signal)
  }

  #conflicts (records: readonly PluginRecord[], standing: readonly PluginRecord[]): void {
    const claims = [...standing, ...records].filter(record => isAlive(record) && record.stage !== null)
    const conflicts = findConflicts(claims.map(claimOf))
    for (const record of records.filter(isAlive)) {
      record.phase = 'conflicts'
      const conflict = conflicts.get(record.name)
      if (conflict === undefined) continue
      const declared = record.stage?.calls.get(conflict.of) ?? definitionOf(record.plugin)
      fail(record, 'conflicts', 'plugin.conflict', placed(conflict.message, declared, record.candidate.root()))
    }
    this.#cascade(records, 'conflicts')
  }

  async #preflight (records: readonly PluginRecord[], standing: readonly PluginRecord[]): Promise<void> {
    const { mount, clock } = this.#deps
    const services = this.#services
    const owners = new Map<string, string>()
    for (const record of standing) for (const key of record.routeKeys) owners.set(key, record.name)
    const together = await preflightTogether(records.filter(isAlive), services, mount)
    for (const record of records.filter(isAlive)) {
      await this.#timed(record, 'preflight', 'plugin.preflight_failed', async () => {
        const alone = async (): Promise<ReadonlySet<string>> => (await preflight([record], services, mount)).get(record)!
        const keys = together.get(record) ?? await withDeadline(clock, STEP_DEADLINE_MS, `the dry run of '${record.name}'`, alone)
        const clash = [...keys].find(key => owners.has(key))
        if (clash !== undefined) throw clashError(record, clash, owners.get(clash)!)
        for (const key of keys) owners.set(key, record.name)
        record.routeKeys = keys
      })
    }
  }

  /** What needs a fallen plugin falls with it, and its services are withdrawn. */
  #cascade (records: readonly PluginRecord[], phase: BootPhase): void {
    for (const record of records.filter(isAlive)) {
      const culprit = deadDependency(record.plugin!, records)
      if (culprit !== null) skip(record, phase, culprit)
    }
    for (const record of records) {
      if (!isAlive(record)) for (const id of record.stage?.provided.keys() ?? []) this.#services.remove(id)
    }
  }

  /** With the place of its definition. */
  #refuse (record: PluginRecord, phase: BootPhase, code: ErrorCode, message: string): void {
    fail(record, phase, code, placed(message, definitionOf(record.plugin), record.candidate.root()))
  }

  async #timed (record: PluginRecord, phase: BootPhase, code: ErrorCode, work: () => Promise<void>): Promise<void> {
    record.phase = phase
    const from = performance.now()
    try {
      await work()
    } catch (error) {
      const known = isSvcError(error) && error.code.startsWith('plugin.') ? error.code as ErrorCode : code
      fail(record, record.phase, known, await failureText(error, record.candidate.root()))
      this.#deps.log.error({ plugin: nameOf(record), phase: record.phase, code: known, err: error }, 'plugin failed')
    } finally {
      record.ms += performance.now() - from
    }
  }
}

/** @param key a route that the dry run found */
function clashError ({ stage, candidate }: PluginRecord, key: string, owner: string): Error {
  const route = stage?.routes.find(({ method, url }) => routeKey(method, url) === key)
  const call = stage?.calls.get(route ?? stage.scopes[0])
  return svcError('plugin.conflict', placed(`${key.replace(/^route /, '')} belongs to plugin '${owner}'; choose another URL`, call, candidate.root()))
}
