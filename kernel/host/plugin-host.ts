import type { FastifyInstance } from 'fastify'
import { SerialQueue } from '../async/serial-queue.js'
import {
  messageOf, type ConfigFileDefinition, type EventBus, type PluginReport, type PluginService,
  type RuntimeDefinition
} from '../contract/index.js'
import { LaidProviders } from '../config/parts/laid-providers.js'
import { Boot, type BootDeps } from './start/boot.js'
import { Culprits } from './watch/culprits.js'
import { leaveScopes } from './watch/plugin-scope.js'
import { withDeadline } from './start/deadline.js'
import type { Frame } from './watch/loop-watch.js'
import type { Generations } from './packages/generations.js'
import { judgeReload } from './reload/reload-judgement.js'
import { renderPlugins, type Fallen } from './mount/render.js'
import { PluginStarter } from './start/plugin-starter.js'
import { assertRequired } from './start/required-plugins.js'
import { outcomeOf } from './record/plugin-report.js'
import {
  deadDependency, fail, isAlive, nameOf, newRecord, skip, waitingFor, type Candidate, type PluginRecord
} from './record/record.js'
import type { Services } from './mount/services.js'
import { problemsOf, type ToolsOfPlugin } from '../tools/plugin-tools.js'
import { gateOf } from './mount/mount.js'
import { PluginDirectory, type PluginDirectoryDeps } from './plugin-directory.js'

const CLOSE_DEADLINE_MS = 10_000

export interface PluginHostDeps extends BootDeps, Omit<PluginDirectoryDeps, 'config'> {
  /** Tells where the event loop stood still for more than a second, from the first package on; null: nothing does. */
  readonly watchLoop: ((told: (frames: readonly Frame[]) => void) => () => void) | null
  readonly services: Services
  readonly generations: Generations
  /** Names of the providers of engines that run. */
  readonly busyProviders: () => ReadonlySet<string>
  readonly events: EventBus
  readonly createApp: () => FastifyInstance
  /** Requests go to this instance from now on. */
  readonly serve: (app: FastifyInstance) => void
  /** Everything that may be loaded at this moment. */
  readonly candidates: () => Promise<readonly Candidate[]>
  /** The drivers that plugins bring, whenever that may have changed; told before the providers. */
  readonly runtimesChanged: (runtimes: readonly RuntimeDefinition[]) => void
  /** The set of providers changed. */
  readonly providersChanged: (providers: LaidProviders, files: readonly ConfigFileDefinition[]) => Promise<void>
  /** Plugins, and so their tools, came or went. */
  readonly toolsChanged: (plugins: readonly ToolsOfPlugin[]) => void
}

/** Owner of all plugins, from discovery to stop. Collects failures and keeps serving. */
export class PluginHost extends PluginDirectory implements PluginService {
  readonly #deps: PluginHostDeps
  readonly #boot: Boot
  readonly #starter: PluginStarter
  /** Whose failures are whose. */
  readonly culprits: Culprits
  readonly #reloads = new SerialQueue()
  #app: FastifyInstance | null = null
  #unwatch: (() => void) | null = null

  /** Resolves when the files say what they say with the plugins that there are. */
  #laying: Promise<void> = Promise.resolve()

  constructor (deps: PluginHostDeps) {
    super(deps)
    this.#deps = deps
    this.#boot = new Boot(deps)
    this.#starter = new PluginStarter(deps)
    this.culprits = new Culprits({ ...deps, records: () => this.records, booting: () => this.#boot.running })
  }

  /** The instance that serves, for `inject`. Null before the boot. */
  get app (): FastifyInstance | null { return this.#app }

  /** All steps up to mounting. Throws when a required plugin fell, or none stands. */
  async boot (): Promise<void> {
    const fresh = (await this.#candidates()).map(newRecord)
    const ordered = await this.#boot.run(fresh, [], this.#deps.services)
    this.#setRecords(inOrder(fresh, ordered))
    await this.#render()
    await this.#laying
    assertRequired(this.records, this.#deps.config.snapshot.svc.plugins.required)
  }

  /** Runs the start hooks. Rejects only when a required plugin fell, or none stands. */
  async start (): Promise<void> {
    await this.#starter.start(this.records)
    this.#setRecords(this.records)
    assertRequired(this.records, this.#deps.config.snapshot.svc.plugins.required)
    for (const record of this.records) this.#report(record)
    leaveScopes()
    await this.#sweep()
  }

  reload (again: readonly string[] = []): Promise<readonly PluginReport[]> {
    return this.#reloads.run(() => this.#reload(new Set(again)))
  }

  /** Start hooks that run are told to end, and no more begin. The first step of a stop. */
  halt (): void {
    this.#starter.halt()
  }

  /** Stops in reverse order of start. Never rejects. */
  async stop (): Promise<void> {
    this.halt()
    await this.#reloads.idle()
    await this.#starter.stopAll()
    await this.#closeApp(this.#app)
    this.#unwatch?.()
  }

  async #candidates (): Promise<readonly Candidate[]> {
    const found = await this.#deps.candidates()
    // code that came with the gateway is not watched, and the watch costs a thread
    if (found.some(({ source }) => source.startsWith('package:'))) {
      this.#unwatch ??= this.#deps.watchLoop?.(frames => this.culprits.tellBlocked(frames)) ?? null
    }
    return found
  }

  async #reload (again: ReadonlySet<string>): Promise<readonly PluginReport[]> {
    await this.#deps.config.reload()
    const wanted = await this.#candidates()
    const lost = await this.#replace(wanted, again)
    if (lost.length > 0) await this.#bringBack(lost, wanted)
    for (const record of this.records) if (isAlive(record) && record.phase !== 'report') this.#report(record)
    leaveScopes()
    await this.#sweep()
    return this.list()
  }

  /** An engine may run programs and read files of the copy that it was started from, whatever is in force now. */
  async #sweep (): Promise<void> {
    const busy = this.#deps.busyProviders()
    const isKnown = [...busy].every(name => this.laid.get(name) !== undefined)
    try {
      await this.#deps.generations.sweep((name, folder) => {
        const own = this.records.filter(({ candidate }) => candidate.source === `package:${name}`)
        if (own.length === 0) return !isKnown
        return own.some(({ candidate, stage }) =>
          candidate.root()?.startsWith(`${folder}/`) === true || (stage?.providers ?? []).some(provider => busy.has(provider.name)))
      })
    } catch (error) {
      this.#deps.log.warn({ error: messageOf(error) }, 'unused copies of plugins could not be removed')
    }
  }

  /** Puts a reload in force. Resolves with the plugins that ran before and whose successors fell at their start. */
  async #replace (wanted: readonly Candidate[], again: ReadonlySet<string>): Promise<readonly PluginRecord[]> {
    const { config, services } = this.#deps
    const judged = await judgeReload(this.#boot, this.records, {
      wanted,
      again,
      disabled: new Set(config.snapshot.svc.plugins.disabled),
      tableOf: record => JSON.stringify(this.#boot.tableOf(record))
    }, services)
    const { plan: { staying, settled, leaving }, ordered, fresh } = judged
    // to mount every route anew blocks all requests for some 50 ms
    if (leaving.length === 0 && fresh.length === 0) return []
    services.adopt(judged.services)
    this.#setRecords([...staying, ...inOrder(fresh, ordered), ...settled])
    // at once, so that a call to a new plugin waits for its start, which comes after the end of the one it replaces
    let go = (): void => {}
    const starting = this.#starter.start(ordered, new Promise(resolve => { go = resolve }))
    let before: FastifyInstance | null = null
    try {
      before = await this.#render()
    } finally {
      await this.#starter.stop(leaving)
      await this.#laying.finally(go)
    }
    await this.#closeApp(before)
    await starting
    this.#setRecords(this.records)
    for (const record of fresh) if (!isAlive(record)) this.#report(record)
    return leaving.filter(record => record.state === 'active' && this.#isFallen(record.candidate.source))
  }

  #isFallen (source: string): boolean {
    return this.records.some(({ candidate, state }) => candidate.source === source && (state === 'failed' || state === 'skipped'))
  }

  /** What ran before a reload runs again, because what should replace it did not start. */
  async #bringBack (lost: readonly PluginRecord[], wanted: readonly Candidate[]): Promise<void> {
    const former = new Map(lost.map(({ candidate }) => [candidate.source, candidate]))
    const waiting = new Map(this.records.flatMap(record => {
      const before = lost.find(({ candidate }) => candidate.source === record.candidate.source)
      return before === undefined ? [] : [[record.candidate.source, waitingFor(record)] as const]
    }))
    await this.#replace(wanted.map(candidate => former.get(candidate.source) ?? candidate), new Set(lost.map(nameOf)))
    for (const record of this.records) {
      const note = waiting.get(record.candidate.source)
      if (note !== undefined && note.revision !== record.candidate.revision) record.waiting = note
    }
  }

  /** Also called when plugins have risen or fallen: what was made of them is made anew. */
  #setRecords (records: readonly PluginRecord[]): void {
    this.records = records
    const alive = records.filter(isAlive)
    this.laid = new LaidProviders(alive.flatMap(({ candidate, stage }) =>
      (stage?.providers ?? []).map(provider => ({ provider, isBuiltin: candidate.origin === 'builtin' }))),
    alive.flatMap(({ stage }) => stage?.templates ?? []))
    this.#deps.runtimesChanged(alive.flatMap(({ stage }) => stage?.runtimes ?? []))
    this.#laying = this.#deps.providersChanged(this.laid, alive.flatMap(({ stage }) => stage?.files ?? []))
    this.#deps.toolsChanged(alive.flatMap(record => record.stage === null ? [] : [{
      plugin: nameOf(record), routes: record.stage.routes, tools: record.stage.tools, gate: gateOf(record)
    }]))
    this.agents.set(alive.flatMap(({ stage }) => stage?.agents ?? []))
  }

  /** Serves from a new instance and gives back the one that served before. */
  async #render (): Promise<FastifyInstance | null> {
    let app = this.#deps.createApp()
    for (let fallen = await renderPlugins(app, this.records, this.#deps); fallen !== null;) {
      // what its scopes hold, ports for example, the next instance takes
      await this.#closeApp(app)
      await this.#dropFallen(fallen)
      app = this.#deps.createApp()
      fallen = await renderPlugins(app, this.records, this.#deps)
    }
    const before = this.#app
    this.#app = app
    this.#deps.serve(app)
    return before
  }

  /** Takes down a plugin that cannot be mounted again, and with it whatever needs its services. */
  async #dropFallen ({ record, error }: Fallen): Promise<void> {
    const { log, services } = this.#deps
    log.error({ plugin: nameOf(record), phase: 'mount', err: error }, 'plugin failed')
    fail(record, 'mount', 'plugin.preflight_failed', messageOf(error))
    for (let lost: PluginRecord | undefined = record; lost !== undefined;) {
      await this.#starter.stop([lost])
      for (const id of lost.stage?.provided.keys() ?? []) services.remove(id)
      lost = this.records.find(other => isAlive(other) && deadDependency(other.plugin!, this.records) !== null)
      if (lost !== undefined) skip(lost, 'mount', deadDependency(lost.plugin!, this.records)!)
    }
    this.#setRecords(this.records)
  }

  /** Requests that run on an instance end there: only its scopes are closed. */
  async #closeApp (app: FastifyInstance | null): Promise<void> {
    const { clock, log } = this.#deps
    try {
      await withDeadline(clock, CLOSE_DEADLINE_MS, 'closing the scopes of plugins', async () => { await app?.close() })
    } catch (error) {
      log.error({ err: error }, 'a plugin did not close its scope')
    }
  }

  /** One line per plugin. */
  #report (record: PluginRecord): void {
    if (isAlive(record)) Object.assign(record, { state: 'active', phase: 'report' })
    const { name, state, phase, code, message, ms, origin } = outcomeOf(record)
    const line = `plugin ${name}: ${state} in ${ms} ms`
    const level = state === 'active' || state === 'disabled' ? 'debug' : 'error'
    const reason = message === null ? {} : { reason: message }
    // of what ships with the gateway a test knows
    const problems = origin === 'builtin' || record.stage === null ? [] : problemsOf(nameOf(record), record.stage)
    for (const { tool, message: why } of problems) this.#deps.log.error({ plugin: name, tool, reason: why }, `plugin ${name}: tool ${tool} is not offered: ${why}`)
    this.#deps.log[level]({ plugin: name, state, phase, code, ms, origin, ...reason }, line)
  }
}

/** Plugins in dependency order, the ones that fell before there was an order last. */
function inOrder (all: readonly PluginRecord[], ordered: readonly PluginRecord[]): readonly PluginRecord[] {
  return [...ordered, ...all.filter(record => !ordered.includes(record))]
}
