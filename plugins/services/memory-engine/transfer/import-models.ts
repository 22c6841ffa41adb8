import type { Core } from '../core.js'
import { DirectiveTable } from '../models/directive-table.js'
import { MAX_TOKENS, trigger } from '../models/mental-model-shapes.js'
import { withoutTexts } from '../models/basis.js'
import { MentalModelTable } from '../models/mental-model-table.js'
import { NodeTable } from '../knowledge/node-table.js'
import type { BankRow } from '../store/bank-table.js'
import { targetProblem } from '../webhooks/target.js'
import { httpConfig, plainHttp } from '../webhooks/http-config.js'
import { WebhookTable } from '../webhooks/webhook-table.js'
import { int, readAs } from '../wire/shape.js'
import type { BankRest } from './archive.js'
import type { JsonRow } from './checked.js'
import { map, mapOrNull, strings, text, time } from './cells.js'

const maxTokens = int({ min: 1 })

/** Mental models with their content and history, and the tree of the knowledge base. Those that are there stay as they are. */
export function importModels (core: Core, bank: BankRow, archive: BankRest): Record<string, number> {
  const { store } = core
  const [models, nodes] = [new MentalModelTable(core), new NodeTable(core)]
  const added = new Map<string, number>()
  for (const row of archive.rows.mental_models ?? []) {
    const id = text(row.id, '')
    if (id === '' || models.get(bank.seq, id) !== null) continue
    const model = models.add(bank.seq, id, {
      name: text(row.name, id), sourceQuery: text(row.source_query, ''), tags: strings(row.tags),
      maxTokens: readAs(maxTokens, row.max_tokens) ?? MAX_TOKENS, settings: readAs(trigger, map(row.trigger)) ?? {}
    })
    store.run(`UPDATE mental_models SET content = ?, reflect_response = ?, last_refreshed_at = ?, last_memory_seen_at = ?, last_full_refreshed_at = ?
      WHERE seq = ?`, [
      text(row.content, ''), row.reflect_response === null || row.reflect_response === undefined ? null : JSON.stringify(withoutTexts(map(row.reflect_response))),
      time(row.last_refreshed_at), time(row.last_memory_seen_at), time(row.last_full_refreshed_at), model.seq
    ])
    added.set(id, model.seq)
  }
  for (const { mental_model_id: id, bank_id: _, changed_at: at, content, ...others } of archive.rows.mental_model_history ?? []) {
    // archives of releases before have no `content`
    const change = mapOrNull(content) ?? others
    const model = added.get(text(id, ''))
    if (model === undefined) continue
    const kept = { ...change, previous_reflect_response: withoutTexts(mapOrNull(change.previous_reflect_response)) }
    store.run('INSERT INTO mental_model_history (model, changed_at, change) VALUES (?, ?, ?)', [model, time(at) ?? core.now(), JSON.stringify(kept)])
  }
  return {
    mental_models_imported: added.size, knowledge_pages_imported: importTree(store, bank, archive.knowledgePages, nodes, models)
  }
}

/** Parents before their children, wherever they stand in the archive. */
function importTree (store: Core['store'], bank: BankRow, rows: Iterable<JsonRow>, nodes: NodeTable, models: MentalModelTable): number {
  const ready: JsonRow[] = []
  const waiting = new Map<string, JsonRow[]>()
  for (const row of rows) {
    const parent = text(row.parent_id, '')
    const siblings = waiting.get(parent)
    if (typeof row.parent_id !== 'string' || nodes.get(bank.seq, parent) !== null) ready.push(row)
    else if (siblings === undefined) waiting.set(parent, [row])
    else siblings.push(row)
  }
  let count = 0
  // it grows behind the row that is looked at
  for (const row of ready) {
    const id = text(row.id, '')
    if (nodes.get(bank.seq, id) !== null) continue
    const model = row.kind === 'page' ? models.get(bank.seq, text(row.mental_model_id, '')) : null
    if (row.kind === 'page' && model === null) continue
    const parent = nodes.get(bank.seq, text(row.parent_id, ''))?.seq ?? null
    const node = nodes.add(bank.seq, row.kind === 'page' ? 'page' : 'folder', text(row.name, ''), parent, model?.seq ?? null)
    store.run('UPDATE knowledge_nodes SET id = ?, sort_order = ?, managed = ? WHERE seq = ?', [text(row.id, node.id), readAs(int(), row.sort_order) ?? 0, Number(row.managed === true), node.seq])
    for (const child of waiting.get(id) ?? []) ready.push(child)
    waiting.delete(id)
    count += 1
  }
  return count
}

/** Directives, and webhooks that are off: an archive from elsewhere must not make this engine call any address. */
export function importRules (core: Core, bank: BankRow, archive: BankRest): {
  readonly directives_imported: number
  readonly webhooks_imported: number
} {
  const [directives, webhooks] = [new DirectiveTable(core), new WebhookTable(core)]
  const known = new Set(directives.all(bank.seq).map(({ name }) => name))
  const count = { directives_imported: 0, webhooks_imported: 0 }
  for (const row of archive.rows.directives ?? []) {
    if (known.has(text(row.name, ''))) continue
    count.directives_imported += 1
    directives.add(bank.seq, {
      name: text(row.name, ''), content: text(row.content, ''), priority: readAs(int(), row.priority) ?? 0, isActive: row.is_active !== false, tags: strings(row.tags)
    })
  }
  for (const row of archive.rows.webhooks ?? []) {
    if (targetProblem(text(row.url, '')) !== null) continue
    count.webhooks_imported += 1
    webhooks.add(bank.seq, {
      url: text(row.url, ''), secret: null, eventTypes: strings(row.event_types), enabled: false, httpConfig: readAs(httpConfig, map(row.http_config)) ?? plainHttp
    })
  }
  return count
}
