import type { Core } from '../core.js'
import { trigger } from '../models/mental-model-shapes.js'
import { MentalModelTable, type MentalModel } from '../models/mental-model-table.js'
import { submitRefresh } from '../models/submit-refresh.js'
import { triggerOf } from '../models/model-view.js'
import { isStale, stalenessOf } from '../models/staleness.js'
import { tagModes } from '../memories/tag-filter.js'
import { ensureBank, needBank, overridesOf } from '../store/bank-table.js'
import { inPieces } from '../store/turn.js'
import { BANK, json, listed, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { int, listOf, maybe, object, oneOf, optional, readBody, readQuery, required, text, nullable, unpaged } from '../wire/shape.js'
import { storedTags } from '../wire/tags.js'
import { wireTime } from '../wire/times.js'
import { bundleOf } from './bundle.js'
import { NodeTable, type KnowledgeNode, type Page } from './node-table.js'
import { NO_CONTENT, pageMarkdown, pageTime } from './page-text.js'
import { searchPages } from './search.js'

const MAX_TOKENS = 2048
/** Pages are made of observations, and anew when those change. */
const pageTrigger = { mode: 'delta', refresh_after_consolidation: true, fact_types: ['observation'], exclude_mental_models: true } as const

/** What the calls of one bank work with. */
function tablesOf (core: Core, bankId: string): {
  readonly bank: number
  readonly nodes: NodeTable
  readonly models: MentalModelTable
  readonly page: (node: KnowledgeNode) => Page
} {
  const bank = needBank(core.store, bankId).seq
  const models = new MentalModelTable(core)
  return {
    bank, nodes: new NodeTable(core), models, page: node => ({ node, model: models.get(bank, node.modelId!)! })
  }
}

const tagQuery = { tags: maybe(listOf(text)), tags_match: optional(oneOf(...tagModes), 'any'), tag_groups: maybe(text) }

const tree: Handler = ({ core, params, query, ignored }) => {
  const { tags, tags_match: mode, ...part } = readQuery(query, ignored, { ...tagQuery, ...unpaged }, ['tags'])
  const { bank, nodes, models } = tablesOf(core, params.bank_id!)
  const { total, nodes: found } = nodes.page(bank, tags, mode, part)
  const children = byParent([...above(nodes, found[0]), ...found])
  const isStaleNow = stalenessOf(core, bank)
  const below = (parent: KnowledgeNode | null): Array<Record<string, unknown>> => (children.get(parent?.seq ?? null) ?? [])
    .map(node => ({ node, model: node.modelId === null ? null : models.get(bank, node.modelId) }))
    .map(({ node, model }) => ({
      ...nodeView(node, parent?.id ?? null, model, model === null ? null : isStaleNow(model)), children: below(node)
    }))
  return listed({ roots: below(null) }, total)
}

/** Nodes by their parent, in their order; those of the root by null. Pure. */
function byParent (nodes: readonly KnowledgeNode[]): ReadonlyMap<number | null, readonly KnowledgeNode[]> {
  const all = new Map<number | null, KnowledgeNode[]>()
  for (const node of nodes) {
    const siblings = all.get(node.parent)
    if (siblings === undefined) all.set(node.parent, [node])
    else siblings.push(node)
  }
  return all
}

/** The folders that a part of the tree begins in, the outermost first. */
function above (nodes: NodeTable, first: KnowledgeNode | undefined): readonly KnowledgeNode[] {
  const folders: KnowledgeNode[] = []
  for (let at = first?.parent ?? null; at !== null; at = folders[0]!.parent) folders.unshift(nodes.bySeq(at)!)
  return folders
}

function nodeView (
  node: KnowledgeNode, parentId: string | null, model: MentalModel | null, stale: boolean | null
): Record<string, unknown> {
  return {
    id: node.id,
    kind: node.kind,
    name: node.name,
    parent_id: parentId,
    mental_model_id: node.modelId,
    managed: node.managed,
    description: model?.sourceQuery ?? null,
    tags: model?.tags ?? [],
    timestamp: model === null ? wireTime(node.createdAt) : pageTime({ node, model }),
    is_stale: stale,
    last_refresh_failed_at: wireTime(model?.lastRefreshFailedAt ?? null),
    trigger: model === null ? null : triggerOf(model.settings),
    children: []
  }
}

const folder: Handler = ({ core, params, body, headers, ignored }) => {
  const { name, parent_id: parentId } = readBody(body, headers, ignored, object({ name: required(text), parent_id: maybe(text) }))
  ensureBank(core.store, params.bank_id!, core.now())
  const { bank, nodes } = tablesOf(core, params.bank_id!)
  const node = nodes.add(bank, 'folder', name, parentOf(nodes, bank, parentId), null)
  return json(nodeView(node, parentId, null, null), 201)
}

const pageBody = object({
  name: required(text), source_query: required(text), parent_id: maybe(text), tags: maybe(storedTags),
  max_tokens: maybe(int({ min: 1 })),
  trigger: optional(nullable(trigger), null)
})

const newPage: Handler = ({ core, params, body, headers, ignored }) => {
  const bankId = params.bank_id!
  const { name, source_query: sourceQuery, parent_id: parentId, tags, max_tokens: maxTokens, trigger: given } = readBody(
    body, headers, ignored, pageBody
  )
  return core.store.transaction(() => {
    const preset = overridesOf(ensureBank(core.store, bankId, core.now())).knowledge_page_default_trigger as Record<string,
      unknown> | undefined
    const { bank, nodes, models } = tablesOf(core, bankId)
    const parent = parentOf(nodes, bank, parentId)
    const model = models.add(bank, null, {
      name, sourceQuery, tags: tags ?? [], maxTokens: maxTokens ?? MAX_TOKENS, settings: given ?? { ...pageTrigger, ...preset }
    })
    const node = nodes.add(bank, 'page', name, parent, model.seq)
    return json({ page_id: node.id, mental_model_id: model.id, operation_id: submitRefresh(core, bankId, model).id }, 201)
  })
}

function parentOf (nodes: NodeTable, bank: number, id: string | null): number | null {
  if (id === null) return null
  const parent = nodes.get(bank, id)
  if (parent === null) throw new WireError(404, `Knowledge folder '${id}' not found`)
  if (parent.kind !== 'folder') throw new WireError(400, `Knowledge node '${id}' is not a folder`)
  return parent.seq
}

const onePage: Handler = ({ core, params }) => {
  const { bank, nodes, page } = tablesOf(core, params.bank_id!)
  const node = nodes.get(bank, params.page_id!)
  if (node?.kind !== 'page') throw new WireError(404, `Knowledge page '${params.page_id!}' not found`)
  const its = page(node)
  return json({
    id: node.id, name: node.name, type: 'knowledge-page', description: its.model.sourceQuery, tags: its.model.tags, timestamp: pageTime(its),
    body: its.model.content, markdown: pageMarkdown(its, `\n${NO_CONTENT}\n`)
  })
}

const search: Handler = async ({ core, params, query, ignored, signal }) => {
  const { q, limit, tags, tags_match: mode } = readQuery(query, ignored, { q: required(text), limit: optional(int({ min: 1, max: 50 }), 10), ...tagQuery }, ['tags'])
  const { bank } = tablesOf(core, params.bank_id!)
  const { best, total } = await searchPages(core, bank, { query: q, limit, tags, mode }, signal)
  return json({
    results: best.map(({ node, model, score, snippet }) => ({
      id: node.id, name: node.name, mental_model_id: model.id, source_query: model.sourceQuery, snippet, score,
      updated_at: pageTime({ node, model })
    })),
    total
  })
}

const bundle: Handler = ({ core, params }) => {
  const { bank } = tablesOf(core, params.bank_id!)
  return { status: 200, headers: { 'content-type': 'application/json' }, body: inPieces(bundleOf(core, bank)) }
}

const nodeBody = object({
  name: maybe(text), parent_id: maybe(text), source_query: maybe(text), tags: maybe(storedTags),
  max_tokens: maybe(int({ min: 1 })), trigger: maybe(trigger)
})

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { name, parent_id: parentId, source_query: sourceQuery, tags, max_tokens: maxTokens, trigger: settings } = readBody(
    body, headers, ignored, nodeBody
  )
  const { bank, nodes, models } = tablesOf(core, params.bank_id!)
  const node = nodeOf(nodes, bank, params.node_id!)
  return core.store.transaction(() => {
    const parent = parentOf(nodes, bank, parentId)
    if (parent !== null && nodes.isWithin(parent, node.seq)) throw new WireError(400, 'A folder cannot be moved into itself')
    const changed = nodes.update(bank, node.id, { ...name !== null && { name }, ...parent !== null && { parent } })!
    const model = node.modelId === null ? null : models.update(bank, node.modelId, {
      ...name !== null && { name }, ...sourceQuery !== null && { sourceQuery }, ...tags !== null && { tags },
      ...maxTokens !== null && { maxTokens }, ...settings !== null && { settings }
    })
    const within = changed.parent === null ? null : nodes.bySeq(changed.parent)!.id
    return json(nodeView(changed, within, model, model === null ? null : isStale(core, bank, model)))
  })
}

const remove: Handler = ({ core, params }) => {
  const { bank, nodes } = tablesOf(core, params.bank_id!)
  nodes.delete(bank, nodeOf(nodes, bank, params.node_id!).id)
  return json({ status: 'deleted' })
}

function nodeOf (nodes: NodeTable, bank: number, id: string): KnowledgeNode {
  const node = nodes.get(bank, id)
  if (node === null) throw new WireError(404, `Knowledge node '${id}' not found`)
  return node
}

const BASE = `${BANK}/knowledge-base`

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BASE}/tree`, handler: tree },
  { method: 'POST', path: `${BASE}/folders`, handler: folder },
  { method: 'POST', path: `${BASE}/pages`, handler: newPage },
  { method: 'GET', path: `${BASE}/export`, handler: bundle },
  { method: 'GET', path: `${BASE}/search`, handler: search },
  { method: 'GET', path: `${BASE}/pages/{page_id}`, handler: onePage },
  { method: 'PATCH', path: `${BASE}/nodes/{node_id}`, handler: update },
  { method: 'DELETE', path: `${BASE}/nodes/{node_id}`, handler: remove }
]
