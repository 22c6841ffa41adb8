import t from 'tap'
import { destructionOf } from '../../../../plugins/api/memory/destruction.js'
import { wireRoutes } from '../../../../plugins/services/memory-engine/router.js'
import { BANK } from '../../../../plugins/services/memory-engine/wire/answer.js'
import { memoryHost } from './host.js'

/** What destroys at each call, by `METHOD path` below a bank `b`, whose other names are all `x`. */
const destroying: Readonly<Record<string, readonly [action: string, target: string]>> = {
  'DELETE ': ['memory.bank.delete', 'b'],
  'DELETE /config': ['memory.bank_config.delete', 'b'],
  'DELETE /memories': ['memory.memories.delete', 'b'],
  'DELETE /memories/{memory_id}': ['memory.memories.delete', 'b/x'],
  'DELETE /memories/{memory_id}/observations': ['memory.observations.delete', 'b/x'],
  'DELETE /observations': ['memory.observations.delete', 'b'],
  'DELETE /documents/{document_id}': ['memory.document.delete', 'b/x'],
  'DELETE /directives/{directive_id}': ['memory.directive.delete', 'b/x'],
  'DELETE /operations/{operation_id}': ['memory.operation.delete', 'b/x'],
  'DELETE /operations/{operation_id}/delete': ['memory.operation.delete', 'b/x/delete'],
  'DELETE /mental-models/{mental_model_id}': ['memory.mental_model.delete', 'b/x'],
  'DELETE /aliases/{alias}': ['memory.alias.delete', 'b/x'],
  'DELETE /webhooks/{webhook_id}': ['memory.webhook.delete', 'b/x'],
  'DELETE /knowledge-base/nodes/{node_id}': ['memory.knowledge_node.delete', 'b/nodes/x'],
  'POST /mental-models/{mental_model_id}/clear': ['memory.mental_model.clear', 'b/x'],
  'POST /operations/{operation_id}/undo': ['memory.operation.undo', 'b/x']
}

/** What a query alone makes destructive. */
const replacing: Readonly<Record<string, string>> = {
  'POST /document-transfer': 'on_conflict=replace',
  'POST /transfer/import': 'mode=merge&document_conflict=replace'
}

const keeping: ReadonlySet<string> = new Set([
  '/memories', '/memories/recall', '/memories/dry-run-extract', '/reflect', '/prompts/preview', '/health/llm', '/files/retain',
  '/background', '/consolidate', '/consolidation/recover', '/consolidation-strategies/preview', '/operations/{operation_id}/retry',
  '/documents/{document_id}/reprocess', '/entities/{entity_id}/regenerate', '/directives', '/mental-models',
  '/mental-models/{mental_model_id}/refresh', '/mental-models/{mental_model_id}/dry-run-refresh', '/knowledge-base/folders',
  '/knowledge-base/pages', '/import', '/document-transfer/export', '/transfer/export', '/clone', '/webhooks', '/aliases'
].map(path => `POST ${path}`))

const namesOf = (path: string): readonly string[] => path.split('/').slice(1).map(name => name.startsWith('{') ? 'x' : name)

t.test('each route of the embedded engine that deletes, clears or undoes has an audit row of its own name', async t => {
  const known = wireRoutes.filter(({ method }) => method === 'DELETE' || method === 'POST')
  t.strictSame(known.filter(({ path }) => !path.startsWith(BANK)), [], 'all of them are about one bank')
  const routes = known.map(({ method, path }) => `${method} ${path.slice(BANK.length)}`)
  t.strictSame(routes.toSorted(), [...Object.keys(destroying), ...Object.keys(replacing), ...keeping].toSorted(), 'a new one is sorted in here')
  for (const route of routes) {
    const [method = '', path = ''] = route.split(' ')
    const [action, target] = destroying[route] ?? []
    t.strictSame(destructionOf(method, 'b', namesOf(path)), action === undefined ? null : { action, target }, route)
    const query = replacing[route]
    if (query === undefined) continue
    t.strictSame(destructionOf(method, 'b', namesOf(path), query), { action: 'memory.documents.replace', target: 'b', goesOn: true }, `${route}?${query}`)
  }
})

t.test('a part that no engine is known to have has a row all the same', async t => {
  for (const part of ['sketches', 'constructor']) {
    t.strictSame(destructionOf('DELETE', 'b', [part, 'x']), { action: `memory.${part}.delete`, target: 'b/x' })
  }
})

t.test('what is lost of a bank is in the audit trail with how it ended, by whichever way it was asked', async t => {
  const { call, audit } = await memoryHost(t)
  for (const text of ['Alice works at Acme Corp.', 'Bob lives in Paris.']) await call('POST', '/api/memory/add', { text })
  const { json: { items: [first, second] } } = await call('GET', '/api/memory/list')
  const wire = '/api/memory/hindsight/v1/default/banks/shared'
  const none = '5d8b8a04-fefb-4312-b6f8-04b65e09f014'
  const table: ReadonlyArray<readonly [method: string, path: string, action: string, target: string, status: number]> = [
    ['DELETE', `/api/memory/banks/shared/memories/${first.memory_id}`, 'memory.memories.delete', first.memory_id, 200],
    ['DELETE', `/api/memory/banks/shared/memories/${first.memory_id}`, 'memory.memories.delete', first.memory_id, 404],
    ['DELETE', `${wire}/memories/${second.memory_id}/observations`, 'memory.observations.delete', second.memory_id, 200],
    ['DELETE', `${wire}/memories/${second.memory_id}`, 'memory.memories.delete', second.memory_id, 200],
    ['POST', `${wire}/operations/${none}/undo`, 'memory.operation.undo', none, 404]
  ]
  for (const [method, path, action, id, status] of table) {
    t.equal((await call(method, path, undefined, { 'x-svc-agent': 'ann' })).status, status, `${method} ${path}`)
    const [end, begun] = await audit()
    const row = { category: 'memory', action, target: `shared/${id}`, actor: 'mcp:ann' }
    t.match(end, { ...row, outcome: status === 200 ? 'ok' : 'error', request_id: begun!.request_id })
    t.match(begun, { ...row, outcome: 'pending' })
  }
  t.strictSame((await call('GET', '/api/memory/list')).json.items, [])
})
