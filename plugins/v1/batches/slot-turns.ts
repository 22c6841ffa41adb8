import { pause, type Clock, type DispatchService, type SlotService, type SurfaceName } from 'svc-gateway/plugin'

export interface TurnDeps {
  readonly clock: Clock
  readonly dispatch: Pick<DispatchService, 'target'>
  readonly slots: Pick<SlotService, 'status'>
}

const LOOK_MS = 200

/** Gives rows the idle time of slots: one goes out when no request of anybody else is with the slot or waits for it. */
export class SlotTurns {
  readonly #deps: TurnDeps
  /** Rows that are with each slot, or on their way to it. */
  readonly #rows = new Map<string, number>()

  constructor (deps: TurnDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when a row for this model may be sent, with the function that says that it is over. What no slot serves may be sent
   * at once: an upstream judges, or the request is refused. Rejects with the signal's reason.
   * @param surfaces those that the row may be asked on, its own first; the first that a slot serves counts
   * @param body the row's request, which decides between several slots
   */
  async take (model: string, surfaces: readonly SurfaceName[], body: Buffer, signal: AbortSignal): Promise<() => void> {
    const request = { body, surface: surfaces[0]! }
    for (;;) {
      signal.throwIfAborted()
      const slot = surfaces.map(surface => this.#deps.dispatch.target(model, surface, request)?.slot)
        .find(found => typeof found === 'string')
      if (typeof slot !== 'string') return () => {}
      if (this.#isIdle(slot)) return this.#enter(slot)
      await pause(this.#deps.clock, LOOK_MS, signal)
    }
  }

  #isIdle (slot: string): boolean {
    const { inFlight, waiting, workers, address } = this.#deps.slots.status(slot)
    const own = this.#rows.get(slot) ?? 0
    // one that is not up yet is loaded by the first row; more would only wait with it
    return inFlight + waiting <= own && own < (address === null ? 1 : workers ?? Infinity)
  }

  #enter (slot: string): () => void {
    this.#rows.set(slot, (this.#rows.get(slot) ?? 0) + 1)
    return () => {
      const left = this.#rows.get(slot)! - 1
      if (left === 0) this.#rows.delete(slot)
      else this.#rows.set(slot, left)
    }
  }
}
