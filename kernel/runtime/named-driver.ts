import { messageOf, svcError, type Clock, type Logger, type RuntimeView } from '../contract/index.js'
import { LABEL_INSTANCE, type ContainerRuntime, type EngineForm, type EngineInspection, type RuntimeDefinition } from '../contract/provider/engine-runtime.js'
import { retryPauseMs } from '../async/backoff.js'
import { abortable, pause } from '../async/waiting.js'

const OPEN_MS = 30_000
/** Between tries in the background. */
const LONGEST_PAUSE_MS = 60_000

export interface NamedDriverDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Labels its engines. */
  readonly instance: string
  /** Called with what was opened and the engines that it has, before it is used. */
  readonly opened: (driver: ContainerRuntime, found: readonly EngineInspection[]) => void
}

/** A driver that is opened when it is needed. What it cannot do keeps back its own slots alone. */
export class NamedDriver {
  readonly definition: RuntimeDefinition
  readonly #deps: NamedDriverDeps
  readonly #closing = new AbortController()
  #driver: ContainerRuntime | null = null
  #opening: Promise<ContainerRuntime> | null = null
  #problem: string | null = null
  #isTrying = false

  constructor (definition: RuntimeDefinition, deps: NamedDriverDeps) {
    this.definition = definition
    this.#deps = deps
  }

  get name (): string { return this.definition.name }
  get form (): EngineForm { return this.definition.form }
  /** Null while it is not open. */
  get driver (): ContainerRuntime | null { return this.#driver }
  /** Why the last try to open it failed; null when there was none, or it succeeded. */
  get problem (): string | null { return this.#problem }

  view (): RuntimeView {
    const info = this.#driver === null ? null : { ...this.#driver.info, driver: this.name }
    return { name: this.name, form: this.form, default: false, info, problem: this.#problem }
  }

  /** Throws `runtime.unavailable`; the next call tries again. */
  async open (): Promise<ContainerRuntime> {
    return this.#driver ?? await (this.#opening ??= this.#open().finally(() => { this.#opening = null }))
  }

  /** Opens it once it can be, in the background: its engines are waited for. Idempotent; ends with `close`. */
  async keepTrying (): Promise<void> {
    if (this.#isTrying) return
    this.#isTrying = true
    for (let failures = 1; this.#driver === null && !this.#closing.signal.aborted; failures++) {
      await pause(this.#deps.clock, Math.min(LONGEST_PAUSE_MS, retryPauseMs(failures)), this.#closing.signal)
      // its problem is shown
      if (!this.#closing.signal.aborted) await this.open().catch(() => {})
    }
    this.#isTrying = false
  }

  /** Idempotent; never rejects. */
  async close (): Promise<void> {
    this.#closing.abort(new Error('the runtime is closed'))
    await this.#opening?.catch(() => {})
    const driver = this.#driver
    this.#driver = null
    await driver?.close().catch((error: unknown) => this.#tell('did not close', error))
  }

  async #open (): Promise<ContainerRuntime> {
    const { instance, log, opened } = this.#deps
    const wasAway = this.#problem !== null
    try {
      const { driver, found } = await this.#inTime(async signal => {
        const made = await this.definition.open(signal)
        try {
          if (made.form !== this.form) throw new Error(`it declares form '${this.form}' but opened with form '${made.form}'`)
          // one that cannot tell what it has is of no use: its engines would be taken for gone
          const found = await made.list({ [LABEL_INSTANCE]: instance })
          signal.throwIfAborted()
          return { driver: made, found }
        } catch (error) {
          await made.close().catch((cause: unknown) => this.#tell('did not close', cause))
          throw error
        }
      })
      this.#problem = null
      this.#driver = driver
      if (wasAway) log.info({ runtime: this.name }, `runtime '${this.name}' is available now`)
      opened(driver, found)
      return driver
    } catch (error) {
      this.#problem = messageOf(error)
      throw svcError('runtime.unavailable', `runtime '${this.name}' is not available: ${this.#problem}`, { details: { runtime: this.name }, heals: true })
    }
  }

  /** The work itself cannot be stopped from outside; what it opens too late it closes by its signal. */
  async #inTime<T> (work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController()
    const timer = this.#deps.clock.setTimer(OPEN_MS, () => late.abort(new Error(`it did not open within ${OPEN_MS / 1000} s`)))
    try {
      const signal = AbortSignal.any([late.signal, this.#closing.signal])
      return await abortable(work(signal), signal)
    } finally {
      timer.cancel()
    }
  }

  #tell (what: string, error: unknown): void {
    this.#deps.log.warn({ runtime: this.name, err: error }, `runtime '${this.name}' ${what}: ${messageOf(error)}`)
  }
}
