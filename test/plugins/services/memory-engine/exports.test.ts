import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { readArchive } from '../../../../plugins/services/memory-engine/transfer/read-archive.js'
import { HIDDEN } from '../../../../plugins/services/memory-engine/transfer/archive.js'
import { ExportFile, findExport } from '../../../../plugins/services/memory-engine/transfer/file-table.js'
import { unzip } from '../../../../plugins/services/memory-engine/transfer/zip.js'
import { form, openWithChat, over, zipInMemory } from './models-support.js'
import { openEngine, openInThread, type Wire } from './support.js'

/** Rows that one statement reads of what may be thousands. */
const AT_ONCE = 100
const PAGES = 1000

const template = {
  version: '1', directives: Array.from({ length: 600 }, (_, i) => ({ name: `rule ${i}`, content: `Be brief, and heed what ${'is said '.repeat(20)} of ${i}.` }))
}

/** Text that cannot be packed. */
function noise (chars: number): string {
  let [state, text] = [1, '']
  while (text.length < chars) {
    state = (state * 48271) % 0x7fffffff
    text += state.toString(36)
  }
  return text
}

async function begun ({ engine }: Pick<Wire, 'engine'>, path: string): Promise<{ readonly headers: Readonly<Record<string, unknown>>, readonly body: Readable }> {
  const { status, headers, body } = await engine.request({ method: 'GET', path, query: '', headers: {}, body: null, signal: new AbortController().signal })
  if (status !== 200 || Buffer.isBuffer(body)) throw new Error(`${status}`)
  return { headers, body }
}

t.test('a knowledge base of a thousand pages is searched, exported, cloned and moved in without being read as a whole', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-exports-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const { engine, call, most, rows } = openInThread(t, folder)
  await call('PUT', 'b', {})
  const { body: { id: root } } = await call('POST', 'b/knowledge-base/folders', { name: 'root' })
  const { body: { id: inner } } = await call('POST', 'b/knowledge-base/folders', { name: 'inner', parent_id: root })
  const store = openStore(join(folder, 'memory', 'memory.db'))
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${PAGES - 1})
    INSERT INTO mental_models (id, bank, name, source_query, content, tags, max_tokens, created_at)
    SELECT 'm' || i, 1, 'page ' || i, 'What of ' || i || '?', CASE WHEN i % 10 THEN 'Plain. ' ELSE 'The sea. ' END || printf('%.*c', 500, 'x') || ' end ' || i,
      json_array('p' || i % 2), 2048, 0 FROM n`)
  store.exec(`INSERT INTO knowledge_nodes (id, bank, parent, kind, name, model, created_at, updated_at)
    SELECT 'kp-' || id, 1, (SELECT seq FROM knowledge_nodes WHERE id = '${inner}'), 'page', name, seq, 0, 0 FROM mental_models ORDER BY seq`)
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299)
    INSERT INTO mental_model_history (model, changed_at, change)
    SELECT (SELECT seq FROM mental_models WHERE id = 'm3'), i * 1000, json_object('previous_content', 'before ' || i) FROM n`)
  for (const table of ['directives (id, bank, name, content, tags, created_at, updated_at) SELECT \'r\' || i, 1, \'rule \' || i, \'Be brief.\', \'[]\', 0, 0',
    'webhooks (id, bank, url, event_types, enabled, http_config, created_at, updated_at) SELECT \'w\' || i, 1, \'https://example.com/\' || i, \'[]\', 0, \'{}\', 0, 0']) {
    store.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 249) INSERT INTO ${table} FROM n`)
  }
  store.close()

  const { body: found } = await call('GET', 'b/knowledge-base/search?q=sea%20990&limit=50')
  t.equal(found.total, 100)
  t.equal(found.results.length, 50)
  t.match(found.results[0], { id: 'kp-m990', score: 0.9, snippet: /^The sea/ }, 'the best one first')
  t.match(found.results[1], { id: 'kp-m0', score: 0.4 }, 'and those that are as good in their order')
  t.match((await call('GET', 'b/knowledge-base/search?q=sea&tags=p1&tags_match=any_strict')).body, { total: 0, results: { length: 0 } })
  t.match((await call('GET', `b/knowledge-base/search?q=${'word%20'.repeat(2000)}sea`)).status, 200, 'of a long query the first words count')

  const { headers, body } = await begun({ engine: engine as Wire['engine'] }, '/v1/default/banks/b/knowledge-base/export')
  t.match(headers, { 'content-type': 'application/json' })
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece as Buffer)
  t.ok(pieces.length > 5 && pieces.every(({ length }) => length < 200_000), `${pieces.length} pieces`)
  const { files } = JSON.parse(Buffer.concat(pieces).toString()) as { files: Array<{ path: string, content: string }> }
  t.equal(files.length, PAGES + 2)
  t.match(files[0], { path: 'index.md', content: /- \*\*root\/\*\*\n {2}- \*\*inner\/\*\*\n {4}- \[page 0\]\(\.\/kp-m0\.md\) — What of 0\?\n/ })
  t.equal(files[0]!.content.split('\n').filter(line => line.startsWith('    - [page')).length, PAGES)
  const log = files.find(({ path }) => path === 'kp-m3.log.md')!
  t.same([...log.content.matchAll(/before (\d+)/g)].map(([, n]) => Number(n)), Array.from({ length: 300 }, (_, i) => 299 - i), 'the latest first')
  t.equal(files.findIndex(({ path }) => path === 'kp-m3.log.md'), files.findIndex(({ path }) => path === 'kp-m3.md') + 1)

  const before = rows()
  t.match((await call('PATCH', 'b/knowledge-base/nodes/kp-m7', { parent_id: root })).body, { parent_id: root })
  t.match((await call('PATCH', `b/knowledge-base/nodes/${root}`, { parent_id: inner })), { status: 400, body: { detail: /into itself/ } })
  t.match((await call('PATCH', `b/knowledge-base/nodes/${root}`, { parent_id: root })), { status: 400, body: { detail: /into itself/ } })
  t.ok(rows() - before < 20, `a move reads ${rows() - before} rows`)
  await over(call, 'b', (await call('POST', 'b/transfer/export')).body.operation_id)
  const { body: { operation_id: clone } } = await call('POST', 'b/clone?target_bank_id=c')
  const { result_metadata: copied } = await over(call, 'b', clone)
  t.match(copied, {
    mental_models_imported: PAGES, knowledge_pages_imported: PAGES + 2, directives_imported: 250, webhooks_imported: 250
  })
  t.ok(most() <= AT_ONCE, `at most ${most()} rows at once`)
  const { body: { items: rules } } = await call('GET', 'c/directives?limit=1000')
  const names = Array.from({ length: 250 }, (_, i) => `rule ${i}`)
  t.same(rules.map(({ name }: { name: string }) => name), names, 'in the order in which they were made')
  t.equal((await call('GET', 'c/mental-models/m3/history?limit=1000')).body.length, 300)
})

t.test('a large archive is written and read in parts, and is a ZIP archive as any other', async t => {
  const wire = openEngine(t)
  const { call, path } = wire
  await call('POST', 'b/import', template)
  const texts = Array.from({ length: 12 }, (_, i) => noise(300_000 + i))
  await call('POST', 'b/memories', { items: texts.map((content, i) => ({ content, document_id: `d${i}` })) })
  const { body: { operation_id: id } } = await call('POST', 'b/transfer/export')
  const { result_metadata: { download_url: url, byte_size: size } } = await over(call, 'b', id)
  const { headers, body } = await begun(wire, url)
  t.equal(headers['content-length'], String(size))
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece as Buffer)
  const archive = Buffer.concat(pieces)
  t.equal(archive.length, size)
  t.ok(pieces.length > 3 && pieces.every(({ length }) => length < 2 * 2 ** 20), `${pieces.length} parts of ${size} bytes`)
  const { documents, rows } = await readArchive(archive)
  t.equal(documents.length, 12)
  t.same(rows.directives!.map(({ name }) => name), template.directives.map(({ name }) => name), 'what was written bit by bit is whole')
  const { body: { operation_id: restored } } = await call('POST', 'c/transfer/import', ...form('file', 'a.zip', archive))
  t.match(await over(call, 'c', restored), { status: 'completed', result_metadata: { documents_imported: 12, directives_imported: 600 } })
  t.equal((await call('GET', 'c/documents/d11')).body.original_text, texts[11])

  const left = await begun(wire, url)
  await once(left.body, 'data')
  left.body.destroy()
  t.match(await call('GET', 'b/stats'), { status: 200 }, 'a client that leaves in the middle ends nothing else')
  const deleted = await begun(wire, url)
  await once(deleted.body, 'data')
  deleted.body.pause()
  await call('DELETE', 'b/documents/d3')
  await t.rejects(async () => { for await (const _ of deleted.body) { /* what is left */ } }, /deleted while it was read/, 'an archive that is deleted is not told to be shorter')
  t.match(await call('GET', url), { status: 404 })

  const { body: { operation_id: again } } = await call('POST', 'b/transfer/export')
  const { result_metadata: { download_url: second } } = await over(call, 'b', again)
  const open = await begun(wire, second)
  await once(open.body, 'data')
  open.body.pause()
  await wire.engine.close()
  await t.rejects(async () => { for await (const _ of open.body) { /* what is left */ } }, 'nor one whose engine closes')
  const store = openStore(path)
  t.match(store.all('SELECT DISTINCT operation FROM operation_file_parts'), [{ operation: again }], 'no parts are left of what was deleted')
  store.close()
})

t.test('an archive of a Hindsight server brings hidden facts and histories in its own form', async t => {
  const wire = openEngine(t)
  const { call } = wire
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.', document_id: 'd1' }, { content: 'Carol plays the cello.', document_id: 'd2' }] })
  const { body: { items: [memory] } } = await call('GET', 'b/memories/list?document_id=d2')
  await call('PATCH', `b/memories/${memory.id}`, { state: 'invalidated', reason: 'wrong' })
  await call('POST', 'b/mental-models', { id: 'mm', name: 'M', source_query: 'Who?' })
  const { body: { operation_id: id } } = await call('POST', 'b/transfer/export')
  const { body } = await begun(wire, (await over(call, 'b', id)).result_metadata.download_url)
  const files = unzip(await buffer(body), 1e6)
  t.match(JSON.parse(files.get(HIDDEN)!.toString()), [{ document_id: 'd2', text: 'Carol plays the cello.', invalidation_reason: 'wrong', chunk_index: 0, metadata: {} }])
  const zip = zipInMemory()
  for (const [name, bytes] of files) {
    const value = JSON.parse(bytes.toString()) as Record<string, unknown>
    // as the server writes it: maps as text, and what is hidden in its table alone
    const own = name.startsWith('documents/') ? { ...value, invalidated: undefined }
      : name === HIDDEN ? [{ ...(value as unknown as object[])[0], metadata: '{"src":"chat"}' }]
        : name === 'mental_model_history.json' ? [{ mental_model_id: 'mm', content: '{"previous_content":"before","previous_reflect_response":null}', changed_at: '2024-05-01T00:00:00Z' }]
          : value
    zip.add(name, Buffer.from(JSON.stringify(own)))
  }
  const { body: { operation_id: restored } } = await call('POST', 'c/transfer/import', ...form('file', 'a.zip', zip.end()))
  t.match(await over(call, 'c', restored), { status: 'completed', result_metadata: { facts_imported: 2 } })
  t.match((await call('GET', 'c/memories/list')).body, { total: 1 })
  t.match((await call('GET', 'c/memories/list?state=invalidated')).body.items, [{ text: 'Carol plays the cello.', invalidation_reason: 'wrong', document_id: 'd2', metadata: { src: 'chat' } }])
  t.match((await call('GET', 'c/mental-models/mm/history')).body, [{ previous_content: 'before', changed_at: /^2024-05-01/ }])
})

t.test('a memory that is deleted while its bank is exported is in no archive: the export is made again', async t => {
  const { call, path } = openEngine(t)
  await call('POST', 'b/memories', { items: [{ content: 'The key is under the mat.' }, { content: 'Anna likes tea.' }] })
  const { body: { items: [{ id }] } } = await call<{ items: [{ id: string }] }>('GET', 'b/memories/list?q=mat')
  const { body: { operation_id: operation } } = await call('POST', 'b/transfer/export')
  await over(call, 'b', operation)
  const store = openStore(path)
  t.teardown(() => store.close())
  const first = new ExportFile(store, 'b', operation)
  first.data(Buffer.from('The key is under the mat.'))
  t.equal((await call('DELETE', `b/memories/${id}`)).status, 200)
  t.throws(() => first.keep('b.zip'), /deleted while the bank was exported/)

  const again = new ExportFile(store, 'b', operation)
  again.data(Buffer.from('Anna likes tea.'))
  const key = again.keep('b.zip')
  const parts: Buffer[] = []
  for await (const part of findExport(store, key)!.parts()) parts.push(part)
  t.equal(Buffer.concat(parts).toString(), 'Anna likes tea.')
})

t.test('an archive tells what a mental model was made of, and its import keeps the memories alone, of either engine', async t => {
  const wire = openWithChat(t, ({ messages }) => messages.at(-1)!.content.includes('[') ? 'About the deep sea.' : '')
  await wire.call('POST', 'b/memories', { items: [{ content: 'The sea is deep.' }] })
  const { body: { operation_id: made } } = await wire.call('POST', 'b/mental-models', { id: 'mm', name: 'M', source_query: 'What of the sea?' })
  await over(wire.call, 'b', made)
  const { body: { operation_id: id } } = await wire.call('POST', 'b/transfer/export')
  const archive = await buffer((await begun(wire, (await over(wire.call, 'b', id)).result_metadata.download_url)).body)
  const files = unzip(archive, 1e6)
  const [row] = JSON.parse(files.get('mental_models.json')!.toString()) as [{ reflect_response: { based_on: { memories: [{ id: string, text: string }] } } }]
  const { memories } = row.reflect_response.based_on
  t.match(memories, [{ text: 'The sea is deep.' }])

  const [models, directives] = [[{ id: 'mm', text: 'About the deep sea.' }], [{ id: 'x', name: 'tone', content: 'Be brief.' }]]
  const foreign = { based_on: { 'world': memories, 'mental-models': models, 'directives': directives } }
  for (const [name, response] of [['own', row.reflect_response], ['foreign', foreign]] as const) {
    const zip = zipInMemory()
    const changed: Readonly<Record<string, object>> = {
      'mental_models.json': { ...row, reflect_response: response },
      'mental_model_history.json': { mental_model_id: 'mm', content: { previous_content: 'Before.', previous_reflect_response: response } }
    }
    for (const [file, bytes] of files) {
      zip.add(file, changed[file] === undefined ? bytes : Buffer.from(JSON.stringify([changed[file]])))
    }
    const { call, path } = openEngine(t, { path: () => join(t.testdirName, name, 'memory.db') })
    const { body: { operation_id: restored } } = await call('POST', 'c/transfer/import', ...form('file', 'a.zip', zip.end()))
    t.match(await over(call, 'c', restored), { status: 'completed' })
    const told = [(await call('GET', 'c/mental-models/mm')).body.reflect_response, (await call('GET', 'c/mental-models/mm/history')).body[0].previous_reflect_response]
    const kind = name === 'own' ? 'memories' : 'world'
    for (const { based_on: based } of told) t.match(based[kind], [{ id: memories[0].id, text: 'The sea is deep.' }], name)
    if (name === 'foreign') t.match(told[0].based_on, { 'mental-models': [{ text: 'About the deep sea.' }], 'directives': [{ content: 'Be brief.' }] })
    const store = openStore(path)
    t.same(store.all(`SELECT reflect_response FROM mental_models WHERE reflect_response LIKE '%sea is deep%'`), [])
    t.same(store.all(`SELECT change FROM mental_model_history WHERE change LIKE '%sea is deep%'`), [])
    store.close()
  }
})
