import {
  Latest, messageOf, pause, svcError, type Clock, type EventBus, type Job, type JobPatch, type JobStore, type Logger
} from 'svc-gateway/plugin'
import { modelError } from './errors.js'
import { PullEvents } from './pull-events.js'
import { asSvcError } from './pull-run.js'
import type { PullWork } from './pull-work.js'
import type { PullSnapshot } from './ref.js'

export interface TaskDeps {
  readonly clock: Clock
  readonly jobs: JobStore
  readonly events: EventBus
  readonly log: Logger
}

/** Why a task was told to end: its job stays unfinished and goes on at the next start, or is over. */
type End = 'stopping' | 'cancelled'

/** Milliseconds after which the work is to be done again; null when its failure is the end. `tries` counts from 1. */
export type TryAgain = (error: unknown, tries: number) => number | null

const TELL_EVERY_MS = 500
const ALIVE_MS = 5_000
const KEEP_EVERY_MS = 5_000

/** One job from its row to its end. */
export class PullTask {
  readonly #deps: TaskDeps
  readonly #work: PullWork
  readonly #again: TryAgain
  readonly #feed: Latest<PullSnapshot>
  readonly #events: PullEvents
  readonly #controller = new AbortController()
  #job: Job
  #errorCode: string | null = null
  #end: End | null = null
  #keptAt = 0
  #finished: Promise<void> = Promise.resolve()

  constructor (deps: TaskDeps, job: Job, work: PullWork, again: TryAgain) {
    this.#again = again
    this.#deps = deps
    this.#job = job
    this.#work = work
    this.#events = new PullEvents(deps.events)
    this.#feed = new Latest(deps.clock, TELL_EVERY_MS, () => this.snapshot)
  }

  get snapshot (): PullSnapshot { return this.#work.snapshot(this.#job, this.#errorCode) }
  get id (): string { return this.#job.id }
  get work (): PullWork { return this.#work }
  get isOver (): boolean { return this.#job.finished_at !== null }
  get finished (): Promise<void> { return this.#finished }

  announce (): void {
    this.#events.queued(this.snapshot)
  }

  /** Works when `turn` comes. Never rejects. */
  start (turn: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    return this.#finished = this.#toItsEnd(turn)
  }

  /** A refusal before the start: no disk space for a job that is taken up again. */
  fail (error: unknown): void {
    this.#finish('failed', error)
  }

  async cancel (): Promise<void> {
    if (!this.isOver && !this.#work.isPlacing) {
      this.#end ??= 'cancelled'
      this.#controller.abort(modelError('model.pull_cancelled', 'the pull was cancelled'))
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

  async #toItsEnd (turn: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    let leave = (): void => {}
    const { signal } = this.#controller
    try {
      leave = await turn(signal)
      this.#keep({ state: 'running' })
      this.#feed.now()
      await this.#untilDone(signal)
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

  async #untilDone (signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    for (let tries = 1; ; tries++) {
      try {
        return await this.#work.run(signal, { changed: () => this.#changed(), keep: () => this.#keep({}) })
      } catch (error) {
        const waitMs = signal.aborted ? null : this.#again(error, tries)
        if (waitMs === null) throw error
        log.warn({ model: this.#job.target, tries, wait_ms: waitMs }, `a pull is tried again: ${messageOf(error)}`)
        await pause(clock, waitMs, signal)
        signal.throwIfAborted()
      }
    }
  }

  async #cancelled (): Promise<void> {
    await this.#work.discard()
    this.#finish('cancelled', null)
  }

  #finish (state: 'completed' | 'failed' | 'cancelled', cause: unknown): void {
    const error = state === 'failed' ? asSvcError(cause) : null
    if (error !== null) {
      this.#errorCode = error.code
      this.#deps.log.warn({ model: this.#job.target, code: error.code, err: cause }, `a pull failed: ${error.message}`)
    }
    this.#keep({ state, error: error?.message ?? null })
    this.#feed.now()
    this.#events.ended(this.snapshot)
  }

  #changed (): void {
    this.#feed.changed()
    const now = this.#deps.clock.monotonic()
    if (now - this.#keptAt >= KEEP_EVERY_MS) this.#keep({})
    this.#events.progress(this.#work.bytesDone, this.#work.bytesTotal, () => this.snapshot)
  }

  /** A database that takes nothing, as on a full disk, does not end a pull: the part files know how far it is. */
  #keep (patch: JobPatch): void {
    this.#keptAt = this.#deps.clock.monotonic()
    const { record, bytesDone, bytesTotal } = this.#work
    const progress = bytesTotal === 0 ? null : Math.min(1, bytesDone / bytesTotal)
    const full: JobPatch = { ...patch, data: { ...record, errorCode: this.#errorCode, bytes: bytesDone }, progress }
    try {
      this.#job = this.#deps.jobs.update(this.#job.id, full)
    } catch (error) {
      this.#deps.log.warn({ model: this.#job.target, err: error }, `the state of a pull could not be saved: ${messageOf(error)}`)
      const finished = patch.state !== undefined && patch.state !== 'running' && patch.state !== 'queued'
      const at = new Date(this.#deps.clock.now()).toISOString()
      this.#job = { ...this.#job, ...full, finished_at: finished ? at : this.#job.finished_at }
    }
  }
}
