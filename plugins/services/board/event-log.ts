import type { Database } from './database.js'
import type { BoardEvent, BoardEventKind, Task } from './ref.js'

/** Readers that were away for longer than so many events read the board anew. */
const KEPT = 50_000
const SWEPT_EVERY = 1_000

interface Row {
  readonly id: number
  readonly board: string
  readonly task: string
  readonly kind: BoardEventKind
  readonly at: number
  readonly json: string
}

/** What happened to tasks, numbered for good: a number is never given twice, whatever is deleted. */
export class EventLog {
  readonly #database: Database
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  #isTelling = false

  constructor (database: Database, now: () => number) {
    this.#database = database
    this.#now = now
  }

  /** Part of the transaction that it stands in; told when that is over. */
  add (board: string, task: string, kind: BoardEventKind, json: Readonly<Record<string, unknown>> = {}): void {
    const values = [board, task, kind, this.#now(), JSON.stringify(json)] as const
    const insert = 'INSERT INTO events (board, task, kind, at, json) VALUES (?, ?, ?, ?, ?) RETURNING id'
    const { id } = this.#database.get<{ id: number }>(insert, ...values)!
    if (id % SWEPT_EVERY === 0) this.#database.run('DELETE FROM events WHERE id <= ?', id - KEPT)
    this.tell()
  }

  /** Has the listeners look again soon. */
  tell (): void {
    if (this.#isTelling) return
    this.#isTelling = true
    // transactions do not wait, so by then it is committed or undone
    queueMicrotask(() => {
      this.#isTelling = false
      for (const listener of this.#listeners) listener()
    })
  }

  get cursor (): number {
    return this.#database.get<{ seq: number }>('SELECT seq FROM sqlite_sequence WHERE name = \'events\'')?.seq ?? 0
  }

  after (board: string, since: number, limit: number): { readonly events: readonly BoardEvent[], readonly isGap: boolean } {
    const { first } = this.#database.get<{ first: number | null }>('SELECT min(id) AS first FROM events')!
    const isGap = since > this.cursor || (first !== null && since < first - 1)
    const rows = this.#database.all<Row>('SELECT * FROM events WHERE board = ? AND id > ? ORDER BY id LIMIT ?', board, since, limit)
    const events = rows.map(({ task, json, ...event }) => ({ ...event, task_id: task, json: JSON.parse(json) as unknown }))
    return { isGap, events }
  }

  /** The last of a task, oldest first. */
  ofTask (task: string, limit: number): Task['events'] {
    const rows = this.#database.all<Row>('SELECT * FROM events WHERE task = ? ORDER BY id DESC LIMIT ?', task, limit)
    return rows.reverse().map(({ kind, at, json }) => ({ kind, at, json: JSON.parse(json) as unknown }))
  }

  readonly follow = (listener: () => void): () => void => {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }
}
