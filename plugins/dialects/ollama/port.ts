import { messageOf, SerialQueue, settingsOf, type ConfigService, type Listener, type ListenerService, type Logger } from 'svc-gateway/plugin'
import { dialectSettings } from './settings.js'

export interface PortDeps {
  readonly config: ConfigService
  readonly listeners: ListenerService
  readonly log: Logger
}

/** What is at `/` of the port: clients look for Ollama's words there. */
export const HOME = '/api/ollama'

/** The further port that `[dialects] ollama_port` asks for. One that cannot be had is a warning. */
export class OllamaPort {
  readonly #deps: PortDeps
  readonly #changes = new SerialQueue()
  #listener: Listener | null = null
  #wanted = 0
  #problem: string | null = null
  #closed = false

  constructor (deps: PortDeps) {
    this.#deps = deps
  }

  get health (): Readonly<Record<string, unknown>> {
    return { ollama_port: this.#listener?.port ?? null, ...this.#problem === null ? {} : { problem: this.#problem } }
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
      if (port !== 0) await this.#open(port)
    })
  }

  close (): Promise<void> {
    this.#closed = true
    return this.#changes.run(async () => {
      this.#listener?.close()
      this.#listener = null
    })
  }

  async #open (port: number): Promise<void> {
    const { listeners, log } = this.#deps
    try {
      this.#listener = await listeners.open({ port, places: { '/': HOME } })
      log.info({ port }, `listening on port ${port} too, for programs that look for Ollama`)
    } catch (error) {
      this.#problem = messageOf(error)
      log.warn({ port }, `[dialects] ollama_port: ${this.#problem}`)
    }
  }
}
