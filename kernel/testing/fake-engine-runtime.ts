import { svcError, type RuntimeInfo } from '../contract/index.js'
import {
  LABEL_SLOT, type ContainerRuntime, type EngineExit, type EngineInspection, type EngineSpec, type LogOptions
} from '../contract/provider/engine-runtime.js'
import { createFakeEngine, type FakeEngine } from './fake-engine.js'

export interface StartedEngine {
  readonly id: string
  readonly slot: string
  readonly spec: EngineSpec
  readonly engine: FakeEngine
}

export interface FakeEngineRuntimeOptions {
  /** Prepares each engine before it takes its first request; may throw to make the start fail. */
  readonly onStart?: (started: StartedEngine) => void | Promise<void>
  readonly form?: 'container' | 'process'
}

interface Entry {
  readonly id: string
  readonly spec: EngineSpec
  engine: FakeEngine | null
  exitCode: number | null
}

/**
 * A container runtime whose containers are fake engines on real sockets of this machine: everything above it is
 * the real thing. Engines listen on free ports, whatever their slot says.
 */
export class FakeEngineRuntime implements ContainerRuntime {
  readonly info: RuntimeInfo = { driver: 'process', version: 'fake', endpoint: null, reason: 'a test asked for it' }
  readonly form: 'container' | 'process'
  /** Every engine that was started, in order. */
  readonly started: StartedEngine[] = []
  readonly #entries = new Map<string, Entry>()
  readonly #listeners = new Set<(exit: EngineExit) => void>()
  readonly #onStart: NonNullable<FakeEngineRuntimeOptions['onStart']>
  #count = 0

  constructor ({ onStart = () => {}, form = 'container' }: FakeEngineRuntimeOptions = {}) {
    this.#onStart = onStart
    this.form = form
  }

  /** The engine that runs for a slot now. */
  engine (slot: string): FakeEngine {
    const running = [...this.#entries.values()].find(entry => entry.spec.labels[LABEL_SLOT] === slot && entry.engine !== null)
    if (running === undefined) throw new Error(`no engine runs for slot ${slot}`)
    return running.engine!
  }

  get running (): number {
    return [...this.#entries.values()].filter(entry => entry.engine !== null).length
  }

  /** Ends a slot's engine from outside, as a crash does. */
  async crash (slot: string, exitCode = 139): Promise<void> {
    const isIt = ({ spec, engine }: Entry): boolean => spec.labels[LABEL_SLOT] === slot && engine !== null
    const entry = [...this.#entries.values()].find(isIt)
    if (entry !== undefined) await this.#end(entry, exitCode)
  }

  imagePresent (): Promise<boolean> { return Promise.resolve(true) }
  pull (): Promise<void> { return Promise.resolve() }

  create (spec: EngineSpec): Promise<string> {
    const id = `fake-${this.form === 'process' ? 'process-' : ''}${++this.#count}`
    this.#entries.set(id, { id, spec, engine: null, exitCode: null })
    return Promise.resolve(id)
  }

  async start (id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry === undefined) throw svcError('runtime.not_found', `no engine ${id}`)
    const engine = await createFakeEngine()
    const started = { id, slot: entry.spec.labels[LABEL_SLOT] ?? '', spec: entry.spec, engine }
    entry.engine = engine
    try {
      await this.#onStart(started)
    } catch (error) {
      await this.#end(entry, 1)
      throw error
    }
    this.started.push(started)
  }

  async stop (id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (entry !== undefined) await this.#end(entry, 0)
  }

  async remove (id: string): Promise<void> {
    await this.stop(id)
    this.#entries.delete(id)
  }

  inspect (id: string): Promise<EngineInspection | null> {
    const entry = this.#entries.get(id)
    return Promise.resolve(entry === undefined ? null : inspection(entry))
  }

  list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    return Promise.resolve([...this.#entries.values()]
      .filter(entry => Object.entries(labels).every(([key, value]) => entry.spec.labels[key] === value))
      .map(inspection))
  }

  async* logs (id: string, _options: LogOptions): AsyncGenerator<string> {
    if (!this.#entries.has(id)) throw svcError('runtime.not_found', `no engine ${id}`)
    yield 'a line of the fake engine'
  }

  onExit (_instance: string, listener: (exit: EngineExit) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Leaves engines alone, as the real drivers do: another gateway may adopt them. */
  close (): Promise<void> {
    this.#listeners.clear()
    return Promise.resolve()
  }

  /** Ends what still runs: for the end of a test. */
  async destroy (): Promise<void> {
    await Promise.all([...this.#entries.values()].map(entry => this.#end(entry, 0)))
  }

  async #end (entry: Entry, exitCode: number): Promise<void> {
    const { engine } = entry
    if (engine === null) return
    entry.engine = null
    entry.exitCode = exitCode
    await engine.close()
    for (const listener of this.#listeners) listener({ id: entry.id, labels: entry.spec.labels, exitCode })
  }
}

function inspection ({ id, spec, engine, exitCode }: Entry): EngineInspection {
  return {
    id,
    name: spec.name,
    labels: spec.labels,
    state: engine !== null ? 'running' : exitCode === null ? 'created' : 'exited',
    exitCode,
    oomKilled: false,
    address: engine === null
      ? null
      : { host: engine.host, port: engine.port, ...(spec.ports === undefined ? {} : { ports: spec.ports }) },
    label: 'fake',
    startedAt: 0
  }
}
