import { messageOf, svcError, type EventBus, type Job, type JobPatch, type JobStore, type Logger } from 'svc-gateway/plugin'
import { Latest } from './latest.js'
import { PullEvents } from './pull-events.js'
import { asSvcError, PullRun, type RunDeps } from './pull-run.js'
import { snapshotOf, type PullRecord } from './record.js'
import type { PullSnapshot } from './ref.js'

export interface TaskDeps {
  readonly run: RunDeps
  readonly jobs: JobStore
  readonly events: EventBus
  readonly log: Logger
  /** Registers the model; called once all files are in place. */
  readonly register: (modelId: string, record: PullRecord, signal: AbortSignal) => Promise<void>
}

/** Why a task was told to end: its job stays unfinished and goes on at the next start, or is over. */
type End = 'stopping' | 'cancelled'

const TELL_EVERY_MS = 500
const ALIVE_MS = 5_000
const KEEP_EVERY_MS = 5_000

/** One job from its row to its end. */
export class PullTask {
  readonly #deps: TaskDeps
  readonly #run: PullRun
  readonly #feed: Latest<PullSnapshot>
  readonly #events: PullEvents
  readonly #controller = new AbortController()
  readonly #total: number
  #job: Job
  #record: PullRecord
  #end: End | null = null
  /** Too late to cancel: files are being put in their places. */
  #isPlacing = false
  #keptAt = 0
  #finished: Promise<void> = Promise.resolve()

  /** `there` is what `bytesThere` says of the record. */
  constructor (deps: TaskDeps, job: Job, record: PullRecord, there: readonly number[]) {
    this.#deps = deps
    this.#job = job
    this.#record = record
    this.#events = new PullEvents(deps.events)
    this.#feed = new Latest(deps.run.clock, TELL_EVERY_MS, () => this.snapshot)
    this.#total = record.files.reduce((sum, file) => sum + file.size, 0)
    this.#run = new PullRun(deps.run, record, there, {
      changed: () => this.#changed(),
      checked: (i, hex) => this.#checked(i, hex),
      placing: () => { this.#isPlacing = true }
    })
  }

  get snapshot (): PullSnapshot { return snapshotOf(this.#job, this.#record, this.#run.live) }
  get id (): string { return this.#job.id }
  get record (): PullRecord { return this.#record }
  get bytesToGo (): number { return this.#run.bytesToGo }
  get isOver (): boolean { return this.#job.finished_at !== null }
  get finished (): Promise<void> { return this.#finished }

  announce (): void {
    this.#events.queued(this.snapshot)
  }

  /** Works when `turn` comes. Never rejects. */
  start (turn: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    return this.#finished = this.#work(turn)
  }

  /** A refusal before the start: no disk space for a job that is taken up again. */
  fail (error: unknown): void {
    this.#finish('failed', error)
  }

  async cancel (): Promise<void> {
    if (!this.isOver && !this.#isPlacing) {
      this.#end ??= 'cancelled'
      this.#controller.abort(svcError('model.pull_cancelled', 'the pull was cancelled'))
    }
    await this.#finished
  }

  /** The gateway stops: the job is left as it is. */
  async stop (): Promise<void> {
    this.#end ??= 'stopping'
    this.#controller.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await this.#finished
  }

  watch (signal: AbortSignal): AsyncIterable<PullSnapshot> {
    return this.#feed.follow(signal, ALIVE_MS)
  }

  async #work (turn: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    let leave = (): void => {}
    const { signal } = this.#controller
    try {
      leave = await turn(signal)
      this.#keep({ state: 'running' })
      this.#feed.now()
      const hashes = await this.#run.run(signal)
      const files = this.#record.files.map((file, i) => ({ ...file, checked: hashes[i] ?? file.checked }))
      this.#record = { ...this.#record, files }
      await this.#deps.register(this.#job.target, this.#record, signal)
      this.#finish('completed', null)
    } catch (error) {
      if (this.#end === 'stopping') this.#keep({})
      else if (this.#end === 'cancelled') await this.#cancelled()
      else this.#finish('failed', error)
    } finally {
      leave()
      this.#feed.close()
    }
  }

  async #cancelled (): Promise<void> {
    await this.#run.discard()
    this.#finish('cancelled', null)
  }

  #finish (state: 'completed' | 'failed' | 'cancelled', cause: unknown): void {
    const error = state === 'failed' ? asSvcError(cause) : null
    if (error !== null) {
      this.#record = { ...this.#record, errorCode: error.code }
      this.#deps.log.warn({ model: this.#job.target, code: error.code, err: cause }, `a pull failed: ${error.message}`)
    }
    this.#keep({ state, error: error?.message ?? null })
    this.#feed.now()
    this.#events.ended(this.snapshot)
  }

  #changed (): void {
    this.#feed.changed()
    const now = this.#deps.run.clock.monotonic()
    if (now - this.#keptAt >= KEEP_EVERY_MS) this.#keep({})
    this.#events.progress(this.#run.bytesDone, this.#total, () => this.snapshot)
  }

  #checked (index: number, hex: string): void {
    this.#record = { ...this.#record, files: this.#record.files.map((file, i) => i === index ? { ...file, checked: hex } : file) }
    this.#keep({})
    this.#changed()
  }

  /** A database that takes nothing, as on a full disk, does not end a pull: the part files know how far it is. */
  #keep (patch: JobPatch): void {
    this.#keptAt = this.#deps.run.clock.monotonic()
    this.#record = { ...this.#record, bytes: this.#run.bytesDone }
    const progress = this.#total === 0 ? 1 : Math.min(1, this.#record.bytes / this.#total)
    const full: JobPatch = { ...patch, data: { ...this.#record }, progress }
    try {
      this.#job = this.#deps.jobs.update(this.#job.id, full)
    } catch (error) {
      this.#deps.log.warn({ model: this.#job.target, err: error }, `the state of a pull is not written down: ${messageOf(error)}`)
      const finished = patch.state !== undefined && patch.state !== 'running' && patch.state !== 'queued'
      const at = new Date(this.#deps.run.clock.now()).toISOString()
      this.#job = { ...this.#job, ...full, finished_at: finished ? at : this.#job.finished_at }
    }
  }
}
