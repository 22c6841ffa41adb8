import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { form, openWithChat, over, zipInMemory } from './models-support.js'
import { databaseIn, killedNow, openInThread, type Wire } from './support.js'

type Row = Readonly<Record<string, unknown>>

const fact = (text: string): Row => ({ text, fact_type: 'world' })
/** Twice as many documents as come over in one slice, the first of which the bank has. */
const documents = Array.from({ length: 200 }, (_, n): Row => (
  { id: `d${n}`, original_text: `New ${n}.`, chunks: [{ chunk_index: 0, chunk_text: `New ${n}.` }], facts: [fact(`New ${n}.`)] }))

function archiveOf (files: Readonly<Record<string, unknown>>): Buffer {
  const zip = zipInMemory()
  const manifest = { schema_version: 1, source_bank_id: 'x', archive_type: 'bank', document_count: documents.length }
  for (const [name, value] of Object.entries({ 'manifest.json': manifest, ...files })) {
    zip.add(name, Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value)))
  }
  for (const [n, document] of documents.entries()) zip.add(`documents/${n}.json`, Buffer.from(JSON.stringify(document)))
  return zip.end()
}

/** A folder in the next one, from the top. */
function folders (count: number, top: string | null = null): Row[] {
  return Array.from({ length: count }, (_, n) => ({ id: `f${n}`, kind: 'folder', name: `F${n}`, parent_id: n === 0 ? top : `f${n - 1}` }))
}

async function told (call: Wire['call']): Promise<unknown> {
  const lists = ['documents', 'memories/list', 'knowledge-base/tree', 'mental-models', 'directives', 'webhooks', 'config', 'aliases']
  return await Promise.all(lists.map(async list => (await call('GET', `b/${list}`)).body))
}

const model = { id: 'm', name: 'M', source_query: 'q?' }
/** What else an archive brings, so that none of it comes alone. */
const rest: Row = {
  'banks.json': [{ name: 'Other', config: { reflect_mission: 'new' } }],
  'mental_models.json': [{ ...model, content: 'New.' }],
  'directives.json': [{ name: 'new', content: 'Be new.' }],
  'webhooks.json': [{ url: 'https://example.com/' }],
  'bank_aliases.json': [{ alias: 'bee', primary: true }]
}

async function bankWithDeepTree ({ call }: Wire): Promise<string> {
  await call('POST', 'b/memories', { items: [{ content: 'Old.', document_id: 'd0' }] })
  let parent: string | null = null
  for (let n = 0; n < 32; n++) parent = (await call('POST', 'b/knowledge-base/folders', { name: `Own ${n}`, parent_id: parent })).body.id as string
  return parent!
}

t.test('an archive whose tree is too deep changes nothing of a bank that is there, and fails at once', async t => {
  const wire = openWithChat(t, () => 'x')
  const { call, path } = wire
  const deepest = await bankWithDeepTree(wire)
  const before = await told(call)
  for (const [what, pages] of [['by itself', folders(33)], ['below a node of the bank', folders(1, deepest)]] as const) {
    const bytes = archiveOf({ ...rest, 'knowledge_pages.json': pages })
    const query = 'mode=merge&document_conflict=replace&include_aliases=true'
    const { status, body } = await call('POST', `b/transfer/import?${query}`, ...form('file', 'a.zip', bytes))
    t.equal(status, 202)
    t.match(await over(call, 'b', body.operation_id), { status: 'failed', retry_count: 0, error_message: /at most 32 deep/ }, what)
    t.same(await told(call), before, what)
    const store = openStore(path)
    t.same(store.all('SELECT bank_id FROM banks'), [{ bank_id: 'b' }], 'and leaves nothing where no path leads')
    store.close()
    t.match(await call('POST', `b/operations/${body.operation_id}/retry`), { status: 200 })
    t.match(await over(call, 'b', body.operation_id), { status: 'failed', error_message: /at most 32 deep/ }, 'nor does another try')
    t.same(await told(call), before)
  }
})

t.test('what beside documents comes into a bank is there once, with the commit, also where the engine is killed behind that', async t => {
  for (const isOfReleaseBefore of [false, true]) await t.test(isOfReleaseBefore ? 'of a release before' : 'of this one', async t => {
    const folder = t.testdir()
    const { call } = openInThread(t, folder)
    await call('POST', 'b/memories', { items: [{ content: 'Old.', document_id: 'd0' }] })
    const bytes = archiveOf({ ...rest, 'knowledge_pages.json': folders(32) })
    const { body: { operation_id: id } } = await call('POST', 'b/transfer/import?mode=merge&include_aliases=true', ...form('file', 'a.zip', bytes))
    while ((await call('GET', `b/operations/${id}`)).body.progress?.stage !== 'committing') { /* it works */ }
    t.match((await call('GET', 'b/directives')).body, { items: [{ name: 'new' }] })
    const killed = killedNow(folder)
    const left = openStore(databaseIn(killed))
    t.teardown(() => left.close())
    t.ok(left.get<{ count: number }>('SELECT count(*) AS count FROM documents d JOIN banks b ON b.seq = d.bank WHERE bank_id = ?', ['b'])!.count < 200)
    if (isOfReleaseBefore) {
      left.run(`UPDATE operations SET payload = json_remove(payload, '$.held.rest') WHERE id = ?`, [id])
      for (const table of ['directives', 'mental_models', 'webhooks', 'bank_aliases', 'knowledge_nodes']) left.run(`DELETE FROM ${table}`)
    }
    const again = openInThread(t, killed)
    t.match(await over(again.call, 'b', id), { status: 'completed', result_metadata: {
      bank_id: 'b', documents_imported: 199, documents_skipped: 1, mental_models_imported: 1, directives_imported: 1, webhooks_imported: 1,
      knowledge_pages_imported: 32, aliases_imported: 1, aliases_skipped: 0
    } })
    t.match((await again.call('GET', 'b/documents')).body, { total: 200 })
    for (const list of ['directives', 'webhooks', 'mental-models']) t.equal((await again.call('GET', `b/${list}`)).body.items.length, 1, list)
    t.match((await again.call('GET', 'b/mental-models?detail=content')).body.items, [{ content: 'New.' }])
    t.match((await again.call('GET', 'b/config')).body, { overrides: { reflect_mission: 'new' } })
    t.match((await again.call('GET', 'b/aliases')).body.aliases, [{ alias: 'bee', primary: true }])
  })
})

t.test('an archive whose values nest deeper than the database reads is refused, and one that hides that in a text brings none of it', async t => {
  const { call } = openWithChat(t, () => 'x')
  await call('POST', 'b/memories', { items: [{ content: 'Old.', document_id: 'd0' }] })
  const before = await told(call)
  const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  const imports = (files: Row) => call('POST', 'b/transfer/import?mode=merge', ...form('file', 'a.zip', archiveOf({ ...rest, ...files })))
  const row = (key: string, value: string): Buffer => Buffer.from(`[{"id":"m","mental_model_id":"m","name":"M","source_query":"q?","${key}":${value}}]`)
  for (const [file, key] of [
    ['mental_models.json', 'reflect_response'], ['mental_models.json', 'trigger'], ['mental_model_history.json', 'content'],
    ['mental_model_history.json', 'previous_reflect_response'], ['banks.json', 'config'], ['knowledge_pages.json', 'more']
  ] as const) {
    for (const depth of [900, 100_000]) {
      t.match(await imports({ [file]: row(key, nested(depth)) }), { status: 400, body: { detail: new RegExp(`${file} nests more than 900 deep`) } }, key)
    }
  }
  t.same(await told(call), before)
  const files = {
    'mental_models.json': row('reflect_response', JSON.stringify(nested(100_000))),
    'mental_model_history.json': row('content', JSON.stringify(nested(100_000)))
  }
  const { body: { operation_id: id } } = await imports(files)
  t.match(await over(call, 'b', id), { status: 'completed', retry_count: 0 })
  t.match((await call('GET', 'b/mental-models/m')).body, { reflect_response: {} })
  t.equal((await call('GET', 'b/mental-models/m/history')).body.length, 1)
})
