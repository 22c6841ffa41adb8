import { svcError, type Clock, type RuntimeInfo } from '../contract/index.js'
import {
  LABEL_SLOT, type ContainerRuntime, type EngineExit, type EngineInspection, type EngineSpec, type LogOptions, type PullProgress
} from '../contract/provider/engine-runtime.js'
import { pause } from '../async/waiting.js'

/** How one engine behaves. Times in milliseconds of the clock. The default is an engine that just works. */
export interface EngineBehaviour {
  readonly createMs?: number
  readonly createFails?: boolean
  readonly startMs?: number
  readonly startFails?: 'error' | 'port'
  /** Time from start to a good health answer; Infinity never gets there. */
  readonly warmMs?: number
  /** Dies this long after its start. */
  readonly diesAfterMs?: number
  readonly exitCode?: number
  /** How long it takes to stop when asked; longer than the caller's patience gets it killed. */
  readonly stopMs?: number
  readonly removeMs?: number
  /** How often its removal fails before it works. */
  readonly removeFails?: number
  readonly logs?: readonly string[]
}

interface FakeEngine {
  readonly id: string
  readonly spec: EngineSpec
  readonly behaviour: EngineBehaviour
  state: 'created' | 'running' | 'exited'
  startedAt: number
  exitCode: number | null
  removeFails: number
}

/**
 * A container runtime without containers: engines are entries in a table that follow a script on the clock.
 * Keeps count of what must never happen, so that a test can look at the end.
 */
export class FakeRuntime implements ContainerRuntime {
  readonly info: RuntimeInfo = { driver: 'process', version: 'fake', endpoint: null, reason: 'a test asked for it' }
  readonly form = 'container'
  readonly engines = new Map<string, FakeEngine>()
  /** Every engine that was ever created, by slot. */
  readonly created: string[] = []
  /** Slots that had two engines at once: must stay empty. */
  readonly doubles: string[] = []
  readonly #clock: Clock
  readonly #behave: (slot: string, nth: number) => EngineBehaviour
  readonly #listeners = new Set<(exit: EngineExit) => void>()
  #count = 0

  constructor (clock: Clock, behave: (slot: string, nth: number) => EngineBehaviour = () => ({})) {
    this.#clock = clock
    this.#behave = behave
  }

  imagePresent (): Promise<boolean> { return Promise.resolve(true) }

  async pull (_image: string, _digest: string | null, onProgress: (progress: PullProgress) => void): Promise<void> {
    onProgress({ layer: 1, totalLayers: 1, currentBytes: 1, totalBytes: 1, message: 'done' })
  }

  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    const slot = spec.labels[LABEL_SLOT] ?? ''
    const behaviour = this.#behave(slot, this.#count)
    const id = `fake-${++this.#count}`
    // the engine exists from here on, whether or not the caller stays to hear its id
    if (behaviour.createFails === true) throw svcError('runtime.failed', 'create was refused')
    if ([...this.engines.values()].some(engine => engine.spec.labels[LABEL_SLOT] === slot)) this.doubles.push(slot)
    this.engines.set(id, { id, spec, behaviour, state: 'created', startedAt: 0, exitCode: null, removeFails: behaviour.removeFails ?? 0 })
    this.created.push(slot)
    await pause(this.#clock, behaviour.createMs ?? 0, signal)
    signal.throwIfAborted()
    return id
  }

  async start (id: string, signal: AbortSignal): Promise<void> {
    const engine = this.#engine(id)
    await pause(this.#clock, engine.behaviour.startMs ?? 0, signal)
    signal.throwIfAborted()
    if (engine.behaviour.startFails === 'port') throw svcError('slot.port_conflict', `port ${engine.spec.port} is in use`)
    if (engine.behaviour.startFails === 'error') throw svcError('runtime.failed', 'start was refused')
    engine.state = 'running'
    engine.startedAt = this.#clock.monotonic()
    const { diesAfterMs } = engine.behaviour
    if (diesAfterMs !== undefined) this.#clock.setTimer(diesAfterMs, () => this.exit(id, engine.behaviour.exitCode ?? 1))
  }

  async stop (id: string, timeoutS: number): Promise<void> {
    const engine = this.engines.get(id)
    if (engine?.state !== 'running') return
    await pause(this.#clock, Math.min(engine.behaviour.stopMs ?? 0, timeoutS * 1000))
    this.exit(id, (engine.behaviour.stopMs ?? 0) > timeoutS * 1000 ? 137 : 0)
  }

  async remove (id: string): Promise<void> {
    const engine = this.engines.get(id)
    if (engine === undefined) return
    await pause(this.#clock, engine.behaviour.removeMs ?? 0)
    if (engine.removeFails-- > 0) throw svcError('runtime.failed', 'remove was refused')
    this.exit(id, 137)
    this.engines.delete(id)
  }

  inspect (id: string): Promise<EngineInspection | null> {
    const engine = this.engines.get(id)
    return Promise.resolve(engine === undefined ? null : this.#inspection(engine))
  }

  list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    return Promise.resolve([...this.engines.values()]
      .filter(engine => Object.entries(labels).every(([key, value]) => engine.spec.labels[key] === value))
      .map(engine => this.#inspection(engine)))
  }

  async* logs (id: string, options: LogOptions): AsyncGenerator<string> {
    const lines = this.engines.get(id)?.behaviour.logs ?? []
    yield* lines.slice(-options.tail)
  }

  onExit (_instance: string, listener: (exit: EngineExit) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  close (): Promise<void> {
    this.#listeners.clear()
    return Promise.resolve()
  }

  /** Ends an engine from outside, as a crash does. */
  exit (id: string, exitCode: number): void {
    const engine = this.engines.get(id)
    if (engine?.state !== 'running') return
    engine.state = 'exited'
    engine.exitCode = exitCode
    for (const listener of this.#listeners) listener({ id, labels: engine.spec.labels, exitCode })
  }

  /** The running engine on a port, if it has warmed up. */
  health (port: number): 'ok' | 'loading' | 'refused' {
    const engine = [...this.engines.values()].find(candidate => candidate.spec.port === port && candidate.state === 'running')
    if (engine === undefined) return 'refused'
    return this.#clock.monotonic() - engine.startedAt >= (engine.behaviour.warmMs ?? 0) ? 'ok' : 'loading'
  }

  running (slot: string): FakeEngine | undefined {
    return [...this.engines.values()].find(engine => engine.spec.labels[LABEL_SLOT] === slot && engine.state === 'running')
  }

  #engine (id: string): FakeEngine {
    const engine = this.engines.get(id)
    if (engine === undefined) throw svcError('runtime.not_found', `no engine ${id}`)
    return engine
  }

  #inspection (engine: FakeEngine): EngineInspection {
    return {
      id: engine.id,
      name: engine.spec.name,
      labels: engine.spec.labels,
      state: engine.state,
      exitCode: engine.exitCode,
      oomKilled: false,
      address: engine.state === 'running' && engine.spec.port !== null
        ? { host: '127.0.0.1', port: engine.spec.port, ...(engine.spec.ports === undefined ? {} : { ports: engine.spec.ports }) }
        : null,
      label: 'fake',
      startedAt: engine.startedAt
    }
  }
}
