import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Store } from '../store/store.js'

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

interface Row {
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
