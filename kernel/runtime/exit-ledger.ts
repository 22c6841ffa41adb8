/** Told ends that are remembered against late repetitions. */
const REMEMBERED = 4096

export interface LedgerRow {
  readonly id: string
  readonly labels: Labels
  /** `created` counts as neither. */
  readonly state: 'created' | 'running' | 'exited'
}

export type Labels = Readonly<Record<string, string>>

export interface EndNews {
  readonly id: string
  readonly labels: Labels
  readonly gone: boolean
}

/**
 * Which ends are news, out of events that may come late, twice or not at all and lists that are a moment old.
 * Every end is news once. What had ended before the first list is no news, unless it was seen running before.
 * Pure bookkeeping: no I/O, no clock.
 */
export class ExitLedger {
  readonly #running = new Map<string, Labels>()
  readonly #told = new Set<string>()
  readonly #endedBefore = new Set<string>()
  #listed = false

  /** Seen running, just now or in a list. A late list never brings back what was told to have ended. */
  running (id: string, labels: Labels): void {
    if (this.#told.has(id)) return
    this.#endedBefore.delete(id)
    this.#running.set(id, labels)
  }

  /** Our own start is about to run: an earlier end of this id is history, its next one is news. */
  starting (id: string): void {
    if (this.#told.delete(id)) this.#endedBefore.add(id)
  }

  /** The engine says it ended just now. Whether that is news. */
  ended (id: string): boolean {
    if (this.#told.has(id)) return false
    this.#running.delete(id)
    this.#endedBefore.delete(id)
    this.#told.add(id)
    if (this.#told.size > REMEMBERED) this.#told.delete(this.#told.values().next().value!)
    return true
  }

  /** Call before asking for a list, and hand the result to `listed`: the list cannot know what starts meanwhile. */
  beforeList (): ReadonlySet<string> {
    return new Set(this.#running.keys())
  }

  /** What the list tells anew: engines that ended, and engines that are gone altogether. */
  listed (rows: readonly LedgerRow[], runningBefore: ReadonlySet<string>): EndNews[] {
    const news: EndNews[] = []
    for (const { id, labels, state } of rows) {
      if (state === 'running') this.running(id, labels)
      if (state === 'exited' && this.#isNews(id, runningBefore) && this.ended(id)) news.push({ id, labels, gone: false })
    }
    const present = new Set(rows.map(row => row.id))
    for (const [id, labels] of [...this.#running]) {
      if (runningBefore.has(id) && !present.has(id) && this.ended(id)) news.push({ id, labels, gone: true })
    }
    for (const id of [...this.#endedBefore]) {
      if (!present.has(id)) this.#endedBefore.delete(id)
    }
    this.#listed = true
    return news
  }

  /** Of an engine that the list shows as ended. */
  #isNews (id: string, runningBefore: ReadonlySet<string>): boolean {
    if (this.#running.has(id)) return runningBefore.has(id) // else it started after the list was taken
    if (this.#told.has(id) || this.#endedBefore.has(id)) return false
    if (!this.#listed) this.#endedBefore.add(id)
    return this.#listed
  }
}
