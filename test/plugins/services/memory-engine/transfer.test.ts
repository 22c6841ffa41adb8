import { join } from 'node:path'
import t from 'tap'
import { readArchive } from '../../../../plugins/services/memory-engine/transfer/read-archive.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { unzip } from '../../../../plugins/services/memory-engine/transfer/zip.js'
import { form, openWithChat, over, zipInMemory } from './models-support.js'
import { bytesOf, killedNow, MANY, openEngine, openInThread, openLarge, type Wire } from './support.js'

async function download (engine: Pick<Wire['engine'], 'request'>, path: string): Promise<Buffer> {
  const { status, headers, ...answer } = await engine.request({ method: 'GET', path, query: '', headers: {}, body: null, signal: new AbortController().signal })
  if (status !== 200 || headers['content-type'] !== 'application/zip') throw new Error(`${status}`)
  return await bytesOf(answer)
}

/** Exports as `path` says, and fetches the archive. */
async function exported ({ engine, call }: Pick<Wire, 'call'> & { readonly engine: Pick<Wire['engine'], 'request'> }, bank: string, path: string): Promise<Buffer> {
  const { status, body: { operation_id: id } } = await call('POST', `${bank}/${path}`)
  if (status !== 202) throw new Error(`${status}`)
  const { result_metadata: result } = await over(call, bank, id)
  const bytes = await download(engine, result.download_url)
  if (bytes.length !== result.byte_size) throw new Error('cut off')
  // as a client that takes the key for one name
  const key = result.download_url.replace('/v1/default/files/download/', '')
  if (!bytes.equals(await download(engine, `/v1/default/files/download/${encodeURIComponent(key)}`))) throw new Error('another file')
  return bytes
}

async function filled (wire: Wire): Promise<void> {
  await wire.call('PUT', 'b', { name: 'Bee', reflect_mission: 'help' })
  await wire.call('POST', 'b/memories', {
    items: [
      { content: 'Alice works at Acme.', context: 'work', metadata: { src: 'chat' }, document_id: 'd1', tags: ['t'], entities: [{ text: 'Acme' }], timestamp: '2024-05-01' },
      { content: 'Carol plays the cello.', document_id: 'd2' }
    ]
  })
  await wire.call('POST', 'b/directives', { name: 'short', content: 'Be brief.', priority: 3 })
  await wire.call('POST', 'b/webhooks', { url: 'https://example.com/', secret: 's3cret' })
  const { body: { operation_id: id } } = await wire.call('POST', 'b/knowledge-base/pages', { name: 'P', source_query: 'What about Carol?', trigger: {} })
  await over(wire.call, 'b', id)
}

async function filledWithNames ({ call }: Pick<Wire, 'call'>): Promise<void> {
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.' }] })
  await call('POST', 'b/aliases', { alias: 'hive' })
  await call('POST', 'b/aliases', { alias: 'bee', primary: true })
}

t.test('documents go from one bank to another with all that was made of them, and a repetition skips, replaces or doubles', async t => {
  const wire = openWithChat(t, () => 'x')
  await filled(wire)
  const { call } = wire
  const hidden = (await call('GET', 'b/memories/list?document_id=d2')).body.items[0].id
  await call('PATCH', `b/memories/${hidden}`, { state: 'invalidated', reason: 'wrong' })
  const archive = await exported(wire, 'b', 'document-transfer/export')
  t.match(JSON.parse(unzip(archive, 1e6).get('manifest.json')!.toString()), { schema_version: 1, archive_type: 'documents', source_bank_id: 'b', document_count: 2, fact_count: 1 })
  await call('PUT', 'c', {})
  const imports = async (query: string, bytes = archive): Promise<Record<string, unknown>> => {
    const { status, body } = await call('POST', `c/document-transfer${query}`, ...form('file', 'a.zip', bytes))
    t.equal(status, 202)
    return (await over(call, 'c', body.operation_id)).result_metadata
  }
  t.match(await imports(''), { documents_imported: 2, facts_imported: 2, documents_skipped: 0 })
  t.match((await call('GET', 'c/documents/d1')).body, { original_text: 'Alice works at Acme.', document_metadata: { src: 'chat' }, tags: ['t'], retain_params: { context: 'work' } })
  t.match((await call('GET', 'c/memories/list?document_id=d1')).body.items, [{ text: 'Alice works at Acme.', entities: 'Acme', context: 'work', mentioned_at: /^2024-05-01/ }])
  t.match((await call('GET', 'c/memories/list?state=invalidated')).body.items, [{ text: 'Carol plays the cello.', invalidation_reason: 'wrong' }], 'what was hidden stays hidden')
  t.match(await imports('?on_conflict=skip'), { documents_imported: 0, documents_skipped: 2, skipped_document_ids: ['d1', 'd2'] })
  t.match(await imports('?on_conflict=replace'), { documents_imported: 2 })
  t.match((await call('GET', 'c/documents')).body, { total: 2 })
  t.match(await imports('?on_conflict=new-id'), { documents_imported: 2, remapped_document_ids: { d1: /^[0-9a-f-]{36}$/ } })
  t.match((await call('GET', 'c/documents')).body, { total: 4 })
  t.match(await imports('', await exported(wire, 'b', 'document-transfer/export?document_id=d1')), { documents_skipped: 1 })
  t.match(await call('POST', 'b/document-transfer/export?document_id=d1&include_observations=true'), { status: 400 })
  t.match(await call('GET', 'b/document-transfer'), { status: 410, body: { detail: /document-transfer\/export/ } })
})

t.test('documents and memories bring what happened to them: into a bank that is there, a new one and a clone', async t => {
  const { call, engine } = openEngine(t)
  await call('POST', 'b/memories', { items: [{ content: 'Paris is in Spain.', document_id: 'd', tags: ['t'] }] })
  await call('POST', 'b/memories', { items: [{ content: 'Rome is in Italy.', document_id: 'd', update_mode: 'append' }] })
  const { body: { items } } = await call('GET', 'b/memories/list')
  const [rome, paris] = items.map(({ id }: { id: string }) => id)
  await call('PATCH', `b/memories/${paris}`, { text: 'Paris is in France.', context: 'maps' })
  await call('PATCH', `b/memories/${paris}`, { text: 'Paris lies in France.' })
  await call('PATCH', `b/memories/${rome}`, { text: 'Rome lies in Italy.' })
  await call('PATCH', `b/memories/${rome}`, { state: 'invalidated', reason: 'seldom' })
  await call('PATCH', 'b/documents/d', { observation_scopes: [['t']] })
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers of the wire
  const told = async (bank: string): Promise<any> => {
    const listed = async (state: string): Promise<object[]> => (await call('GET', `${bank}/memories/list?state=${state}`)).body.items
      .map(({ id: _, updated_at: __, chunk_id: ___, ...row }: Record<string, unknown>) => row)
    const { body: { items: [{ id }] } } = await call('GET', `${bank}/memories/list`)
    const { body: { items: [{ id: hidden }] } } = await call('GET', `${bank}/memories/list?state=invalidated`)
    const { body: { items: events } } = await call('GET', `${bank}/documents/d/history`)
    return {
      valid: await listed('valid'), hidden: await listed('invalidated'), changes: (await call('GET', `${bank}/memories/${id}/history`)).body,
      events: events.map(({ fact_id: fact, ...line }: Record<string, string>) => ({ ...line, fact: [id, hidden].indexOf(fact) }))
    }
  }
  const before = await told('b')
  t.same(before.changes.map((change: Record<string, unknown>) => change.previous_text), ['Paris is in France.', 'Paris is in Spain.'])
  t.same(before.events.map(({ kind, fact }: Record<string, unknown>) => [kind, fact]), [
    ['fact_invalidated', 1], ['fact_edited', 1], ['fact_edited', 0], ['fact_edited', 0], ['append', -1], ['retain', -1]
  ])
  const documents = await exported({ call, engine }, 'b', 'document-transfer/export')
  const bank = await exported({ call, engine }, 'b', 'transfer/export')
  const brought = async (into: string, path: string, archive: Buffer): Promise<void> => {
    const { body: { operation_id: id } } = await call('POST', `${into}/${path}`, ...form('file', 'a.zip', archive))
    t.match(await over(call, into, id), { status: 'completed' })
  }
  await over(call, 'b', (await call('POST', 'b/clone?target_bank_id=twin')).body.operation_id)
  t.same(await told('twin'), before)
  await call('PUT', 'c', {})
  await brought('c', 'document-transfer', documents)
  t.same(await told('c'), before, 'where its memories have other ids')
  await brought('c', 'document-transfer?on_conflict=replace', documents)
  t.same(await told('c'), before, 'and has no lines of what it replaced')
  await brought('n', 'transfer/import', bank)
  t.same(await told('n'), before)
  for (const name of ['b', 'c', 'n', 'twin']) await call('DELETE', name)
  await brought('b', 'transfer/import', bank)
  t.same(await told('b'), before)
  t.match((await call('GET', `b/memories/${paris}/history`)).body, { length: 2 }, 'which have their ids where those are free')

  const old = zipInMemory()
  for (const [name, bytes] of unzip(bank, 1e6)) {
    const { events: _, observation_scopes: __, ...document } = JSON.parse(bytes.toString())
    old.add(name, name.startsWith('documents/') ? Buffer.from(JSON.stringify({ ...document, facts: document.facts.map(({ changes: ___, ...fact }: Record<string, unknown>) => fact) })) : bytes)
  }
  await brought('old', 'transfer/import', old.end())
  t.match((await call('GET', 'old/documents/d/history')).body, { total: 1, items: [{ kind: 'retain', facts_added: 1 }] }, 'an archive that does not tell them is one retain')
})

t.test('observations that were hidden come hidden, with why, when and what they said before: into a bank that is there, a new one and a clone', async t => {
  const { call, engine } = openWithChat(t, ({ messages }) => {
    const [id] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(messages.at(-1)!.content.split('NEW FACTS')[1]!)!
    return JSON.stringify({ creates: [{ text: 'Alice works.', source_fact_ids: [id] }] })
  })
  await call('POST', 'b/memories', { items: [{ content: 'Alice works at Acme.', document_id: 'd' }] })
  await over(call, 'b', (await call('POST', 'b/consolidate')).body.operation_id)
  const { body: { items: [{ id }] } } = await call('GET', 'b/memories/list?type=observation')
  await call('PATCH', `b/memories/${id}`, { text: 'Alice works much.' })
  await call('PATCH', `b/memories/${id}`, { state: 'invalidated', reason: 'seldom' })
  const hidden = async (bank: string): Promise<Record<string, unknown>> => {
    const { body: { items } } = await call('GET', `${bank}/memories/list?type=observation&state=all`)
    const [{ updated_at: _, source_memory_ids: sources, ...row }] = items
    return { ...row, id: items.length, facts: sources.length }
  }
  const before = await hidden('b')
  t.match(before, { text: 'Alice works much.', state: 'invalidated', invalidation_reason: 'seldom', invalidated_at: String, edited_at: String, id: 1, facts: 1 })
  const documents = await exported({ call, engine }, 'b', 'document-transfer/export?include_observations=true')
  const bank = await exported({ call, engine }, 'b', 'transfer/export')
  t.match(JSON.parse(unzip(bank, 1e6).get('manifest.json')!.toString()), { observation_count: 0 }, 'a server reads what it knows, and counts that')
  const brought = async (into: string, path: string, archive: Buffer): Promise<Record<string, unknown>> =>
    (await over(call, into, (await call('POST', `${into}/${path}`, ...form('file', 'a.zip', archive))).body.operation_id)).result_metadata
  await call('PUT', 'c', {})
  t.match(await brought('c', 'document-transfer', documents), { observations_imported: 1, observations_skipped: 0 })
  t.match(await brought('n', 'transfer/import', bank), { observations_imported: 1, observations_skipped: 0 })
  await over(call, 'b', (await call('POST', 'b/clone?target_bank_id=twin')).body.operation_id)
  for (const name of ['c', 'n', 'twin']) {
    t.same(await hidden(name), before, name)
    const { body: { items: [{ id: own }] } } = await call('GET', `${name}/memories/list?type=observation&state=invalidated`)
    t.match((await call('POST', `${name}/memories/recall`, { query: 'Alice works much' })).body.results, { length: 1, 0: { text: 'Alice works at Acme.' } })
    await call('PATCH', `${name}/memories/${own}`, { state: 'valid' })
    t.match((await call('GET', `${name}/memories/${own}/history`)).body, { length: 1, 0: { previous_text: 'Alice works.' } })
    t.match((await call('POST', `${name}/memories/recall`, { query: 'much' })).body.results, [{ text: 'Alice works much.' }], 'and can be brought back')
  }
  const older = zipInMemory()
  for (const [name, bytes] of unzip(bank, 1e6)) if (name !== 'invalidated_observations.json') older.add(name, bytes)
  t.match(await brought('older', 'transfer/import', older.end()), { facts_imported: 1, observations_imported: 0 })
})

t.test('a large archive comes into a bank slice by slice: others are served meanwhile, and it is undone until it is committed', async t => {
  const folder = t.testdir()
  const wire = openInThread(t, folder)
  const { call, statements } = wire
  const items = Array.from({ length: 600 }, (_, i) => ({ content: `Note ${i} of the sea.`, document_id: `d${i}`, tags: ['t'], entities: [{ text: `E${i % 7}` }] }))
  await call('POST', 'b/memories', { items })
  const archive = await exported(wire, 'b', 'document-transfer/export')
  const [{ progress }] = (await call('GET', 'b/operations?type=export_documents')).body.operations
  t.match(progress, { stage: 'exporting', total: 600 })
  t.ok(progress.processed > 0 && progress.processed < 600, `at the last look ${progress.processed} documents were exported`)
  await call('POST', 'c/memories', { items: [{ content: 'An older note of the sea.', document_id: 'd5' }] })
  const begun = async (): Promise<string> => (await call('POST', 'c/document-transfer?on_conflict=replace', ...form('file', 'a.zip', archive))).body.operation_id
  const stage = async (id: string, wanted: string): Promise<void> => {
    while ((await call('GET', `c/operations/${id}`)).body.progress?.stage !== wanted) { /* it works */ }
  }
  const before = (await call('GET', 'c/memories/list')).body
  const left = await begun()
  await stage(left, 'importing')
  t.match(await call('DELETE', `c/operations/${left}`), { status: 200 })
  t.same((await call('GET', 'c/memories/list')).body, before, 'a cancelled one changes nothing')
  const store = openStore(join(folder, 'memory', 'memory.db'))
  t.teardown(() => store.close())
  t.same(store.all('SELECT key FROM operation_files WHERE operation = ?', [left]), [], 'nor does it keep the archive')
  t.match((await call('POST', 'c/memories/recall', { query: 'sea' })).body.results, { length: 1 })

  const from = statements()
  const id = await begun()
  let [most, last, served, isOver] = [0, statements(), 0, false]
  const watch = async (): Promise<void> => {
    for (; !isOver; served++) {
      last = statements()
      t.equal((await call('POST', 'b/memories/recall', { query: 'note', max_tokens: 0 })).status, 200)
      most = Math.max(most, statements() - last)
    }
  }
  const watched = watch()
  await stage(id, 'committing')
  t.match(await call('DELETE', `c/operations/${id}`), { status: 409, body: { detail: /is being committed/ } })
  t.match(await over(call, 'c', id), { status: 'completed', result_metadata: { documents_imported: 600, facts_imported: 600 } })
  isOver = true
  await watched
  const all = statements() - from
  t.ok(most < 1500 && all > 7500 && served > 20, `of ${all} statements at most ${most} at once; ${served} recalls meanwhile`)
  t.match((await call('GET', 'c/memories/list?limit=1')).body, { total: 600 })
  t.match((await call('GET', 'c/documents/d5')).body, { original_text: 'Note 5 of the sea.' })
  t.match((await call('GET', 'c/documents/d5/history')).body, { total: 1 }, 'and has no history but that')
  t.match((await call('GET', 'c/entities?limit=100')).body, { total: 7 })
  t.match((await call('POST', 'c/memories/recall', { query: 'note 77', tags: ['t'], tags_match: 'all_strict' })).body.results[0], { text: 'Note 77 of the sea.' })
})

t.test('a large document replaces one as large in slices: others are served meanwhile, and a killed engine goes on with it', async t => {
  const { call, folder, seen, statements, ...wire } = await openLarge(t, () => ({ document_id: 'log', entities: [{ text: 'Captain' }] }))
  const archive = await exported({ ...wire, call }, 'b', 'document-transfer/export')
  const older = Array.from({ length: MANY }, (_, i) => ({ content: `Boat ${i} lies in the harbour.`, document_id: 'log' }))
  await call('POST', 'c/memories', { items: older })
  const { body: { operation_id: id } } = await call('POST', 'c/document-transfer?on_conflict=replace', ...form('file', 'a.zip', archive))
  const boats = (store: typeof seen): number => store.get<{ count: number }>(`SELECT count(*) AS count FROM memories WHERE text LIKE 'Boat %'`)!.count
  while ((await call('GET', `c/operations/${id}`)).body.progress?.stage !== 'committing') { /* it works */ }
  let [most, served, killed] = [0, 0, null as string | null]
  for (let isOver = false; !isOver; served++) {
    const last = statements()
    t.equal((await call('POST', 'other/memories/recall', { query: 'Alice' })).status, 200)
    most = Math.max(most, statements() - last)
    if (killed === null && boats(seen) < MANY) killed = killedNow(folder)
    isOver = !['pending', 'processing'].includes((await call('GET', `c/operations/${id}`)).body.status)
  }
  t.ok(most < 3000 && served > 20, `at most ${most} statements at once; ${served} recalls meanwhile`)
  const isReplaced = async ({ call }: Pick<Wire, 'call'>, store: typeof seen): Promise<void> => {
    t.match(await over(call, 'c', id), { status: 'completed', result_metadata: { documents_imported: 1, facts_imported: MANY } })
    t.match((await call('GET', 'c/documents')).body, { total: 1, items: [{ id: 'log', memory_unit_count: MANY }] })
    t.match((await call('GET', 'c/documents/log/chunks')).body, { total: MANY })
    t.equal(boats(store), 0)
    t.equal(store.get<{ count: number }>('SELECT count(*) AS count FROM text_3_docsize')!.count, MANY, 'each has its index row')
    t.same(store.all(`SELECT 1 FROM banks WHERE bank_id LIKE '/import/%'`), [])
    t.same(store.all('PRAGMA foreign_key_check'), [])
  }
  await isReplaced({ call }, seen)
  const left = openStore(join(killed!, 'memory', 'memory.db'))
  t.teardown(() => left.close())
  t.ok(boats(left) > 0 && boats(left) < MANY, `${boats(left)} of ${MANY} were left`)
  await isReplaced(openInThread(t, killed!), left)
})

t.test('an archive is checked whole before it changes anything', async t => {
  const wire = openWithChat(t, () => 'x')
  await filled(wire)
  const { call } = wire
  const archive = await exported(wire, 'b', 'document-transfer/export')
  const files = unzip(archive, 1e6)
  const with_ = (name: string, text: string | null): Buffer => {
    const zip = zipInMemory()
    for (const [path, bytes] of files) if (path !== name) zip.add(path, bytes)
    if (text !== null) zip.add(name, Buffer.from(text))
    return zip.end()
  }
  const flipped = Buffer.from(archive)
  flipped[60] = flipped[60]! ^ 0xff
  const bad: ReadonlyArray<readonly [Buffer, RegExp]> = [
    [Buffer.from('no archive'), /not a ZIP archive/], [archive.subarray(0, archive.length - 30), /not a ZIP archive/], [flipped, /damaged/],
    [with_('manifest.json', null), /manifest\.json is missing/], [with_('manifest.json', '{"schema_version":9}'), /schema version 9/],
    [with_('documents/000001.json', '{'), /000001\.json is not JSON/], [with_('documents/000001.json', null), /document_count 2, and it holds 1/],
    [with_('documents/000001.json', '{"id":"x","facts":[{"text":5}]}'), /000001\.json: facts\[0\]/],
    [with_('documents/000001.json', '{"id":"x","events":[{"kind":"born","created_at":"2024-05-01"}]}'), /events\[0\]\.kind must be one of retain, /],
    [with_('documents/000001.json', '{"id":"x","events":[{"kind":"retain"}]}'), /events\[0\]\.created_at must be an ISO time/],
    [with_('documents/000001.json', '{"id":"x","facts":[{"fact_type":"world","text":"x","changes":[{"changed_at":"2024-05-01","kind":"edited"}]}]}'), /changes\[0\]\.previous_text must be a text/],
    // keys of another meaning, as another program may have them
    [with_('documents/000001.json', '{"id":"x","events":{"retain":1}}'), /: events must be a list/],
    [with_('documents/000001.json', '{"id":"x","events":["retain"]}'), /: events\[0\] must be an object/],
    [with_('documents/000001.json', '{"id":"x","facts":[{"fact_type":"world","text":"x","changes":"many"}]}'), /facts\[0\]\.changes must be a list/],
    [with_('documents/000001.json', '{"id":"x","facts":[{"fact_type":"world","text":"x","changes":[{"changed_at":"2024-05-01","kind":"moved","previous_text":"y"}]}]}'), /changes\[0\]\.kind must be one of edited/],
    [with_('observations.json', '[{"text":"x","changes":[7]}]'), /observations\.json\[0\]\.changes\[0\] must be an object/],
    [with_('invalidated_observations.json', '[{"text":"x"}]'), /invalidated_observations\.json\[0\]\.invalidated_at must be an ISO time/],
    [with_('documents/000001.json', '{"id":"d1"}'), /document 'd1' twice/],
    [with_('history/audit_log.json', '[{"action":"retain","transport":"http"}]'), /audit_log\.json\[0\]\.started_at must be an ISO time/],
    [with_('history/audit_log.json', '[{"action":7}]'), /audit_log\.json\[0\]\./],
    [with_('documents/000001.json', `{"id":"x","facts":[${'{},'.repeat(8_000_000)}{}]}`), /more than 16000000 values; export its documents in parts/],
    [with_('documents/000001.json', JSON.stringify({ id: `,"\\${',['.repeat(8_000_000)}`, created_at: 'soon' })), /created_at must be an ISO time/],
    [with_('documents/000001.json', '{"id":"x","created_at":"soon"}'), /created_at must be an ISO time/]
  ]
  await call('PUT', 'c', {})
  for (const [bytes, why] of bad) t.match(await call('POST', 'c/document-transfer', ...form('file', 'a.zip', bytes)), { status: 400, body: { detail: why } }, String(why))
  const large = Buffer.alloc(100 * 1024 * 1024 + 1)
  t.match(await call('POST', 'c/document-transfer', large), { status: 400, body: { detail: /larger than 100 MB; export its documents in parts/ } })
  t.match(await call('POST', 'c/document-transfer', ...form('other', 'a.zip', archive)), { status: 422 })
  t.match(await call('POST', 'c/document-transfer', archive, { 'content-type': 'application/zip' }), { status: 422 })
  t.match(await call('POST', 'c/document-transfer?on_conflict=maybe', ...form('file', 'a.zip', archive)), { status: 400 })
  t.match((await call('GET', 'c/documents')).body, { total: 0 })
  t.match((await call('GET', 'c/operations')).body, { total: 0 })
  t.throws(() => unzip(archive, 100), /more than 100 bytes unpacked/, 'nor is more unpacked than it may hold')
})

t.test('a bank is exported, restored and cloned whole; its webhooks come without their secrets and switched off', async t => {
  const wire = openWithChat(t, ({ messages }) => messages.at(-1)!.content.includes('cello') ? 'Carol plays the cello.' : 'x')
  await filled(wire)
  const { call } = wire
  const archive = await exported(wire, 'b', 'transfer/export?include_history=true')
  t.notMatch([...unzip(archive, 1e6).values()].join(), /s3cret/)
  t.match(await readArchive(archive), { type: 'bank', rows: { mental_models: [{ name: 'P' }], directives: [{ name: 'short' }] }, knowledgePages: [{ name: 'P' }] })
  const sameAs = async (bank: string): Promise<void> => {
    t.match((await call('GET', `${bank}/config`)).body.overrides, { reflect_mission: 'help' })
    t.match((await call('GET', `${bank}/memories/list`)).body, { total: 2 })
    t.match((await call('GET', `${bank}/directives`)).body, { items: [{ name: 'short', priority: 3 }] })
    t.match((await call('GET', `${bank}/knowledge-base/tree`)).body, { roots: [{ name: 'P', description: 'What about Carol?' }] })
    t.match((await call('GET', `${bank}/mental-models?detail=content`)).body, { items: [{ content: 'Carol plays the cello.' }] })
    t.match((await call('GET', `${bank}/webhooks`)).body, { items: [{ url: 'https://example.com/', enabled: false }] })
  }
  interface Line { readonly action: string, readonly started_at: string, readonly metadata: { readonly imported?: true } }
  const linesOf = async (bank: string): Promise<readonly Line[]> => (await call('GET', `${bank}/audit-logs?limit=500`)).body.items
  const brought = async (bank: string): Promise<readonly Line[]> =>
    (await linesOf(bank)).filter(({ metadata }) => metadata.imported === true)
  t.match(await call('POST', 'b/transfer/import', ...form('file', 'a.zip', archive)), { status: 409, body: { detail: /already exists/ } })
  const { body: restored } = await call('POST', 'new%20bank/transfer/import', ...form('file', 'a.zip', archive))
  t.match(await over(call, 'new%20bank', restored.operation_id), { status: 'completed', operation_type: 'import_bank', result_metadata: { bank_id: 'new bank', mental_models_imported: 1 } })
  await sameAs('new%20bank')
  const told = ({ action, started_at: at }: Line): string => `${at} ${action}`
  const [record, lines] = [await brought('new%20bank'), (await linesOf('b')).map(told)]
  t.ok(record.length > 3 && record.every(line => lines.includes(told(line))), 'the record comes with it, and says that it was brought')
  const { body: { operation_id: bare } } = await call('POST', 'bare/transfer/import?include_history=false', ...form('file', 'a.zip', archive))
  t.match(await over(call, 'bare', bare), { status: 'completed' })
  t.same(await brought('bare'), [], 'unless it is not wanted')
  const { body: cloned } = await call('POST', 'b/clone?target_bank_id=twin')
  t.match(await over(call, 'b', cloned.operation_id), { status: 'completed', operation_type: 'clone_bank' })
  await sameAs('twin')
  t.match(await call('POST', 'b/clone?target_bank_id=twin'), { status: 409 })
  t.match(await call('POST', 'b/clone'), { status: 422 })
  t.match(await call('POST', 'b/transfer/import?mode=eat', ...form('file', 'a.zip', archive)), { status: 400 })
  t.match(await call('POST', 'x/transfer/import', ...form('file', 'a.zip', await exported(wire, 'b', 'document-transfer/export'))), { status: 400, body: { detail: /Not a whole-bank archive/ } })
  const { body: merged } = await call('POST', 'b/transfer/import?mode=merge', ...form('file', 'a.zip', archive))
  t.match(await over(call, 'b', merged.operation_id), { status: 'completed', result_metadata: { documents_skipped: 2 } })
  t.same(await brought('b'), [], 'no line comes twice')
  await over(call, 'twin', (await call('POST', 'twin/transfer/export')).body.operation_id)
  const { download_url: url } = (await over(call, 'twin', (await call('POST', 'twin/transfer/export')).body.operation_id)).result_metadata
  await call('DELETE', 'twin/documents/d1')
  t.match(await call('GET', url), { status: 404 }, 'an exported copy goes with the first memory that is deleted')
})

t.test('other names of a bank come with its archive where they are asked for, but for those that are taken', async t => {
  const wire = openEngine(t)
  const { call } = wire
  await filledWithNames(wire)
  const archive = await exported(wire, 'b', 'transfer/export')
  t.match(await readArchive(archive), { aliases: [{ alias: 'bee', primary: true }, { alias: 'hive', primary: false }] })
  t.notOk(unzip(await exported(wire, 'b', 'transfer/export?include_bank_config=false'), 1e6).has('bank_aliases.json'))
  const namesOf = async (bank: string): Promise<unknown> => (await call('GET', `${bank}/aliases`)).body.aliases
  const restored = async (path: string, bytes = archive): Promise<Record<string, unknown>> => {
    const { status, body } = await call('POST', path, ...form('file', 'a.zip', bytes))
    t.equal(status, 202, JSON.stringify(body))
    return (await over(call, path.split('/')[0]!, body.operation_id)).result_metadata
  }
  t.strictSame((await restored('plain/transfer/import')).aliases_imported, undefined)
  t.same(await namesOf('plain'), [], 'an archive claims no names by itself')
  t.match(await call('POST', 'plain/transfer/import?target_bank_id=bee', ...form('file', 'a.zip', archive)), { status: 409, body: { detail: /'b' already exists/ } })
  t.match(await call('POST', 'plain/clone?target_bank_id=hive'), { status: 409 }, 'no bank is made under the other name of one')
  const wanted = 'transfer/import?include_aliases=true'
  t.match(await restored(`early/${wanted}`), { aliases_imported: 0, aliases_skipped: 2 }, 'what leads to a bank goes on to')
  t.same(await namesOf('b'), [{ alias: 'bee', primary: true }, { alias: 'hive', primary: false }])
  await call('DELETE', 'b')
  await call('PUT', 'hive', {})
  t.match(await restored(`late/${wanted}`), { aliases_imported: 1, aliases_skipped: 1 })
  t.same(await namesOf('bee'), [{ alias: 'bee', primary: true }])
  await call('DELETE', 'hive')
  await call('PATCH', 'late/aliases/bee', { primary: false })
  await call('POST', 'late/aliases', { alias: 'first', primary: true })
  t.match(await restored(`late/${wanted}&mode=merge`), { aliases_imported: 1, aliases_skipped: 1 })
  t.match(await namesOf('late'), [{ alias: 'first', primary: true }, { alias: 'bee' }, { alias: 'hive' }], 'and the bank stays known by the name that it has')
  await call('DELETE', 'late')
  t.match(await restored(`private__bo/${wanted}`), { aliases_imported: 0, aliases_skipped: 2 }, 'what is one agent’s alone has one name')

  const claims = (aliases: readonly unknown[]): Buffer => {
    const zip = zipInMemory()
    for (const [name, bytes] of unzip(archive, 1e6)) zip.add(name, name === 'bank_aliases.json' ? Buffer.from(JSON.stringify(aliases)) : bytes)
    return zip.end()
  }
  for (const [row, why] of [['bee', /\[0\] must be an object/], [{ alias: 7, primary: true }, /\[0\]\.alias must be a text/], [{ alias: 'bee' }, /\[0\]\.primary must be true or false/]] as const) {
    t.match(await call('POST', 'odd/transfer/import', ...form('file', 'a.zip', claims([row]))), { status: 400, body: { detail: why } }, String(why))
  }
  const names = ['shared', 'agents', 'project__web', 'private__bo', 'odd', 'x/y', ' ', 'n'.repeat(10_000), 'twice', 'twice']
  t.match(await restored(`odd/${wanted}`, claims(names.map(alias => ({ alias, primary: true })))), { aliases_imported: 1, aliases_skipped: 9 }, 'nothing that no client could give it')
  const many = (from: number, count: number): Buffer => claims(Array.from({ length: count }, (_, i) => ({ alias: `n${from + i}`, primary: false })))
  t.match(await call('POST', 'many/transfer/import', ...form('file', 'a.zip', many(0, 10_001))), { status: 400, body: { detail: /at most 10000 names/ } })
  t.match(await restored(`many/${wanted}`, many(0, 9_999)), { aliases_imported: 9_999, aliases_skipped: 0 })
  t.match(await restored(`many/${wanted}&mode=merge`, many(9_999, 3)), { aliases_imported: 1, aliases_skipped: 2 }, 'and no more than a bank may have')
})

t.test('what an archive says of webhooks, mental models and settings is read as a request is', async t => {
  const tried: string[] = []
  const wire = openWithChat(t, () => 'x', {}, errand => {
    if (errand.to === 'web') tried.push(errand.url)
    return Promise.resolve({ status: 204, body: Buffer.alloc(0) })
  })
  await filled(wire)
  const { call } = wire
  const files = unzip(await exported(wire, 'b', 'transfer/export'), 1e6)
  const changed = (changes: Readonly<Record<string, (row: Record<string, unknown>) => object>>): Buffer => {
    const zip = zipInMemory()
    for (const [name, bytes] of files) {
      const change = changes[name]
      const rows = change === undefined ? [] : JSON.parse(bytes.toString()) as Record<string, unknown>[]
      zip.add(name, change === undefined ? bytes : Buffer.from(JSON.stringify(rows.map(change))))
    }
    return zip.end()
  }
  const restored = async (bank: string, bytes: Buffer): Promise<Record<string, unknown>> =>
    await over(call, bank, (await call('POST', `${bank}/transfer/import`, ...form('file', 'a.zip', bytes))).body.operation_id)
  t.match(await restored('odd', changed({
    'webhooks.json': row => ({ ...row, event_types: ['retain.completed'], http_config: { method: 'DELETE', params: null } }),
    'mental_models.json': row => ({ ...row, max_tokens: 'many', trigger: { tag_groups: ['x'] } }),
    'directives.json': row => ({ ...row, priority: 'high' })
  })), { status: 'completed' })
  const { body: { items: [webhook] } } = await call('GET', 'odd/webhooks')
  t.match(webhook, { enabled: false, http_config: { method: 'POST', params: {} } })
  t.match((await call('GET', 'odd/mental-models?detail=content')).body, { items: [{ max_tokens: 2048, trigger: { tag_groups: null } }] })
  await call('PATCH', `odd/webhooks/${webhook.id}`, { enabled: true })
  await call('POST', 'odd/memories', { items: [{ content: 'Hello there.' }] })
  for (;;) {
    const { body: { items: [delivery] } } = await call('GET', `odd/webhooks/${webhook.id}/deliveries`)
    if (delivery.status !== 'delivered') continue
    t.same(tried, ['https://example.com/'])
    break
  }
  const folders = (count: number): Array<Record<string, unknown>> =>
    Array.from({ length: count }, (_, n) => ({ id: `kf-${n}`, kind: 'folder', name: `${n}`, parent_id: n === 0 ? null : `kf-${n - 1}` })).toReversed()
  const withFolders = (count: number): Buffer => {
    const zip = zipInMemory()
    for (const [name, bytes] of files) zip.add(name, name === 'knowledge_pages.json' ? Buffer.from(JSON.stringify(folders(count))) : bytes)
    return zip.end()
  }
  t.match(await restored('tree', withFolders(32)), { status: 'completed', result_metadata: { knowledge_pages_imported: 32 } })
  t.match(await restored('deep', withFolders(33)), { status: 'failed', retry_count: 0, error_message: /at most 32 deep/ })
  t.match(await restored('bad', changed({ 'banks.json': row => ({ ...row, config: '{' }) })), {
    status: 'failed', retry_count: 0, error_message: /banks\.json: config must be an object/
  })
})

t.test('a template has what a bank is like, and is applied as a whole or not at all', async t => {
  const { call } = openWithChat(t, () => 'x')
  const template = {
    version: '1', bank: { reflect_mission: 'm', retain_chunk_size: 500 }, directives: [{ name: 'd', content: 'c' }],
    mental_models: [{ id: 'mm', name: 'M', source_query: 'q?' }]
  }
  const created = { config_applied: true, mental_models_created: ['mm'], mental_models_updated: [], directives_created: ['d'], directives_updated: [] }
  t.match((await call('POST', 'b/import?dry_run=true', template)).body, { ...created, bank_id: 'b', operation_ids: { length: 0 }, dry_run: true })
  t.match(await call('GET', 'b/config'), { status: 404 }, 'a dry run makes nothing')
  t.match((await call('POST', 'b/import', template)).body, { ...created, operation_ids: [String], dry_run: false })
  t.match((await call('POST', 'b/import', template)).body, { mental_models_created: { length: 0 }, mental_models_updated: ['mm'], directives_created: { length: 0 }, directives_updated: ['d'] })
  const { body } = await call('GET', 'b/export')
  t.match(body, { version: '1', bank: { reflect_mission: 'm', retain_chunk_size: 500, retain_mission: null }, mental_models: [{ id: 'mm', max_tokens: 2048 }], directives: [{ name: 'd' }] })
  t.match(await call('POST', 'c/import', body), { status: 200 }, 'what was exported can be imported')
  for (const [bad, status] of [
    [{ ...template, version: '2' }, 400], [{ ...template, bank: { nonsense: 1 } }, 400], [{ ...template, bank: { retain_chunk_size: 1 } }, 400],
    [{ ...template, directives: [{ name: 'd', content: 'a' }, { name: 'd', content: 'b' }] }, 400], [{ directives: [] }, 422], [{ ...template, directives: [{}] }, 422]
  ] as const) t.match(await call('POST', 'x/import', bad), { status })
  t.match(await call('GET', 'x/config'), { status: 404 })
  t.match((await call('GET', '/v1/bank-template-schema')).body, { title: 'BankTemplateManifest', $defs: { BankTemplateConfig: { properties: { disposition_empathy: { anyOf: [{ maximum: 5 }, {}] } } } } })
})

t.test('an archive of more files than the old end of a ZIP can count is read back', t => {
  const zip = zipInMemory()
  for (let n = 0; n < 65_536; n += 1) zip.add(`f${n}`, Buffer.from(''))
  const files = unzip(zip.end(), 1000)
  t.equal(files.size, 65_536)
  t.end()
})
