import { messageOf, svcError, type Logger, type RuntimeInfo, type RuntimeView } from '../contract/index.js'
import type {
  ContainerRuntime, EngineExit, EngineForm, EngineInspection, EngineSpec, LogOptions, ProgramPipes, PullProgress,
  RuntimeDefinition
} from '../contract/provider/engine-runtime.js'
import { NamedDrivers, type NamedDriversDeps } from './named-drivers.js'

const ABSENT = new Error('no such engine')

type Images = Pick<ContainerRuntime, 'imagePresent' | 'pull'>

/** Must not throw, nor wait: it is called before the driver is used. */
export type LateListener = (found: readonly EngineInspection[]) => void

interface Listening { readonly instance: string, readonly listener: (exit: EngineExit) => void }

/**
 * Drivers side by side on one host. A launch goes to the driver that it names, else to the one that takes its form, and
 * everything about an engine to the driver that has it. The first driver is the gateway's default: its `info` and `form`
 * are the set's. Closes them all.
 */
export class RuntimeSet implements ContainerRuntime {
  readonly info: RuntimeInfo
  readonly form: EngineForm
  readonly #drivers: readonly ContainerRuntime[]
  readonly #named: NamedDrivers
  readonly #log: Logger | null
  readonly #listening = new Map<Listening, Map<ContainerRuntime, () => void>>()
  /** Which driver has an engine, as far as it was seen; ids are the drivers' own and tell nothing. */
  readonly #owners = new Map<string, ContainerRuntime>()
  readonly #late = new Set<LateListener>()
  readonly #memoryThere = async (id: string, signal: AbortSignal): Promise<number | null> =>
    await this.#owners.get(id)?.memoryThere?.(id, signal) ?? null

  constructor (drivers: readonly [ContainerRuntime, ...ContainerRuntime[]], deps: NamedDriversDeps | null = null) {
    this.#drivers = drivers
    this.#log = deps?.log ?? null
    this.#named = new NamedDrivers(deps, {
      opened: (driver, found) => {
        this.#listenTo(driver)
        // two names may lead to one container engine: what is known already is no news
        const fresh = (found ?? []).filter(({ id }) => !this.#owners.has(id))
        for (const { id } of fresh) this.#owners.set(id, driver)
        if (fresh.length > 0) for (const listener of this.#late) listener(fresh)
      },
      replaced: driver => {
        for (const [id, owner] of this.#owners) if (owner === driver) this.#owners.delete(id)
      }
    })
    this.info = drivers[0].info
    this.form = drivers[0].form
  }

  /** Only where a driver has it: no driver is asked that could not answer. */
  get memoryThere (): ContainerRuntime['memoryThere'] {
    return this.#open.some(({ memoryThere }) => memoryThere !== undefined) ? this.#memoryThere : undefined
  }

  /** Of the drivers that are opened by name; another list whenever it changed. */
  names (): readonly string[] { return this.#named.names() }

  /** Which form of a launch the driver of this name takes; null when there is none. */
  formOf (name: string): EngineForm | null {
    return this.#standing(name)?.form ?? this.#named.find(name)?.form ?? null
  }

  /** Whether the driver of this name runs its engines on other machines. */
  isElsewhere (name: string): boolean {
    return this.#named.find(name)?.definition.elsewhere === true
  }

  /** What a slot may say to the driver of this name; undefined for one that is told nothing. */
  optionsOf (name: string): RuntimeDefinition['slotOptions'] {
    return this.#named.find(name)?.definition.slotOptions
  }

  /** What of svc.toml goes into an engine of the driver of this name, for a slot that says this to it. */
  settingsOf (name: string, options: Readonly<Record<string, unknown>>): object {
    return this.#named.find(name)?.definition.settingsOf?.(options) ?? {}
  }

  /** All of them, the default first. */
  views (): readonly RuntimeView[] {
    const standing = this.#drivers.map((driver, i) =>
      ({ name: driver.info.driver, form: driver.form, default: i === 0, info: driver.info, problem: null }))
    return [...standing, ...this.#named.views()]
  }

  /** What runs engines at the moment. */
  hosts (): readonly RuntimeInfo[] {
    return this.#open.map(({ info }) => info)
  }

  /** These are the drivers that plugins bring now. One that is not among them any more gets no launches. */
  use (definitions: readonly RuntimeDefinition[]): void { this.#named.use(definitions) }

  /** Opens those that plugins want opened, and others that are asked for. Never rejects: each has its `problem`. */
  async open (asked: ReadonlySet<string>): Promise<void> {
    await this.#named.open(new Set([...asked].filter(name => this.#standing(name) === undefined)))
  }

  /** Calls with the engines of each driver that is opened from now on. */
  onLate (listener: LateListener): () => void {
    this.#late.add(listener)
    return () => { this.#late.delete(listener) }
  }

  /** Opens the driver of this name, if there is one. Throws `runtime.unavailable` for one that cannot be opened now. */
  async openNamed (name: string): Promise<void> {
    if (this.#standing(name) === undefined && this.#named.find(name) !== undefined) await this.#named.ready(name)
  }

  /** Images where engines find them that ask for this driver; null: the default's. */
  images (name: string | null): Images {
    return {
      imagePresent: async (...args) => await (await this.#taking(name, 'container')).imagePresent(...args),
      pull: async (...args) => { await (await this.#taking(name, 'container')).pull(...args) }
    }
  }

  async memoryHere (id: string): Promise<number | null> {
    return await this.#owners.get(id)?.memoryHere?.(id) ?? null
  }

  async imagePresent (image: string, digest: string | null, signal: AbortSignal): Promise<boolean> {
    return await this.images(null).imagePresent(image, digest, signal)
  }

  async pull (
    image: string, digest: string | null, onProgress: (progress: PullProgress) => void, signal: AbortSignal
  ): Promise<void> {
    await this.images(null).pull(image, digest, onProgress, signal)
  }

  async assertPortFree (spec: EngineSpec): Promise<void> {
    await (await this.#taking(spec.runtime ?? null, spec.form.kind)).assertPortFree?.(spec)
  }

  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    const driver = await this.#taking(spec.runtime ?? null, spec.form.kind)
    const id = await driver.create(spec, signal)
    this.#owners.set(id, driver)
    return id
  }

  startTimeoutMs (spec: EngineSpec): number | null {
    return this.#named.find(spec.runtime ?? '')?.driver?.startTimeoutMs?.(spec) ?? null
  }

  async start (id: string, signal: AbortSignal, told?: (line: string) => void): Promise<void> {
    await (await this.#owner(id)).start(id, signal, told)
  }

  async startPiped (id: string, signal: AbortSignal): Promise<ProgramPipes> {
    const pipes = await (await this.#owner(id)).startPiped?.(id, signal)
    if (pipes === undefined) throw svcError('runtime.failed', 'this runtime cannot run programs that communicate over standard streams')
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
    const looks = this.#open.map(async driver => {
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

  /**
   * Rejects when a driver of the gateway cannot tell: what it has must not be taken for gone. One of a plugin that cannot
   * is left out, so that it does not hold up the slots of others.
   */
  async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    const lists = await Promise.all(this.#open.map(async driver => {
      try {
        const found = await driver.list(labels)
        for (const { id } of found) this.#owners.set(id, driver)
        return found
      } catch (error) {
        if (this.#drivers.includes(driver)) throw error
        this.#log?.warn({ runtime: driver.info.driver, err: error }, `runtime '${driver.info.driver}' cannot list its engines: ${messageOf(error)}`)
        return []
      }
    }))
    return lists.flat()
  }

  async* logs (id: string, options: LogOptions): AsyncIterable<string> {
    yield* (await this.#owner(id)).logs(id, options)
  }

  onExit (instance: string, listener: (exit: EngineExit) => void): () => void {
    const listening = { instance, listener }
    const unsubscribers = new Map(this.#open.map(driver => [driver, driver.onExit(instance, listener)]))
    this.#listening.set(listening, unsubscribers)
    return () => {
      this.#listening.delete(listening)
      for (const unsubscribe of unsubscribers.values()) unsubscribe()
    }
  }

  async close (): Promise<void> {
    await Promise.all([...this.#drivers.map(driver => driver.close()), this.#named.close()])
  }

  /** Every driver that is open. */
  get #open (): readonly ContainerRuntime[] {
    return [...this.#drivers, ...this.#named.drivers]
  }

  #listenTo (driver: ContainerRuntime): void {
    for (const [{ instance, listener }, unsubscribers] of this.#listening) {
      unsubscribers.set(driver, driver.onExit(instance, listener))
    }
  }

  /** One of those that were open from the first. */
  #standing (name: string): ContainerRuntime | undefined {
    return this.#drivers.find(({ info }) => info.driver === name)
  }

  /** A driver that takes no such launch says so by itself. Throws `runtime.unavailable` for one that is not there. */
  async #taking (name: string | null, form: EngineForm): Promise<ContainerRuntime> {
    if (name === null) return this.#drivers.find(driver => driver.form === form) ?? this.#drivers[0]!
    return this.#standing(name) ?? await this.#named.ready(name)
  }

  /** An engine that no driver has is the default's to answer for. */
  async #owner (id: string): Promise<ContainerRuntime> {
    if (!this.#owners.has(id)) await this.inspect(id)
    return this.#owners.get(id) ?? this.#drivers[0]!
  }
}

/** As `RuntimeSet.onLate`; of another runtime nothing is late. */
export function onLate (runtime: ContainerRuntime, listener: LateListener): () => void {
  return runtime instanceof RuntimeSet ? runtime.onLate(listener) : () => {}
}

/** As `RuntimeSet.openNamed`. @param name of the driver that a slot asks for */
export async function openNamed (runtime: ContainerRuntime, name: () => string | null): Promise<void> {
  const asked = runtime instanceof RuntimeSet ? name() : null
  if (asked !== null) await (runtime as RuntimeSet).openNamed(asked)
}

/** Where the engines of this driver find images; null: the default's. */
export function imagesOf (runtime: Images, name: string | null): Images {
  return runtime instanceof RuntimeSet ? runtime.images(name) : runtime
}
