import type { Core } from '../core.js'
import { wireTime } from '../wire/times.js'
import {
  laneKindOf, laneKinds, laneOf, operationTypes, PermanentFailure, retryAfter, retryPauseMs, type Held, type Operation,
  type OperationType
} from './operation.js'
import type { OperationTable } from './operation-table.js'

/** What a piece of work may use while it runs. */
export interface Run {
  /** Aborted when the operation is cancelled or the engine closes. */
  readonly signal: AbortSignal
  progress (stage: string, processed: number | null, total: number | null, detail?: Readonly<Record<string, number>>): void
  /**
   * From here on the operation cannot be cancelled, and a later try of it finds this payload. Throws the signal's reason if it
   * was cancelled before.
   */
  hold (payload: Held): void
  /**
   * Writes what the work came to, in one transaction with the operation's end: it is completed with its effect, or neither is
   * there. `write` returns what goes into `result_metadata`. Throws the signal's reason if the operation was cancelled meanwhile.
   */
  commit (write: () => Readonly<Record<string, unknown>>, details?: Readonly<Record<string, unknown>>): void
}

/** Does one piece of work and ends it with `run.commit`. It may be called again after a crash at any of its steps. */
export type Work = (operation: Operation, run: Run) => Promise<void>

/** When the try began that ended an operation, and how long it took. */
export interface LastTry {
  readonly startedAt: number
  readonly durationMs: number
}

export interface QueueDeps {
  readonly core: Core
  readonly table: OperationTable
  /** Told in the transaction that completes an operation, fails it, or cancels one that runs. */
  readonly ending: (operation: Operation, lastTry: LastTry) => void
  /** Told in the transaction in which a client cancels an operation, whether it waits or runs. */
  readonly cancelling: (operation: Operation) => void
  /** Told after an operation ended, outside of its transaction. */
  readonly ended: (operation: Operation) => void
}

interface Running {
  readonly lane: string
  readonly abort: AbortController
  /** By the clock of the wire, and by one that nobody sets. */
  readonly startedAt: number
  readonly start: number
}

/** Of each kind of lane: banks that wait for a model that hangs hold up no other work. */
const AT_ONCE = 4
/** One of each type, in as many lanes of a kind as may be busy and as many more. */
const LOOK_AHEAD = 2 * AT_ONCE * operationTypes.length
/** A timer holds no longer pause than this; the queue then looks again. */
const LONGEST_TIMER_MS = 60_000
/** After a disk that took nothing. */
const LATER_MS = 5_000

/** Runs the operations of all banks, one at a time for each lane, and survives the end of the process at any moment. */
export class OperationQueue {
  readonly #deps: QueueDeps
  readonly #works = new Map<OperationType, Work>()
  readonly #running = new Map<string, Running>()
  #timer: NodeJS.Timeout | null = null
  /** Operations are processing that do not run: of the process before, or their end could not be written. */
  #isLeft = true
  /** The last look failed, and the next one is at the timer's end. */
  #isStuck = false
  #isStarted = false

  constructor (deps: QueueDeps) {
    this.#deps = deps
  }

  /** Every type has its work before `start`. */
  handle (type: OperationType, work: Work): void {
    this.#works.set(type, work)
  }

  start (): void {
    const { core } = this.#deps
    this.#isStarted = true
    core.closing.addEventListener('abort', () => {
      if (this.#timer !== null) clearTimeout(this.#timer)
      for (const { abort } of this.#running.values()) abort.abort(core.closing.reason)
    })
    this.wake()
  }

  /**
   * Looks for work, once it has started; call it after adding some. Never throws: where nothing can be read or written, it looks
   * again later.
   */
  wake (): void {
    const { core } = this.#deps
    if (core.closing.aborted || this.#isStuck || !this.#isStarted) return
    let inMs: number | null
    try {
      this.#beginAll()
      inMs = this.#nextLook()
    } catch (error) {
      this.#isStuck = true
      inMs = LATER_MS
      core.log('warn', 'operations of the memory engine cannot be begun and wait', { error: (error as Error).message })
    }
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = inMs === null ? null : setTimeout(() => {
      this.#isStuck = false
      this.wake()
    }, inMs).unref()
  }

  #beginAll (): void {
    const { table } = this.#deps
    if (this.#isLeft) table.resume([...this.#running.keys()])
    this.#isLeft = false
    for (const kind of laneKinds) {
      const lanes = new Set([...this.#running.values()].map(({ lane }) => lane).filter(lane => lane.startsWith(`${kind} `)))
      if (lanes.size >= AT_ONCE) continue
      for (const next of table.runnable(operationTypes.filter(type => laneKindOf(type) === kind), LOOK_AHEAD)) {
        const lane = laneOf(next)
        if (lanes.has(lane) || lanes.size >= AT_ONCE) continue
        lanes.add(lane)
        this.#begin(next.id, lane)
      }
    }
  }

  /** How long until one may run that waits for its pause to end, or until the next look; null if none waits. */
  #nextLook (): number | null {
    const { core, table } = this.#deps
    const at = table.nextRetryAt()
    return at === null ? null : Math.min(LONGEST_TIMER_MS, Math.max(0, at - core.now()) + 1)
  }

  /** Ends it if it waits or runs; its children too. Nothing that it has not committed stays. */
  cancel (id: string): void {
    const { core: { store }, table, ending, cancelling } = this.#deps
    const operation = table.get(id)
    if (operation === null) return
    const all = [operation, ...table.children(id)].filter(({ status }) => status === 'pending' || status === 'processing')
    store.transaction(() => {
      for (const each of all) {
        table.cancel(each.id)
        cancelling(each)
        const running = this.#running.get(each.id)
        if (running !== undefined) ending(table.get(each.id)!, lastTryOf(running))
      }
      if (operation.parentId !== null) table.settleParent(operation.parentId)
    })
    for (const each of all) this.#running.get(each.id)?.abort.abort(new Error('the operation was cancelled'))
    this.wake()
  }

  /** The same for all of a type, in every bank; of a type that has neither parents nor children. Returns how many. */
  cancelAll (type: OperationType): number {
    const { core: { store }, table, ending } = this.#deps
    const cancelled: Running[] = []
    const count = store.transaction(() => {
      const all = table.cancelAll(type)
      for (const [id, running] of this.#running) {
        const operation = running.abort.signal.aborted ? null : table.get(id)
        if (operation?.status !== 'cancelled') continue
        cancelled.push(running)
        ending(operation, lastTryOf(running))
      }
      return all
    })
    for (const { abort } of cancelled) abort.abort(new Error('the operation was cancelled'))
    this.wake()
    return count
  }

  #begin (id: string, lane: string): void {
    const { core, table } = this.#deps
    core.store.transaction(() => {
      table.begin(id)
      const { parentId } = table.get(id)!
      if (parentId !== null) table.settleParent(parentId)
    })
    const running: Running = { lane, abort: new AbortController(), startedAt: core.now(), start: performance.now() }
    this.#running.set(id, running)
    void this.#run(table.get(id)!, running).catch((error: unknown) => {
      this.#isLeft = true
      core.log('warn', 'an operation of the memory engine could not be ended', { operation: id, error: (error as Error).message })
    }).finally(() => {
      this.#running.delete(id)
      this.wake()
    })
  }

  async #run (operation: Operation, running: Running): Promise<void> {
    const { core, table, ended } = this.#deps
    const work = this.#works.get(operation.type)
    try {
      // what is begun while `wake` looks at the list must not end within it
      await Promise.resolve()
      if (work === undefined) throw new Error(`no work is known for operations of type ${operation.type}`)
      await work(operation, this.#runOf(operation, running))
      if (!core.closing.aborted && table.get(operation.id)?.status === 'processing') throw new Error(
        'the work ended without a result'
      )
    } catch (error) {
      // the database is closed: what ran is taken up at the next start
      if (!core.closing.aborted) this.#failed(operation, error, running)
    }
    if (core.closing.aborted) return
    const now = table.get(operation.id)
    if (now === null || now.status === 'pending' || now.status === 'processing') return
    table.prune(now.bankId)
    ended(now)
  }

  #runOf (operation: Operation, running: Running): Run {
    const { core, table, ending } = this.#deps
    const { signal } = running.abort
    return {
      signal,
      progress: (stage, processed, total, detail) => {
        signal.throwIfAborted()
        table.progress(operation.id, { stage, at: wireTime(core.now()), processed, total, detail: detail ?? null })
      },
      hold: payload => {
        signal.throwIfAborted()
        table.keep(operation.id, payload)
      },
      commit: (write, details) => {
        signal.throwIfAborted()
        core.store.transaction(() => {
          // a request may have cancelled or deleted it since the last look
          if (table.get(operation.id)?.status !== 'processing') throw new Error('the operation was cancelled')
          const result = write()
          table.complete(operation.id, result, details ?? null)
          ending(table.get(operation.id)!, lastTryOf(running))
          if (operation.parentId !== null) table.settleParent(operation.parentId)
        })
      }
    }
  }

  #failed (operation: Operation, error: unknown, running: Running): void {
    const { core, table, ending } = this.#deps
    // cancelled or deleted meanwhile
    if (running.abort.signal.aborted || table.get(operation.id)?.status !== 'processing') return
    const message = error instanceof Error ? error.message : String(error)
    const details = (error as { details?: Readonly<Record<string, unknown>> | null }).details ?? null
    const retry = retryAfter(operation, error)
    core.log('warn', retry === null ? 'an operation of the memory engine failed' : 'an operation of the memory engine failed and is tried again', {
      operation: operation.id, type: operation.type, error: message
    })
    core.store.transaction(() => {
      if (retry === null) {
        if (error instanceof PermanentFailure) error.write?.()
        table.fail(operation.id, message, details)
        ending(table.get(operation.id)!, lastTryOf(running))
      } else table.postpone(operation.id, retry, message, core.now() + retryPauseMs(retry))
      if (operation.parentId !== null) table.settleParent(operation.parentId)
    })
  }
}

function lastTryOf ({ startedAt, start }: Running): LastTry {
  return { startedAt, durationMs: performance.now() - start }
}
