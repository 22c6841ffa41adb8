import type { Store } from '../store/store.js'

/** What few memories have is counted each time: it takes no time, and the first memory with a word must be found. */
const HELD_FROM = 500
const MOST_HELD = 10_000
/** A bank that has grown or shrunk by more than this part of itself is counted anew. */
const CHANGED = 1 / 16

interface Held {
  readonly count: number
  /** Of the bank, when it was counted. */
  readonly size: number
}

/** How many memories of a bank have a word. What many have is held, as a word stays common whatever is retained. */
export class WordCounts {
  readonly #held = new Map<string, Held>()

  /** At most `most`. The phrase is one of FTS5, the index that of a bank with `size` memories. */
  of (store: Store, index: string, phrase: string, size: number, most: number): number {
    const key = `${index} ${phrase}`
    const held = this.#held.get(key)
    if (held !== undefined && Math.abs(size - held.size) <= held.size * CHANGED) return held.count
    const { count } = store.get<{ count: number }>(
      `SELECT count(*) AS count FROM (SELECT 1 FROM ${index} WHERE ${index} MATCH ? LIMIT ${most})`, [phrase])!
    if (count < HELD_FROM) {
      this.#held.delete(key)
      return count
    }
    if (this.#held.size >= MOST_HELD) this.#held.clear()
    this.#held.set(key, { count, size })
    return count
  }
}
