import { isDeepStrictEqual } from 'node:util'
import type { Clock, EventBus } from 'svc-gateway/plugin'
import { askHost } from './host-client.js'
import type { HostAnswer, HostSettings } from './schemas.js'

const KEPT_MS = 30_000

interface Question {
  readonly settings: HostSettings
  readonly controller: AbortController
  readonly answer: Promise<HostAnswer>
}

interface Known {
  readonly settings: HostSettings
  /** On the monotonic clock. */
  readonly at: number
  readonly status: HostAnswer
}

export interface HostWatchOptions {
  readonly clock: Clock
  readonly events: EventBus
}

/**
 * What is known of the host: an answer is good for 30 seconds, and one question runs at a time, however many callers wait for
 * it. New settings end the question about the old ones. Tells the events of a host that goes and comes back.
 */
export class HostWatch {
  readonly #clock: Clock
  readonly #events: EventBus
  #known: Known | null = null
  #question: Question | null = null
  /** Null until the host was asked. */
  #reachable: boolean | null = null
  #closed = false

  constructor ({ clock, events }: HostWatchOptions) {
    this.#clock = clock
    this.#events = events
  }

  /** Waits for an answer, three seconds at most, unless a recent one is known. Rejects when the question was ended. */
  async current (settings: HostSettings): Promise<HostAnswer> {
    return this.#recent(settings) ?? await this.#ask(settings)
  }

  /** What is known, also when it is old; asks in the background then. Never waits. */
  latest (settings: HostSettings): HostAnswer {
    if (this.#recent(settings) === null) this.#ask(settings).catch(() => undefined)
    if (this.#known !== null && isDeepStrictEqual(this.#known.settings, settings)) return this.#known.status
    return { configured: true, ok: false, error: `${settings.host}:${settings.port} is being queried for the first time; try again in a moment` }
  }

  /** Ends what runs; later questions are refused. */
  async close (): Promise<void> {
    this.#closed = true
    await this.forget()
  }

  /** As if the host had never been asked. */
  async forget (): Promise<void> {
    const question = this.#question
    this.#known = null
    this.#reachable = null
    question?.controller.abort()
    await question?.answer.catch(() => undefined)
  }

  #recent (settings: HostSettings): HostAnswer | null {
    const known = this.#known
    const isRecent = known !== null && this.#clock.monotonic() - known.at < KEPT_MS
    return isRecent && isDeepStrictEqual(known.settings, settings) ? known.status : null
  }

  async #ask (settings: HostSettings): Promise<HostAnswer> {
    if (this.#closed) throw new Error('the plugin has stopped')
    const before = this.#question
    const isSame = before?.controller.signal.aborted === false && isDeepStrictEqual(before.settings, settings)
    if (isSame) return await before.answer
    before?.controller.abort()
    const controller = new AbortController()
    const question = { settings, controller, answer: this.#answer(settings, controller.signal, before) }
    this.#question = question
    return await question.answer
  }

  async #answer (settings: HostSettings, signal: AbortSignal, before: Question | null): Promise<HostAnswer> {
    await before?.answer.catch(() => undefined)
    try {
      const status = await askHost({ clock: this.#clock, settings, signal })
      signal.throwIfAborted()
      if (this.#known !== null && !isDeepStrictEqual(this.#known.settings, settings)) this.#reachable = null
      this.#known = { settings, at: this.#clock.monotonic(), status }
      this.#tell(settings, status)
      return status
    } finally {
      if (this.#question?.controller.signal === signal) this.#question = null
    }
  }

  /** Once per change; a host that answers from the first is no news. */
  #tell ({ host, port }: HostSettings, status: HostAnswer): void {
    const before = this.#reachable
    this.#reachable = status.ok
    if (before === status.ok || (before === null && status.ok)) return
    const event = { source: 'system', data: { host, port } }
    this.#events.emit(status.ok
      ? { ...event, type: 'system.proxmox_recovered', message: `the Proxmox host ${host}:${port} answers again` }
      : { ...event, type: 'system.proxmox_unreachable', severity: 'warn', message: `the Proxmox host cannot be queried: ${status.error}` })
  }
}
