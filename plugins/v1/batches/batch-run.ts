import { setMaxListeners } from 'node:events'
import { stat, unlink } from 'node:fs/promises'
import { messageOf, shownMessage, type Clock, type SurfaceName } from 'svc-gateway/plugin'
import { createHash } from 'node:crypto'
import type { FileStore } from '../files/ref.js'
import { BatchInput, parseRow, type InputLine, type InputRow } from './input.js'
import type { BatchEndpoint, BatchRecord, InputProblem } from './record.js'
import { BatchResults, rowId, type RowResult } from './results.js'
import { askRow } from './row-call.js'
import type { SlotTurns } from './slot-turns.js'

/** The files of one batch while it is not over. */
export interface BatchPaths {
  readonly input: string
  readonly output: string
  readonly errors: string
}

export interface RunDeps {
  readonly clock: Clock
  readonly files: FileStore
  readonly turns: SlotTurns
  readonly baseUrl: () => string
  /** Rows of one batch that are asked at a time. */
  readonly parallel: number
}

/** What a run says of itself; `isKept` changes are on the disk when the call returns. */
export type Tell = (change: Partial<BatchRecord>, isKept: boolean) => void

/** Where a row may be asked; a slot without the second surface is asked on the first. */
const surfaces: Readonly<Record<BatchEndpoint, readonly SurfaceName[]>> = {
  '/v1/chat/completions': ['chat'],
  '/v1/completions': ['completions'],
  '/v1/embeddings': ['embeddings'],
  '/v1/responses': ['responses', 'chat']
}

const MOST_RESULT_BYTES = 2 * 1024 ** 3
const ROWS_AT_ONCE = 500
/** A clock that jumps is noticed by then. */
const LONGEST_TIMER_MS = 60_000

/**
 * One batch from where it stands to its end. Can be ended at any moment, by a crash too: what is in the record and in the results
 * is what counts, and a run that begins there ends in the same way.
 */
export class BatchRun {
  readonly #deps: RunDeps
  readonly #paths: BatchPaths
  readonly #tell: Tell
  readonly #stop: AbortSignal
  /** Aborts when no further row is to be asked: cancelled, expired, failed, or the gateway stops. */
  readonly #over = new AbortController()
  #record: BatchRecord

  constructor (deps: RunDeps, record: BatchRecord, paths: BatchPaths, tell: Tell, stop: AbortSignal) {
    this.#deps = deps
    this.#paths = paths
    this.#tell = tell
    this.#record = record
    this.#stop = stop
  }

  /** Asks no further rows, and gives up those that are being asked. */
  cancel (): void {
    this.#change({ status: 'cancelling', cancellingAt: this.#now() })
    this.#over.abort(new Error('the batch was cancelled'))
  }

  /** Resolves when the batch is over. Rejects with what it cannot go on for, or the reason of the stop. */
  async run (): Promise<void> {
    if (!this.#record.isWritten && !await this.#work()) return
    await this.#handOver()
  }

  /** False for a file that cannot be run. */
  async #work (): Promise<boolean> {
    const { id, endpoint } = this.#record
    const input = await BatchInput.open(this.#paths.input, this.#stop).catch(whenMissing)
    if (input === null) {
      await this.#fail([{ code: 'input_missing', line: null, message: 'the content of the file is missing on disk', param: null }])
      return false
    }
    try {
      if (this.#record.status === 'validating') {
        const problems = await input.problems(endpoint, this.#stop)
        if (problems.length > 0) {
          await this.#fail(problems)
          return false
        }
        if (!this.#isCancelled()) this.#change({ status: 'in_progress', inProgressAt: this.#now(), total: input.lines.length })
      }
      const results = await BatchResults.open(id, this.#paths.output, this.#paths.errors)
      try {
        this.#count(results)
        if (this.#record.total === 0) this.#change({ total: input.lines.length })
        if (this.#record.status === 'in_progress') await this.#rows(input, results)
        const isExpired = !this.#isCancelled() && input.lines.some(({ line }) => !results.has(line))
        if (!this.#isCancelled()) {
          this.#change({ status: 'finalizing', finalizingAt: this.#now(), ...(isExpired ? { expiredAt: this.#now() } : {}) })
        }
        await this.#fill(input, results)
        this.#change({ isWritten: true, completed: results.completed, failed: results.failed })
        return true
      } finally {
        await results.close()
      }
    } finally {
      await input.close()
    }
  }

  async #rows (input: BatchInput, results: BatchResults): Promise<void> {
    const signal = AbortSignal.any([this.#stop, this.#over.signal])
    setMaxListeners(0, signal) // some for each row
    const endTimer = this.#expire(signal)
    let next = 0
    const work = async (): Promise<void> => {
      while (next < input.lines.length && !signal.aborted) {
        const line = input.lines[next++]!
        if (results.has(line.line)) continue
        const result = await this.#row(input, line, results, signal)
        if (result === null) return
        await results.add([result])
        this.#count(results)
      }
    }
    let failure: unknown = null
    const workers = Array.from({ length: this.#deps.parallel }, () => work().catch((error: unknown) => {
      failure ??= error
      this.#over.abort(error)
    }))
    await Promise.all(workers)
    endTimer()
    this.#stop.throwIfAborted()
    if (failure !== null) throw failure
  }

  /** Null for one that was given up. */
  async #row (input: BatchInput, line: InputLine, results: BatchResults, signal: AbortSignal): Promise<RowResult | null> {
    const { id, endpoint, agent } = this.#record
    const row = parseRow(await input.read(line), line.line, endpoint) as InputRow
    const requestId = rowId(id, line.line)
    const ended = (result: Partial<RowResult>): RowResult =>
      ({ line: line.line, customId: row.customId, response: null, error: null, ...result })
    if (row.body.stream === true) return ended({ response: { status_code: 400, request_id: requestId, body: NO_STREAM } })
    if (results.bytes > MOST_RESULT_BYTES) {
      return ended({ error: { code: 'results_too_large', message: `the results of this batch are larger than ${MOST_RESULT_BYTES} bytes` } })
    }
    const { model } = row.body
    const { clock, turns, baseUrl } = this.#deps
    const take = typeof model === 'string' ? (body: Buffer) => turns.take(requestId, model, surfaces[endpoint], body, signal) : undefined
    try {
      const { status, requestId: told, body } = await askRow(clock, {
        baseUrl: baseUrl(), path: endpoint, body: row.body, requestId, agent
      }, signal, take)
      return ended({ response: { status_code: status, request_id: told, body } })
    } catch (error) {
      if (signal.aborted) return null
      return ended({ error: { code: 'request_failed', message: shownMessage(messageOf(error)) } })
    }
  }

  /** Rows without a result get one that says why. */
  async #fill (input: BatchInput, results: BatchResults): Promise<void> {
    const error = this.#isCancelled()
      ? { code: 'batch_cancelled', message: 'the batch was cancelled before this request was answered' }
      : { code: 'batch_expired', message: 'the batch expired before this request was answered' }
    let rows: RowResult[] = []
    for (const line of input.lines) {
      this.#stop.throwIfAborted()
      if (results.has(line.line)) continue
      const row = parseRow(await input.read(line), line.line, this.#record.endpoint)
      if ('customId' in row) rows.push({ line: line.line, customId: row.customId, response: null, error })
      if (rows.length < ROWS_AT_ONCE) continue
      await results.add(rows)
      rows = []
    }
    await results.add(rows)
    this.#count(results)
  }

  async #handOver (): Promise<void> {
    const { id, completed, failed, outputExpiresS, cancellingAt, expiredAt } = this.#record
    const made = async (kind: 'output' | 'error', path: string, rows: number): Promise<string | null> => {
      if (rows === 0) return null
      const file = { id: madeId(id, kind), filename: `${id}_${kind}.jsonl`, purpose: 'batch_output', expiresAfterS: outputExpiresS }
      // what is not there any more was taken over before a crash; it may have been deleted since then
      if (await stat(path).catch(whenMissing) !== null) await this.#deps.files.take(path, file)
      return file.id
    }
    const outputFileId = await made('output', this.#paths.output, completed)
    const errorFileId = await made('error', this.#paths.errors, failed)
    const now = this.#now()
    const end = cancellingAt !== null
      ? { status: 'cancelled', cancelledAt: now } as const
      : expiredAt !== null ? { status: 'expired' } as const : { status: 'completed', completedAt: now } as const
    this.#change({ ...end, outputFileId, errorFileId })
    await this.#clear()
  }

  async #fail (problems: readonly InputProblem[]): Promise<void> {
    this.#change({ status: 'failed', failedAt: this.#now(), problems })
    await this.#clear()
  }

  /** After the record says that the batch is over, which needs them no more: what a crash leaves is cleared up at the start. */
  async #clear (): Promise<void> {
    await Promise.all(Object.values(this.#paths).map((path: string) => unlink(path).catch(whenMissing)))
  }

  /** Ends the rows when the time of the batch is over. Returns what stops the timer. */
  #expire (signal: AbortSignal): () => void {
    const { clock } = this.#deps
    const end = this.#record.expiresAt * 1000
    let timer = clock.setTimer(0, () => {})
    const arm = (): void => {
      const left = end - clock.now()
      if (left <= 0) return this.#over.abort(new Error('the batch has expired'))
      if (!signal.aborted) timer = clock.setTimer(Math.min(left, LONGEST_TIMER_MS), arm)
    }
    timer.cancel()
    arm()
    return () => timer.cancel()
  }

  #isCancelled (): boolean {
    return this.#record.cancellingAt !== null
  }

  #count ({ completed, failed }: BatchResults): void {
    this.#record = { ...this.#record, completed, failed }
    this.#tell({ completed, failed }, false)
  }

  #change (change: Partial<BatchRecord>): void {
    this.#record = { ...this.#record, ...change }
    this.#tell(change, true)
  }

  #now (): number {
    return Math.floor(this.#deps.clock.now() / 1000)
  }
}

const NO_STREAM = {
  error: {
    code: 'validation.invalid', message: '`stream` is not supported in batches: omit it', type: 'invalid_request_error', param: 'stream'
  }
}

function whenMissing (error: unknown): null {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return null
}

/** The same for the same batch, so that a file is made once. */
function madeId (batch: string, kind: string): string {
  return `file-${createHash('sha256').update(`${batch} ${kind}`).digest('hex').slice(0, 24)}`
}
