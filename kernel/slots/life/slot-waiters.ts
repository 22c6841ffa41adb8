import type { SvcError } from '../../contract/index.js'
import type { Wants } from '../schedule/scheduled-slot.js'
import { WaitingLine, type InLine } from '../schedule/waiting-line.js'

interface Waiter extends InLine {
  readonly grant: () => void
  readonly refuse: (error: SvcError) => void
}

/** Those who wait for a slot, each until it is let in, refused, or leaves by itself. */
export class SlotWaiters {
  readonly #line = new WaitingLine<Waiter>()
  readonly #left: (wants: Wants) => void

  /** @param left told of each that leaves by itself, once it has */
  constructor (left: (wants: Wants) => void) {
    this.#left = left
  }

  /** As `WaitingLine.countsSince`. */
  countsSince (): number | null { return this.#line.countsSince() }

  /** As `WaitingLine.uncounted`. */
  uncounted (now: number): number { return this.#line.uncounted(now) }

  /**
   * Rejects with the reason of the signal, or with the refusal.
   * @param value made at the moment it is let in
   */
  wait<T> ({ wants, low, since }: InLine, signal: AbortSignal, value: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#line.delete(waiter)
        this.#left(wants)
        reject(signal.reason as Error)
      }
      const settle = (finish: () => void): void => {
        this.#line.delete(waiter)
        signal.removeEventListener('abort', leave)
        finish()
      }
      const waiter: Waiter = {
        wants,
        low,
        since,
        grant: () => settle(() => resolve(value())),
        refuse: error => settle(() => reject(error))
      }
      this.#line.add(waiter)
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
    })
  }

  /**
   * Letting one in takes it out of the line.
   * @param rest also all who want no worker
   */
  letIn (workers: number, rest: boolean): void {
    for (let free = workers; free > 0; free--) this.#line.next()?.grant()
    if (rest) for (const waiter of this.#line.others()) waiter.grant()
  }

  /** All of them, each with an error of its own. */
  refuse (error: () => SvcError): void {
    for (const waiter of this.#line.all()) waiter.refuse(error())
  }
}
