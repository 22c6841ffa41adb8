import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { join } from 'node:path'
import { svcError, type Clock, type Logger, type RuntimeInfo, type Timer } from '../../contract/index.js'
import {
  LABEL_INSTANCE, type ContainerRuntime, type EngineExit, type EngineInspection, type EngineSpec, type LogOptions,
  type ProgramPipes
} from '../../contract/provider/engine-runtime.js'
import { EngineProcess, writeRecord, type ProcessDeps } from './process-engine.js'
import { engineGone } from './process-errors.js'
import { followOutput } from './process-follow.js'
import { assertPortsFree } from '../port-check.js'
import { residentBytes } from './process-memory.js'
import { createRecordStore, type ProcessRecord, type ProcessSpec } from './process-record.js'
import { recoverRecords } from './process-recovery.js'
import { createProcessTable, type ProcessTable } from './process-table.js'
import { linkedAbort } from '../../async/waiting.js'

/** How often the output of engines is measured. Our own children tell of their end by themselves. */
const LOOK_MS = 1_000
/** How often it is looked whether an engine still runs that another gateway started. */
const LIVENESS_LOOK_MS = 250

export interface ProcessRuntimeOptions {
  /** The gateway's state folder; engines are kept below `<stateDir>/runtime`. */
  readonly stateDir: string
  /** The gateway's environment; engines get the allow-list of process-env.ts from it. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
  readonly reason: string
  readonly table?: ProcessTable
}

/** Opens the driver for child processes and adopts what an earlier gateway left. One per state folder at a time. */
export async function openProcessRuntime (options: ProcessRuntimeOptions): Promise<ContainerRuntime> {
  const { clock, log, env } = options
  const store = createRecordStore(join(options.stateDir, 'runtime'))
  const table = options.table ?? createProcessTable(process.platform)
  const records = await recoverRecords({ store, table, clock, log })
  return new ProcessRuntime({ store, table, clock, log, env }, options.reason, records)
}

class ProcessRuntime implements ContainerRuntime {
  readonly info: RuntimeInfo
  readonly form = 'process'
  readonly #deps: ProcessDeps
  readonly #engines = new Map<string, EngineProcess>()
  readonly #listeners = new Set<{ instance: string, listener: (exit: EngineExit) => void }>()
  readonly #closing = new AbortController()
  #timer: Timer | null = null
  #measuredAt = -Infinity

  constructor (deps: Omit<ProcessDeps, 'onEnded'>, reason: string, records: readonly ProcessRecord[]) {
    setMaxListeners(0, this.#closing.signal) // one for each follower
    this.#deps = { ...deps, onEnded: engine => this.#tell(engine) }
    this.info = { driver: 'process', version: process.version, endpoint: null, reason }
    for (const record of records) this.#engines.set(record.id, new EngineProcess(record, this.#deps))
    this.#watch()
  }

  imagePresent (): Promise<boolean> {
    return Promise.resolve(true)
  }

  pull (): Promise<void> {
    return Promise.resolve()
  }

  async assertPortFree (spec: EngineSpec): Promise<void> {
    if (spec.form.kind === 'process') await assertPortsFree(spec.form.bindHost, spec)
  }

  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    const { form } = spec
    if (form.kind !== 'process') {
      throw svcError('runtime.failed',
        `engine ${spec.name} needs a container and this gateway runs child processes; set [runtime] driver to docker or podman`)
    }
    const id = `proc-${randomBytes(12).toString('hex')}`
    const processSpec: ProcessSpec = { ...spec, form }
    const record: ProcessRecord = {
      version: 1, id, spec: processSpec, state: 'created', leader: null, startedAt: null, exitCode: null
    }
    await writeRecord(this.#deps.store, record)
    this.#engines.set(id, new EngineProcess(record, this.#deps))
    return id
  }

  async start (id: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await this.#get(id).start(signal)
    this.#watch()
  }

  async startPiped (id: string, signal: AbortSignal): Promise<ProgramPipes> {
    await this.start(id, signal)
    const pipes = this.#get(id).takePipes()
    if (pipes === null) throw svcError('runtime.failed', `engine process ${id} has no streams to speak over`)
    return pipes
  }

  async stop (id: string, timeoutS: number): Promise<void> {
    await this.#engines.get(id)?.stop(timeoutS)
  }

  async remove (id: string): Promise<void> {
    const engine = this.#engines.get(id)
    if (engine === undefined) return
    await engine.remove()
    this.#engines.delete(id)
  }

  async inspect (id: string): Promise<EngineInspection | null> {
    const engine = this.#engines.get(id)
    if (engine === undefined) return null
    await engine.refresh()
    return inspectionOf(engine.record)
  }

  async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    const wanted = Object.entries(labels)
    const engines = [...this.#engines.values()]
      .filter(({ record }) => wanted.every(([name, value]) => record.spec.labels[name] === value))
    await Promise.all(engines.map(engine => engine.refresh()))
    return engines.map(engine => inspectionOf(engine.record))
  }

  async memoryHere (id: string): Promise<number | null> {
    const { state, leader } = this.#engines.get(id)?.record ?? {}
    return state === 'running' && leader != null ? await residentBytes(leader.pid) : null
  }

  async* logs (id: string, options: LogOptions): AsyncIterable<string> {
    const { controller, dispose } = linkedAbort(options.signal, this.#closing.signal)
    try {
      yield* followOutput(this.#get(id), this.#deps.clock, { ...options, signal: controller.signal })
    } finally {
      dispose()
    }
  }

  onExit (instance: string, listener: (exit: EngineExit) => void): () => void {
    const entry = { instance, listener }
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }

  async close (): Promise<void> {
    this.#closing.abort()
    this.#timer?.cancel()
    this.#listeners.clear()
    await Promise.all([...this.#engines.values()].map(engine => engine.release()))
  }

  #get (id: string): EngineProcess {
    const engine = this.#engines.get(id)
    if (engine !== undefined) return engine
    throw engineGone(id)
  }

  /** Looks at adopted engines and at the size of the output files for as long as anything runs. */
  #watch (): void {
    const running = [...this.#engines.values()].filter(engine => engine.running)
    if (this.#timer !== null || running.length === 0 || this.#closing.signal.aborted) return
    const pauseMs = running.some(engine => engine.isAdopted) ? LIVENESS_LOOK_MS : LOOK_MS
    this.#timer = this.#deps.clock.setTimer(pauseMs, () => {
      void this.#look().finally(() => {
        this.#timer = null
        this.#watch()
      })
    })
  }

  async #look (): Promise<void> {
    const now = this.#deps.clock.monotonic()
    const measures = now - this.#measuredAt >= LOOK_MS - LIVENESS_LOOK_MS / 2
    if (measures) this.#measuredAt = now
    const engines = [...this.#engines.values()].filter(engine => engine.running && (measures || !engine.isThere()))
    await Promise.all(engines.map(async engine => {
      try {
        await engine.refresh()
        if (measures) await engine.boundLog()
      } catch (error) {
        this.#deps.log.warn({ err: error, engine: engine.record.id }, 'an engine process cannot be watched')
      }
    }))
  }

  #tell (engine: EngineProcess): void {
    const { id, spec: { labels }, exitCode } = engine.record
    for (const { instance, listener } of [...this.#listeners]) {
      if (labels[LABEL_INSTANCE] !== instance) continue
      try {
        listener({ id, labels, exitCode })
      } catch (error) {
        this.#deps.log.error({ err: error, engine: id }, 'a listener for ended engines failed')
      }
    }
  }
}

function inspectionOf (record: ProcessRecord): EngineInspection {
  const { id, spec: { name, labels, port, ports, form }, state, exitCode, startedAt } = record
  const everywhere = form.bindHost === '' || form.bindHost === '0.0.0.0' || form.bindHost === '::'
  return {
    id,
    name,
    labels,
    state: state === 'starting' ? 'created' : state,
    exitCode: state === 'exited' ? exitCode : null,
    oomKilled: false, // the kernel does not say; the code is 137 then
    address: state === 'running' && port !== null
      ? { host: everywhere ? '127.0.0.1' : form.bindHost, port, ...(ports === undefined ? {} : { ports }) }
      : null,
    label: form.label,
    startedAt
  }
}
