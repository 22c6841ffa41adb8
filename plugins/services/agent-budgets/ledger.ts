import { isSvcError, messageOf, openSqlFile, type SqlFile } from 'svc-gateway/plugin'
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

const INSERT = `INSERT INTO entries
  (at, kind, settles, agent, persona, surface, upstream, model, nano, request_id, input_tokens, output_tokens)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const ADD = `INSERT INTO totals (agent, persona, window, nano) VALUES (?, ?, ?, ?)
  ON CONFLICT (agent, persona, window) DO UPDATE SET nano = nano + excluded.nano`

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
  readonly #file: SqlFile

  private constructor (file: SqlFile) {
    this.#file = file
  }

  /** Estimates of a run that was killed stay charged: they are settled as they are. */
  static async open (path: string): Promise<Ledger> {
    let file: SqlFile | null = null
    try {
      // money that was granted is on the disk before the request goes out, past a power failure too
      file = await openSqlFile({ path, form: [SCHEMA], durability: 'full' })
      const ledger = new Ledger(file)
      ledger.#settleOpen()
      return ledger
    } catch (error) {
      file?.close()
      throw ledgerFailed(error)
    }
  }

  close (): void {
    this.#file.close()
  }

  budgets (): ReadonlyArray<Purse & { readonly limits: Budget }> {
    return this.#try(() => {
      const rows = this.#file.all<Purse & { limits: string }>('SELECT agent, persona, limits FROM budgets')
      return rows.map(({ agent, persona, limits }) => ({ agent, persona, limits: JSON.parse(limits) as Budget }))
    })
  }

  /** Null ends it. */
  setBudget ({ agent, persona }: Purse, limits: Budget | null): void {
    this.#try(() => {
      if (limits === null) this.#file.run('DELETE FROM budgets WHERE agent = ? AND persona = ?', [agent, persona])
      else this.#file.run('INSERT OR REPLACE INTO budgets VALUES (?, ?, ?)', [agent, persona, JSON.stringify(limits)])
    })
  }

  totals ({ agent, persona }: Purse, now: number): Totals {
    return this.#try(() => {
      const of = (window: Window): number => {
        const key = [agent, persona, windowKey(window, now)]
        return this.#file.get<{ nano: number }>('SELECT nano FROM totals WHERE agent = ? AND persona = ? AND window = ?', key)?.nano ?? 0
      }
      return { daily: of('daily'), monthly: of('monthly'), lifetime: of('lifetime') }
    })
  }

  /**
   * Adds an entry, unless `refuse` throws about the totals before it: both in one transaction. Returns its number. A charge that
   * names its request and is the same as one that is there is that one: a client that got no answer may send it again.
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
      const entry = this.#file.get<Entry>(`SELECT * FROM entries WHERE seq = ? AND kind = 'reserve'
        AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.settles = entries.seq)`, [seq])
      if (entry === undefined) return
      const { request_id: requestId, ...rest } = entry
      this.#write({ ...rest, kind: 'reserve', requestId, nano: nano - entry.nano }, entry.at, 'settle', seq,
        tokens?.input ?? null, tokens?.output ?? null)
    })
  }

  /** Newest first. */
  entries ({ agent, persona }: Purse, limit: number, before = Number.MAX_SAFE_INTEGER): readonly Entry[] {
    return this.#try(() => this.#file.all<Entry>(
      'SELECT * FROM entries WHERE agent = ? AND persona = ? AND seq < ? ORDER BY seq DESC LIMIT ?', [agent, persona, before, limit]
    ))
  }

  entry (seq: number): Entry {
    return this.#try(() => this.#file.get<Entry>('SELECT * FROM entries WHERE seq = ?', [seq])!)
  }

  #write (
    { agent, persona, surface, upstream, model, nano, requestId }: NewEntry, at: number, kind: string, settles: number | null,
    input: number | null, output: number | null
  ): number {
    const values = [at, kind, settles, agent, persona, surface, upstream, model, nano, requestId, input, output]
    const { rowid } = this.#file.run(INSERT, values)
    for (const window of windows) this.#file.run(ADD, [agent, persona, windowKey(window, at), nano])
    return rowid
  }

  #sameCharge ({ kind, agent, persona, surface, model, nano, requestId }: NewEntry): number | null {
    if (kind !== 'charge' || requestId === null) return null
    const same = [requestId, agent, persona, surface, model, nano]
    return this.#file.get<{ seq: number }>(`SELECT seq FROM entries WHERE kind = 'charge' AND request_id = ?
      AND agent = ? AND persona = ? AND surface = ? AND model = ? AND nano = ?`, same)?.seq ?? null
  }

  #settleOpen (): void {
    const open = this.#try(() => this.#file.all<{ seq: number, nano: number }>(`SELECT seq, nano FROM entries WHERE kind = 'reserve'
      AND NOT EXISTS (SELECT 1 FROM entries AS later WHERE later.settles = entries.seq)`))
    for (const { seq, nano } of open) this.settle(seq, nano, null)
  }

  #transaction<T> (work: () => T): T {
    return this.#try(() => this.#file.transaction(work))
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
