import { pause, type Clock, type DispatchService, type RequestService, type SlotService, type SurfaceName } from 'svc-gateway/plugin'

export interface TurnDeps {
  readonly clock: Clock
  readonly dispatch: Pick<DispatchService, 'target'>
  readonly requests: Pick<RequestService, 'list'>
  readonly slots: Pick<SlotService, 'status'>
}

const LOOK_MS = 200

/** Gives rows the idle time of slots: one goes out when no request of anybody else is with the slot or waits for it. */
export class SlotTurns {
  readonly #deps: TurnDeps
  /** Rows that are with each slot or on their way to it, by the ids of their requests. */
  readonly #rows = new Map<string, Set<string>>()

  constructor (deps: TurnDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when a row for this model may be sent, with the function that says that it is over. What no slot serves may be sent
   * at once: an upstream judges, or the request is refused. Rejects with the signal's reason.
   * @param id that the row's request will have
   * @param surfaces those that the row may be asked on, its own first; the first that a slot serves counts
   * @param body the row's request, which decides between several slots
   */
  async take (
    id: string, model: string, surfaces: readonly SurfaceName[], body: Buffer, signal: AbortSignal
  ): Promise<() => void> {
    const request = { body, surface: surfaces[0]! }
    for (;;) {
      signal.throwIfAborted()
      const slot = surfaces.map(surface => this.#deps.dispatch.target(model, surface, request)?.slot)
        .find(found => typeof found === 'string')
      if (typeof slot !== 'string') return () => {}
      if (this.#isIdle(slot)) return this.#enter(slot, id)
      await pause(this.#deps.clock, LOOK_MS, signal)
    }
  }

  #isIdle (slot: string): boolean {
    const { inFlight, waiting, workers, address } = this.#deps.slots.status(slot)
    const own = this.#rows.get(slot)
    const rows = own?.size ?? 0
    // one that is not up yet is loaded by the first row; more would only wait with it
    if (inFlight + waiting > rows || rows >= (address === null ? 1 : workers ?? Infinity)) return false
    // a row that has not come to the slot yet, or has left it and not been read to its end, is not what the slot is busy with
    return rows === 0 || this.#deps.requests.list().every(({ id, slot: at }) => at !== slot || own!.has(id))
  }

  #enter (slot: string, id: string): () => void {
    const rows = this.#rows.get(slot) ?? new Set()
    this.#rows.set(slot, rows.add(id))
    return () => {
      rows.delete(id)
      if (rows.size === 0) this.#rows.delete(slot)
    }
  }
}
