import type { Job } from 'svc-gateway/plugin'
import { PullRun, type RunDeps } from '../pull-run.js'
import type { PullWork, WorkEvents } from '../pull-work.js'
import { hubSnapshot, type HubRecord } from '../record.js'
import type { PullSnapshot } from '../ref.js'

export interface HubWorkDeps {
  readonly run: RunDeps
  /** Registers the model; called once all files are in place. */
  readonly register: (record: HubRecord, signal: AbortSignal) => Promise<void>
}

/** A model of the hub: its files, then its row in the registry. */
export class HubWork implements PullWork {
  readonly #register: HubWorkDeps['register']
  readonly #run: PullRun
  #record: HubRecord
  #events: WorkEvents = { changed: () => {}, keep: () => {} }
  #isPlacing = false

  /** `there` is what `bytesThere` says of the record. */
  constructor ({ run, register }: HubWorkDeps, record: HubRecord, there: readonly number[]) {
    this.#register = register
    this.#record = record
    this.#run = new PullRun(run, record, there, {
      changed: () => this.#events.changed(),
      checked: (i, hex) => this.#checked(i, hex),
      placing: () => { this.#isPlacing = true }
    })
  }

  get record (): HubRecord { return this.#record }
  get bytesDone (): number { return this.#run.bytesDone }
  get bytesTotal (): number { return this.#record.files.reduce((sum, file) => sum + file.size, 0) }
  get bytesToGo (): number { return this.#run.bytesToGo }
  get folder (): string { return this.#record.files[0]!.staging }
  get places (): readonly string[] { return this.#record.files.map(({ dest }) => dest) }
  get isPlacing (): boolean { return this.#isPlacing }

  snapshot (job: Job, errorCode: string | null): PullSnapshot {
    return hubSnapshot(job, { ...this.#record, errorCode }, this.#run.live)
  }

  async run (signal: AbortSignal, events: WorkEvents): Promise<void> {
    this.#events = events
    const hashes = await this.#run.run(signal)
    const files = this.#record.files.map((file, i) => ({ ...file, checked: hashes[i] ?? file.checked }))
    this.#record = { ...this.#record, files }
    await this.#register(this.#record, signal)
  }

  discard (): Promise<void> {
    return this.#run.discard()
  }

  #checked (index: number, hex: string): void {
    this.#record = { ...this.#record, files: this.#record.files.map((file, i) => i === index ? { ...file, checked: hex } : file) }
    this.#events.keep()
    this.#events.changed()
  }
}
