import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Store } from '../store/store.js'
import type { Page } from '../store/page.js'
import { tagsCondition } from '../models/tag-condition.js'
import type { TagMode } from '../memories/tag-filter.js'
import { WireError } from '../wire/error.js'

/** A folder or a page of the knowledge base; a page shows a mental model. Times in epoch ms. */
export interface KnowledgeNode {
  readonly seq: number
  readonly id: string
  readonly kind: 'folder' | 'page'
  readonly name: string
  readonly parent: number | null
  readonly modelId: string | null
  readonly managed: boolean
  readonly sortOrder: number
  readonly createdAt: number
  readonly updatedAt: number
}

interface Row {
  readonly seq: number
  readonly id: string
  readonly kind: 'folder' | 'page'
  readonly name: string
  readonly parent: number | null
  readonly model_id: string | null
  readonly managed: number
  readonly sort_order: number
  readonly created_at: number
  readonly updated_at: number
}

const SELECT = 'SELECT n.*, m.id AS model_id FROM knowledge_nodes n LEFT JOIN mental_models m ON m.seq = n.model'

/** Trees are shown by recursion. */
const DEEPEST = 32

/** Nodes by their parent, in their order; those of the root by null. Pure. */
export function byParent (nodes: readonly KnowledgeNode[]): ReadonlyMap<number | null, readonly KnowledgeNode[]> {
  const all = new Map<number | null, KnowledgeNode[]>()
  for (const node of nodes) {
    const siblings = all.get(node.parent)
    if (siblings === undefined) all.set(node.parent, [node])
    else siblings.push(node)
  }
  return all
}

/** The tree of every bank; `bank` is the number of one. */
export class NodeTable {
  readonly #store: Store
  readonly #now: () => number

  constructor ({ store, now }: Pick<Core, 'store' | 'now'>) {
    this.#store = store
    this.#now = now
  }

  /** Throws the wire's 400 where the tree would be too deep. */
  add (bank: number, kind: 'folder' | 'page', name: string, parent: number | null, model: number | null): KnowledgeNode {
    if (parent !== null) this.#mustFit(parent, 1)
    const id = `${kind === 'folder' ? 'kf' : 'kp'}-${randomUUID().replaceAll('-', '')}`
    const now = this.#now()
    this.#store.run('INSERT INTO knowledge_nodes (id, bank, parent, kind, name, model, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      [id, bank, parent, kind, name, model, now, now])
    return this.get(bank, id)!
  }

  get (bank: number, id: string): KnowledgeNode | null {
    const row = this.#store.get<Row>(`${SELECT} WHERE n.bank = ? AND n.id = ?`, [bank, id])
    return row === undefined ? null : nodeOf(row)
  }

  all (bank: number): readonly KnowledgeNode[] {
    return this.#store.all<Row>(`${SELECT} WHERE n.bank = ? ORDER BY n.sort_order, n.seq`, [bank]).map(nodeOf)
  }

  bySeq (seq: number): KnowledgeNode | null {
    const row = this.#store.get<Row>(`${SELECT} WHERE n.seq = ?`, [seq])
    return row === undefined ? null : nodeOf(row)
  }

  /** Some of the tree from its top down, and how many there are: all folders, and the pages whose mental models have the tags. */
  page (bank: number, tags: readonly string[] | null, mode: TagMode, { limit, offset }: Page): {
    readonly total: number
    readonly nodes: readonly KnowledgeNode[]
  } {
    const { sql, values } = tagsCondition('m.tags', tags, mode)
    const pages = `FROM knowledge_nodes n LEFT JOIN mental_models m ON m.seq = n.model WHERE`
    const { total } = this.#store.get<{ total: number }>(`SELECT count(*) AS total ${pages} n.bank = ? AND (n.model IS NULL OR ${sql})`, [bank, ...values])!
    // the deepest that is known is taken next: what is below a node comes before what is beside it; a join would not keep that
    const found = this.#store.all<{ seq: number }>(`WITH RECURSIVE tree (seq, depth, sort_order) AS (
      SELECT seq, 0, sort_order FROM knowledge_nodes WHERE bank = ? AND parent IS NULL
      UNION ALL SELECT c.seq, tree.depth + 1, c.sort_order FROM tree JOIN knowledge_nodes c ON c.parent = tree.seq
      ORDER BY 2 DESC, 3, 1)
      SELECT seq FROM tree WHERE EXISTS (SELECT 1 ${pages} n.seq = tree.seq AND (n.model IS NULL OR ${sql})) LIMIT ? OFFSET ?`,
    [bank, ...values, limit, offset])
    return { total, nodes: found.map(({ seq }) => this.bySeq(seq)!) }
  }

  /** Throws the wire's 400 where the tree would be too deep. */
  update (bank: number, id: string, changes: { readonly name?: string, readonly parent?: number | null }): KnowledgeNode | null {
    const { parent = null } = changes
    if (parent !== null) this.#mustFit(parent, this.#heightOf(bank, id))
    this.#store.update('knowledge_nodes', { ...changes, updated_at: this.#now() }, 'bank = ? AND id = ?', [bank, id])
    return this.get(bank, id)
  }

  /** With what is below it; pages take their mental models along. Returns how many nodes went. */
  delete (bank: number, id: string): number {
    return this.#store.transaction(() => {
      const below = this.#store.all<{ seq: number, model: number | null }>(`WITH RECURSIVE below (seq, model) AS (
        SELECT seq, model FROM knowledge_nodes WHERE bank = ? AND id = ?
        UNION SELECT n.seq, n.model FROM knowledge_nodes n JOIN below ON n.parent = below.seq) SELECT seq, model FROM below`, [bank, id])
      for (const { seq, model } of below) {
        this.#store.run('DELETE FROM knowledge_nodes WHERE seq = ?', [seq])
        if (model !== null) this.#store.run('DELETE FROM mental_models WHERE seq = ?', [model])
      }
      return below.length
    })
  }

  #mustFit (parent: number, height: number): void {
    const { depth } = this.#store.get<{ depth: number }>(`WITH RECURSIVE up (parent, depth) AS (
      SELECT parent, 1 FROM knowledge_nodes WHERE seq = ?
      UNION ALL SELECT n.parent, up.depth + 1 FROM knowledge_nodes n JOIN up ON n.seq = up.parent) SELECT max(depth) AS depth FROM up`, [parent])!
    if (depth + height > DEEPEST) throw new WireError(400, `Knowledge folders nest at most ${DEEPEST} deep`)
  }

  #heightOf (bank: number, id: string): number {
    return this.#store.get<{ height: number }>(`WITH RECURSIVE below (seq, height) AS (
      SELECT seq, 1 FROM knowledge_nodes WHERE bank = ? AND id = ?
      UNION ALL SELECT n.seq, below.height + 1 FROM knowledge_nodes n JOIN below ON n.parent = below.seq)
      SELECT coalesce(max(height), 1) AS height FROM below`, [bank, id])!.height
  }
}

function nodeOf (row: Row): KnowledgeNode {
  return {
    seq: row.seq,
    id: row.id,
    kind: row.kind,
    name: row.name,
    parent: row.parent,
    modelId: row.model_id,
    managed: row.managed === 1,
    sortOrder: row.sort_order,
    createdAt: row.created_at,
    updatedAt: row.updated_at
  }
}
