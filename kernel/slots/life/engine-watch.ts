import type { Engine, ScheduledSlot, SlotInput } from '../schedule/scheduled-slot.js'
import type { SlotActions } from './slot-actions.js'
import type { EngineWork } from './watch/health-watch.js'

/** The looking after an engine that serves: its watch, and the questions whether it is still there, which end with the watch. */
export class EngineWatch {
  readonly #actions: Pick<SlotActions, 'watch' | 'probe'>
  readonly #work: EngineWork
  readonly #feed: (input: SlotInput) => void
  #watching: AbortController | null = null

  constructor (actions: Pick<SlotActions, 'watch' | 'probe'>, work: EngineWork, feed: (input: SlotInput) => void) {
    this.#actions = actions
    this.#work = work
    this.#feed = feed
  }

  /** @param serving the slot, while its engine serves */
  follow (serving: Pick<ScheduledSlot, 'engine' | 'generation'> | null): void {
    this.end()
    this.#watching = null
    if (serving === null || serving.engine === null) return
    const { engine, generation } = serving
    this.#watching = new AbortController()
    this.#actions.watch(engine, this.#work, message => {
      this.#feed({ type: 'unhealthy', generation, message })
    }, this.#watching.signal)
  }

  /** Ends with the watch: what becomes of the engine then is known from elsewhere. */
  probe (engine: Engine, generation: number): void {
    const signal = this.#watching?.signal ?? AbortSignal.abort()
    this.#actions.probe(engine, signal).then(
      problem => { this.#feed(problem === null ? { type: 'answers', generation } : { type: 'unhealthy', generation, message: problem }) },
      (error: unknown) => { if (!signal.aborted) throw error }
    ).catch(rethrowLater)
  }

  end (): void {
    this.#watching?.abort()
  }
}

/** A failure here is a defect of the scheduler itself: it must not vanish in a promise. */
export function rethrowLater (error: unknown): void {
  queueMicrotask(() => { throw error })
}
