import { messageOf, svcError, type Clock, type Logger, type RuntimeView, type SvcError } from '../contract/index.js'
import type { ContainerRuntime, EngineInspection, RuntimeDefinition } from '../contract/provider/engine-runtime.js'
import { NamedDriver } from './named-driver.js'

export interface NamedDriversDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly instance: string
  /** Drivers of the gateway that are opened once a slot asks for one by name. */
  readonly own?: readonly RuntimeDefinition[]
  /** One more is open. */
  readonly opened?: () => void
}

interface DriverListener {
  /** Called with what was opened and the engines that it has, before it is used; null where another one had them in this run. */
  readonly opened: (driver: ContainerRuntime, found: readonly EngineInspection[] | null) => void
  /** It is closed, and another one has its engines. */
  readonly replaced: (driver: ContainerRuntime) => void
}

/** Drivers that slots ask for by name: the gateway's own, and those that plugins bring, which come and go. */
export class NamedDrivers {
  readonly #deps: NamedDriversDeps | null
  readonly #listener: DriverListener
  #all: readonly NamedDriver[]
  #names: readonly string[]
  /** Their plugins left: they keep the engines that they have, until the gateway ends. */
  readonly #retired = new Map<string, NamedDriver>()
  /** Those that are opened over the engines of one that left. */
  readonly #returning = new Set<string>()

  /** @param deps null for none at all */
  constructor (deps: NamedDriversDeps | null, listener: DriverListener) {
    this.#deps = deps
    this.#listener = listener
    this.#all = (deps?.own ?? []).map(definition => this.#make(definition))
    this.#names = this.#all.map(({ name }) => name)
  }

  /** Another list whenever it changed. */
  names (): readonly string[] { return this.#names }

  find (name: string): NamedDriver | undefined {
    return this.#all.find(named => named.name === name)
  }

  /** Those that are open, or should be. */
  views (): readonly RuntimeView[] {
    const shown = this.#all.filter(({ name, driver, problem }) => this.#isOpened(name) || driver !== null || problem !== null)
    return shown.map(named => named.view())
  }

  /** Every one that is open. */
  get drivers (): readonly ContainerRuntime[] {
    return [...this.#all, ...this.#retired.values()].flatMap(({ driver }) => driver ?? [])
  }

  /** These are the drivers that plugins bring now. One that is not among them any more gets no launches. */
  use (definitions: readonly RuntimeDefinition[]): void {
    const own = this.#all.filter(({ name }) => this.#isOwn(name))
    const before = this.#all.filter(({ name }) => !this.#isOwn(name))
    const kept = before.filter(({ definition }) => definitions.includes(definition))
    for (const gone of before.filter(named => !kept.includes(named))) {
      if (gone.driver === null) void gone.close()
      else this.#retired.set(gone.name, gone)
    }
    const fresh = definitions.filter(definition => !kept.some(named => named.definition === definition))
    if (fresh.length === 0 && kept.length === before.length) return
    this.#all = [...own, ...kept, ...fresh.map(definition => this.#make(definition))]
    this.#names = this.#all.map(({ name }) => name)
  }

  /**
   * Opens those that plugins want opened, and others that are asked for. Never rejects: each has its `problem`, and is tried
   * again in the background.
   */
  async open (asked: ReadonlySet<string>): Promise<void> {
    const wanted = this.#all.filter(({ name }) => this.#isOpened(name) || asked.has(name))
    await Promise.all(wanted.map(async named => {
      try {
        await this.#open(named)
      } catch (error) {
        this.#deps?.log.error({ runtime: named.name, err: error }, `${messageOf(error)}; slots that use it do not start until it is`)
        void named.keepTrying()
      }
    }))
  }

  /** The driver of this name, opened. Throws `runtime.unavailable` for one that is not there. */
  async ready (name: string): Promise<ContainerRuntime> {
    const named = this.find(name)
    if (named === undefined) throw unknownRuntime(name)
    return await this.#open(named)
  }

  /** Idempotent; never rejects. */
  async close (): Promise<void> {
    await Promise.all([...this.#all, ...this.#retired.values()].map(named => named.close()))
  }

  #make (definition: RuntimeDefinition): NamedDriver {
    if (this.#deps === null) throw new Error('no further drivers can be added')
    const { clock, log, instance } = this.#deps
    return new NamedDriver(definition, {
      clock,
      log,
      instance,
      opened: (driver, found) => {
        this.#listener.opened(driver, this.#returning.has(definition.name) ? null : found)
        this.#deps?.opened?.()
      }
    })
  }

  #isOwn (name: string): boolean {
    return this.#deps?.own?.some(definition => definition.name === name) === true
  }

  /** At each start, whether a slot asks for it or not. */
  #isOpened (name: string): boolean {
    return !this.#isOwn(name) && this.find(name)?.definition.wanted?.() !== false
  }

  /** One that came back opens over the engines of the one that left. */
  async #open (named: NamedDriver): Promise<ContainerRuntime> {
    const former = this.#retired.get(named.name)
    if (former !== undefined) {
      const { driver } = former
      await former.close()
      if (this.#retired.get(named.name) === former) this.#retired.delete(named.name)
      if (driver !== null) this.#listener.replaced(driver)
      this.#returning.add(named.name)
    }
    const driver = await named.open()
    this.#returning.delete(named.name)
    return driver
  }
}

function unknownRuntime (name: string): SvcError {
  return svcError('runtime.unavailable', `no plugin provides a runtime '${name}'`, { details: { runtime: name } })
}
