import type { Clock, Timer } from '../contract/services/clock.js'
import type { SqlFile } from './sql-file.js'

/*
 * Deleted bytes are overwritten in the database's file, but its write-ahead log has what was there before until it is folded in.
 * SQLite does that when the log is long, and then leaves its bytes in place.
 */

/** Without a write for this long, the log is folded in. */
const IDLE_MS = 500
/** Where writes never pause: after so many looks. */
const MOST_LOOKS = 20
/** While another program reads. */
const LATER_MS = 1000

/** Folds the log of a database in soon after a write that took something away, and what a killed run has left in it. */
export class LogFolding {
  readonly #file: Pick<SqlFile, 'foldLog'>
  readonly #clock: Pick<Clock, 'setTimer'>
  #timer: Timer | null = null
  #isOver = false
  #hasWritten = false
  #looks = 0

  constructor (file: Pick<SqlFile, 'foldLog'>, clock: Pick<Clock, 'setTimer'>) {
    this.#file = file
    this.#clock = clock
    this.#lookIn(IDLE_MS)
  }

  /** It may be told within a transaction, and often: it only takes note. */
  wrote (): void {
    if (this.#timer === null) this.#lookIn(IDLE_MS)
    else this.#hasWritten = true
  }

  /** Before the file is closed, which folds it too. */
  stop (): void {
    this.#isOver = true
    this.#timer?.cancel()
  }

  #lookIn (ms: number): void {
    this.#timer = this.#isOver ? null : this.#clock.setTimer(ms, () => this.#look())
  }

  #look (): void {
    const isWriting = this.#hasWritten
    this.#hasWritten = false
    if (isWriting && ++this.#looks < MOST_LOOKS) return this.#lookIn(IDLE_MS)
    if (!this.#file.foldLog()) return this.#lookIn(LATER_MS)
    this.#timer = null
    this.#looks = 0
  }
}
