import { abortable, isSvcError, messageOf, type CallAnswer, type Clock, type DispatchService, type Logger, type PluginCall } from 'svc-gateway/plugin'
import type { Json } from '../../over-chat/ref.js'
import { responsesError } from '../errors.js'
import { failed } from './items.js'
import type { OwnPart } from './keeper.js'
import type { KeptResponses } from './kept-responses.js'
import { LiveEvents } from './live-events.js'
import { made } from './made.js'
import { begun } from './replay.js'

const MOST_RUNNING = 64
const MOST_BYTES = 256 * 1024 * 1024

export interface BackgroundTask {
  /** The response as it is before anything has been done. */
  readonly queued: Json
  readonly own: OwnPart
  /** Whether what makes it asks for a stream, whose events are kept. */
  readonly isStreamed: boolean
  /** What makes it. */
  readonly call: Omit<PluginCall, 'signal'>
}

interface Running {
  readonly controller: AbortController
  readonly queued: Json
  readonly events: LiveEvents | null
  readonly bytes: number
  readonly over: Promise<void>
  readonly settle: () => void
}

/** Responses that are made while their clients do not wait. They end with the gateway, as failed. */
export class BackgroundResponses {
  readonly #dispatch: DispatchService
  readonly #store: KeptResponses
  readonly #clock: Clock
  readonly #log: Logger
  readonly #running = new Map<string, Running>()

  constructor (dispatch: DispatchService, store: KeptResponses, clock: Clock, log: Logger) {
    this.#dispatch = dispatch
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /**
   * It is on the disk when this resolves. Rejects with `responses.busy`, and with what the call is refused with before anything
   * is asked for it. @param now epoch milliseconds
   */
  async start ({ queued, own, isStreamed, call }: BackgroundTask, now: number): Promise<void> {
    this.#assertRoom(call.body.length)
    const controller = new AbortController()
    const answer = this.#dispatch.call({ ...call, signal: controller.signal })
    await refusedAtOnce(answer)
    try {
      this.#started({ queued, own, isStreamed, call }, now, controller, answer)
    } catch (error) {
      controller.abort(error)
      throw error
    }
  }

  /** Throws `responses.busy`. */
  #assertRoom (bytes: number): void {
    const held = [...this.#running.values()].reduce((sum, running) => sum + running.bytes, bytes)
    if (this.#running.size < MOST_RUNNING && held <= MOST_BYTES) return
    throw responsesError('responses.busy', `${this.#running.size} responses are being generated in the background; try again when one has finished`)
  }

  #started (
    { queued, own, isStreamed, call }: BackgroundTask, now: number, controller: AbortController, answer: Promise<CallAnswer>
  ): void {
    // others may have come while it was seen whether it is refused
    this.#assertRoom(call.body.length)
    const bytes = call.body.length
    const id = String(queued.id)
    const events = isStreamed ? new LiveEvents(batch => this.#store.tell(id, batch)) : null
    events?.begin(begun(queued))
    const { previous, input } = own
    this.#store.add({ id, previous, input, response: queued, isOpen: true, events: events?.batch() ?? null }, now)
    events?.written()
    let settle = (): void => {}
    const over = new Promise<void>(resolve => { settle = resolve })
    this.#running.set(id, { controller, queued, events, bytes, over, settle })
    void this.#run(id, answer, controller.signal)
  }

  /** A kept response as it stands now: one that is not being made any more, and of which nothing could be kept, has failed. */
  standing (response: Json): Json {
    if (response.background !== true || response.status !== 'queued') return response
    return this.#running.has(String(response.id)) ? { ...response, status: 'in_progress' } : failed(response, 'its result could not be kept')
  }

  /** Resolves when it is not being made any more. Rejects with the reason of the signal. */
  async over (id: string, signal: AbortSignal): Promise<void> {
    const running = this.#running.get(id)
    if (running !== undefined) await abortable(running.over, signal)
  }

  /** The events of one that is being made for a stream; null for any other. */
  events (id: string): LiveEvents | null {
    return this.#running.get(id)?.events ?? null
  }

  /** Ends one that is being made; nothing happens where it is over. */
  cancel (id: string): void {
    const running = this.#running.get(id)
    if (running !== undefined) this.#end(id, { ...running.queued, status: 'cancelled' }, new Error('it was cancelled'))
  }

  stop (): void {
    for (const [id, { queued }] of this.#running) this.#end(id, failed(queued, 'the gateway stopped while it was being generated'), new Error('the gateway stops'))
  }

  #end (id: string, response: Json, reason: Error): void {
    const running = this.#running.get(id)!
    this.#finish(id, response, running)
    running.controller.abort(reason)
  }

  async #run (id: string, answer: Promise<CallAnswer>, signal: AbortSignal): Promise<void> {
    const running = this.#running.get(id)!
    const response = await this.#made(running, answer, signal)
    if (this.#running.get(id) === running) this.#finish(id, response, running)
  }

  async #made ({ queued, events }: Running, answer: Promise<CallAnswer>, signal: AbortSignal): Promise<Json> {
    try {
      return await made(queued, await answer, events, this.#clock)
    } catch (error) {
      if (!isSvcError(error) && !signal.aborted) this.#log.warn({ error: messageOf(error) }, 'a background response failed')
      return failed(queued, isSvcError(error) ? error.message : 'the engine answered with something that is not a response')
    }
  }

  #finish (id: string, response: Json, { events, settle }: Running): void {
    this.#running.delete(id)
    try {
      const batch = events?.batch() ?? null
      const told = events === null ? [] : [...batch === null ? [] : [batch], { last: events.next, bytes: Buffer.alloc(0) }]
      this.#store.finish(id, response, told)
      events?.written()
    } catch (error) {
      this.#log.error({ error: messageOf(error) }, `response '${id}' could not be kept`)
    }
    events?.end()
    settle()
  }
}

/** Rejects where a call is refused before anything is asked for it: what it is refused with later is told in the response. */
async function refusedAtOnce (answer: Promise<CallAnswer>): Promise<void> {
  await Promise.race([answer, new Promise(resolve => { setImmediate(resolve) })])
}
