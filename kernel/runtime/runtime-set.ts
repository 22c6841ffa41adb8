import { svcError, type RuntimeInfo } from '../contract/index.js'
import type {
  ContainerRuntime, EngineExit, EngineForm, EngineInspection, EngineSpec, LogOptions, ProgramPipes, PullProgress
} from './container-runtime.js'

const ABSENT = new Error('no such engine')

/**
 * Drivers side by side on one host. A launch goes to the driver that takes its form, and everything about an engine to the
 * driver that has it. The first driver is the gateway's default: its `info` and `form` are the set's. Closes them all.
 */
export class RuntimeSet implements ContainerRuntime {
  readonly info: RuntimeInfo
  readonly form: EngineForm
  /** Only where a driver has it: nobody is asked who could not answer. */
  readonly memoryThere?: NonNullable<ContainerRuntime['memoryThere']>
  readonly #drivers: readonly ContainerRuntime[]
  /** Which driver has an engine, as far as it was seen; ids are the drivers' own and tell nothing. */
  readonly #owners = new Map<string, ContainerRuntime>()

  constructor (drivers: readonly [ContainerRuntime, ...ContainerRuntime[]]) {
    this.#drivers = drivers
    this.info = drivers[0].info
    this.form = drivers[0].form
    if (!drivers.some(({ memoryThere }) => memoryThere !== undefined)) return
    this.memoryThere = async (id, signal) => await this.#owners.get(id)?.memoryThere?.(id, signal) ?? null
  }

  async memoryHere (id: string): Promise<number | null> {
    return await this.#owners.get(id)?.memoryHere?.(id) ?? null
  }

  async imagePresent (image: string, digest: string | null, signal: AbortSignal): Promise<boolean> {
    return await this.#taking('container').imagePresent(image, digest, signal)
  }

  async pull (
    image: string, digest: string | null, onProgress: (progress: PullProgress) => void, signal: AbortSignal
  ): Promise<void> {
    await this.#taking('container').pull(image, digest, onProgress, signal)
  }

  async assertPortFree (spec: EngineSpec): Promise<void> {
    await this.#taking(spec.form.kind).assertPortFree?.(spec)
  }

  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    const driver = this.#taking(spec.form.kind)
    const id = await driver.create(spec, signal)
    this.#owners.set(id, driver)
    return id
  }

  async start (id: string, signal: AbortSignal): Promise<void> {
    await (await this.#owner(id)).start(id, signal)
  }

  async startPiped (id: string, signal: AbortSignal): Promise<ProgramPipes> {
    const pipes = await (await this.#owner(id)).startPiped?.(id, signal)
    if (pipes === undefined) throw svcError('runtime.failed', 'this runtime runs no programs that are spoken to over standard streams')
    return pipes
  }

  async stop (id: string, timeoutS: number): Promise<void> {
    await (await this.#owner(id)).stop(id, timeoutS)
  }

  async remove (id: string): Promise<void> {
    await (await this.#owner(id)).remove(id)
    this.#owners.delete(id)
  }

  async inspect (id: string): Promise<EngineInspection | null> {
    const known = this.#owners.get(id)
    if (known !== undefined) return await known.inspect(id)
    // side by side: one that is silent holds up nothing that another one has
    const looks = this.#drivers.map(async driver => {
      const found = await driver.inspect(id)
      if (found === null) throw ABSENT
      this.#owners.set(id, driver)
      return found
    })
    return await Promise.any(looks).catch((error: AggregateError) => {
      const failed: unknown = error.errors.find(cause => cause !== ABSENT)
      if (failed !== undefined) throw failed
      return null
    })
  }

  /** Rejects when one of them cannot tell: what it has must not be taken for gone. */
  async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    const lists = await Promise.all(this.#drivers.map(async driver => {
      const found = await driver.list(labels)
      for (const { id } of found) this.#owners.set(id, driver)
      return found
    }))
    return lists.flat()
  }

  async* logs (id: string, options: LogOptions): AsyncIterable<string> {
    yield* (await this.#owner(id)).logs(id, options)
  }

  onExit (instance: string, listener: (exit: EngineExit) => void): () => void {
    const unsubscribers = this.#drivers.map(driver => driver.onExit(instance, listener))
    return () => { for (const unsubscribe of unsubscribers) unsubscribe() }
  }

  async close (): Promise<void> {
    await Promise.all(this.#drivers.map(driver => driver.close()))
  }

  /** One that takes no such launch says so by itself. */
  #taking (form: EngineForm): ContainerRuntime {
    return this.#drivers.find(driver => driver.form === form) ?? this.#drivers[0]!
  }

  /** An engine that nobody has is the default's to answer for. */
  async #owner (id: string): Promise<ContainerRuntime> {
    if (!this.#owners.has(id)) await this.inspect(id)
    return this.#owners.get(id) ?? this.#drivers[0]!
  }
}
