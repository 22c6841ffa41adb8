import type { Clock, Timer } from '../contract/index.js'
import type { ContainerRuntime } from '../contract/provider/engine-runtime.js'

const EVERY_MS = 15_000
const SAMPLE_MS = 5_000
const AT_A_TIME = 4

export interface EngineMemoryDeps {
  readonly runtime: Pick<ContainerRuntime, 'memoryHere' | 'memoryThere'>
  readonly clock: Clock
  /** Ids of the engines that run at the moment. */
  readonly running: () => readonly string[]
}

/**
 * Resident memory of running engines. Where this host's files do not tell it the container engine is asked, now and then and
 * without anyone waiting for it: `read` gives the latest value.
 */
export class EngineMemory {
  readonly #deps: EngineMemoryDeps
  readonly #closing = new AbortController()
  /** Engines that only the container engine knows of, by id; undefined before it was asked, null when it did not tell. */
  readonly #samples = new Map<string, number | null | undefined>()
  #timer: Timer | null = null
  #sampling = false

  constructor (deps: EngineMemoryDeps) {
    this.#deps = deps
  }

  /** Bytes; null when nothing is known. Does not wait for the container engine. */
  async read (id: string): Promise<number | null> {
    const here = await this.#deps.runtime.memoryHere?.(id) ?? null
    if (here !== null || this.#deps.runtime.memoryThere === undefined) return here
    if (!this.#samples.has(id)) this.notice(id)
    return this.#samples.get(id) ?? null
  }

  /** An engine runs: it is asked for at once. */
  notice (id: string): void {
    if (this.#deps.runtime.memoryThere === undefined || this.#samples.has(id)) return
    this.#samples.set(id, undefined)
    this.#arm()
  }

  close (): void {
    this.#closing.abort()
    this.#timer?.cancel()
    this.#timer = null
    this.#samples.clear()
  }

  #arm (): void {
    if (this.#closing.signal.aborted || this.#samples.size === 0 || this.#sampling) return
    this.#timer?.cancel()
    const isNew = [...this.#samples.values()].includes(undefined)
    this.#timer = this.#deps.clock.setTimer(isNew ? 0 : EVERY_MS, () => {
      this.#timer = null
      this.#sampling = true
      void this.#sampleAll().finally(() => {
        this.#sampling = false
        this.#arm()
      })
    })
  }

  async #sampleAll (): Promise<void> {
    const running = new Set(this.#deps.running())
    for (const id of this.#samples.keys()) if (!running.has(id)) this.#samples.delete(id)
    const ids = [...this.#samples.keys()]
    const worker = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) await this.#sample(id)
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  }

  async #sample (id: string): Promise<void> {
    const { runtime, clock } = this.#deps
    const late = new AbortController()
    const timer = clock.setTimer(SAMPLE_MS, () => late.abort())
    try {
      const isHere = await (runtime.memoryHere?.(id) ?? null) !== null
      if (isHere) this.#samples.delete(id)
      else this.#keep(id, await runtime.memoryThere!(id, AbortSignal.any([late.signal, this.#closing.signal])))
    } catch {
      // what is not told stays what it was; the next look may hear more
      this.#keep(id, this.#samples.get(id) ?? null)
    } finally {
      timer.cancel()
    }
  }

  #keep (id: string, bytes: number | null): void {
    if (this.#samples.has(id)) this.#samples.set(id, bytes)
  }
}
