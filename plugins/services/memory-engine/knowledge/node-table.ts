import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Cell, Store } from '../store/store.js'
import type { Page as Part } from '../store/page.js'
import type { MentalModel } from '../models/mental-model-table.js'
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

/** A node with its place below the root and, of a page, what it is about. */
export interface TreeNode {
  readonly node: KnowledgeNode
  readonly depth: number
  readonly description: string | null
}

/** A page with what is shown of its mental model. */
export interface Page {
  readonly node: KnowledgeNode
  readonly model: Pick<MentalModel, 'seq' | 'id' | 'sourceQuery' | 'content' | 'tags' | 'lastRefreshedAt'>
}

interface PageRow extends Row {
  readonly model_id: string
  readonly model_seq: number
  readonly source_query: string
  readonly content: string
  readonly tags: string
  readonly last_refreshed_at: number | null
}

const SELECT = 'SELECT n.*, m.id AS model_id FROM knowledge_nodes n LEFT JOIN mental_models m ON m.seq = n.model'

const PAGE = 'n.*, m.id AS model_id, m.seq AS model_seq, m.source_query, m.content, m.tags, m.last_refreshed_at'

const AT_ONCE = 20

/** Trees are shown by recursion. */
const DEEPEST = 32

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

  /** All of them in their order, a few at a time. */
  * nodes (bank: number): Generator<KnowledgeNode> {
    for (const row of this.#rows<Row>('n.*, m.id AS model_id', 'n.bank = ?', [bank])) yield nodeOf(row)
  }

  /** All pages in their order, a few at a time, with what they show. */
  * pages (bank: number): Generator<Page> {
    for (const row of this.#rows<PageRow>(PAGE, 'n.bank = ? AND n.model IS NOT NULL', [bank])) yield pageOf(row)
  }

  /** All nodes from the top down, a few of each folder at a time. */
  * tree (bank: number): Generator<TreeNode> {
    const below = (parent: number | null): Generator<Row & { readonly source_query: string | null }> =>
      this.#rows('n.*, m.id AS model_id, m.source_query', 'n.bank = ? AND n.parent IS ?', [bank, parent])
    const path = [below(null)]
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const next = last.next()
      if (next.done === true) {
        path.pop()
        continue
      }
      const node = nodeOf(next.value)
      yield { node, depth: path.length - 1, description: next.value.source_query }
      if (node.kind === 'folder') path.push(below(node.seq))
    }
  }

  /** Whether a node is another one or below it. */
  isWithin (node: number, other: number): boolean {
    return this.#store.get(`WITH RECURSIVE up (seq) AS (
      SELECT ? UNION SELECT n.parent FROM knowledge_nodes n JOIN up ON n.seq = up.seq WHERE n.parent IS NOT NULL)
      SELECT 1 FROM up WHERE seq = ?`, [node, other]) !== undefined
  }

  bySeq (seq: number): KnowledgeNode | null {
    const row = this.#store.get<Row>(`${SELECT} WHERE n.seq = ?`, [seq])
    return row === undefined ? null : nodeOf(row)
  }

  /** Some of the tree from its top down, and how many there are: all folders, and the pages whose mental models have the tags. */
  page (bank: number, tags: readonly string[] | null, mode: TagMode, { limit, offset }: Part): {
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

  * #rows<T extends Row> (columns: string, where: string, values: readonly Cell[]): Generator<T> {
    const from = `SELECT ${columns} FROM knowledge_nodes n LEFT JOIN mental_models m ON m.seq = n.model WHERE ${where}`
    // in two steps: both bounds as one would walk through all of one place, in each slice
    const beside = `${from} AND n.sort_order = ? AND n.seq > ? ORDER BY n.seq LIMIT ${AT_ONCE}`
    const behind = `${from} AND n.sort_order > ? ORDER BY n.sort_order, n.seq LIMIT ${AT_ONCE}`
    let [order, seq] = [Number.MIN_SAFE_INTEGER, 0]
    for (;;) {
      const same = this.#store.all<T>(beside, [...values, order, seq])
      const rows = same.length > 0 ? same : this.#store.all<T>(behind, [...values, order])
      yield* rows
      const last = rows.at(-1)
      if (last === undefined) return
      ;({ sort_order: order, seq } = last)
    }
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

function pageOf (row: PageRow): Page {
  return {
    node: nodeOf(row),
    model: {
      seq: row.model_seq, id: row.model_id, sourceQuery: row.source_query, content: row.content,
      tags: JSON.parse(row.tags) as string[], lastRefreshedAt: row.last_refreshed_at
    }
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
