import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isSvcError, messageOf, type ConfigService, type Clock, type GatewayInfo, type Installation, type Logger, type PluginService } from 'svc-gateway/plugin'
import { addressIn } from './channel.js'
import { downloadArchive } from './download.js'
import { updateError } from './errors.js'
import { JobFiles, type UpdateJob, type UpdatePatch } from './job-files.js'
import { readSwitch, writeSwitch, writeWhole } from './launcher/switch-file.js'
import type { Releases } from './releases.js'
import type { RolledBack } from './ref.js'
import type { UpdatesConfig } from './settings.js'
import { MOST_BUNDLE_BYTES, verifySignature } from './signature.js'
import { treeVersion, type Standing } from './standing.js'
import { migratedFiles, objection, runTrial, type TrialReport } from './trial.js'
import { unpackRelease } from './unpack.js'

export interface UpdaterDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly installation: Installation
  readonly plugins: PluginService
  readonly log: Logger
  readonly settings: UpdatesConfig
  readonly releases: Releases
  readonly signal: AbortSignal
}

export type Tree = Extract<Standing, { readonly kind: 'tree' }>

/** Brings releases and hands them to the launcher. One job at a time; each step can be cut off and done again. */
export class Updater {
  readonly jobs: JobFiles
  readonly #deps: UpdaterDeps
  #isBeginning = false

  constructor (deps: UpdaterDeps) {
    this.#deps = deps
    this.jobs = new JobFiles(join(deps.config.paths.state, 'update-jobs'), deps.clock)
  }

  get previousFile (): string { return join(this.#deps.config.paths.state, 'svc.previous') }

  /** The tree that this gateway runs from. Throws `system.update_editable_install`. */
  async tree (): Promise<Tree> {
    const standing = await this.#deps.releases.standing()
    if (standing.kind === 'tree') return standing
    throw updateError('system.update_editable_install', `this installation does not update itself: ${standing.advice}`, { details: { kind: standing.kind } })
  }

  /** Begins an update; `done` settles with its job when there is nothing more to do before a restart. */
  async apply (version: string | null): Promise<{ readonly job: UpdateJob, readonly done: Promise<UpdateJob> }> {
    return await this.#alone(async tree => {
      const job = await this.jobs.create({ kind: 'update', channel: this.#deps.releases.channel, version })
      return { job, done: this.run(job, tree) }
    })
  }

  /** Takes the way of an update from its beginning: what is there already is taken up. Never rejects. */
  async run (job: UpdateJob, tree: Tree): Promise<UpdateJob> {
    try {
      return await this.#run(job.id, job.version, tree)
    } catch (error) {
      // cut off by a stop, it goes on at the next start
      if (this.#deps.signal.aborted) return this.jobs.get(job.id)!
      return await this.fail(job.id, error)
    }
  }

  async fail (id: string, error: unknown): Promise<UpdateJob> {
    const code = isSvcError(error) ? error.code : 'system.update_error'
    this.#deps.log.error({ err: error, job: id }, `the update failed: ${messageOf(error)}`)
    return await this.jobs.update(id, { state: 'failed', error: messageOf(error), error_code: code })
  }

  async #run (id: string, version: string | null, tree: Tree): Promise<UpdateJob> {
    const { releases, settings, config, clock, signal } = this.#deps
    const step = (phase: UpdateJob['phase'], more: UpdatePatch = {}): Promise<UpdateJob> =>
      this.jobs.update(id, { state: 'running', phase, ...more })
    await step('checking')
    const found = await releases.find(version, signal)
    const { manifest, decision } = found
    if (decision.kind === 'current') {
      const notes = [`${manifest.version} runs already`]
      return await this.jobs.update(id, { state: 'applied', phase: 'done', resolved_version: manifest.version, notes })
    }
    if (decision.kind === 'refused') throw updateError('system.update_refused', decision.why)
    await step('downloading', { resolved_version: manifest.version })
    const { download_limit_bytes: limitBytes, unpacked_limit_bytes: unpackedBytes } = settings
    const cache = join(config.paths.state, 'cache')
    const folder = join(cache, manifest.version)
    await dropOthers(cache, manifest.version)
    const archive = await downloadArchive({ transport: releases.transport, clock }, {
      url: addressIn(found, manifest.url), folder, digest: manifest.digest_sha256, limitBytes, signal,
      onBytes: (there, total) => this.jobs.progress(id, total === null ? null : there / total)
    })
    await step('verifying', { progress: 1 })
    const bundle = await this.#bundle(addressIn(found, manifest.bundle_url))
    const signer = await verifySignature(await readFile(archive), bundle, await releases.pins()).catch(async (error: unknown) => {
      await rm(folder, { recursive: true, force: true })
      throw error
    })
    await step('unpacking', { notes: [`signed by ${signer}`] })
    const to = await unpackRelease({ archive, base: tree.base, version: manifest.version, limitBytes: unpackedBytes, signal })
    await step('trying')
    // cut off by a stop, it is unpacked once more
    const over = async (): Promise<void> => { if (!signal.aborted) await rm(folder, { recursive: true, force: true }) }
    const report = await this.#tryNew(tree, to, manifest.min_data_version).finally(over)
    return await this.#hand(id, tree, to, report)
  }

  /** A tree that may not take over is not kept. */
  async #tryNew (tree: Tree, to: string, least: number): Promise<TrialReport> {
    try {
      const report = await this.#try(tree, to)
      const from = report.database.from ?? least
      if (from >= least) return report
      throw updateError('system.update_refused', `${report.version} takes over state databases from version ${least} on, but this one is ${from}: update to a release in between first`)
    } catch (error) {
      if (!this.#deps.signal.aborted) await this.discard(tree, to)
      throw error
    }
  }

  /** Removes a tree that did not stay, unless a rollback goes to it. */
  async discard ({ base, tree }: Tree, to: string): Promise<void> {
    // one of an earlier attempt that was cut off
    await rm(join(base, `${to}.stale`), { recursive: true, force: true })
    if (to === tree || await this.#previous() === join(base, to)) return
    await rm(join(base, to), { recursive: true, force: true })
  }

  async #previous (): Promise<string> {
    return (await readFile(this.previousFile, 'utf8').catch(() => '')).trim()
  }

  /** Goes back to the release before this one; twice is where one began. Throws `system.update_rollback_unavailable`. */
  async rollBack (): Promise<RolledBack> {
    return await this.#alone(tree => this.#rollBack(tree))
  }

  async #rollBack (tree: Tree): Promise<RolledBack> {
    const { releases, info, installation } = this.#deps
    const previous = await this.#previous()
    const to = basename(previous)
    const version = dirname(previous) === tree.base && to !== tree.tree ? await treeVersion(previous) : null
    if (version === null) throw updateError('system.update_rollback_unavailable', 'there is no earlier release here to go back to')
    const report = await this.#try(tree, to)
    const { from, to: after } = report.database
    const job = await this.jobs.create({ kind: 'rollback', channel: releases.channel, version })
    await this.jobs.update(job.id, { resolved_version: version })
    const { restart_required: required } = await this.#hand(job.id, tree, to, report).catch(async (error: unknown) => {
      await this.fail(job.id, error)
      throw error
    })
    return {
      job: job.id,
      to: version,
      from: info.version,
      schemaWarning: from === after ? null : `${version} has state databases of version ${after ?? 0}, but this one is ${from ?? 0}`,
      runningVersion: info.version,
      restartRequired: required || installation.restart === null
    }
  }

  async #try (tree: Tree, to: string): Promise<TrialReport> {
    const { config, plugins, signal } = this.#deps
    const { home, state } = config.paths
    const report = await runTrial({ base: tree.base, tree: to, home, state, env: process.env, signal })
    const running = new Set(plugins.list().filter(({ state }) => state === 'active').map(({ name }) => name))
    const why = objection(report, running)
    if (why !== null) throw updateError('system.update_trial_failed', why, { details: { version: report.version } })
    return report
  }

  /** Tells the launcher, and has the gateway start again. From here on the release that starts next decides. */
  async #hand (id: string, tree: Tree, to: string, report: TrialReport): Promise<UpdateJob> {
    const { installation, settings, config } = this.#deps
    try {
      await writeSwitch(tree.base, {
        job: id, phase: 'prepared', from: tree.tree, to, answerWithinMs: settings.answer_within_s * 1000, attempts: 0, why: null,
        keep: migratedFiles(report, config.paths)
      })
    } catch (error) {
      throw updateError('system.update_swap_failed', `the release in use cannot be changed in ${tree.base}: ${messageOf(error)}`, { cause: error })
    }
    const { restart } = installation
    const job = await this.jobs.update(id, { state: 'prepared', phase: 'restarting', restart_required: restart === null })
    restart?.()
    return job
  }

  async #bundle (url: URL): Promise<string> {
    const { releases, signal } = this.#deps
    try {
      return url.protocol === 'file:' ? await readFile(url, 'utf8') : await releases.transport.text(url, MOST_BUNDLE_BYTES, signal)
    } catch (error) {
      signal.throwIfAborted()
      throw updateError('system.update_download_failed', `the signature of the release could not be downloaded: ${messageOf(error)}`, { cause: error })
    }
  }

  /** A look at files comes before the job, and another request must not begin in between. Throws `system.update_busy`. */
  async #alone<T> (begin: (tree: Tree) => Promise<T>): Promise<T> {
    const tree = await this.tree()
    if (this.#isBeginning) throw busy(null)
    this.#isBeginning = true
    try {
      const job = this.jobs.list().find(({ state }) => state === 'queued' || state === 'running' || state === 'prepared')
      if (job !== undefined || await readSwitch(tree.base) !== null) throw busy(job?.id ?? null)
      return await begin(tree)
    } finally {
      this.#isBeginning = false
    }
  }

  /** Remembers the release that was left. */
  async remember (base: string, tree: string): Promise<void> {
    await mkdir(dirname(this.previousFile), { recursive: true })
    await writeWhole(this.previousFile, `${join(base, tree)}\n`)
  }
}

function busy (job: string | null): Error {
  return updateError('system.update_busy', 'an update is under way; GET /api/updates/status/{id} says how far it is', { details: { job } })
}

/** What came of other releases is not asked for any more. */
async function dropOthers (cache: string, version: string): Promise<void> {
  const others = (await readdir(cache).catch(() => [])).filter(name => name !== version)
  await Promise.all(others.map(name => rm(join(cache, name), { recursive: true, force: true })))
}
