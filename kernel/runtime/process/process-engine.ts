import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { svcError, type Clock, type Logger } from '../../contract/index.js'
import { assertPortsFree } from '../port-check.js'
import { childEnvironment, ENGINE_ID_VARIABLE } from './process-env.js'
import { engineGone, recordNotWritten, spawnFailed, undying } from './process-errors.js'
import { EngineLog } from './process-log.js'
import type { ProgramPipes } from '../../contract/provider/engine-runtime.js'
import type { ProcessRecord, RecordStore } from './process-record.js'
import { engineProcesses, type ProcessTable } from './process-table.js'
import { SerialQueue } from '../../async/serial-queue.js'
import { abortable, pollUntil, settlesWithin } from '../../async/waiting.js'

/** How long killed processes may take to vanish; longer means one hangs in the kernel. */
const GONE_WITHIN_MS = 10_000

export interface ProcessDeps {
  readonly store: RecordStore
  readonly table: ProcessTable
  readonly clock: Clock
  readonly log: Logger
  /** The gateway's environment, read at each start. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly onEnded: (engine: EngineProcess) => void
}

/**
 * One engine as a detached process group. Steps that change its record run one after the other; what they
 * decide is in memory first and then on disk. The token in the child's environment makes the moment between
 * spawn and record safe: a gateway that starts after a crash there finds the child by it (process-recovery.ts).
 */
export class EngineProcess {
  readonly log: EngineLog
  readonly #deps: ProcessDeps
  #record: ProcessRecord
  #child: ChildProcess | null = null
  /** Exit code once our own child has ended; undefined while it runs. */
  #childExit: number | undefined
  #pipes: ProgramPipes | null = null
  #askedToStop = false
  #removed = false
  #ended: { promise: Promise<void>, resolve: () => void }
  readonly #turns = new SerialQueue()
  readonly #released = new AbortController()

  constructor (record: ProcessRecord, deps: ProcessDeps) {
    this.#record = record
    this.#deps = deps
    this.log = new EngineLog(deps.store.logFile(record.id))
    this.#ended = deferred()
  }

  get record (): ProcessRecord {
    return this.#record
  }

  get running (): boolean {
    return this.#record.state === 'running'
  }

  /** Whether an earlier gateway started it: the operating system does not tell us of its end. */
  get isAdopted (): boolean {
    return this.running && this.#child === null
  }

  /** Spawns. A running engine is left as it is; one that ended is started anew. */
  start (signal: AbortSignal): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#removed) throw engineGone(this.#record.id)
      if (this.running) return
      await assertPortsFree(this.#record.spec.form.bindHost, this.#record.spec)
      signal.throwIfAborted()
      await this.#save({ state: 'starting', leader: null, startedAt: this.#deps.clock.now(), exitCode: null })
      const child = await this.#spawn()
      const leader = await this.#deps.table.find(child.pid!)
      // null: it has ended already, and the exit event is on its way
      await this.#save({ state: 'running', leader: leader ?? { pid: child.pid!, group: child.pid!, startId: '' } })
    })
  }

  /** Its streams, once; null for one whose output is its log, or that an earlier gateway started. */
  takePipes (): ProgramPipes | null {
    const pipes = this.#pipes
    this.#pipes = null
    for (const stream of pipes === null ? [] : [pipes.stdout, pipes.stderr]) stream.off('readable', keepUnread)
    return pipes
  }

  /**
   * SIGTERM to the group, SIGKILL after `timeoutS`; resolves when every process of the engine is gone. Rejects with
   * `gateway.stopping` when the engine is released before that.
   */
  async stop (timeoutS: number): Promise<void> {
    await this.#turns.run(() => Promise.resolve()) // a start under way comes first
    if (!this.running) return
    this.#released.signal.throwIfAborted()
    if (timeoutS > 0) {
      // a second SIGTERM makes some engines drop what they are finishing
      if (!this.#askedToStop) await this.#signalGroup('SIGTERM')
      this.#askedToStop = true
      if (await this.#endsWithin(timeoutS * 1000)) return
    }
    await this.#killAll()
    if (await this.#endsWithin(GONE_WITHIN_MS)) return
    throw undying(this.#record)
  }

  /** Ends the engine at once and deletes its record and output. From the call on it can no longer be started. */
  async remove (): Promise<void> {
    this.#removed = true
    await this.stop(0)
    await this.#turns.run(() => this.#deps.store.remove(this.#record.id))
  }

  /**
   * Looks whether the engine still lives and settles its end when not. Our own child reports by itself; only
   * when something of it survived the first attempt there is more to do here.
   */
  async refresh (): Promise<void> {
    if (!this.running || this.#released.signal.aborted) return
    if (this.#child !== null) {
      if (this.#childExit !== undefined) await this.#settle(this.#childExit)
      return
    }
    if (!await this.#leaderLives()) await this.#settle(null)
  }

  /** Whether the number of its first process is taken, which costs little to ask; `refresh` tells by whom. */
  isThere (): boolean {
    return !this.isAdopted || isTaken(this.#record.leader?.pid)
  }

  /** Cuts its output when that has grown too large. To be called every second. */
  async boundLog (): Promise<void> {
    if (this.#record.spec.form.piped !== true) await this.log.look()
  }

  /**
   * From here on nothing is recorded or told; the processes go on, and a `stop` that waits for their end rejects with
   * `gateway.stopping`. Resolves when no write is under way.
   */
  async release (): Promise<void> {
    this.#released.abort(svcError('gateway.stopping', `the gateway stopped before engine ${this.#record.spec.name} had exited`))
    await this.#turns.run(() => Promise.resolve())
  }

  async #spawn (): Promise<ChildProcess> {
    const { id, spec: { form, env } } = this.#record
    const output = form.piped === true ? null : await this.log.openForChild()
    try {
      const child = spawn(form.command, form.args, {
        detached: true, // a group and session of its own: outlives the gateway and its terminal
        stdio: output === null ? 'pipe' : ['ignore', output.fd, output.fd],
        env: childEnvironment(this.#deps.env, env, id),
        ...(form.workingDir === null ? {} : { cwd: form.workingDir })
      })
      this.#childExit = undefined
      child.once('exit', (code, signal) => this.#childEnded(child, exitCodeOf(code, signal)))
      if (child.pid === undefined) await once(child, 'spawn') // rejects with the reason
      child.on('error', error => this.#deps.log.warn({ err: error, engine: id }, 'the process of an engine reports an error'))
      child.unref()
      this.#child = child
      if (child.stdin !== null && child.stdout !== null && child.stderr !== null) {
        // Node throws away what has no reader when a process ends, and its reader comes later than a short one ends
        for (const stream of [child.stdout, child.stderr]) stream.on('readable', keepUnread)
        this.#pipes = { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, pid: child.pid ?? null }
      }
      this.#askedToStop = false
      this.#ended = deferred()
      return child
    } catch (error) {
      await this.#save({ state: 'created', startedAt: null })
      throw spawnFailed(form.command, form.workingDir, error)
    } finally {
      await output?.close()
    }
  }

  #childEnded (child: ChildProcess, code: number): void {
    if (this.#child !== child) return
    this.#childExit = code
    void this.#settle(code)
  }

  /**
   * The first process is gone: takes down what is left of the engine, as a container does, and tells of the end.
   * When something does not die the engine counts as running, and the next look tries again.
   */
  async #settle (exitCode: number | null): Promise<void> {
    const over = await this.#turns.run(async () => {
      if (!this.running || this.#released.signal.aborted) return false
      if (!await this.#clearGroup()) {
        this.#deps.log.warn({ engine: this.#record.id }, undying(this.#record).message)
        return false
      }
      await this.#save({ state: 'exited', exitCode }).catch((error: unknown) => {
        // the end is a fact even when it cannot be written; the next gateway finds the process gone
        this.#deps.log.error({ err: error, engine: this.#record.id }, 'the exit of an engine cannot be recorded')
      })
      return true
    })
    if (!over) return
    this.#ended.resolve()
    this.#deps.onEnded(this)
  }

  async #endsWithin (ms: number): Promise<boolean> {
    const { signal } = this.#released
    const settled = await settlesWithin(this.#deps.clock, ms, abortable(this.#ended.promise, signal))
    if (this.running) signal.throwIfAborted()
    return settled
  }

  async #clearGroup (): Promise<boolean> {
    return pollUntil(this.#deps.clock, 20, GONE_WITHIN_MS, async () => await this.#killAll() === 0)
  }

  /** Returns how many processes there were to kill. */
  async #killAll (): Promise<number> {
    const { table } = this.#deps
    const processes = await engineProcesses(table, this.#record.leader, `${ENGINE_ID_VARIABLE}=${this.#record.id}`)
    for (const { pid } of processes) sendSignal(pid, 'SIGKILL')
    return processes.length
  }

  async #signalGroup (signal: NodeJS.Signals): Promise<void> {
    // checked right before, so that a reused number is never signalled
    if (await this.#leaderLives()) sendSignal(-this.#record.leader!.group, signal)
  }

  async #leaderLives (): Promise<boolean> {
    const { leader } = this.#record
    return leader !== null && (await this.#deps.table.find(leader.pid))?.startId === leader.startId
  }

  async #save (change: Partial<ProcessRecord>): Promise<void> {
    this.#record = { ...this.#record, ...change }
    await writeRecord(this.#deps.store, this.#record)
  }
}

function keepUnread (): void {}

function isTaken (pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Gone meanwhile, or not ours to signal: either way there is nothing more to do. */
function sendSignal (target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal)
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

export async function writeRecord (store: RecordStore, record: ProcessRecord): Promise<void> {
  try {
    await store.write(record)
  } catch (error) {
    throw recordNotWritten(record, store.folder(record.id), error)
  }
}

/** As a shell and a container engine put it: 128 and the signal's number. */
export function exitCodeOf (code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}

function deferred (): { promise: Promise<void>, resolve: () => void } {
  let resolve!: () => void
  const promise = new Promise<void>(done => { resolve = done })
  return { promise, resolve }
}
