import type { Clock, Timer } from 'svc-gateway/plugin'

/** What an agent tells of a session. */
export interface AgentEvent {
  readonly type: string
  readonly session_id: string | null
  readonly payload: Readonly<Record<string, unknown>>
}

const EVERY_MS = 100
const LONGEST_TEXT = 64 * 1024
/**
 * Events with a text, which follow each other faster than anyone reads: pieces of one text, or, as what an agent says that it is
 * about to do, each in place of the one before.
 */
const KINDS: ReadonlyMap<string, 'pieces' | 'last'> = new Map([
  ['message.delta', 'pieces'], ['reasoning.delta', 'pieces'], ['thinking.delta', 'last']
])

/** Makes one event of those of a tenth of a second in one session; the order of events stays. */
export class Coalescer {
  readonly #clock: Pick<Clock, 'setTimer'>
  readonly #emit: (event: AgentEvent) => void
  #waiting: AgentEvent | null = null
  #timer: Timer | null = null

  constructor (clock: Pick<Clock, 'setTimer'>, emit: (event: AgentEvent) => void) {
    this.#clock = clock
    this.#emit = emit
  }

  push (event: AgentEvent): void {
    const { text } = event.payload
    const kind = typeof text === 'string' ? KINDS.get(event.type) : undefined
    const before = this.#waiting
    if (kind !== undefined && before?.type === event.type && before.session_id === event.session_id) {
      const joined = kind === 'last' ? text as string : `${before.payload.text as string}${text as string}`
      // what else a piece says is of the text so far: the last one counts
      this.#waiting = { ...event, payload: { ...event.payload, text: joined } }
      if (joined.length > LONGEST_TEXT) this.flush()
      return
    }
    this.flush()
    if (kind === undefined) return this.#emit(event)
    this.#waiting = event
    this.#timer = this.#clock.setTimer(EVERY_MS, () => this.flush())
  }

  flush (): void {
    this.#timer?.cancel()
    this.#timer = null
    const event = this.#waiting
    this.#waiting = null
    if (event !== null) this.#emit(event)
  }
}
