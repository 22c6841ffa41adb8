import { closeSync, openSync, readSync } from 'node:fs'

/**
 * Time of the processor that the main thread has used. Asks without allocating: a file read anew a thousand times a second
 * is 64 MB of buffers, whose collection would hold the very loop that is watched.
 */
class ThreadTime {
  readonly #bytes = Buffer.alloc(128)
  readonly #file = opened(`/proc/self/task/${process.pid}/schedstat`)

  /** In milliseconds; null where the system does not tell. */
  read (): number | null {
    if (this.#file === null) return null
    const length = readSync(this.#file, this.#bytes, 0, this.#bytes.length, 0)
    return Number(this.#bytes.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6
  }

  close (): void {
    if (this.#file !== null) closeSync(this.#file)
  }
}

function opened (path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch {
    return null
  }
}

/** What the main thread uses between two turns of its event loop: what other processes take is not in it. */
export class TurnWatch {
  readonly #thread = new ThreadTime()
  #most: number | null = null
  #before = this.#thread.read()
  #at = performance.now()
  readonly #timer = setInterval(() => this.#turned(), 1).unref()

  /** The longest since it was last asked, in milliseconds of the processor; null where the system does not tell. */
  take (): number | null {
    const most = this.#most
    this.#most = null
    return most
  }

  stop (): void {
    clearInterval(this.#timer)
    this.#thread.close()
  }

  #turned (): void {
    const [now, at] = [this.#thread.read(), performance.now()]
    // The system counts a thread's time at its ticks, 4 ms apart: a tick's time cannot have been used in less than that.
    if (now !== null && this.#before !== null) this.#most = Math.max(this.#most ?? 0, Math.min(now - this.#before, at - this.#at))
    this.#before = now
    this.#at = at
  }
}
