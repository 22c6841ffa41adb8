import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  messageOf, pause, type Clock, type EngineModels, type EngineProvider, type EngineTask, type EngineTasks, type FetchInput,
  type FetchProgress, type Job, type Logger
} from 'svc-gateway/plugin'
import { doneOf, engineSnapshot, totalOf, type EngineRecord } from './engine-record.js'
import { modelError } from '../errors.js'
import { Meter } from '../file/meter.js'
import type { PullWork, WorkEvents } from '../pull-work.js'
import type { PullSnapshot } from '../ref.js'

/** A provider whose engine fetches models by itself. */
export type FetchingProvider = EngineProvider & { readonly models: EngineModels & Required<Pick<EngineModels, 'fetch'>> }

export interface EngineWorkDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly tasks: EngineTasks
  /** Throws when its plugin is away. */
  readonly provider: () => FetchingProvider
}

/** How often the store is looked into: a program may keep its progress to itself until a file is complete. */
const LOOK_MS = 500

/** Programs tell sizes in hundredths of a MiB. */
const ROUNDING_BYTES = 8192

const nothing: FetchProgress = { folder: null, files: [], current: null, message: '', failure: null }

/** The program of an engine that fetches a model into the engine's own store. */
export class EngineWork implements PullWork {
  readonly #deps: EngineWorkDeps
  readonly #meter: Meter
  #record: EngineRecord
  #told = nothing
  /** What the gateway itself does before the program starts. */
  #message = ''

  constructor (deps: EngineWorkDeps, record: EngineRecord) {
    this.#deps = deps
    this.#record = record
    this.#meter = new Meter(deps.clock)
  }

  get record (): EngineRecord { return this.#record }
  get bytesDone (): number { return doneOf(this.#record) }
  get bytesTotal (): number { return totalOf(this.#record) }
  get bytesToGo (): number { return Math.max(0, this.bytesTotal - this.bytesDone) }
  get folder (): string { return this.#record.store }
  get places (): readonly string[] { return [] }
  get isPlacing (): boolean { return false }

  snapshot (job: Job, errorCode: string | null): PullSnapshot {
    const message = this.#message !== '' ? this.#message : this.#told.message
    return engineSnapshot(job, { ...this.#record, errorCode }, { speedBps: this.#meter.bytesPerSecond, message })
  }

  async run (signal: AbortSignal, events: WorkEvents): Promise<void> {
    const provider = this.#deps.provider()
    const { store, tag } = this.#record
    await mkdir(store, { recursive: true })
    await this.#uncoverGap()
    const over = new AbortController()
    const looking = this.#look(over.signal, events)
    try {
      const code = await this.#deps.tasks.run(taskOf(provider, { id: tag, store }), {
        signal,
        onLine: line => this.#hear(provider, line, events),
        onMessage: message => {
          this.#message = message
          events.changed()
        }
      })
      if (code !== 0) throw this.#failed(provider, code)
    } finally {
      over.abort()
      await looking
    }
    // it ends with 0 also when it could not ask what there is to fetch
    const entry = (await provider.models.list(store)).find(model => model.id === tag)
    if (entry?.installed === false) throw this.#failed(provider, 0)
  }

  async discard (): Promise<void> {
    for (const { path } of this.#record.files) {
      await rm(join(this.#record.store, path), { force: true }).catch((error: unknown) => {
        this.#deps.log.warn({ path, err: error }, `what a cancelled pull left cannot be removed: ${messageOf(error)}`)
      })
    }
    this.#record = { ...this.#record, bytes: 0, files: this.#record.files.map(file => ({ ...file, doneBytes: 0 })) }
  }

  /** A program that asks only whether files are there takes a model for complete whose last file an earlier run left short. */
  async #uncoverGap (): Promise<void> {
    const { store, files } = this.#record
    const sizes = await Promise.all(files.map(({ path }) => stat(join(store, path)).then(({ size }) => size, () => null)))
    if (sizes.includes(null)) return
    const short = files.filter(({ sizeBytes }, i) => sizes[i]! < sizeBytes - ROUNDING_BYTES)
    for (const { path } of short) await rm(join(store, path), { force: true })
  }

  #hear (provider: FetchingProvider, line: string, events: WorkEvents): void {
    const before = this.#told
    this.#told = provider.models.fetch.progress(before, line)
    if (this.#told === before) return
    if (this.#told.files.length !== before.files.length || this.#told.folder !== before.folder) {
      this.#record = { ...this.#record, folder: this.#told.folder, files: this.#told.files.map(file => ({ ...file })) }
      events.keep()
    }
    events.changed()
  }

  async #look (over: AbortSignal, events: WorkEvents): Promise<void> {
    while (!over.aborted) {
      await this.#measure(events)
      await pause(this.#deps.clock, LOOK_MS, over)
    }
    await this.#measure(events)
  }

  /** A file is as long as the disk says, or as the program says where its disk is not to be seen from here. */
  async #measure (events: WorkEvents): Promise<void> {
    const files = await Promise.all(this.#told.files.map(async file => {
      const size = await stat(join(this.#record.store, file.path)).then(stats => stats.size, () => 0)
      return { ...file, doneBytes: Math.max(file.doneBytes, Math.min(file.sizeBytes, size)) }
    }))
    if (files.length === 0 || files.length !== this.#told.files.length) return
    const before = doneOf(this.#record)
    this.#record = { ...this.#record, files }
    const received = doneOf(this.#record) - before
    if (received > 0) this.#meter.add(received)
    if (received !== 0) events.changed()
  }

  #failed ({ title }: FetchingProvider, code: number | null): Error {
    const { tag } = this.#record
    const why = this.#told.failure ?? (code === 0 ? 'it ended, but the model is missing' : `it ended with code ${code ?? 'unknown'}`)
    return modelError('model.pull_failed', `${title} could not fetch '${tag}': ${why}; pull again to resume`,
      { details: { model: tag, exit_code: code } })
  }
}

/** Pure. */
export function taskOf (provider: FetchingProvider, input: FetchInput): EngineTask {
  const { containerSpec, processSpec } = provider.models.fetch
  return { purpose: 'model-pull', provider, container: containerSpec(input), processes: processSpec?.(input) ?? [] }
}
