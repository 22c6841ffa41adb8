import type { Clock, Timer } from '../../contract/index.js'

/** How often the waits are looked at, as a part of the limit, and at least. */
const LOOKS_PER_LIMIT = 8
const LONGEST_PAUSE_MS = 1_000

/** One wait for the other side to send something. */
export class Wait {
  readonly #watch: SilenceWatch
  limitMs: number
  #fellSilent: () => void
  /** Links of the list that it stands in, which is the watch's to keep. */
  before: Wait | null = null
  after: Wait | null = null
  #hasHeard = false
  #isPaused = false
  #hasEnded = false
  #since: number

  constructor (watch: SilenceWatch, limitMs: number, now: number, fellSilent: () => void) {
    this.#watch = watch
    this.limitMs = limitMs
    this.#since = now
    this.#fellSilent = fellSilent
  }

  /** Something came. Made to be called for every piece of an answer: it takes no time of its own. */
  heard (): void {
    this.#hasHeard = true
  }

  /** Something else is waited for from now on, in the same place of the list: taking a wait out of it can cost a timer. */
  next (limitMs: number, fellSilent: () => void): void {
    this.limitMs = limitMs
    this.#fellSilent = fellSilent
    this.#hasHeard = true
    this.#watch.hurry(limitMs)
  }

  /** What comes is not being read, so silence means nothing. */
  pause (): void {
    this.#isPaused = true
  }

  goOn (): void {
    this.#isPaused = false
    this.#hasHeard = true
  }

  end (): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#watch.remove(this)
  }

  look (now: number): void {
    if (this.#hasEnded) return
    if (this.#hasHeard || this.#isPaused) {
      this.#hasHeard = false
      this.#since = now
    } else if (now - this.#since >= this.limitMs) {
      this.end()
      this.#fellSilent()
    }
  }
}

/**
 * Waits for the other side, each with its limit. One timer for all of them, and none while there are none: a timer
 * for each call, started, put off and cancelled thousands of times a second, costs a request more than all of its routing. A
 * silence is noticed up to a second, or a quarter of a shorter limit, late.
 */
export class SilenceWatch {
  readonly #clock: Clock
  /** A list whose links are in its entries. */
  #first: Wait | null = null
  #timer: Timer | null = null
  /** What the timer was set for. */
  #pauseMs = Infinity

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /** @param fellSilent called at most once, when nothing was heard for that long */
  begin (limitMs: number, fellSilent: () => void): Wait {
    const wait = new Wait(this, limitMs, this.#clock.monotonic(), fellSilent)
    wait.after = this.#first
    if (this.#first !== null) this.#first.before = wait
    this.#first = wait
    this.hurry(limitMs)
    return wait
  }

  /** Sees to it that looks come often enough for a limit. */
  hurry (limitMs: number): void {
    const pauseMs = Math.min(limitMs / LOOKS_PER_LIMIT, LONGEST_PAUSE_MS)
    if (pauseMs < this.#pauseMs) this.#arm(pauseMs)
  }

  remove (wait: Wait): void {
    const { before, after } = wait
    if (before !== null) before.after = after
    else this.#first = after
    if (after !== null) after.before = before
    wait.before = wait.after = null
    if (this.#first === null) this.#disarm()
  }

  #arm (pauseMs: number): void {
    this.#timer?.cancel()
    this.#pauseMs = pauseMs
    this.#timer = this.#clock.setTimer(pauseMs, this.#look)
  }

  #disarm (): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#pauseMs = Infinity
  }

  readonly #look = (): void => {
    const now = this.#clock.monotonic()
    let shortestMs = LONGEST_PAUSE_MS
    for (let wait = this.#first; wait !== null;) {
      const next: Wait | null = wait.after
      shortestMs = Math.min(shortestMs, wait.limitMs / LOOKS_PER_LIMIT)
      wait.look(now)
      wait = next
    }
    // those who are told may have begun another wait, or ended the last one
    if (this.#first === null) this.#disarm()
    else this.#arm(Math.min(shortestMs, this.#first.limitMs / LOOKS_PER_LIMIT))
  }
}
