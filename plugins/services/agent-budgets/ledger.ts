import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Libsql from 'libsql'
import { isSvcError, messageOf } from 'svc-gateway/plugin'
import { budgetError } from './errors.js'
import type { Budget } from './ref.js'
import { windowKey, windows, type Window } from './windows.js'

const SCHEMA = `
CREATE TABLE IF NOT EXISTS budgets (
  agent TEXT NOT NULL, persona TEXT NOT NULL, limits TEXT NOT NULL, PRIMARY KEY (agent, persona)
) STRICT;
CREATE TABLE IF NOT EXISTS entries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('charge', 'reserve', 'settle')),
  settles INTEGER UNIQUE REFERENCES entries (seq), agent TEXT NOT NULL, persona TEXT NOT NULL, surface TEXT NOT NULL, upstream TEXT,
  model TEXT NOT NULL, nano INTEGER NOT NULL, request_id TEXT, input_tokens INTEGER, output_tokens INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS entries_of ON entries (agent, persona, seq);
CREATE INDEX IF NOT EXISTS charges_of ON entries (request_id) WHERE kind = 'charge';
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'the ledger is only added to'); END;
CREATE TRIGGER IF NOT EXISTS entries_remain BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'the ledger is only added to'); END;
CREATE TABLE IF NOT EXISTS totals (
  agent TEXT NOT NULL, persona TEXT NOT NULL, window TEXT NOT NULL, nano INTEGER NOT NULL, PRIMARY KEY (agent, persona, window)
) STRICT;
`
const PRIVATE = 0o600
const BUSY_TIMEOUT_MS = 5000

/** Whose money it is. */
export interface Purse {
  readonly agent: string
  readonly persona: string
}

export interface NewEntry extends Purse {
  readonly kind: 'charge' | 'reserve'
  readonly surface: string
  readonly upstream: string | null
  readonly model: string
  readonly nano: number
  readonly requestId: string | null
}

export interface Entry extends Omit<NewEntry, 'kind' | 'requestId'> {
  readonly seq: number
  readonly kind: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly settles: number | null
  readonly request_id: string | null
  readonly input_tokens: number | null
  readonly output_tokens: number | null
}

export type Totals = Readonly<Record<Window, number>>

/** What is spent, in a database of its own: entries are only added, each in one transaction with the totals of its windows. */
export class Ledger {
  readonly #connection: Libsql.Database
  readonly #insert: Libsql.Statement
  readonly #add: Libsql.Statement
  readonly #total: Libsql.Statement

  private constructor (connection: Libsql.Database) {
    this.#connection = connection
    this.#insert = connection.prepare(`INSERT INTO entries
      (at, kind, settles, agent, persona, surface, upstream, model, nano, request_id, input_tokens, output_tokens)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#add = connection.prepare(`INSERT INTO totals (agent, persona, window, nano) VALUES (?, ?, ?, ?)
      ON CONFLICT (agent, persona, window) DO UPDATE SET nano = nano + excluded.nano`)
    this.#total = connection.prepare('SELECT nano FROM totals WHERE agent = ? AND persona = ? AND window = ?')
  }

  /** Estimates of a run that was killed stay charged: they are settled as they are. */
  static async open (path: string): Promise<Ledger> {
    let connection: Libsql.Database | undefined
    try {
      const [{ default: Driver }] = await Promise.all([import('libsql'), mkdir(dirname(path), { recursive: true })])
      await open(path, 'a', PRIVATE).then(handle => handle.close())
      await chmod(path, PRIVATE)
      connection = new Driver(path)
      connection.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
      connection.exec('PRAGMA journal_mode = WAL')
      // money that was granted is on the disk before the request goes out, past a power failure too
      connection.exec('PRAGMA synchronous = FULL')
      connection.exec(SCHEMA)
      const ledger = new Ledger(connection)
      ledger.#settleOpen()
      return ledger
    } catch (error) {
      connection?.close()
      throw ledgerFailed(error)
    }
  }

  close (): void {
    this.#connection.close()
  }

  budgets (): ReadonlyArray<Purse & { readonly limits: Budget }> {
    return this.#try(() => {
      const rows = this.#connection.prepare('SELECT agent, persona, limits FROM budgets').all([]) as Array<Purse & { limits: string }>
      return rows.map(({ agent, persona, limits }) => ({ agent, persona, limits: JSON.parse(limits) as Budget }))
    })
  }

  /** Null ends it. */
  setBudget ({ agent, persona }: Purse, limits: Budget | null): void {
    this.#try(() => {
      if (limits === null) this.#connection.prepare('DELETE FROM budgets WHERE agent = ? AND persona = ?').run([agent, persona])
      else this.#connection.prepare('INSERT OR REPLACE INTO budgets VALUES (?, ?, ?)').run([agent, persona, JSON.stringify(limits)])
    })
  }

  totals ({ agent, persona }: Purse, now: number): Totals {
    return this.#try(() => {
      const of = (window: Window): number => {
        const [row] = this.#total.all([agent, persona, windowKey(window, now)]) as Array<{ nano: number }>
        return row?.nano ?? 0
      }
      return { daily: of('daily'), monthly: of('monthly'), lifetime: of('lifetime') }
    })
  }

  /**
   * Adds an entry, unless `refuse` throws about the totals before it: both in one transaction. Returns its number. A charge that
   * names its request and is the same as one that is there is that one: whoever got no answer may send it again.
   */
  add (entry: NewEntry, now: number, refuse: (totals: Totals) => void): number {
    return this.#transaction(() => {
      const there = this.#sameCharge(entry)
      if (there !== null) return there
      refuse(this.totals(entry, now))
      return this.#write(entry, now, entry.kind, null, null, null)
    })
  }

  /** What a reserved request came to; counts in the windows of the reservation. The second of two does nothing. */
  settle (seq: number, nano: number, tokens: { readonly input: number, readonly output: number } | null): void {
    this.#transaction(() => {
      const [entry] = this.#connection.prepare(`SELECT * FROM entries WHERE seq = ? AND kind = 'reserve'
        AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.settles = entries.seq)`).all([seq]) as Entry[]
      if (entry === undefined) return
      const { request_id: requestId, ...rest } = entry
      this.#write({ ...rest, kind: 'reserve', requestId, nano: nano - entry.nano }, entry.at, 'settle', seq,
        tokens?.input ?? null, tokens?.output ?? null)
    })
  }

  /** Newest first. */
  entries ({ agent, persona }: Purse, limit: number, before = Number.MAX_SAFE_INTEGER): readonly Entry[] {
    return this.#try(() => this.#connection
      .prepare('SELECT * FROM entries WHERE agent = ? AND persona = ? AND seq < ? ORDER BY seq DESC LIMIT ?')
      .all([agent, persona, before, limit]) as Entry[])
  }

  entry (seq: number): Entry {
    return this.#try(() => (this.#connection.prepare('SELECT * FROM entries WHERE seq = ?').all([seq]) as [Entry])[0])
  }

  #write (
    { agent, persona, surface, upstream, model, nano, requestId }: NewEntry, at: number, kind: string, settles: number | null,
    input: number | null, output: number | null
  ): number {
    const values = [at, kind, settles, agent, persona, surface, upstream, model, nano, requestId, input, output]
    const { lastInsertRowid } = this.#insert.run(values)
    for (const window of windows) this.#add.run([agent, persona, windowKey(window, at), nano])
    return Number(lastInsertRowid)
  }

  #sameCharge ({ kind, agent, persona, surface, model, nano, requestId }: NewEntry): number | null {
    if (kind !== 'charge' || requestId === null) return null
    const [row] = this.#connection.prepare(`SELECT seq FROM entries WHERE kind = 'charge' AND request_id = ?
      AND agent = ? AND persona = ? AND surface = ? AND model = ? AND nano = ?`).all([requestId, agent, persona, surface, model, nano]) as Array<{ seq: number }>
    return row?.seq ?? null
  }

  #settleOpen (): void {
    const open = this.#try(() => this.#connection.prepare(`SELECT seq, nano FROM entries WHERE kind = 'reserve'
      AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.settles = entries.seq)`).all([])) as Array<{ seq: number, nano: number }>
    for (const { seq, nano } of open) this.settle(seq, nano, null)
  }

  #transaction<T> (work: () => T): T {
    return this.#try(() => {
      this.#connection.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        this.#connection.exec('COMMIT')
        return result
      } catch (error) {
        if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK')
        throw error
      }
    })
  }

  #try<T> (work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw ledgerFailed(error)
    }
  }
}

function ledgerFailed (error: unknown): unknown {
  if (isSvcError(error)) return error
  return budgetError('budget.ledger_failed', `the ledger of budgets cannot be used: ${messageOf(error)}`, { cause: error })
}
