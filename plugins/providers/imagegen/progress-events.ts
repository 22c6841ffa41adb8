import { randomUUID } from 'node:crypto'
import type { Clock, EventBus } from 'svc-gateway/plugin'
import type { RunBoard } from './run-board.js'
import type { RunStep } from './run.js'

export interface RunIdentity {
  readonly requestId: string
  readonly slot: string
  readonly model: string
}

export interface RunTellers {
  readonly events: EventBus
  readonly clock: Clock
  readonly board: RunBoard
}

/** Steps of a fast model come faster than they are worth showing. */
const LEAST_GAP_MS = 250

/**
 * Tells `/api/events` and the board how an image job is getting on: `image.queued`, `image.progress`, and one end of three.
 */
export class RunEvents {
  readonly #events: EventBus
  readonly #clock: Clock
  readonly #board: RunBoard
  readonly #run: string
  readonly #data: Readonly<Record<string, unknown>>
  readonly #slot: string
  readonly #startedAt: number
  #toldAt = -Infinity

  constructor ({ events, clock, board }: RunTellers, { requestId, slot, model }: RunIdentity) {
    this.#events = events
    this.#clock = clock
    this.#board = board
    this.#run = randomUUID()
    this.#slot = slot
    this.#data = { request_id: requestId, slot, model }
    this.#startedAt = clock.monotonic()
  }

  step (step: RunStep): void {
    this.#board.step(this.#run, this.#slot, step)
    if (step.phase === 'queued') return this.#emit('image.queued', `${this.#slot}: image queued, ${step.ahead} before it`, { ahead: step.ahead })
    const { node, value, max } = step
    const isLast = value !== null && value === max
    const now = this.#clock.monotonic()
    if (!isLast && now - this.#toldAt < LEAST_GAP_MS) return
    this.#toldAt = now
    const percent = value === null || max === null || max === 0 ? null : Math.round(100 * value / max)
    const message = percent === null ? `${this.#slot}: image running` : `${this.#slot}: image ${percent} % (${value} of ${max})`
    this.#emit('image.progress', message, { node, value, max, percent })
  }

  completed (images: number): void {
    this.#board.over(this.#run)
    this.#emit('image.completed', `${this.#slot}: ${images} ${images === 1 ? 'image' : 'images'}`, { images, duration_ms: this.#duration() })
  }

  cancelled (): void {
    this.#board.over(this.#run)
    this.#emit('image.cancelled', `${this.#slot}: image cancelled`, { duration_ms: this.#duration() })
  }

  failed (error: string): void {
    this.#board.over(this.#run)
    this.#emit('image.failed', `${this.#slot}: ${error}`, { error, duration_ms: this.#duration() }, 'error')
  }

  #duration (): number {
    return Math.round(this.#clock.monotonic() - this.#startedAt)
  }

  #emit (type: string, message: string, data: Record<string, unknown>, severity: 'info' | 'error' = 'info'): void {
    this.#events.emit({ type, severity, source: `slot:${this.#slot}`, message, data: { ...this.#data, ...data } })
  }
}
