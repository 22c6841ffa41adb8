import {
  svcError, type Clock, type EventBus, type Job, type JobStore, type Logger, type ModelRegistry
} from 'svc-gateway/plugin'
import type { HubClient } from '../hub/ref.js'
import type { ModelLibrary } from '../library/ref.js'
import { spaceRefusal, type ReadDisk } from './disk.js'
import { FileHashes } from './file-hash.js'
import { bootId, removePart } from './part-file.js'
import { planPull } from './plan.js'
import { bytesThere, toGo } from './pull-run.js'
import { PullTask } from './pull-task.js'
import { JOB_KIND, recordOf, snapshotOf, type PullRecord } from './record.js'
import type { ModelPulls, PullRequest, PullSnapshot, StartedPull } from './ref.js'
import { registerPulled, writeMeta } from './register.js'
import type { PullConfig } from './settings.js'
import { sweepStaging } from './staging.js'
import { Turnstile } from './turnstile.js'

export interface PullServices {
  readonly clock: Clock
  readonly events: EventBus
  readonly jobs: JobStore
  readonly hub: HubClient
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly log: Logger
  readonly config: PullConfig
  readonly instance: () => string
  readonly imageModels: string
  readonly readDisk: ReadDisk
}

/** Finished jobs that are remembered. */
const KEEP_JOBS = 500

/** All pulls of this home. */
export class Pulls implements ModelPulls {
  readonly #services: PullServices
  readonly #hashes = new FileHashes()
  readonly #turns: Turnstile
  readonly #tasks = new Map<string, PullTask>()
  readonly #planning = new Map<string, { readonly request: PullRequest, readonly done: Promise<PullTask> }>()
  readonly #stopping = new AbortController()
  #boot: Promise<string> | null = null
  #admission: Promise<unknown> = Promise.resolve()

  constructor (services: PullServices) {
    this.#services = services
    this.#turns = new Turnstile(services.config.parallel_pulls)
  }

  /** Takes up what the last run of the gateway left unfinished, and removes what nobody will come back for. */
  async resume (): Promise<void> {
    const { jobs, config } = this.#services
    const unfinished = [...jobs.list({ kind: JOB_KIND, unfinished: true })].reverse()
    for (const job of unfinished) {
      const record = recordOf(job)
      if (record === null || !config.resume_on_start || this.#tasks.has(job.target)) interrupt(jobs, job, record)
      else await this.#takeUp(job, record)
    }
    jobs.prune(JOB_KIND, KEEP_JOBS)
    await this.#sweep()
  }

  async start (request: PullRequest, signal: AbortSignal): Promise<StartedPull> {
    const { model_id: id } = request
    const running = this.#tasks.get(id)
    if (running !== undefined && !running.isOver) {
      refuseOther(request, running.record)
      return { resumed: true, snapshot: running.snapshot }
    }
    const planned = this.#planning.get(id)
    if (planned !== undefined && differs(request, planned.request)) throw conflict(id, 'another one is being prepared')
    const entry = planned ?? { request, done: this.#prepare(request).finally(() => this.#planning.delete(id)) }
    this.#planning.set(id, entry)
    const task = await unlessGone(entry.done, signal)
    return { resumed: planned !== undefined, snapshot: task.snapshot }
  }

  status (modelId: string): PullSnapshot {
    const task = this.#tasks.get(modelId)
    if (task !== undefined) return task.snapshot
    const [job] = this.#services.jobs.list({ kind: JOB_KIND, target: modelId, limit: 1 })
    const record = job === undefined ? null : recordOf(job)
    if (job === undefined || record === null) throw noJob(modelId)
    return snapshotOf(job, record, null)
  }

  async* watch (modelId: string, signal: AbortSignal): AsyncGenerator<PullSnapshot> {
    const task = this.#tasks.get(modelId)
    if (task === undefined) yield this.status(modelId)
    else yield* task.watch(signal)
  }

  async cancel (modelId: string): Promise<PullSnapshot> {
    await this.#planning.get(modelId)?.done.catch(() => undefined)
    const task = this.#tasks.get(modelId)
    if (task !== undefined) {
      await task.cancel()
      return task.snapshot
    }
    const [job] = this.#services.jobs.list({ kind: JOB_KIND, target: modelId, limit: 1 })
    const files = job?.state === 'failed' ? recordOf(job)?.files ?? [] : []
    for (const { staging, key } of files) await removePart(staging, key)
    return this.status(modelId)
  }

  list (): readonly PullSnapshot[] {
    const found = new Map<string, PullSnapshot>()
    for (const job of this.#services.jobs.list({ kind: JOB_KIND, limit: KEEP_JOBS })) {
      const record = recordOf(job)
      if (record === null || found.has(job.target)) continue
      found.set(job.target, this.#tasks.get(job.target)?.snapshot ?? snapshotOf(job, record, null))
    }
    return [...found.values()]
  }

  get health (): Readonly<Record<string, unknown>> {
    const running = [...this.#tasks.values()].filter(task => !task.isOver)
    return { running: running.length, bytes_to_go: running.reduce((sum, task) => sum + task.bytesToGo, 0) }
  }

  /** Leaves every job where it is, to go on at the next start. */
  async close (): Promise<void> {
    this.#stopping.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await Promise.all([...this.#planning.values()].map(({ done }) => done.catch(() => undefined)))
    await Promise.all([...this.#tasks.values()].map(task => task.stop()))
    await this.#hashes.close()
  }

  async #prepare (request: PullRequest): Promise<PullTask> {
    const { jobs } = this.#services
    const record = await planPull({ ...this.#services, instance: this.#services.instance() }, request, this.#stopping.signal)
    return await this.#admit(async () => {
      const boot = await this.#bootId()
      const there = await bytesThere(record, boot)
      await this.#requireSpace(record, there)
      this.#refuseSamePlace(request.model_id, record)
      this.#stopping.signal.throwIfAborted()
      const job = jobs.create({ kind: JOB_KIND, target: request.model_id, data: { ...record } })
      return this.#begin(job, record, there, boot)
    })
  }

  async #takeUp (job: Job, record: PullRecord): Promise<void> {
    const { jobs, log } = this.#services
    await this.#admit(async () => {
      const boot = await this.#bootId()
      const there = await bytesThere(record, boot)
      const refusal = await this.#requireSpace(record, there).then(() => null, (error: unknown) => error)
      const task = this.#begin(jobs.update(job.id, { state: 'queued' }), record, there, boot, refusal)
      if (!task.isOver) log.info({ model: job.target, repo: record.repo }, 'a pull goes on where the last run of the gateway left it')
    })
  }

  /** One after the other: what one pull was promised counts for the next. */
  #admit<T> (work: () => Promise<T>): Promise<T> {
    const turn = this.#admission.then(work)
    this.#admission = turn.catch(() => undefined)
    return turn
  }

  #begin (job: Job, record: PullRecord, there: readonly number[], boot: string, refusal: unknown = null): PullTask {
    const task = this.#task(job, record, there, boot)
    this.#tasks.set(job.target, task)
    if (refusal !== null) task.fail(refusal)
    else task.announce()
    const done = refusal !== null ? Promise.resolve() : task.start(signal => this.#turns.enter(signal))
    void done.then(() => {
      if (this.#tasks.get(job.target) === task && this.#isKept(task)) this.#tasks.delete(job.target)
    })
    return task
  }

  /** Whether the row tells how it ended, so that the task itself is not needed any more. */
  #isKept (task: PullTask): boolean {
    try {
      return task.isOver && this.#services.jobs.get(task.id)?.finished_at != null
    } catch {
      return false
    }
  }

  #bootId (): Promise<string> {
    return this.#boot ??= bootId()
  }

  #task (job: Job, record: PullRecord, there: readonly number[], boot: string): PullTask {
    const { clock, events, hub, jobs, library, log, models, config } = this.#services
    return new PullTask({
      jobs,
      events,
      log,
      run: {
        hub,
        clock,
        log,
        boot,
        hashes: this.#hashes,
        parallelFiles: config.parallel_files,
        stallMs: config.stall_timeout_s * 1000,
        rules: { maxTries: config.max_tries, baseS: config.retry_base_s, random: Math.random }
      },
      register: async (modelId, done, signal) => {
        await registerPulled({ library, models, log }, modelId, done, signal)
        await writeMeta(modelId, done, models.get(modelId)?.quant ?? '').catch((error: unknown) => {
          log.warn({ model: modelId, err: error }, 'meta.json is not written')
        })
      }
    }, job, record, there)
  }

  /** Throws `model.insufficient_disk`. */
  async #requireSpace (record: PullRecord, there: readonly number[]): Promise<void> {
    const { readDisk, config } = this.#services
    const folder = record.files[0]!.staging
    const disk = await readDisk(folder)
    const others = [...this.#tasks.values()].filter(other => !other.isOver)
    const promised = (await Promise.all(others.map(async other => {
      const { device } = await readDisk(other.record.files[0]!.staging)
      return device === disk.device ? other.bytesToGo : 0
    }))).reduce((sum, bytes) => sum + bytes, 0)
    const reserveBytes = config.reserve_mb * 1024 * 1024
    const refusal = spaceRefusal(folder, disk, { neededBytes: toGo(record, there), promisedBytes: promised, reserveBytes })
    if (refusal !== null) throw refusal
  }

  #refuseSamePlace (modelId: string, record: PullRecord): void {
    const places = new Set(record.files.map(({ dest }) => dest.toLowerCase()))
    for (const [other, task] of this.#tasks) {
      if (other === modelId || task.isOver) continue
      const same = task.record.files.find(({ dest }) => places.has(dest.toLowerCase()))
      if (same !== undefined) throw conflict(modelId, `the pull of '${other}' writes ${same.dest}`)
    }
  }

  async #sweep (): Promise<void> {
    const { jobs, models, clock } = this.#services
    const waiting = jobs.list({ kind: JOB_KIND, unfinished: true }).flatMap(job => recordOf(job)?.files ?? [])
    await sweepStaging(models.store, new Set(waiting.map(({ key }) => key)), clock.now())
  }
}

/** Somebody else's download of the same model is joined, of another file under the same name refused. */
function refuseOther (request: PullRequest, { repo, files }: PullRecord): void {
  const other = (request.hf_repo !== undefined && request.hf_repo !== repo) ||
    (request.hf_filename !== undefined && !files.some(file => file.hf_filename === request.hf_filename))
  if (other) throw conflict(request.model_id, `${files[0]!.hf_filename} of ${repo} is on its way under this id`)
}

function differs (a: PullRequest, b: PullRequest): boolean {
  return a.hf_repo !== b.hf_repo || a.hf_filename !== b.hf_filename || a.revision !== b.revision
}

function conflict (modelId: string, why: string): Error {
  return svcError('model.pull_conflict', `'${modelId}' is not pulled: ${why}; wait for it or cancel it, or choose another id`, { details: { model: modelId } })
}

function noJob (modelId: string): Error {
  return svcError('model.pull_job_not_found', `nobody has pulled '${modelId}'; POST /api/models/{id}/pull starts it`, { details: { model: modelId } })
}

function interrupt (jobs: JobStore, job: Job, record: PullRecord | null): void {
  jobs.update(job.id, {
    state: 'failed',
    error: 'the gateway was stopped; pull again to go on from there',
    ...(record === null ? {} : { data: { ...record, errorCode: 'pull.interrupted' } })
  })
}

/** Waits for work that goes on without the waiter. */
function unlessGone<T> (work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
