import type { EngineExit, EngineInspection } from '../../contract/provider/engine-runtime.js'
import { ExitWatch, type ExitWatchDeps } from './docker-exits.js'
import type { Labels } from '../exit-ledger.js'

interface Watched {
  readonly watch: ExitWatch
  readonly listeners: Set<(exit: EngineExit) => void>
}

/** One watch for each instance with listeners, and what all of them should know. */
export class ExitWatches {
  readonly #deps: Omit<ExitWatchDeps, 'tell'>
  readonly #watched = new Map<string, Watched>()
  /** Containers seen running: a watch that begins later still tells of their end. */
  readonly #running = new Map<string, Labels>()

  constructor (deps: Omit<ExitWatchDeps, 'tell'>) {
    this.#deps = deps
  }

  listen (instance: string, listener: (exit: EngineExit) => void): () => void {
    const entry = this.#watched.get(instance) ?? this.#watch(instance)
    const own = (exit: EngineExit): void => listener(exit) // the same function may listen twice
    entry.listeners.add(own)
    return () => {
      entry.listeners.delete(own)
      if (entry.listeners.size > 0 || this.#watched.get(instance) !== entry) return
      this.#watched.delete(instance)
      void entry.watch.stop()
    }
  }

  /** What an inspection showed; null: the container is gone. */
  saw (id: string, found: EngineInspection | null): void {
    if (found?.state !== 'running') {
      this.#running.delete(id)
      return
    }
    this.#running.set(id, found.labels)
    for (const { watch } of this.#watched.values()) watch.running(id, found.labels)
  }

  starting (id: string): void {
    for (const { watch } of this.#watched.values()) watch.starting(id)
  }

  started (id: string, labels: Labels): void {
    this.#running.set(id, labels)
    for (const { watch } of this.#watched.values()) watch.running(id, labels)
  }

  async stop (): Promise<void> {
    const entries = [...this.#watched.values()]
    this.#watched.clear()
    await Promise.all(entries.map(({ watch }) => watch.stop()))
  }

  #watch (instance: string): Watched {
    const listeners = new Set<(exit: EngineExit) => void>()
    const watch = new ExitWatch(instance, { ...this.#deps, tell: exit => this.#tell(listeners, exit) })
    for (const [id, labels] of this.#running) watch.running(id, labels)
    const entry = { watch, listeners }
    this.#watched.set(instance, entry)
    return entry
  }

  #tell (listeners: ReadonlySet<(exit: EngineExit) => void>, exit: EngineExit): void {
    this.#running.delete(exit.id)
    for (const listener of [...listeners]) {
      try {
        listener(exit)
      } catch (error) {
        this.#deps.log.error({ err: error, engine: exit.id }, 'a listener for ended engines failed')
      }
    }
  }
}
