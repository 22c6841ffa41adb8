import { svcError, type SlotLease, type SlotService } from 'svc-gateway/plugin'
import type { RunnableWorkflow, WorkflowRun } from '../../providers/imagegen/ref.js'

export interface LaunchOrder extends Pick<WorkflowRun, 'slot' | 'requestId' | 'queued' | 'signal'> {
  /** Called when the launch has to wait for the engine or for its turn. */
  readonly waits: () => void
}

/** Workflows that were launched: in the slot's waiting line, or with its engine. */
export class Launches {
  readonly #slots: Pick<SlotService, 'tryAcquire' | 'acquire' | 'client'>
  readonly #waiting = new Map<AbortController, string>()

  constructor (slots: Pick<SlotService, 'tryAcquire' | 'acquire' | 'client'>) {
    this.#slots = slots
  }

  /** Resolves when the images are made. Rejects with why not: refused, cancelled, or the engine was taken away. */
  async run (workflow: RunnableWorkflow, { waits, signal, ...order }: LaunchOrder): Promise<void> {
    const end = new AbortController()
    const either = AbortSignal.any([signal, end.signal])
    const { slot } = order
    const lease = this.#slots.tryAcquire(slot) ?? await this.#turn(slot, end, either, waits)
    try {
      lease.onRevoked(error => end.abort(error))
      await workflow.run({ client: this.#slots.client(slot)!, ...order, signal: either })
    } finally {
      lease.release()
    }
  }

  /** Ends those that wait for a slot. */
  cancelWaiting (slot: string): void {
    for (const [end, of] of this.#waiting) {
      if (of === slot) end.abort(svcError('request.cancelled', 'the launch was cancelled by an operator'))
    }
  }

  async #turn (slot: string, end: AbortController, signal: AbortSignal, waits: () => void): Promise<SlotLease> {
    waits()
    this.#waiting.set(end, slot)
    try {
      return await this.#slots.acquire(slot, signal)
    } finally {
      this.#waiting.delete(end)
    }
  }
}
