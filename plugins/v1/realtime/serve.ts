import { randomUUID } from 'node:crypto'
import { isSvcError, SerialQueue, type Logger, type ServedSocket, type SvcError } from 'svc-gateway/plugin'
import { requestObject, type Json } from '../over-chat/ref.js'
import { makeAnswer } from './answer.js'
import { betaEvent } from './beta.js'
import { Engines, internalError, type Asker, type EngineDeps } from './engines.js'
import { errorEvent } from './error-words.js'
import { realtimeError } from './errors.js'
import { fixedSettings } from './opening.js'
import { Outbox } from './outbox.js'
import type { AnswerNews, Response, ServerEvent } from './response.js'
import type { Effect, Outcome } from './outcome.js'
import { Session } from './session.js'
import { firstSettings, type Settings } from './settings.js'

/** An hour, as long as the API lets one last. */
const LONGEST_MS = 60 * 60 * 1000
/** For a client that reads slowly, to hear of its end. */
const FAREWELL_MS = 10_000

export interface Opening extends Asker {
  readonly model: string
  readonly type: Settings['type']
  /** What was fixed before, in the words of the API; null without. */
  readonly session: Json | null
  /** In the words that the API had before it was final. */
  readonly isBeta: boolean
  readonly log: Logger
}

/** Serves one session until its client leaves, the gateway stops or its time is over; then nothing of it goes on. */
export async function serveSession (socket: ServedSocket, deps: EngineDeps, opening: Opening): Promise<void> {
  await new ServedSession(socket, deps, opening).run()
}

class ServedSession {
  readonly #socket: ServedSocket
  readonly #opening: Opening
  readonly #deps: EngineDeps
  readonly #engines: Engines
  readonly #session: Session
  /** As it begins. */
  readonly #settings: Settings
  readonly #outbox: Outbox
  readonly #answers = new Map<Response, AbortController>()
  /** One after the other: most engines hear no two at a time, and turns come in order. */
  readonly #listening = new SerialQueue()
  /** Everything that goes on, to be waited for at the end. */
  readonly #work = new Set<Promise<void>>()
  readonly #idHead = randomUUID().replaceAll('-', '').slice(0, 16)
  #ids = 0

  constructor (socket: ServedSocket, deps: EngineDeps, opening: Opening) {
    this.#socket = socket
    this.#deps = deps
    this.#opening = opening
    this.#engines = new Engines(deps, opening)
    this.#outbox = new Outbox(socket)
    const { model, type, session } = opening
    const fixed = session === null ? firstSettings(model, type) : fixedSettings(session)
    this.#settings = { ...fixed, model: model === '' ? fixed.model : model }
    this.#session = new Session(this.#settings, {
      id: this.#newId('sess'),
      expiresAt: Math.floor((deps.clock.now() + LONGEST_MS) / 1000),
      newId: prefix => this.#newId(prefix),
      missing: (need, settings) => this.#engines.missing(need, settings)
    })
  }

  async run (): Promise<void> {
    const expired = this.#deps.clock.setTimer(LONGEST_MS, () => { void this.#expire() })
    try {
      await this.#engines.lookUp(this.#settings, this.#socket.signal)
      this.#apply(this.#session.open())
      for await (const message of this.#socket.messages) {
        await this.#hear(message)
        await this.#outbox.room()
      }
    } finally {
      expired.cancel()
      for (const controller of this.#answers.values()) controller.abort(this.#socket.signal.reason)
      await Promise.all(this.#work)
    }
  }

  async #hear (message: string | Buffer): Promise<void> {
    let event: Json | null = null
    try {
      if (typeof message !== 'string') throw realtimeError('realtime.unsupported', 'events are JSON text messages; send audio as Base64 in input_audio_buffer.append')
      event = requestObject(Buffer.from(message))
      const unserved = this.#session.unserved(event)
      if (unserved !== null) await this.#engines.lookUp(unserved, this.#socket.signal)
      this.#apply(this.#session.hear(event))
    } catch (error) {
      this.#tell(errorEvent(this.#told(error), event))
    }
  }

  #apply ({ events, effects }: Outcome): void {
    for (const event of events) this.#tell(event)
    for (const effect of effects) this.#start(effect)
  }

  #tell (event: ServerEvent): void {
    const worded = this.#opening.isBeta ? betaEvent(event) : event
    if (worded === null) return
    const { type, ...members } = worded
    this.#outbox.push(JSON.stringify({ type, event_id: this.#newId('event'), ...members }))
  }

  #start (effect: Effect): void {
    if (effect.kind === 'stop') {
      this.#answers.get(effect.response)?.abort(new Error('the response is over'))
      return
    }
    const work = effect.kind === 'answer' ? this.#answer(effect.response, effect.body) : this.#transcribe(effect)
    this.#work.add(work)
    void work.finally(() => this.#work.delete(work))
  }

  /** Never rejects. */
  async #answer (response: Response, body: Json): Promise<void> {
    const controller = new AbortController()
    this.#answers.set(response, controller)
    const signal = AbortSignal.any([controller.signal, this.#socket.signal])
    const tell = async (news: AnswerNews): Promise<void> => {
      signal.throwIfAborted()
      this.#apply(this.#session.told(response, news))
      await this.#outbox.room()
    }
    try {
      await makeAnswer(this.#engines, response.plan.settings, body, tell, signal)
    } catch (error) {
      if (!signal.aborted) this.#apply(this.#session.told(response, { kind: 'failed', error: this.#told(error) }))
    } finally {
      this.#answers.delete(response)
    }
  }

  /** Never rejects. */
  async #transcribe ({ item, settings }: Extract<Effect, { kind: 'transcribe' }>): Promise<void> {
    const { signal } = this.#socket
    try {
      const text = await this.#listening.run(() => this.#engines.transcribe(item, settings, signal))
      this.#apply(this.#session.transcribed(item, { text }))
    } catch (error) {
      if (!signal.aborted) this.#apply(this.#session.transcribed(item, { error: this.#told(error) }))
    }
  }

  async #expire (): Promise<void> {
    this.#tell(errorEvent(realtimeError('realtime.expired', 'the session has lasted an hour, which is the limit: open a new one'), null))
    const close = (): void => this.#socket.close(1000, 'the session has lasted an hour')
    const late = this.#deps.clock.setTimer(FAREWELL_MS, close)
    await this.#outbox.empty()
    late.cancel()
    close()
  }

  /** What the client is told of a failure. */
  #told (error: unknown): SvcError {
    if (isSvcError(error)) return error
    const { log, requestId } = this.#opening
    log.error({ request_id: requestId, err: error }, 'a realtime session failed at an event')
    return internalError(requestId)
  }

  #newId (prefix: string): string {
    return `${prefix}_${this.#idHead}${(this.#ids++).toString(36)}`
  }
}
