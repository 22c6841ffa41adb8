import {
  abortable, svcError, type Clock, type EngineTasks, type EventBus, type Job, type JobStore, type Logger,
  type ModelRegistry, type ProviderCatalog
} from 'svc-gateway/plugin'
import type { HubClient } from '../hub/ref.js'
import type { ModelLibrary } from '../library/ref.js'
import { Admission, pullConflict } from './admission.js'
import type { ReadDisk } from './file/disk.js'
import { EngineOrigin } from './engine/engine-origin.js'
import { modelError } from './errors.js'
import { HubOrigin } from './hub/hub-origin.js'
import { removePart } from './file/part-file.js'
import { PullTask, type TryAgain } from './pull-task.js'
import type { PullWork } from './pull-work.js'
import { isEngineRecord, JOB_KIND, recordOf, snapshotOf, type PullRecord } from './record.js'
import type { ModelPulls, PullRequest, PullSnapshot, StartedPull } from './ref.js'
import { backoffS, isLocal } from './file/retry.js'
import type { PullConfig } from './settings.js'
import { isOfHub } from './hub/source.js'
import { sweepStaging } from './file/staging.js'
import { Turnstile } from './file/turnstile.js'

export interface PullServices {
  readonly clock: Clock
  readonly events: EventBus
  readonly jobs: JobStore
  readonly hub: HubClient
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly tasks: EngineTasks
  readonly log: Logger
  readonly config: PullConfig
  readonly instance: () => string
  readonly imageModels: string
  readonly readDisk: ReadDisk
}

interface BeginOptions {
  /** Why it cannot begin. */
  readonly refusal?: unknown
  readonly again?: TryAgain
}

/** Finished jobs that are remembered. */
const KEEP_JOBS = 500

/** All pulls of this home. */
export class Pulls implements ModelPulls {
  readonly #services: PullServices
  readonly #hub: HubOrigin
  readonly #engines: EngineOrigin
  readonly #turns: Turnstile
  readonly #tasks = new Map<string, PullTask>()
  readonly #planning = new Map<string, { readonly request: PullRequest, readonly done: Promise<PullTask> }>()
  readonly #stopping = new AbortController()
  readonly #admission: Admission

  constructor (services: PullServices) {
    this.#services = services
    this.#hub = new HubOrigin(services)
    this.#engines = new EngineOrigin(services)
    this.#admission = new Admission(services, this.#tasks)
    this.#turns = new Turnstile(services.config.parallel_pulls)
  }

  /** Takes up what the last run of the gateway left unfinished, and removes what will not be resumed. */
  async resume (): Promise<void> {
    const { jobs, config } = this.#services
    // before anything is taken up, which makes the folder that an empty sweep would take away
    await this.#sweep()
    const unfinished = [...jobs.list({ kind: JOB_KIND, unfinished: true })].reverse()
    for (const job of unfinished) {
      const record = recordOf(job)
      if (record === null || !config.resume_on_start || this.#tasks.has(job.target)) interrupt(jobs, job, record)
      else await this.#takeUp(job, record)
    }
    jobs.prune(JOB_KIND, KEEP_JOBS)
  }

  async start (asked: PullRequest, signal: AbortSignal): Promise<StartedPull> {
    const tag = this.#engineTag(asked)
    const request = tag === null ? asked : { ...asked, model_id: tag }
    const { model_id: id } = request
    const running = this.#tasks.get(id)
    if (running !== undefined && !running.isOver) {
      refuseOther(request, running.work.record)
      return { resumed: true, snapshot: running.snapshot }
    }
    const planned = this.#planning.get(id)
    if (planned !== undefined && differs(request, planned.request)) throw pullConflict(id, 'another one is being prepared')
    const entry = planned ?? { request, done: this.#prepare(request, tag !== null).finally(() => this.#planning.delete(id)) }
    this.#planning.set(id, entry)
    const task = await abortable(entry.done, signal)
    return { resumed: planned !== undefined, snapshot: task.snapshot }
  }

  status (asked: string): PullSnapshot {
    const modelId = this.#idOf(asked)
    const task = this.#tasks.get(modelId)
    if (task !== undefined) return task.snapshot
    const [job] = this.#services.jobs.list({ kind: JOB_KIND, target: modelId, limit: 1 })
    const record = job === undefined ? null : recordOf(job)
    if (job === undefined || record === null) throw noJob(modelId)
    return snapshotOf(job, record)
  }

  async* watch (modelId: string, signal: AbortSignal): AsyncGenerator<PullSnapshot> {
    const task = this.#tasks.get(this.#idOf(modelId))
    if (task === undefined) yield this.status(modelId)
    else yield* task.watch(signal)
  }

  async cancel (asked: string): Promise<PullSnapshot> {
    const modelId = this.#idOf(asked)
    await this.#planning.get(modelId)?.done.catch(() => undefined)
    const task = this.#tasks.get(modelId)
    if (task !== undefined) {
      await task.cancel()
      return task.snapshot
    }
    const [job] = this.#services.jobs.list({ kind: JOB_KIND, target: modelId, limit: 1 })
    const record = job?.state === 'failed' ? recordOf(job) : null
    if (record !== null && !isEngineRecord(record)) for (const { staging, key } of record.files) await removePart(staging, key)
    return this.status(modelId)
  }

  list (): readonly PullSnapshot[] {
    const found = new Map<string, PullSnapshot>()
    for (const job of this.#services.jobs.list({ kind: JOB_KIND, limit: KEEP_JOBS })) {
      const record = recordOf(job)
      if (record === null || found.has(job.target)) continue
      found.set(job.target, this.#tasks.get(job.target)?.snapshot ?? snapshotOf(job, record))
    }
    return [...found.values()]
  }

  get health (): Readonly<Record<string, unknown>> {
    const running = [...this.#tasks.values()].filter(task => !task.isOver)
    return { running: running.length, bytes_to_go: running.reduce((sum, { work }) => sum + work.bytesToGo, 0) }
  }

  /** Leaves every job where it is, to go on at the next start. */
  async close (): Promise<void> {
    this.#stopping.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await Promise.all([...this.#planning.values()].map(({ done }) => done.catch(() => undefined)))
    await Promise.all([...this.#tasks.values()].map(task => task.stop()))
    await this.#hub.close()
  }

  async #prepare (request: PullRequest, byEngine: boolean): Promise<PullTask> {
    const { jobs } = this.#services
    const { signal } = this.#stopping
    const record = byEngine ? await this.#engines.plan(request) : await this.#hub.plan(request, signal)
    return await this.#admission.inTurn(async () => {
      const work = await this.#workOf(request.model_id, record)
      await this.#admission.requireSpace(work)
      this.#admission.requireOwnPlaces(request.model_id, work)
      signal.throwIfAborted()
      return this.#begin(jobs.create({ kind: JOB_KIND, target: request.model_id, data: { ...record } }), work)
    })
  }

  async #takeUp (job: Job, record: PullRecord): Promise<void> {
    const { jobs, log } = this.#services
    await this.#admission.inTurn(async () => {
      const work = await this.#workOf(job.target, record)
      const refusal = await this.#admission.requireSpace(work).then(() => null, (error: unknown) => error)
      const task = this.#begin(jobs.update(job.id, { state: 'queued' }), work, { refusal, again: (error, tries) => this.#again(error, tries) })
      if (!task.isOver) log.info({ model: job.target }, 'resuming a pull of the gateway\'s previous run')
    })
  }

  #workOf (modelId: string, record: PullRecord): Promise<PullWork> {
    return isEngineRecord(record) ? this.#engines.work(modelId, record) : this.#hub.work(modelId, record)
  }

  /** The engine's spelling of what an engine is to fetch; null for what comes from the hub. */
  #engineTag (request: PullRequest): string | null {
    const { models, library } = this.#services
    const { model_id: id } = request
    return isOfHub(request, models.get(id), library.curated.find(model => model.id === id)) ? null : this.#engines.tagOf(id)
  }

  /** What a pull is kept under: an engine's model has several spellings. */
  #idOf (modelId: string): string {
    const { jobs } = this.#services
    const isUnderWay = this.#tasks.has(modelId) || this.#planning.has(modelId)
    const isKept = isUnderWay || jobs.list({ kind: JOB_KIND, target: modelId, limit: 1 }).length > 0
    return isKept ? modelId : this.#engines.tagOf(modelId) ?? modelId
  }

  /** The failure of a resumed pull is not seen by the one who asked for it: what may heal here is tried again. */
  #again (error: unknown, tries: number): number | null {
    const { max_tries: most, retry_base_s: baseS } = this.#services.config
    return tries < most && isLocal(error) ? backoffS(baseS, tries) * 1000 : null
  }

  #begin (job: Job, work: PullWork, { refusal = null, again = () => null }: BeginOptions = {}): PullTask {
    const task = new PullTask(this.#services, job, work, again)
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

  async #sweep (): Promise<void> {
    const { jobs, models, clock } = this.#services
    const waiting = jobs.list({ kind: JOB_KIND, unfinished: true }).flatMap(job => {
      const record = recordOf(job)
      return record === null || isEngineRecord(record) ? [] : record.files
    })
    await sweepStaging(models.store, new Set(waiting.map(({ key }) => key)), clock.now())
  }
}

/** Another caller's download of the same model is joined, of another file under the same name refused. */
function refuseOther (request: PullRequest, record: PullRecord): void {
  if (isEngineRecord(record)) {
    if (request.hf_repo !== undefined) throw pullConflict(request.model_id, `${record.source} fetches the model of this id`)
    return
  }
  const { repo, files } = record
  const other = (request.hf_repo !== undefined && request.hf_repo !== repo) ||
    (request.hf_filename !== undefined && !files.some(file => file.hf_filename === request.hf_filename))
  if (other) throw pullConflict(request.model_id, `${files[0]!.hf_filename} of ${repo} is being pulled under this id`)
}

function differs (a: PullRequest, b: PullRequest): boolean {
  return a.hf_repo !== b.hf_repo || a.hf_filename !== b.hf_filename || a.revision !== b.revision
}

function noJob (modelId: string): Error {
  return modelError('model.pull_job_not_found', `'${modelId}' was never pulled; POST /api/models/{id}/pull starts it`, { details: { model: modelId } })
}

function interrupt (jobs: JobStore, job: Job, record: PullRecord | null): void {
  jobs.update(job.id, {
    state: 'failed',
    error: 'the gateway was stopped; pull again to resume',
    ...(record === null ? {} : { data: { ...record, errorCode: 'pull.interrupted' } })
  })
}
