import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Cell, Store } from '../store/store.js'
import { WHOLE, type Page } from '../store/page.js'
import type { TagMode } from '../memories/tag-filter.js'
import { withoutTexts, type ReflectResponse } from './basis.js'
import { tagsCondition } from './tag-condition.js'

/** Settings of a mental model as the wire has them: those that were given, the rest has its default. */
export type ModelSettings = Readonly<Record<string, unknown>>

/** An answer that is kept and made anew. Times in epoch ms. */
export interface MentalModel {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly sourceQuery: string
  readonly content: string
  readonly tags: readonly string[]
  readonly maxTokens: number
  readonly settings: ModelSettings
  /** What the last refresh came to; of what it was made of the ids alone: see `basis.ts`. */
  readonly reflectResponse: ReflectResponse | null
  readonly lastRefreshedAt: number | null
  readonly lastMemorySeenAt: number | null
  readonly lastRefreshFailedAt: number | null
  readonly lastFullRefreshedAt: number | null
  readonly createdAt: number
  readonly isKnowledgePage: boolean
}

export interface ModelValues {
  readonly name: string
  readonly sourceQuery: string
  readonly tags: readonly string[]
  readonly maxTokens: number
  readonly settings: ModelSettings
}

export interface Refreshed {
  readonly content: string
  readonly reflectResponse: ReflectResponse
  readonly lastMemorySeenAt: number | null
  readonly isFull: boolean
}

interface Row {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly source_query: string
  readonly content: string
  readonly tags: string
  readonly max_tokens: number
  readonly settings: string
  readonly reflect_response: string | null
  readonly last_refreshed_at: number | null
  readonly last_memory_seen_at: number | null
  readonly last_refresh_failed_at: number | null
  readonly last_full_refreshed_at: number | null
  readonly created_at: number
  readonly is_page: number
}

/** Which mental models are meant. */
export interface ModelFilter {
  readonly tags: readonly string[] | null
  readonly mode: TagMode
  /** Those that a page of the knowledge base shows are left out. */
  readonly withoutPages: boolean
}

const AT_ONCE = 20

const SELECT = 'SELECT m.*, EXISTS (SELECT 1 FROM knowledge_nodes n WHERE n.model = m.seq) AS is_page FROM mental_models m'

/** The mental models of all banks; `bank` is the number of one. */
export class MentalModelTable {
  readonly #store: Store
  readonly #now: () => number

  constructor ({ store, now }: Pick<Core, 'store' | 'now'>) {
    this.#store = store
    this.#now = now
  }

  add (bank: number, id: string | null, values: ModelValues): MentalModel {
    const key = id ?? `mm-${randomUUID().replaceAll('-', '')}`
    this.#store.run(`INSERT INTO mental_models (id, bank, name, source_query, tags, max_tokens, settings, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, [
      key, bank, values.name, values.sourceQuery, JSON.stringify(values.tags), values.maxTokens,
      JSON.stringify(values.settings), this.#now()
    ])
    return this.get(bank, key)!
  }

  get (bank: number, id: string): MentalModel | null {
    const row = this.#store.get<Row>(`${SELECT} WHERE m.bank = ? AND m.id = ?`, [bank, id])
    return row === undefined ? null : modelOf(row)
  }

  /** Some of them, in the order in which they were made, and how many there are. */
  page (bank: number, { tags, mode, withoutPages }: ModelFilter, { limit, offset }: Page): {
    readonly total: number
    readonly models: readonly MentalModel[]
  } {
    const { sql, values } = tagsCondition('m.tags', tags, mode)
    const meant = `m.bank = ? AND ${sql}${withoutPages ? ' AND NOT EXISTS (SELECT 1 FROM knowledge_nodes n WHERE n.model = m.seq)' : ''}`
    const { total } = this.#store.get<{ total: number }>(`SELECT count(*) AS total FROM mental_models m WHERE ${meant}`, [bank, ...values])!
    const rows = this.#store.all<Row>(`${SELECT} WHERE ${meant} ORDER BY m.seq LIMIT ? OFFSET ?`, [bank, ...values, limit, offset])
    return { total, models: rows.map(modelOf) }
  }

  /** All of them, in the order in which they were made, a few at a time. */
  * each (bank: number): Generator<MentalModel> {
    for (let after = 0; ;) {
      const rows = this.#store.all<Row>(`${SELECT} WHERE m.bank = ? AND m.seq > ? ORDER BY m.seq LIMIT ${AT_ONCE}`, [bank, after])
      for (const row of rows) yield modelOf(row)
      if (rows.length < AT_ONCE) return
      after = rows.at(-1)!.seq
    }
  }

  update (bank: number, id: string, changes: Partial<ModelValues>): MentalModel | null {
    const { name, sourceQuery, tags, maxTokens, settings } = changes
    this.#set(bank, id, {
      name, source_query: sourceQuery, max_tokens: maxTokens, tags: tags === undefined ? undefined : JSON.stringify(tags),
      settings: settings === undefined ? undefined : JSON.stringify(settings)
    })
    return this.get(bank, id)
  }

  delete (bank: number, id: string): boolean {
    return this.#store.run('DELETE FROM mental_models WHERE bank = ? AND id = ?', [bank, id]).changes > 0
  }

  /** Takes over what a refresh came to; the content before it goes to the history. */
  refreshed (bank: number, model: MentalModel, { content, reflectResponse, lastMemorySeenAt, isFull }: Refreshed): void {
    const now = this.#now()
    if (content !== model.content) {
      this.#note(model.seq, { previous_content: model.content, previous_reflect_response: model.reflectResponse, kind: 'content', outcome: 'content_written', failure_reason: null, error_message: null })
    }
    this.#set(bank, model.id, {
      content, reflect_response: JSON.stringify(withoutTexts(reflectResponse)),
      last_refreshed_at: now, last_refresh_failed_at: null,
      last_memory_seen_at: lastMemorySeenAt ?? model.lastMemorySeenAt, ...isFull && { last_full_refreshed_at: now }
    })
  }

  refreshFailed (bank: number, model: MentalModel, outcome: string, reason: string, message: string): void {
    this.#note(model.seq, { previous_content: null, previous_reflect_response: null, kind: 'refresh_failed', outcome, failure_reason: reason, error_message: message })
    this.#set(bank, model.id, { last_refresh_failed_at: this.#now() })
  }

  clear (bank: number, model: MentalModel): MentalModel {
    if (model.content !== '') {
      this.#note(model.seq, { previous_content: model.content, previous_reflect_response: model.reflectResponse, kind: 'cleared', outcome: null, failure_reason: null, error_message: null })
    }
    this.#set(bank, model.id, { content: '', reflect_response: null, last_memory_seen_at: null, last_refresh_failed_at: null })
    return this.get(bank, model.id)!
  }

  changes (model: MentalModel): number {
    return this.#store.get<{ total: number }>('SELECT count(*) AS total FROM mental_model_history WHERE model = ?', [model.seq])!.total
  }

  /** The latest change first. */
  history (model: MentalModel, { limit, offset } = WHOLE): ReadonlyArray<{
    readonly changedAt: number
    readonly change: Readonly<Record<string, unknown>>
  }> {
    return this.#store.all<{ changed_at: number, change: string }>('SELECT changed_at, change FROM mental_model_history WHERE model = ? ORDER BY seq DESC LIMIT ? OFFSET ?', [model.seq, limit, offset])
      .map(({ changed_at: changedAt, change }) => ({ changedAt, change: JSON.parse(change) as Record<string, unknown> }))
  }

  /** All changes, the oldest first, a few at a time. */
  * changesOf (model: number): Generator<{ readonly changedAt: number, readonly change: Readonly<Record<string, unknown>> }> {
    for (let after = 0; ;) {
      const rows = this.#store.all<{ seq: number, changed_at: number, change: string }>(
        `SELECT seq, changed_at, change FROM mental_model_history WHERE model = ? AND seq > ? ORDER BY seq LIMIT ${AT_ONCE}`, [model, after])
      for (const { changed_at: changedAt, change } of rows) {
        yield { changedAt, change: JSON.parse(change) as Record<string, unknown> }
      }
      if (rows.length < AT_ONCE) return
      after = rows.at(-1)!.seq
    }
  }

  /** What it held before each change, the latest first, a few at a time; null where it was not told. */
  * contents (model: number): Generator<{ readonly changedAt: number, readonly content: string | null }> {
    for (let before = Number.MAX_SAFE_INTEGER; ;) {
      const rows = this.#store.all<{ seq: number, at: number, content: string | null }>(
        `SELECT seq, changed_at AS at, json_extract(change, '$.previous_content') AS content FROM mental_model_history
        WHERE model = ? AND seq < ? ORDER BY seq DESC LIMIT ${AT_ONCE}`, [model, before])
      for (const { at, content } of rows) yield { changedAt: at, content }
      if (rows.length < AT_ONCE) return
      before = rows.at(-1)!.seq
    }
  }

  #note (model: number, change: Readonly<Record<string, unknown>>): void {
    this.#store.run('INSERT INTO mental_model_history (model, changed_at, change) VALUES (?, ?, ?)', [model, this.#now(), JSON.stringify(change)])
  }

  #set (bank: number, id: string, columns: Readonly<Record<string, Cell | undefined>>): void {
    this.#store.update('mental_models', columns, 'bank = ? AND id = ?', [bank, id])
  }
}

function modelOf (row: Row): MentalModel {
  return {
    seq: row.seq,
    id: row.id,
    name: row.name,
    sourceQuery: row.source_query,
    content: row.content,
    tags: JSON.parse(row.tags) as string[],
    maxTokens: row.max_tokens,
    settings: JSON.parse(row.settings) as ModelSettings,
    reflectResponse: row.reflect_response === null ? null : JSON.parse(row.reflect_response) as Record<string, unknown>,
    lastRefreshedAt: row.last_refreshed_at,
    lastMemorySeenAt: row.last_memory_seen_at,
    lastRefreshFailedAt: row.last_refresh_failed_at,
    lastFullRefreshedAt: row.last_full_refreshed_at,
    createdAt: row.created_at,
    isKnowledgePage: row.is_page === 1
  }
}
