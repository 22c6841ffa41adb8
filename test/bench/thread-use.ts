import { readFileSync } from 'node:fs'

/** Time of the processor that the main thread has used, in milliseconds; null where the system does not tell. */
function threadMs (): number | null {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6
  } catch {
    return null
  }
}

/** What the main thread uses between two turns of its event loop: what other processes take is not in it. */
export class TurnWatch {
  #most: number | null = null
  #before = threadMs()
  readonly #timer = setInterval(() => this.#turned(), 1).unref()

  /** The longest since it was last asked, in milliseconds of the processor; null where the system does not tell. */
  take (): number | null {
    const most = this.#most
    this.#most = null
    return most
  }

  stop (): void {
    clearInterval(this.#timer)
  }

  #turned (): void {
    const now = threadMs()
    if (now !== null && this.#before !== null) this.#most = Math.max(this.#most ?? 0, now - this.#before)
    this.#before = now
  }
}
