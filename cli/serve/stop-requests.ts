import type { Readable } from 'node:stream'
import type { Cli } from '../cli.js'

/** What a hurried stop may still take before the process ends anyway. */
const HURRY_MS = 3_000

/**
 * Counts the wishes to stop: the first is a request, the second is impatient, the third ends the process. The second does
 * so too when it is not heeded soon.
 */
export class StopRequests {
  readonly first: Promise<void>
  readonly second: Promise<void>
  readonly #wishes: Array<() => void> = []

  constructor ({ interrupts }: Cli) {
    this.first = new Promise(resolve => { this.#wishes.push(resolve) })
    this.second = new Promise(resolve => { this.#wishes.push(resolve) })
    interrupts.takeOver(signal => {
      const wish = this.#wishes.shift()
      if (wish === undefined) return interrupts.exitNow(signal)
      wish()
      if (this.#wishes.length === 0) setTimeout(() => interrupts.exitNow(signal), HURRY_MS).unref()
    })
  }

  /** The end of the input is a wish like a signal, once. */
  onInputEnd (input: Readable): void {
    const [first] = this.#wishes
    const end = (): void => {
      if (this.#wishes[0] === first) this.#wishes.shift()
      first!()
    }
    input.once('end', end)
    input.once('error', end)
    input.resume()
  }
}
