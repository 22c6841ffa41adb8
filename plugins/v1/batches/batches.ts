import { randomBytes } from 'node:crypto'
import { copyFile, link, mkdir, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, pause, type Logger, type PluginTable, type Timer } from 'svc-gateway/plugin'
import { BatchRun, type BatchPaths, type RunDeps } from './batch-run.js'
import type { StoredFile } from '../files/ref.js'
import { batchesError } from './errors.js'
import { isOver, type BatchRecord } from './record.js'
import type { BatchBody } from './schemas.js'

export interface BatchesDeps extends RunDeps {
  readonly folder: string
  readonly table: PluginTable
  readonly log: Logger
  /** Batches that are worked on at a time; others wait, oldest first. */
  readonly active: number
}

const MOST_WAITING = 100
const MOST_KEPT = 1000
const MONTH_S = 30 * 86_400
const HOUR_S = 3600
/** After a failure of the gateway's own, such as a full disk. */
const AGAIN_MS = 30_000
/** So often it is looked whether one that waits has expired. */
const LOOK_MS = 60_000

/** The batches of this gateway: the newest thousand, and those that are worked on. */
export class Batches {
  readonly #deps: BatchesDeps
  /** Oldest first. */
  readonly #records = new Map<string, BatchRecord>()
  readonly #runs = new Map<string, BatchRun>()
  readonly #working = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  /** Those whose bytes are not there yet. */
  #making = 0
  #look: Timer | null = null

  constructor (deps: BatchesDeps) {
    this.#deps = deps
  }

  /** Goes on with what an earlier gateway left. */
  async load (): Promise<void> {
    const { folder, table } = this.#deps
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const records = table.keys().map(id => table.get(id) as BatchRecord).sort((a, b) => a.seq - b.seq)
    for (const record of records) this.#records.set(record.id, record)
    for (const name of await readdir(folder)) {
      const record = this.#records.get(name.split('.')[0]!)
      if (record === undefined || isOver(record)) await unlink(join(folder, name))
    }
    this.#startNext()
  }

  /** Ends when nothing of them runs any more; they go on with the next start. */
  async stop (): Promise<void> {
    this.#stop.abort(new Error('the gateway stops'))
    this.#look?.cancel()
    await Promise.allSettled(this.#working)
  }

  /** Newest first. */
  list (): readonly BatchRecord[] {
    return [...this.#records.values()].reverse()
  }

  get (id: string): BatchRecord {
    const record = this.#records.get(id)
    if (record !== undefined) return record
    throw batchesError('batches.not_found', 'no batch has this id; GET /v1/batches lists all batches', { param: 'batch_id', details: { id } })
  }

  /** Kept, with the bytes of its file, when it resolves. Rejects with `files.not_found` and `batches.too_many`. */
  async create (body: BatchBody, agent: string | null): Promise<BatchRecord> {
    const { files, clock, table } = this.#deps
    const file = files.get(body.input_file_id)
    if (this.#open().length + this.#making >= MOST_WAITING) {
      throw batchesError('batches.too_many', `${MOST_WAITING} batches are unfinished, which is the limit; try again when some have finished`, { details: { retry_after_s: 60 } })
    }
    const now = Math.floor(clock.now() / 1000)
    const id = `batch_${randomBytes(12).toString('hex')}`
    await this.#keepInput(file, this.#paths({ id }).input)
    const record: BatchRecord = {
      id,
      seq: ([...this.#records.values()].at(-1)?.seq ?? 0) + 1,
      endpoint: body.endpoint,
      inputFileId: file.id,
      completionWindow: body.completion_window,
      metadata: body.metadata ?? null,
      outputExpiresS: body.output_expires_after?.seconds ?? MONTH_S,
      agent,
      status: 'validating',
      problems: [],
      isWritten: false,
      total: 0,
      completed: 0,
      failed: 0,
      outputFileId: null,
      errorFileId: null,
      createdAt: now,
      expiresAt: now + windowS(body.completion_window),
      inProgressAt: null,
      finalizingAt: null,
      completedAt: null,
      failedAt: null,
      expiredAt: null,
      cancellingAt: null,
      cancelledAt: null
    }
    table.set(id, record)
    this.#records.set(id, record)
    this.#forget()
    this.#startNext()
    return this.get(id)
  }

  /** The bytes stay, whatever becomes of the file; where a second name is not to be had, a copy. */
  async #keepInput (file: StoredFile, input: string): Promise<void> {
    const { files } = this.#deps
    this.#making++
    try {
      await link(files.path(file), input).catch(() => copyFile(files.path(file), input))
    } catch (error) {
      await unlink(input).catch(() => {
        // it was not begun
      })
      files.get(file.id) // deleted meanwhile: that is what is said
      throw error
    } finally {
      this.#making--
    }
  }

  /** Throws `batches.finished`. */
  cancel (id: string): BatchRecord {
    const record = this.get(id)
    if (isOver(record)) throw batchesError('batches.finished', `the batch is ${record.status} already`, { details: { id, status: record.status } })
    if (record.cancellingAt !== null) return record
    const run = this.#runs.get(id)
    if (run === undefined) this.#keep(id, { status: 'cancelling', cancellingAt: Math.floor(this.#deps.clock.now() / 1000) }, true)
    else run.cancel()
    this.#startNext()
    return this.get(id)
  }

  #open (): readonly BatchRecord[] {
    return [...this.#records.values()].filter(record => !isOver(record))
  }

  #startNext (): void {
    let waiting = 0
    for (const record of this.#open()) {
      if (this.#stop.signal.aborted) return
      // a cancelled one asks nothing, and neither does an expired one, so they wait for no turn
      const asks = record.cancellingAt === null && record.expiresAt * 1000 > this.#deps.clock.now()
      if (this.#runs.has(record.id)) continue
      if (asks && this.#runs.size >= this.#deps.active) {
        waiting++
        continue
      }
      const tell = (change: Partial<BatchRecord>, isKept: boolean): void => this.#keep(record.id, change, isKept)
      const run = new BatchRun(this.#deps, record, this.#paths(record), tell, this.#stop.signal)
      this.#runs.set(record.id, run)
      const work = this.#work(record.id, run).finally(() => { this.#working.delete(work) })
      this.#working.add(work)
    }
    this.#look?.cancel()
    this.#look = waiting === 0 ? null : this.#deps.clock.setTimer(LOOK_MS, () => this.#startNext())
  }

  async #work (id: string, run: BatchRun): Promise<void> {
    const { log, clock } = this.#deps
    try {
      await run.run()
    } catch (error) {
      if (this.#stop.signal.aborted) return
      log.error({ err: error, batch: id }, `a batch cannot continue; next attempt in ${AGAIN_MS / 1000} s: ${messageOf(error)}`)
      await pause(clock, AGAIN_MS, this.#stop.signal)
    } finally {
      this.#runs.delete(id)
    }
    this.#startNext()
  }

  #keep (id: string, change: Partial<BatchRecord>, isKept: boolean): void {
    const record = { ...this.#records.get(id)!, ...change }
    this.#records.set(id, record)
    if (isKept) this.#deps.table.set(id, record)
  }

  #paths ({ id }: Pick<BatchRecord, 'id'>): BatchPaths {
    const path = (kind: string): string => join(this.#deps.folder, `${id}.${kind}`)
    return { input: path('input'), output: path('output'), errors: path('errors') }
  }

  /** The oldest that are over give way. */
  #forget (): void {
    for (const record of [...this.#records.values()].slice(0, Math.max(0, this.#records.size - MOST_KEPT))) {
      if (!isOver(record)) continue
      this.#deps.table.delete(record.id)
      this.#records.delete(record.id)
    }
  }
}

function windowS (window: string): number {
  return Number(window.slice(0, -1)) * (window.endsWith('d') ? 24 * HOUR_S : HOUR_S)
}
