import { messageOf, svcError, type Clock, type Logger, type RuntimeInfo, type RuntimeView, type SvcError } from '../contract/index.js'
import type {
  ContainerRuntime, EngineExit, EngineForm, EngineInspection, EngineSpec, LogOptions, ProgramPipes, PullProgress,
  RuntimeDefinition
} from '../contract/provider/engine-runtime.js'
import { NamedDriver } from './named-driver.js'

const ABSENT = new Error('no such engine')

type Images = Pick<ContainerRuntime, 'imagePresent' | 'pull'>

export interface NamedDriversDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly instance: string
  /** Drivers of the gateway that are opened once a slot asks for one by name. */
  readonly own?: readonly RuntimeDefinition[]
  /** One more is open. */
  readonly opened?: () => void
}

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
  readonly #deps: NamedDriversDeps | null
  #named: readonly NamedDriver[]
  #names: readonly string[]
  /** Their plugins left: they keep the engines that they have, until the gateway ends. */
  readonly #retired = new Map<string, NamedDriver>()
  readonly #listening = new Map<Listening, Map<ContainerRuntime, () => void>>()
  /** Which driver has an engine, as far as it was seen; ids are the drivers' own and tell nothing. */
  readonly #owners = new Map<string, ContainerRuntime>()
  readonly #memoryThere = async (id: string, signal: AbortSignal): Promise<number | null> =>
    await this.#owners.get(id)?.memoryThere?.(id, signal) ?? null

  constructor (drivers: readonly [ContainerRuntime, ...ContainerRuntime[]], deps: NamedDriversDeps | null = null) {
    this.#drivers = drivers
    this.#deps = deps
    this.#named = (deps?.own ?? []).map(definition => this.#make(definition))
    this.#names = this.#named.map(({ name }) => name)
    this.info = drivers[0].info
    this.form = drivers[0].form
  }

  /** Only where a driver has it: no driver is asked that could not answer. */
  get memoryThere (): ContainerRuntime['memoryThere'] {
    return this.#open.some(({ memoryThere }) => memoryThere !== undefined) ? this.#memoryThere : undefined
  }

  /** Of the drivers that are opened by name; another list whenever it changed. */
  names (): readonly string[] { return this.#names }

  /** Which form of a launch the driver of this name takes; null when there is none. */
  formOf (name: string): EngineForm | null {
    return this.#standing(name)?.form ?? this.#find(name)?.form ?? null
  }

  /** Whether the driver of this name runs its engines on other machines. */
  isElsewhere (name: string): boolean {
    return this.#find(name)?.definition.elsewhere === true
  }

  /** What a slot may say to the driver of this name; undefined for one that is told nothing. */
  optionsOf (name: string): RuntimeDefinition['slotOptions'] {
    return this.#find(name)?.definition.slotOptions
  }

  /** What of svc.toml goes into an engine of the driver of this name, for a slot that says this to it. */
  settingsOf (name: string, options: Readonly<Record<string, unknown>>): object {
    return this.#find(name)?.definition.settingsOf?.(options) ?? {}
  }

  /** All of them, the default first. */
  views (): readonly RuntimeView[] {
    const standing = this.#drivers.map((driver, i) =>
      ({ name: driver.info.driver, form: driver.form, default: i === 0, info: driver.info, problem: null }))
    const beside = this.#named.filter(({ name, driver, problem }) => this.#isOpened(name) || driver !== null || problem !== null)
    return [...standing, ...beside.map(named => named.view())]
  }

  /** What runs engines at the moment. */
  hosts (): readonly RuntimeInfo[] {
    return this.#open.map(({ info }) => info)
  }

  /** These are the drivers that plugins bring now. One that is not among them any more gets no launches. */
  use (definitions: readonly RuntimeDefinition[]): void {
    const own = this.#named.filter(({ name }) => this.#isOwn(name))
    const before = this.#named.filter(({ name }) => !this.#isOwn(name))
    const kept = before.filter(({ definition }) => definitions.includes(definition))
    for (const gone of before.filter(named => !kept.includes(named))) {
      if (gone.driver === null) void gone.close()
      else this.#retired.set(gone.name, gone)
    }
    const fresh = definitions.filter(definition => !kept.some(named => named.definition === definition))
    if (fresh.length === 0 && kept.length === before.length) return
    this.#named = [...own, ...kept, ...fresh.map(definition => this.#make(definition))]
    this.#names = this.#named.map(({ name }) => name)
  }

  /** Opens those that plugins want opened, and others that are asked for. Never rejects: each has its `problem`. */
  async open (asked: ReadonlySet<string>): Promise<void> {
    const isAsked = (name: string): boolean => asked.has(name) && this.#standing(name) === undefined
    const wanted = this.#named.filter(({ name }) => this.#isOpened(name) || isAsked(name))
    await Promise.all(wanted.map(async named => {
      try {
        await this.#ready(named)
      } catch (error) {
        this.#deps?.log.error({ runtime: named.name, err: error }, `${messageOf(error)}; slots that ask for it do not start`)
      }
    }))
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
    return this.#find(spec.runtime ?? '')?.driver?.startTimeoutMs?.(spec) ?? null
  }

  async start (id: string, signal: AbortSignal, told?: (line: string) => void): Promise<void> {
    await (await this.#owner(id)).start(id, signal, told)
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
        this.#deps?.log.warn({ runtime: driver.info.driver, err: error }, `runtime '${driver.info.driver}' does not tell its engines: ${messageOf(error)}`)
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
    await Promise.all([
      ...this.#drivers.map(driver => driver.close()), ...[...this.#named, ...this.#retired.values()].map(named => named.close())
    ])
  }

  /** Every driver that is open. */
  get #open (): readonly ContainerRuntime[] {
    const named = [...this.#named, ...this.#retired.values()]
    return [...this.#drivers, ...named.flatMap(({ driver }) => driver ?? [])]
  }

  #make (definition: RuntimeDefinition): NamedDriver {
    if (this.#deps === null) throw new Error('this set takes no further drivers')
    const { clock, log, instance } = this.#deps
    return new NamedDriver(definition, { clock, log, instance, opened: driver => this.#listenTo(driver) })
  }

  #listenTo (driver: ContainerRuntime): void {
    for (const [{ instance, listener }, unsubscribers] of this.#listening) {
      unsubscribers.set(driver, driver.onExit(instance, listener))
    }
    this.#deps?.opened?.()
  }

  #isOwn (name: string): boolean {
    return this.#deps?.own?.some(definition => definition.name === name) === true
  }

  /** At each start, whether a slot asks for it or not. */
  #isOpened (name: string): boolean {
    return !this.#isOwn(name) && this.#find(name)?.definition.wanted?.() !== false
  }

  /** One of those that were open from the first. */
  #standing (name: string): ContainerRuntime | undefined {
    return this.#drivers.find(({ info }) => info.driver === name)
  }

  #find (name: string): NamedDriver | undefined {
    return this.#named.find(named => named.name === name)
  }

  /** A driver that takes no such launch says so by itself. Throws `runtime.unavailable` for one that is not there. */
  async #taking (name: string | null, form: EngineForm): Promise<ContainerRuntime> {
    if (name === null) return this.#drivers.find(driver => driver.form === form) ?? this.#drivers[0]!
    const standing = this.#standing(name)
    if (standing !== undefined) return standing
    const named = this.#find(name)
    if (named === undefined) throw unknownRuntime(name)
    return await this.#ready(named)
  }

  /** One that came back opens over the engines of the one that left. */
  async #ready (named: NamedDriver): Promise<ContainerRuntime> {
    const former = this.#retired.get(named.name)
    if (former !== undefined) {
      const driver = former.driver
      await former.close()
      if (this.#retired.get(named.name) === former) this.#retired.delete(named.name)
      for (const [id, owner] of this.#owners) if (owner === driver) this.#owners.delete(id)
    }
    return await named.open()
  }

  /** An engine that no driver has is the default's to answer for. */
  async #owner (id: string): Promise<ContainerRuntime> {
    if (!this.#owners.has(id)) await this.inspect(id)
    return this.#owners.get(id) ?? this.#drivers[0]!
  }
}

/** Where the engines of this driver find images; null: the default's. */
export function imagesOf (runtime: Images, name: string | null): Images {
  return runtime instanceof RuntimeSet ? runtime.images(name) : runtime
}

function unknownRuntime (name: string): SvcError {
  return svcError('runtime.unavailable', `no plugin brings a runtime '${name}'`, { details: { runtime: name } })
}
