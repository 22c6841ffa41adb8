import { isSvcError, messageOf, settingsOf, type Clock, type ConfigService, type Logger } from 'svc-gateway/plugin'
import type { EngineRequest, EngineStatus, MemoryEngine } from './engine.js'
import { memoryError } from './errors.js'
import { memorySettings, type MemorySettings } from './settings.js'

type Settings = MemorySettings

export interface MemoryDeps {
  readonly config: ConfigService
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly engines: Readonly<Record<Settings['engine'], () => MemoryEngine>>
}

/** How the memory was when it was last looked at. */
export interface MemoryHealth {
  readonly enabled: boolean
  /** Null while it is off. */
  readonly engine: Settings['engine'] | null
  /** Null while it is off, and before the first look. */
  readonly degraded: boolean | null
  /** Why it is degraded, and what to do; null if all is well. */
  readonly detail: string | null
}

/** A memory that is ill is looked at again so often. */
const LOOK_AGAIN_MS = 10_000
/** It is looked at no sooner, whatever requests tell: some get through to an ill memory, and some fail on a well one. */
const LOOK_SOON_MS = 1000
const OFF = 'the memory is off; `svc memory enable` switches it on'

/** Which engine keeps the memory, live by the settings, and how it is. */
export class Memory {
  readonly #deps: MemoryDeps
  #current: { readonly settings: Settings, readonly engine: MemoryEngine } | null = null
  #health: Pick<MemoryHealth, 'degraded' | 'detail'> = { degraded: null, detail: null }
  #look: Promise<EngineStatus> | null = null
  #timer: { cancel (): void } | null = null
  /** Monotonic. */
  #lookedAtMs = 0
  readonly #listeners = new Set<() => void>()

  constructor (deps: MemoryDeps) {
    this.#deps = deps
  }

  get health (): MemoryHealth {
    const { enabled, engine } = this.#settings
    return { enabled, engine: enabled ? engine : null, ...this.#health }
  }

  /** The engine in use. Throws `memory.unavailable`. */
  engine (): MemoryEngine {
    if (this.#current === null) throw memoryError('memory.unavailable', OFF, { heals: false, details: { command: 'svc memory enable' } })
    return this.#current.engine
  }

  /** Looks now. Null while the memory is off. Never throws. */
  async status (): Promise<EngineStatus | null> {
    const current = this.#current
    if (current === null) return null
    this.#look ??= this.#lookAt(current.engine)
    return await this.#look
  }

  /** Takes the settings as they are now. */
  follow (): void {
    const settings = this.#settings
    const before = this.#current
    if (before !== null && isSame(before.settings, settings)) return
    if (before === null && !settings.enabled) return
    this.#forget()
    this.#current = settings.enabled ? { settings, engine: this.#watched(this.#deps.engines[settings.engine]()) } : null
    void this.status()
    for (const listener of this.#listeners) listener()
  }

  /** Called when it is switched on or off, or gets another engine. Returns what unregisters the listener. */
  onChange (listener: () => void): () => void {
    const own = (): void => listener()
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  async close (): Promise<void> {
    const engine = this.#current?.engine
    this.#current = null
    this.#timer?.cancel()
    await engine?.close?.()
  }

  get #settings (): Settings { return settingsOf(this.#deps.config.snapshot.svc, memorySettings) }

  #forget (): void {
    const engine = this.#current?.engine
    this.#timer?.cancel()
    this.#look = null
    this.#health = { degraded: null, detail: null }
    this.#timer = null
    engine?.close?.().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'the memory engine did not close cleanly'))
  }

  /** The same engine, whose failures and recoveries are seen. */
  #watched (engine: MemoryEngine): MemoryEngine {
    const seen = (failed: boolean): void => {
      if (failed === (this.#health.degraded === true) || this.#current?.engine !== watched) return
      const waitMs = this.#lookedAtMs + LOOK_SOON_MS - this.#deps.clock.monotonic()
      if (waitMs <= 0) void this.status()
      else if (failed) this.#timer ??= this.#deps.clock.setTimer(waitMs, () => { void this.status() })
    }
    const watched: MemoryEngine = {
      name: engine.name,
      request: async (request: EngineRequest) => {
        try {
          const answer = await engine.request(request)
          seen(isTrouble(answer.status))
          return answer
        } catch (error) {
          request.signal.throwIfAborted()
          seen(true)
          throw isSvcError(error) ? error : memoryError('memory.engine_unreachable', `the memory engine failed: ${messageOf(error)}`, { cause: error })
        }
      },
      status: () => engine.status(),
      close: async () => { await engine.close?.() }
    }
    return watched
  }

  async #lookAt (engine: MemoryEngine): Promise<EngineStatus> {
    const status = await engine.status()
    if (this.#current?.engine !== engine) return status
    this.#look = null
    this.#lookedAtMs = this.#deps.clock.monotonic()
    const { degraded, detail } = status
    if (degraded !== this.#health.degraded && (degraded || this.#health.degraded !== null)) {
      if (degraded) this.#deps.log.warn({ engine: engine.name }, `the memory is degraded: ${detail ?? 'unknown'}`)
      else this.#deps.log.info({ engine: engine.name }, 'the memory has recovered')
    }
    this.#health = { degraded, detail }
    this.#timer?.cancel()
    this.#timer = degraded ? this.#deps.clock.setTimer(LOOK_AGAIN_MS, () => { void this.status() }) : null
    return status
  }
}

/** Whether an answer may be that of an engine which does nothing any more: its key is refused, or its database is away. */
function isTrouble (status: number): boolean {
  return status === 401 || status === 403 || status === 500 || status === 502 || status === 504
}

function isSame (a: Settings, b: Settings): boolean {
  return a.enabled === b.enabled && a.engine === b.engine && a.url === b.url && a.auth_value_env === b.auth_value_env
}
