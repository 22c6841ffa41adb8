import type { EventBus, Logger, SlotStatus } from '../../contract/index.js'
import { SnapshotFeed } from '../../async/snapshot-feed.js'
import { isServing } from '../schedule/slot-machine.js'

/** Tells what becomes of a slot with several replicas; what becomes of each of them, its owner tells. */
export class ReplicaNews {
  /** Its readers see every change. */
  readonly feed = new SnapshotFeed<SlotStatus>()
  readonly #slot: string
  readonly #events: EventBus
  readonly #log: Logger
  #state: SlotStatus['state'] = 'offline'

  constructor (slot: string, { events, log }: { readonly events: EventBus, readonly log: Logger }) {
    this.#slot = slot
    this.#events = events
    this.#log = log
  }

  /** The slot as it is now; on the event bus, once it serves or serves no more. */
  tell (status: SlotStatus): void {
    this.feed.publish(status)
    const [before, { state, modelId }] = [this.#state, status]
    this.#state = state
    if (state === before || (isServing(state) && isServing(before))) return
    const data = { slot: this.#slot, from: before, to: state, model_id: modelId }
    const severity = state === 'error' ? 'error' : 'info'
    this.#events.emit({ type: 'slot.state', severity, source: `slot:${this.#slot}`, message: `${this.#slot}: ${before} -> ${state}`, data })
  }

  /** There is to be one more, or one less. */
  scaled (replica: number, what: 'started' | 'stopped', why: string): void {
    const data = { slot: this.#slot, replica, what, why }
    const message = `${this.#slot}: replica ${replica} is ${what}: ${why}`
    this.#events.emit({ type: 'slot.scale', severity: 'info', source: `slot:${this.#slot}`, message, data })
    this.#log.info(data, message)
  }
}
