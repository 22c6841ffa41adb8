import { isSvcError, SerialQueue, svcError, type ServedSocket, type SvcError } from 'svc-gateway/plugin'
import { responsesError } from '../errors.js'
import { clientEvent, laneIn, type CreateEvent, type SteerEvent } from './client-event.js'
import type { MadeResponses } from './made-responses.js'
import type { TurnDeps } from './prepared-turn.js'
import { errorEvent, messageOf } from './server-event.js'
import { answerTurn, prepareTurn } from './turn.js'

/** Requests of a connection that are taken at a time; it is not read while it has as many. */
const MOST_TURNS = 16
/** Of what all connections ask for at a time, as received and as it goes out. */
const MOST_BYTES = 256 * 1024 * 1024

/** What all connections have in common. */
export interface Shared {
  readonly made: MadeResponses
  /** Bytes of requests that are being answered, or wait for it. */
  held: number
}

/** Serves one connection until its client leaves or the gateway stops; then nothing of it goes on. */
export async function serveConnection (socket: ServedSocket, deps: Omit<TurnDeps, 'own'>, shared: Shared): Promise<void> {
  await new Connection(socket, deps, shared).run()
}

class Connection {
  readonly #socket: ServedSocket
  readonly #deps: TurnDeps
  readonly #shared: Shared
  /** What is being answered, or waits for it, by lane; '' for the one without a name. */
  readonly #lanes = new Map<string, { readonly queue: SerialQueue, turns: number }>()
  /** One message at a time, at the client's pace. */
  readonly #sending = new SerialQueue()
  readonly #work = new Set<Promise<void>>()

  constructor (socket: ServedSocket, deps: Omit<TurnDeps, 'own'>, shared: Shared) {
    this.#socket = socket
    this.#deps = { ...deps, own: shared.made.open() }
    this.#shared = shared
  }

  async run (): Promise<void> {
    try {
      for await (const message of this.#socket.messages) {
        await this.#hear(message)
        while (this.#work.size >= MOST_TURNS && !this.#socket.signal.aborted) await Promise.race(this.#work)
      }
    } finally {
      await Promise.all(this.#work)
      this.#deps.own.close()
    }
  }

  async #hear (message: string | Buffer): Promise<void> {
    try {
      const event = clientEvent(message)
      if (event.kind === 'steer') return await this.#say(steerFailed(event), null)
      this.#take(event, message.length)
    } catch (error) {
      await this.#fail(error, null, laneIn(message))
    }
  }

  /** Throws `responses.busy`. */
  #take (event: CreateEvent, bytes: number): void {
    let held = 0
    const hold = (more: number): void => {
      if (this.#shared.held + more > MOST_BYTES) throw responsesError('responses.busy', 'the limit of requests over all WebSockets is reached; ask again when one has finished')
      held += more
      this.#shared.held += more
    }
    hold(bytes)
    const name = event.lane ?? ''
    const lane = this.#lanes.get(name) ?? { queue: new SerialQueue(), turns: 0 }
    this.#lanes.set(name, lane)
    lane.turns++
    const work = lane.queue.run(() => this.#answer(event, hold)).finally(() => {
      this.#shared.held -= held
      if (--lane.turns === 0) this.#lanes.delete(name)
      this.#work.delete(work)
    })
    this.#work.add(work)
  }

  /** Never rejects. */
  async #answer ({ asked, lane, generates }: CreateEvent, hold: (bytes: number) => void): Promise<void> {
    if (this.#socket.signal.aborted) return
    // of its own: many that listen to one signal look like a leak
    const signal = AbortSignal.any([this.#socket.signal])
    const tell = async (data: string): Promise<void> => {
      signal.throwIfAborted()
      await this.#say(data, lane)
    }
    try {
      if (generates) await answerTurn(asked, this.#deps, tell, hold, signal)
      else await prepareTurn(asked, this.#deps, tell, signal)
    } catch (error) {
      if (!signal.aborted) await this.#fail(error, asked, lane)
    }
  }

  async #fail (error: unknown, asked: CreateEvent['asked'] | null, lane: string | null): Promise<void> {
    await this.#say(JSON.stringify(errorEvent(this.#told(error), asked, this.#deps.requestId)), lane)
  }

  #say (data: string, lane: string | null): Promise<void> {
    return this.#sending.run(() => this.#socket.send(messageOf(data, lane)))
  }

  /** What the client is told of a failure. */
  #told (error: unknown): SvcError {
    if (isSvcError(error)) return error
    const { log, requestId } = this.#deps
    log.error({ request_id: requestId, err: error }, 'a request of a connection failed')
    return svcError('system.internal', `internal error; see the log, request id ${requestId}`)
  }
}

/** Nothing here can be told to a model that is answering. */
function steerFailed ({ previous, input }: SteerEvent): string {
  const message = 'responses cannot be steered here: send the input with response.create when the response is complete'
  const error = { type: 'invalid_request_error', code: 'steering_not_supported', message }
  return JSON.stringify({ type: 'response.steer.failed', sequence_number: 0, steer: { previous_response_id: previous, input }, error })
}
