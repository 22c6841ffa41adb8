import { messageOf, openSqlFile, type Clock } from 'svc-gateway/plugin'
import { isObject, type Json } from '../../over-chat/ref.js'
import { isUnguessable } from '../ids.js'
import { responsesError } from '../errors.js'
import { addBatches, batchFrom, endOf, EVENTS_FORM, type EventBatch } from './event-batch.js'
import { ForgettingFile } from './forgetting-file.js'
import type { WholeResponse } from './readers.js'
import { Threads, THREADS_FORM, type KeptLimits, type Place } from './threads.js'
import { apart, isComplete, parsed, sizeOf, turnOf, written, type WrittenItem } from './written-items.js'

const FORM = `
CREATE TABLE responses (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, previous TEXT, bytes INTEGER NOT NULL,
  thread INTEGER NOT NULL REFERENCES threads (thread) ON DELETE CASCADE,
  is_open INTEGER NOT NULL, response TEXT NOT NULL
) STRICT;
CREATE INDEX responses_thread ON responses (thread);
CREATE INDEX responses_open ON responses (seq) WHERE is_open = 1;
CREATE TABLE items (
  response INTEGER NOT NULL REFERENCES responses (seq) ON DELETE CASCADE, place INTEGER NOT NULL, id TEXT NOT NULL,
  is_output INTEGER NOT NULL, item TEXT NOT NULL, PRIMARY KEY (response, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX items_output ON items (id) WHERE is_output = 1;
`

/** Each stands on what was kept before it. An engine that says an id again, of one that was deleted, makes no circle. */
const CHAIN = `WITH RECURSIVE chain (seq, previous, depth) AS (
  SELECT seq, previous, 0 FROM responses WHERE id = ?
  UNION ALL SELECT earlier.seq, earlier.previous, depth + 1 FROM responses AS earlier JOIN chain
    ON earlier.id = chain.previous AND earlier.seq < chain.seq
) SELECT seq, previous FROM chain ORDER BY depth`

/** All of the gateway waits with a statement that waits for another program's lock. */
const LOCK_WAIT_MS = 50
/** Of items that are read at a time. */
const MOST_ROWS = 128

export interface NewResponse {
  readonly id: string
  /** Id of the response that it goes on from. */
  readonly previous: string | null
  /** What its request brought of its own. */
  readonly input: readonly Json[]
  readonly response: Json
  /** It is still being made. */
  readonly isOpen?: boolean
  /** Id of the conversation that it becomes a part of once it is complete. */
  readonly conversation?: string | null
  /** How the stream that it is made for begins. */
  readonly events?: EventBatch | null
}

interface Row extends Place {
  readonly bytes: number
  readonly response: string
}

/**
 * Responses in a database of their own. Each has the items that it added; what it was made of are those of all before it. Such a
 * tree of responses is a thread, which goes as a whole: half a conversation is of no use.
 */
export class KeptResponses {
  readonly #file: ForgettingFile
  readonly #threads: Threads

  private constructor (file: ForgettingFile, limits: KeptLimits) {
    this.#file = file
    this.#threads = new Threads(file, limits)
  }

  /** Rejects with `responses.store_failed`, and `responses.store_busy` while another program holds the file. */
  static async open (path: string, limits: KeptLimits): Promise<KeptResponses> {
    try {
      const pragmas = ['secure_delete = ON']
      return new KeptResponses(await openSqlFile({ path, form: [THREADS_FORM + FORM, EVENTS_FORM], durability: 'normal', lockWaitMs: LOCK_WAIT_MS, pragmas, File: ForgettingFile }), limits)
    } catch (error) {
      if (isLocked(error)) throw busy(error)
      throw responsesError('responses.store_failed', `${path} cannot be opened: ${messageOf(error)}`, { cause: error })
    }
  }

  close (): void {
    this.#file.close()
  }

  /** From now on what is deleted is soon in no byte of the write-ahead log either. */
  foldLogWith (clock: Pick<Clock, 'setTimer'>): void {
    this.#file.foldLogWith(clock)
  }

  /** On the disk when it returns. False for an id that is taken. @param now epoch milliseconds */
  add ({ id, previous, input, response, isOpen = false, conversation = null, events = null }: NewResponse, now: number): boolean {
    return this.#change(() => {
      if (this.#row(id) !== undefined) return false
      if (conversation !== null && !isOpen) this.#append(conversation, turnOf(input, response), now)
      const { text, output } = apart(response)
      const items = [...written(input, 0), ...written(output, 1)]
      const bytes = sizeOf(text, items)
      const before = previous === null ? undefined : this.#row(previous)
      const thread = this.#threads.add(before?.thread ?? null, bytes, now)
      const { rowid } = this.#file.run(
        'INSERT INTO responses (id, previous, bytes, thread, is_open, response) VALUES (?, ?, ?, ?, ?, ?)',
        [id, previous, bytes, thread, isOpen ? 1 : 0, text]
      )
      this.#addItems(rowid, 0, items)
      if (events !== null) this.#threads.grown({ seq: rowid, thread }, addBatches(this.#file, rowid, [events]))
      this.#threads.makeRoom(thread)
      return true
    })
  }

  /** Adds items to a conversation, in one go. False where there is no such conversation. @param now epoch milliseconds */
  append (conversation: string, items: readonly Json[], now: number): boolean {
    return this.#change(() => this.#append(conversation, written(items, 0), now))
  }

  /** As `append`, for what a response brought that is not kept itself. */
  appendTurn (conversation: string, input: readonly Json[], response: Json, now: number): void {
    this.#change(() => this.#append(conversation, turnOf(input, response), now))
  }

  /** Puts what is said of a conversation in place of what was. */
  describe (conversation: string, said: Json): void {
    this.#change(() => {
      const row = this.#row(conversation)
      if (row === undefined) return
      const text = JSON.stringify(said)
      const more = Buffer.byteLength(text) - Buffer.byteLength(row.response)
      this.#file.run('UPDATE responses SET response = ? WHERE seq = ?', [text, row.seq])
      this.#threads.grown(row, more)
    })
  }

  /** One item of a conversation or response, by its id. */
  item (of: string, id: string): Json | undefined {
    const found = this.#file.get<{ item: string }>(
      'SELECT item FROM items JOIN responses ON seq = items.response WHERE responses.id = ? AND items.id = ? LIMIT 1', [of, id]
    )
    return found === undefined ? undefined : parsed(found.item)
  }

  /** False where the conversation has no such item. */
  deleteItem (conversation: string, id: string): boolean {
    return this.#change(() => {
      const row = this.#row(conversation)
      const found = row === undefined ? undefined : this.#file.get<{ place: number, item: string }>(
        'SELECT place, item FROM items WHERE response = ? AND id = ? LIMIT 1', [row.seq, id]
      )
      if (row === undefined || found === undefined) return false
      const bytes = Buffer.byteLength(found.item)
      this.#file.run('DELETE FROM items WHERE response = ? AND place = ?', [row.seq, found.place])
      this.#threads.grown(row, -bytes)
      return true
    })
  }

  /** Events of one that is being made for a stream; nothing happens where it was deleted. */
  tell (id: string, batch: EventBatch): void {
    this.#change(() => {
      const row = this.#row(id)
      if (row === undefined) return
      this.#threads.grown(row, addBatches(this.#file, row.seq, [batch]))
      this.#threads.makeRoom(row.thread)
    })
  }

  /** The first events of a stream that hold one of this number or a later one. */
  events (id: string, number: number): EventBatch | undefined {
    return batchFrom(this.#file, id, number)
  }

  /** The number of the event that ended a stream; null where it did not come to its end. */
  eventsEnd (id: string): number | null {
    return endOf(this.#file, id)
  }

  /**
   * What came of one that was still being made; nothing happens where it was deleted or is over.
   * @param events that were not told yet
   */
  finish (id: string, response: Json, events: readonly EventBatch[] = []): void {
    this.#change(() => {
      const row = this.#file.get<Row>('SELECT seq, thread, bytes, response FROM responses WHERE id = ? AND is_open = 1', [id])
      if (row === undefined) return
      const { text, output } = apart(response)
      const { next } = this.#file.get<{ next: number }>('SELECT COALESCE(MAX(place) + 1, 0) AS next FROM items WHERE response = ?', [row.seq])!
      const items = written(output, 1)
      const more = sizeOf(text, items) - Buffer.byteLength(row.response) + addBatches(this.#file, row.seq, events)
      this.#addItems(row.seq, next, items)
      this.#file.run('UPDATE responses SET is_open = 0, response = ? WHERE seq = ?', [text, row.seq])
      this.#threads.grown(row, more)
      const { conversation } = response
      if (!isObject(conversation) || typeof conversation.id !== 'string' || !isComplete(response)) return
      const input = this.#file.all<{ item: string }>('SELECT item FROM items WHERE response = ? AND is_output = 0 ORDER BY place', [row.seq])
      this.#append(conversation.id, turnOf(input.map(({ item }) => parsed(item)), response), this.#threads.used(row.thread))
    })
  }

  /** Those that are still being made. */
  open (): readonly Json[] {
    return this.#file.all<{ response: string }>('SELECT response FROM responses WHERE is_open = 1').map(({ response }) => parsed(response))
  }

  get (id: string): Json | undefined {
    return this.whole(id)?.response
  }

  /** With the size of what it says, in bytes. */
  whole (id: string): WholeResponse | undefined {
    const row = this.#row(id)
    if (row === undefined) return undefined
    const output = this.#file.all<{ item: string }>('SELECT item FROM items WHERE response = ? AND is_output = 1 ORDER BY place', [row.seq])
    const bytes = output.reduce((sum, { item }) => sum + Buffer.byteLength(item), Buffer.byteLength(row.response))
    return { response: { ...parsed(row.response), output: output.map(({ item }) => parsed(item)) }, bytes }
  }

  /** One without its output. */
  head (id: string): Json | undefined {
    const row = this.#row(id)
    return row === undefined ? undefined : parsed(row.response)
  }

  /** False where there is none. */
  delete (id: string): boolean {
    return this.#change(() => {
      const row = this.#row(id)
      if (row === undefined) return false
      this.#file.run('DELETE FROM responses WHERE seq = ?', [row.seq])
      this.#threads.shrunk(row.thread, row.bytes)
      return true
    })
  }

  /** All that a further response builds on, oldest first; undefined where there is no such response. */
  context (id: string): readonly Json[] | undefined {
    return this.#row(id) === undefined ? undefined : [...this.items(id, 'asc', true)]
  }

  /**
   * What a response was made of, read as far as it is taken.
   * @param withOutput its own output too
   * @throws `responses.context_lost`
   */
  * items (id: string, order: 'asc' | 'desc', withOutput: boolean): Generator<Json, void, undefined> {
    const chain = this.#file.all<{ seq: number, previous: string | null }>(CHAIN, [id])
    const lost = chain.at(-1)?.previous ?? null
    if (lost !== null) throw responsesError('responses.context_lost', `'${id}' builds on '${lost}', which was deleted; start a new conversation`)
    const own = chain[0]?.seq
    if (order === 'asc') chain.reverse()
    for (const { seq } of chain) {
      const kinds = seq === own && !withOutput ? 'AND is_output = 0' : ''
      yield* this.#itemsOf(seq, order, kinds)
    }
  }

  /** As many at a time as most readers take. */
  * #itemsOf (response: number, order: 'asc' | 'desc', kinds: string): Generator<Json, void, undefined> {
    const [sign, start] = order === 'asc' ? ['>', -1] : ['<', Number.MAX_SAFE_INTEGER]
    const sql = `SELECT place, item FROM items WHERE response = ? AND place ${sign} ? ${kinds} ORDER BY place ${order} LIMIT ${MOST_ROWS}`
    for (let last: number | null = start; last !== null;) {
      const rows: ReadonlyArray<{ place: number, item: string }> = this.#file.all(sql, [response, last])
      for (const { item } of rows) yield parsed(item)
      last = rows.length < MOST_ROWS ? null : rows.at(-1)!.place
    }
  }

  /** An item that an engine made, by its id, and its size in bytes. */
  output (id: string): { readonly item: Json, readonly bytes: number } | undefined {
    if (!isUnguessable(id)) return undefined
    const found = this.#file.get<{ item: string }>('SELECT item FROM items WHERE id = ? AND is_output = 1', [id])
    return found === undefined ? undefined : { item: parsed(found.item), bytes: Buffer.byteLength(found.item) }
  }

  /** Whether a request of so many bytes may go on from a response. Throws `responses.too_long`. */
  assertRoom (id: string, bytes: number): void {
    this.#threads.assertRoom(id, bytes)
  }

  /** @param now epoch milliseconds */
  dropOld (now: number): void {
    this.#threads.dropOld(now)
  }

  /** One transaction; the total is told again where it does not come about. Throws `responses.store_failed`. */
  #change<T> (work: () => T): T {
    try {
      return this.#file.transaction(work)
    } catch (error) {
      if (isLocked(error)) throw busy(error)
      this.#threads.count()
      throw responsesError('responses.store_failed', `what is kept cannot be changed: ${messageOf(error)}`, { cause: error })
    }
  }

  #append (conversation: string, items: readonly WrittenItem[], now: number): boolean {
    const row = this.#row(conversation)
    if (row === undefined) return false
    const { next } = this.#file.get<{ next: number }>('SELECT COALESCE(MAX(place) + 1, 0) AS next FROM items WHERE response = ?', [row.seq])!
    this.#addItems(row.seq, next, items)
    this.#threads.use(row.thread, now)
    this.#threads.grown(row, sizeOf('', items))
    this.#threads.makeRoom(row.thread)
    return true
  }

  #addItems (response: number, from: number, items: readonly WrittenItem[]): void {
    for (const [i, { id, text, isOutput }] of items.entries()) {
      this.#file.run('INSERT INTO items (response, place, id, is_output, item) VALUES (?, ?, ?, ?, ?)', [response, from + i, id, isOutput, text])
    }
  }

  #row (id: string): Row | undefined {
    return this.#file.get<Row>('SELECT seq, thread, bytes, response FROM responses WHERE id = ?', [id])
  }
}

function busy (cause: unknown): Error {
  return responsesError('responses.store_busy', 'another program holds the database of kept responses; ask again', { cause })
}

function isLocked (error: unknown): boolean {
  return /^SQLITE_(?:BUSY|LOCKED)/.test(String((error as { readonly code?: unknown } | null)?.code)) || /database is locked/.test(messageOf(error))
}
