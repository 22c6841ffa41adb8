import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { TagMode } from '../memories/tag-filter.js'
import type { Page } from '../store/page.js'
import { inSlices, ROWS_AT_ONCE } from '../store/slices.js'
import type { Store } from '../store/store.js'
import { tagsCondition } from './tag-condition.js'

/** A rule that reflect and refreshes follow. Times in epoch ms. */
export interface Directive {
  readonly id: string
  readonly name: string
  readonly content: string
  readonly priority: number
  readonly isActive: boolean
  readonly tags: readonly string[]
  readonly createdAt: number
  readonly updatedAt: number
}

export type DirectiveValues = Pick<Directive, 'name' | 'content' | 'priority' | 'isActive' | 'tags'>

/** Which directives are meant. */
export interface DirectiveFilter {
  readonly tags: readonly string[] | null
  readonly mode: TagMode
  readonly activeOnly: boolean
}

interface Row {
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly content: string
  readonly priority: number
  readonly is_active: number
  readonly tags: string
  readonly created_at: number
  readonly updated_at: number
}

/** The directives of all banks; `bank` is the number of one. */
export class DirectiveTable {
  readonly #store: Store
  readonly #now: () => number

  constructor ({ store, now }: Pick<Core, 'store' | 'now'>) {
    this.#store = store
    this.#now = now
  }

  add (bank: number, { name, content, priority, isActive, tags }: DirectiveValues): Directive {
    const id = randomUUID()
    const now = this.#now()
    this.#store.run(`INSERT INTO directives (id, bank, name, content, priority, is_active, tags, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, [id, bank, name, content, priority, Number(isActive), JSON.stringify(tags), now, now])
    return this.get(bank, id)!
  }

  get (bank: number, id: string): Directive | null {
    const row = this.#store.get<Row>('SELECT * FROM directives WHERE bank = ? AND id = ?', [bank, id])
    return row === undefined ? null : directiveOf(row)
  }

  /** Some of them, the most important first, and how many there are. */
  page (bank: number, { tags, mode, activeOnly }: DirectiveFilter, { limit, offset }: Page): {
    readonly total: number
    readonly directives: readonly Directive[]
  } {
    const { sql, values } = tagsCondition('tags', tags, mode)
    const meant = `FROM directives WHERE bank = ? AND ${sql}${activeOnly ? ' AND is_active = 1' : ''}`
    const { total } = this.#store.get<{ total: number }>(`SELECT count(*) AS total ${meant}`, [bank, ...values])!
    const rows = this.#store.all<Row>(`SELECT * ${meant} ORDER BY priority DESC, seq LIMIT ? OFFSET ?`, [bank, ...values, limit, offset])
    return { total, directives: rows.map(directiveOf) }
  }

  /** All of them, in the order in which they were made, a few at a time. */
  * each (bank: number): Generator<Directive> {
    const rows = inSlices(after => this.#store.all<Row>(`SELECT * FROM directives WHERE bank = ? AND seq > ? ORDER BY seq LIMIT ${ROWS_AT_ONCE}`, [bank, after]))
    for (const row of rows) yield directiveOf(row)
  }

  /** The most important first. */
  all (bank: number): readonly Directive[] {
    return this.#store.all<Row>('SELECT * FROM directives WHERE bank = ? ORDER BY priority DESC, seq', [bank]).map(directiveOf)
  }

  /** What it is afterwards; null if there is none. */
  update (bank: number, id: string, changes: Partial<DirectiveValues>): Directive | null {
    const { name, content, priority, isActive, tags } = changes
    this.#store.update('directives', {
      name, content, priority, is_active: isActive === undefined ? undefined : Number(isActive),
      tags: tags === undefined ? undefined : JSON.stringify(tags), updated_at: this.#now()
    }, 'bank = ? AND id = ?', [bank, id])
    return this.get(bank, id)
  }

  delete (bank: number, id: string): boolean {
    return this.#store.run('DELETE FROM directives WHERE bank = ? AND id = ?', [bank, id]).changes > 0
  }
}

function directiveOf (row: Row): Directive {
  return {
    id: row.id,
    name: row.name,
    content: row.content,
    priority: row.priority,
    isActive: row.is_active === 1,
    tags: JSON.parse(row.tags) as string[],
    createdAt: row.created_at,
    updatedAt: row.updated_at
  }
}
