import assert from 'node:assert/strict'
import { createClient, createConfig, sdk } from '@vectorize-io/hindsight-client'
import { check } from '../js/check.mjs'

// every operation that the client has, at an engine that has models; what is answered is compared by the ring

const client = createClient(createConfig({ baseUrl: `${process.env.RING_URL}/api/memory/hindsight`, headers: { authorization: 'Bearer any' } }))
const bank = 'npm-wire'

/** What an operation of the client answers, whatever its status is. */
async function call (operation, path = {}, rest = {}) {
  const { data, error, response } = await sdk[operation]({ client, path: { bank_id: bank, ...path }, ...rest })
  return { status: response.status, body: data ?? error }
}

async function ok (...args) {
  const { status, body } = await call(...args)
  assert.ok(status < 300, `${args[0]}: ${status} ${JSON.stringify(body)}`)
  return body
}

/** Asks until the answer will do; an operation whose model fails is tried again for minutes. */
async function asked (ask, isOver) {
  const end = performance.now() + 300_000
  for (;;) {
    const answer = await ask()
    if (isOver(answer)) return answer
    if (performance.now() > end) throw new Error(`it does not end: ${JSON.stringify(answer)}`)
    await new Promise(resolve => { setTimeout(resolve, 50) })
  }
}

/** Waits until no operation of the bank is under way. */
async function idle () {
  for (const status of ['pending', 'processing']) await asked(() => ok('listOperations', {}, { query: { status } }), ({ total }) => total === 0)
}

async function ended (id) {
  return await asked(() => ok('getOperationStatus', { operation_id: id }), ({ status }) => !['pending', 'processing'].includes(status))
}

await check('the server tells of itself', async () => {
  for (const operation of ['healthEndpointHealthGet', 'getReadiness', 'getLiveness', 'getVersion', 'getBankTemplateSchema']) await ok(operation)
  await ok('metricsEndpointMetricsGet', {}, { parseAs: 'text' })
})
await check('a bank is made and changed', async () => {
  await ok('createOrUpdateBank', {}, { body: { name: 'Wire', reflect_mission: 'help' } })
  await ok('updateBank', {}, { body: { name: 'Wired' } })
  assert.equal((await ok('listBanks', {}, { query: { q: bank } })).total, 1)
})
await check('settings of a bank', async () => {
  await ok('getBankConfig')
  await ok('updateBankConfig', {}, { body: { updates: { retain_mission: 'x' } } })
  await call('updateBankConfig', {}, { body: { updates: { no_such_setting: 1 } } })
  await ok('resetBankConfig')
  await ok('testBankLlm')
})
await check('texts are retained, at once and later', async () => {
  await ok('retainMemories', {}, { body: { items: [
    { content: 'Alice works at Acme Corp in Berlin. She leads the Robotics team.', document_id: 'doc-1', tags: ['people'], metadata: { src: 'chat' }, context: 'career' },
    { content: 'Bob likes green tea.', document_id: 'doc-2', tags: ['people'], timestamp: '2025-05-01T10:00:00Z' }
  ] } })
  const { operation_id: id } = await ok('retainMemories', {}, { body: { async: true, items: [{ content: 'Carol plays the cello in Vienna.', document_id: 'doc-3' }] } })
  assert.equal((await ended(id)).status, 'completed')
  await ok('retainMemories', {}, { body: { items: [] } })
  await call('retainMemories', {}, { body: { items: [{ content: '' }] } })
  await call('retainMemories', {}, { body: {} })
  await idle()
})
await check('a file is retained', async () => {
  const files = [new File(['Grace met Heidi in Paris.'], 'notes.txt', { type: 'text/plain' })]
  const { operation_ids: [id] } = await ok('fileRetain', {}, { body: { files, request: JSON.stringify({ files_metadata: [{ document_id: 'doc-4' }] }) } })
  assert.equal((await ended(id)).status, 'completed')
  await idle()
})
await check('recall finds what was retained', async () => {
  const { results } = await ok('recallMemories', {}, { body: {
    query: 'Where does Alice work?', trace: true, budget: 'mid', include: { chunks: {}, entities: {}, source_facts: {} }
  } })
  assert.match(results.map(({ text }) => text).join(), /Acme/)
  const tagged = await ok('recallMemories', {}, { body: { query: 'Alice cello tea', tags: ['people'], tags_match: 'any_strict', types: ['world', 'experience'] } })
  assert.ok(tagged.results.every(({ tags }) => tags.includes('people')))
  await call('recallMemories', {}, { body: { query: 'x', types: ['no-such-type'] } })
  await call('recallMemories', { bank_id: 'never-made' }, { body: { query: 'x' } })
})
await check('a question is answered from what is remembered', async () => {
  const { text } = await ok('reflect', {}, { body: { query: 'Where does Alice work?', include: { facts: {}, tool_calls: {} } } })
  assert.ok(text.length > 0)
  await call('reflect', {}, { body: {} })
})
let memory
await check('memories are listed, read, changed and hidden', async () => {
  const { items } = await ok('listMemories', {}, { query: { type: 'world', limit: 50 } })
  memory = items.find(({ text }) => text.includes('tea')).id
  await ok('getMemory', { memory_id: memory })
  await ok('updateMemory', { memory_id: memory }, { body: { text: 'Bob likes black tea.' } })
  await idle()
  await ok('updateMemory', { memory_id: memory }, { body: { state: 'invalidated', reason: 'outdated' } })
  assert.equal((await ok('listMemories', {}, { query: { state: 'invalidated' } })).total, 1)
  await ok('updateMemory', { memory_id: memory }, { body: { state: 'valid' } })
  await call('getObservationHistory', { memory_id: memory })
  await call('getMemory', { memory_id: 'not-a-uuid' })
  await call('getMemory', { memory_id: '00000000-0000-4000-8000-000000000000' })
  await idle()
})
await check('what a text would come to is shown without keeping it', async () => {
  await ok('dryRunExtractMemories', {}, { body: { content: 'Dave sails in Kiel.' } })
})
await check('facts become observations', async () => {
  const { operation_id: id } = await ok('triggerConsolidation', {}, { body: {} })
  await ended(id)
  await idle()
  const { items } = await ok('listMemories', {}, { query: { type: 'observation' } })
  assert.ok(items.length > 0)
  await ok('getMemory', { memory_id: items[0].id })
  await call('getObservationHistory', { memory_id: items[0].id })
  await ok('listObservationScopes')
  await ok('recoverConsolidation')
  await ok('recallMemories', {}, { body: { query: 'Alice Acme', types: ['observation'], include: { source_facts: {} } } })
})
await check('the graph, entities and tags', async () => {
  await ok('getGraph')
  const { items } = await ok('listEntities')
  await ok('getEntity', { entity_id: items[0].id })
  await ok('getEntityGraph')
  await call('regenerateEntityObservations', { entity_id: items[0].id })
  await ok('listTags')
})
await check('documents and their chunks', async () => {
  await ok('listDocuments')
  await ok('getDocument', { document_id: 'doc-1' })
  const { items: [chunk] } = await ok('listDocumentChunks', { document_id: 'doc-1' })
  await ok('getChunk', { chunk_id: chunk.chunk_id })
  await ok('updateDocument', { document_id: 'doc-1' }, { body: { tags: ['people', 'work'] } })
  const { operation_id: id } = await ok('reprocessDocument', { document_id: 'doc-1' })
  await ended(id)
  await idle()
  await call('getDocument', { document_id: 'no such' })
  await call('getChunk', { chunk_id: 'no such' })
})
await check('directives come and go', async () => {
  const { id } = await ok('createDirective', {}, { body: { name: 'short', content: 'Answer briefly' } })
  await ok('listDirectives')
  await ok('getDirective', { directive_id: id })
  await ok('updateDirective', { directive_id: id }, { body: { content: 'z' } })
  await ok('reflect', {}, { body: { query: 'Who is Alice?', include: { facts: {} } } })
  await ok('deleteDirective', { directive_id: id })
  await call('getDirective', { directive_id: id })
})
await check('a mental model is made, refreshed and emptied', async () => {
  const model = { mental_model_id: 'mm-1' }
  const { operation_id: id } = await ok('createMentalModel', {}, { body: { id: 'mm-1', name: 'Alice', source_query: 'Who is Alice?' } })
  await ended(id)
  await call('createMentalModel', {}, { body: { id: 'mm-1', name: 'Alice', source_query: 'Who is Alice?' } })
  await ok('listMentalModels')
  await ok('getMentalModel', model)
  await ok('updateMentalModel', model, { body: { name: 'Alice again' } })
  await ended((await ok('refreshMentalModel', model)).operation_id)
  await call('dryRunRefreshMentalModel', model)
  await ok('getMentalModelHistory', model)
  await ok('clearMentalModel', model)
  await ok('deleteMentalModel', model)
  await call('getMentalModel', model)
})
await check('pages of the knowledge base', async () => {
  const folder = await ok('createKnowledgeFolder', {}, { body: { name: 'People' } })
  const page = await ok('createKnowledgePage', {}, { body: { name: 'Alice', source_query: 'Who is Alice?', parent_id: folder.id } })
  await idle()
  await ok('getKnowledgeBaseTree')
  await ok('getKnowledgePage', { page_id: page.page_id })
  await ok('searchKnowledgeBase', {}, { query: { q: 'Alice' } })
  await ok('updateKnowledgeNode', { node_id: page.page_id }, { body: { name: 'Alice A.' } })
  await ok('exportKnowledgeBase')
  await ok('deleteKnowledgeNode', { node_id: page.page_id })
  await ok('deleteKnowledgeNode', { node_id: folder.id })
})
await check('webhooks', async () => {
  await call('createWebhook', {}, { body: { url: 'http://127.0.0.1:9/x' } })
  const { id } = await ok('createWebhook', {}, { body: { url: 'https://example.com/hook', secret: 's', enabled: false } })
  await ok('listWebhooks')
  await ok('updateWebhook', { webhook_id: id }, { body: { event_types: ['retain.completed'] } })
  await ok('listWebhookDeliveries', { webhook_id: id })
  await ok('deleteWebhook', { webhook_id: id })
})
await check('a bank as a template, and its documents as an archive', async () => {
  const template = await ok('exportBankTemplate')
  await ok('importBankTemplate', {}, { body: template, query: { dry_run: true } })
  await ok('importBankTemplate', {}, { body: { ...template, directives: [{ name: 'd', content: 'c' }] } })
  const { operation_id: id } = await ok('exportDocuments')
  const { result_metadata: { download_url: url } } = await ended(id)
  const archive = await ok('downloadFile', { key: url.replace('/v1/default/files/download/', '') }, { parseAs: 'blob' })
  const { operation_id: imported } = await ok('importDocuments', {}, { body: { file: new File([archive], 'transfer.zip') }, query: { on_conflict: 'replace' } })
  assert.equal((await ended(imported)).status, 'completed')
  await call('exportDocumentsSyncRemoved')
  await idle()
})
await check('operations are listed and judged', async () => {
  const { operations: [{ id }] } = await ok('listOperations', {}, { query: { status: 'completed', limit: 1 } })
  await call('cancelOperation', { operation_id: id })
  await call('retryOperation', { operation_id: id })
  await call('deleteOperation', { operation_id: id })
  await call('getOperationStatus', { operation_id: '00000000-0000-4000-8000-000000000000' })
  await call('cancelOperation', { operation_id: '00000000-0000-4000-8000-000000000000' })
})
await check('counts and records', async () => {
  await ok('getAgentStats')
  await ok('getMemoriesTimeseries')
  await ok('listAuditLogs')
  await ok('auditLogStats')
  await ok('listLlmRequests')
  await ok('llmRequestStats')
})
await check('what is gone names its successor', async () => {
  await call('getBankProfile')
  await call('updateBankDisposition', {}, { body: { disposition: { skepticism: 3, literalism: 3, empathy: 3 } } })
  await call('addBankBackground', {}, { body: { content: 'x' } })
})
await check('all of it is deleted', async () => {
  await ok('clearMemoryObservations', { memory_id: memory })
  await ok('clearObservations')
  await ok('deleteDocument', { document_id: 'doc-3' })
  await call('deleteDocument', { document_id: 'doc-3' })
  await ok('clearBankMemories')
  await ok('deleteBank')
  await call('listMemories')
  await ok('deleteBank')
})
