import type { ContainerRuntime, EngineExit } from '../../../contract/provider/engine-runtime.js'

const REMEMBERED = 256

/**
 * Hands each engine's end to its listener, once. Ends that come before there is a listener are remembered, so
 * an engine that dies between `start` and the first look is not missed.
 */
export class ExitHub {
  readonly #listeners = new Map<string, (exit: EngineExit) => void>()
  readonly #ended = new Map<string, EngineExit>()
  readonly #unsubscribe: () => void

  constructor (runtime: ContainerRuntime, instance: string) {
    this.#unsubscribe = runtime.onExit(instance, exit => this.#told(exit))
  }

  /** Calls back once when the engine has ended, also when it has ended already. Returns the unsubscriber. */
  onExit (engineId: string, listener: (exit: EngineExit) => void): () => void {
    const ended = this.#ended.get(engineId)
    if (ended !== undefined) {
      queueMicrotask(() => listener(ended))
      return () => {}
    }
    this.#listeners.set(engineId, listener)
    return () => {
      if (this.#listeners.get(engineId) === listener) this.#listeners.delete(engineId)
    }
  }

  close (): void {
    this.#unsubscribe()
    this.#listeners.clear()
  }

  #told (exit: EngineExit): void {
    const listener = this.#listeners.get(exit.id)
    this.#listeners.delete(exit.id)
    this.#ended.set(exit.id, exit)
    if (this.#ended.size > REMEMBERED) this.#ended.delete(this.#ended.keys().next().value!)
    listener?.(exit)
  }
}
