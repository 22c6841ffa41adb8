import {
  messageOf, SerialQueue, settingsOf, type Clock, type ConfigService, type Listener, type ListenerService, type Logger, type Timer
} from 'svc-gateway/plugin'
import { dialectSettings } from './settings.js'

export interface PortDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly listeners: ListenerService
  readonly log: Logger
}

const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000

/** What is at `/` of the port: clients look for Ollama's words there. */
export const HOME = '/api/ollama'

/** The further port that `[dialects] ollama_port` asks for. One that cannot be had is a warning, and tried again. */
export class OllamaPort {
  readonly #deps: PortDeps
  readonly #changes = new SerialQueue()
  #listener: Listener | null = null
  #wanted = 0
  #problem: string | null = null
  #closed = false
  #failures = 0
  #retry: Timer | null = null

  constructor (deps: PortDeps) {
    this.#deps = deps
  }

  get health (): Readonly<Record<string, unknown>> {
    return { ollama_port: this.#listener?.port ?? null, ...this.#problem === null ? {} : { problem: `${this.#problem}; retrying at least once a minute` } }
  }

  /** Does what the settings say by now; resolves when it is done. */
  follow (): Promise<void> {
    return this.#changes.run(async () => {
      const { ollama_port: port } = settingsOf(this.#deps.config.snapshot.svc, dialectSettings)
      if (this.#closed || port === this.#wanted) return
      this.#wanted = port
      this.#listener?.close()
      this.#listener = null
      this.#problem = null
      this.#failures = 0
      this.#retry?.cancel()
      if (port !== 0) await this.#open(port)
    })
  }

  close (): Promise<void> {
    this.#closed = true
    this.#retry?.cancel()
    return this.#changes.run(async () => {
      this.#listener?.close()
      this.#listener = null
    })
  }

  async #open (port: number): Promise<void> {
    const { listeners, log } = this.#deps
    try {
      this.#listener = await listeners.open({ port, places: { '/': HOME } })
      this.#problem = null
      log.info({ port }, `also listening on port ${port}, for programs that use Ollama`)
    } catch (error) {
      this.#problem = messageOf(error)
      // one line for all tries
      if (this.#failures === 0) log.warn({ port }, `[dialects] ollama_port: ${this.#problem}`)
      this.#tryAgain(port)
    }
  }

  #tryAgain (port: number): void {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures++, 16))
    this.#retry = this.#deps.clock.setTimer(pauseMs, () => void this.#changes.run(async () => {
      if (!this.#closed && this.#wanted === port && this.#listener === null) await this.#open(port)
    }))
  }
}
