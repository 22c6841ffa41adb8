import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import t from 'tap'
import { chunkText } from '../../../../plugins/services/memory-engine/retain/chunk-text.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { over } from './models-support.js'
import { openEngine, type Wire } from './support.js'

const retain = (call: Wire['call'], bank: string, ...items: readonly (string | object)[]) =>
  call('POST', `${bank}/memories`, { items: items.map(item => typeof item === 'string' ? { content: item } : item) })
const list = async (call: Wire['call'], bank: string, query = '') => (await call('GET', `${bank}/memories/list?${query}`)).body
const texts = async (call: Wire['call'], bank: string, query = ''): Promise<string[]> =>
  (await list(call, bank, query)).items.map((item: { text: string }) => item.text)

t.test('what is retained is answered once it is durable, and listed as the wire shows it', async t => {
  const { call } = openEngine(t)
  t.same(await retain(call, 'b', {
    content: 'Alice works at Acme Corp in Berlin.', context: 'chat about work', metadata: { src: 'chat' }, document_id: 'doc-1', odd: 1,
    tags: ['team', 'user:alice', 'team'], timestamp: '2024-05-01T02:00:00+02:00', entities: [{ text: 'Alice' }, { text: 'Acme  Corp', type: 'org' }, { text: 'alice' }]
  }), {
    status: 200, headers: { 'content-type': 'application/json', 'x-ignored-params': 'items.0.odd' },
    body: {
      success: true, bank_id: 'b', items_count: 1, async: false, operation_ids: null, operation_id: null,
      usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, cached_tokens: 0, thoughts_tokens: 0 }
    }
  })
  const { items: [row], total } = await list(call, 'b')
  t.equal(total, 1)
  t.match(row, {
    text: 'Alice works at Acme Corp in Berlin.', context: 'chat about work', date: '2024-05-01T00:00:00+00:00', fact_type: 'world', document_id: 'doc-1',
    mentioned_at: '2024-05-01T00:00:00+00:00', occurred_start: null, entities: 'Alice, Acme Corp', chunk_id: 'b_doc-1_0', proof_count: 1,
    tags: ['team', 'user:alice'], metadata: { src: 'chat' }, state: 'valid', source_memory_ids: { length: 0 }
  })
  t.match((await call('GET', `b/memories/${row.id}`)).body, { id: row.id, type: 'world', entities: ['Alice', 'Acme Corp'], observation_scopes: null })
  t.match((await call('GET', 'b/entities')).body, { items: [{ mention_count: 1, last_seen: '2024-05-01T00:00:00+00:00', metadata: {} }, {}], total: 2 })
  const [{ id }] = (await call('GET', 'b/entities')).body.items
  t.match((await call('GET', `b/entities/${id}`)).body, { id, observations: { length: 0 } })
  t.match((await call('GET', 'b/entities/graph')).body, { edges: [{ data: { linkType: 'cooccurrence', weight: 1 } }], total_entities: 2 })
  t.same((await call('GET', 'b/tags')).body, { items: [{ tag: 'team', count: 1 }, { tag: 'user:alice', count: 1 }], total: 2, limit: 100, offset: 0 })
  t.same((await call('GET', 'b/tags?q=user:*')).body.items, [{ tag: 'user:alice', count: 1 }])
  t.match((await call('GET', 'b/stats')).body, { total_nodes: 1, total_documents: 1, nodes_by_fact_type: { world: 1 }, pending_consolidation: 1 })
  t.match((await call('GET', 'b/stats/memories-timeseries')).body.buckets.at(-1), { world: 1 })
  t.match((await retain(call, 'b')).body, { items_count: 0 })
})

t.test('a retain that cannot be read is a 422 that says where', async t => {
  const { call } = openEngine(t)
  const problem = async (...items: object[]) => (await retain(call, 'b', ...items)).body.detail
  t.match(await problem({ content: ' ' }), [{ type: 'value_error', loc: ['body', 'items', 0, 'content'] }])
  t.match(await problem({}), [{ type: 'missing', loc: ['body', 'items', 0, 'content'] }])
  t.match(await problem({ content: 'x', metadata: { a: 1 } }), [{ type: 'string_type', loc: ['body', 'items', 0, 'metadata', 'a'] }])
  t.match(await problem({ content: 'x', timestamp: 'yesterday' }), [{ loc: ['body', 'items', 0, 'timestamp'] }])
  t.match(await problem({ content: 'x', update_mode: 'merge' }), [{ type: 'literal_error', ctx: { expected: `'replace' or 'append'` } }])
  t.match(await problem({ content: [{ type: 'text', text: 'a' }, { type: 'film' }] }), [{ loc: ['body', 'items', 0, 'content', 1, 'type'] }, {}])
  const large = Buffer.alloc(33 * 1024 * 1024, ' ')
  large.write('{"items":[{"content":"x"}]}')
  t.match(await call('POST', 'b/memories', large), { status: 413, body: { detail: /larger than 32 MB/ } }, 'before it is parsed')
  const many = Array.from({ length: 100_001 }, () => ({ content: 'x' }))
  t.match((await retain(call, 'b', ...many)).body.detail, [{ loc: ['body', 'items'], msg: /at most 100000 items/, input: 100_001 }])
  t.match(await problem({ content: 'x', tags: ['t'.repeat(513)] }), [{ type: 'string_too_long', loc: ['body', 'items', 0, 'tags', 0], input: 't'.repeat(200) }])
  t.match(await problem({ content: 'x', context: 'c'.repeat(40_000) }), [{ loc: ['body', 'items', 0, 'content'], msg: /at most 32768 characters together/ }])
  t.equal((await call('GET', 'b/stats')).status, 404, 'nothing was made')
  await retain(call, 'b', { content: [{ type: 'text', text: 'a' }, { type: 'image', source: { media_type: 'image/png', data: 'AA==' }, filename: 'x.png' }] })
  t.same(await texts(call, 'b'), ['a\n\n[image x.png]'])
})

t.test('a NUL is left out of what is kept and asked for, and nothing behind it is lost', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'before\0behind', document_id: 'a\0b', tags: ['t\0ag'], metadata: { key: 'c\0d' } })
  t.match((await list(call, 'b')).items, [{ text: 'beforebehind', document_id: 'ab', tags: ['tag'], metadata: { key: 'cd' } }])
  t.match((await list(call, 'b', 'q=%00nowhere')).items, { length: 0 }, 'not all of them')
  t.match(await retain(call, 'b', '\0'), { status: 422 }, 'no text is left')
})

t.test('a repeated retain makes no second memory, and readers of other tags have their own', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'Tea is hot.', timestamp: '2024-01-01' })
  await retain(call, 'b', { content: ' Tea  is hot. ', timestamp: '2025-01-01' }, 'Tea is hot.')
  await retain(call, 'b', { content: 'Tea is hot.', tags: ['agent:a'] }, { content: 'Tea is hot.', tags: ['agent:a'] })
  t.same(await texts(call, 'b'), ['Tea is hot.', 'Tea is hot.'])
  t.same((await list(call, 'b')).items.map((item: { tags: string[] }) => item.tags).sort(), [[], ['agent:a']])
  const ids = async (): Promise<string[]> => (await list(call, 'b', 'document_id=d')).items.map((item: { id: string }) => item.id)
  await retain(call, 'b', { content: 'One text.', document_id: 'd' })
  const [first] = await ids()
  await retain(call, 'b', { content: 'One text.', document_id: 'd' })
  t.same(await ids(), [first], 'a document that is replaced by itself')
  await retain(call, 'b', { content: 'Two texts.', document_id: 'd', update_mode: 'append' })
  t.equal((await ids()).length, 2)
  await retain(call, 'b', { content: 'Another text.', document_id: 'd' })
  t.same(await texts(call, 'b', 'document_id=d'), ['Another text.'])
})

t.test('a large retain holds no other call up, and of one whose client leaves what was not begun is not kept', async t => {
  const { call, engine } = openEngine(t)
  const items = Array.from({ length: 2000 }, (_, i) => ({ content: `${i}. ${'word '.repeat(20)}` }))
  await call('POST', 'other/memories', { items: [{ content: 'A dog sleeps.' }] })
  const order: string[] = []
  const large = call('POST', 'b/memories', { items }).then(answer => { order.push('retain'); return answer })
  const beside = call('POST', 'other/memories/recall', { query: 'dog' }).then(answer => { order.push('recall'); return answer })
  t.match(await beside, { status: 200, body: { results: [{ text: 'A dog sleeps.' }] } })
  t.match(await large, { status: 200, body: { success: true, items_count: 2000, operation_id: null } })
  t.same(order, ['recall', 'retain'])
  t.equal((await call('GET', 'b/memories/list?limit=1')).body.total, 2000)

  const leaving = new AbortController()
  const left = engine.request({
    method: 'POST', path: '/v1/default/banks/c/memories', query: '', headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ items })), signal: leaving.signal
  })
  // the bank is made before the first slice is kept
  for (let total; total === undefined || total === 0;) total = (await call('GET', 'c/memories/list?limit=1')).body.total
  leaving.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  const { total: kept } = (await call('GET', 'c/memories/list?limit=1')).body
  t.ok(kept > 0 && kept < 2000, `${kept} were kept`)
  t.equal((await call('GET', 'c/memories/list?limit=1')).body.total, kept, 'and no more come')
  await call('POST', 'c/memories', { items })
  t.equal((await call('GET', 'c/memories/list?limit=1')).body.total, 2000, 'asked again, none is there twice')
})

t.test('of two large retains of one document at the same time the later one stands, and nothing of the other', async t => {
  const { call } = openEngine(t)
  const itemsOf = (word: string): object[] => Array.from({ length: 40 }, (_, i) => ({ content: `${i}. ${`${word} `.repeat(500)}`, document_id: 'd' }))
  const answers = await Promise.all(['first', 'second'].map(word => call('POST', 'b/memories', { items: itemsOf(word) })))
  t.same(answers.map(({ status }) => status), [200, 200])
  const { original_text: text } = (await call<{ original_text: string }>('GET', 'b/documents/d')).body
  t.same([/first/g, /second/g].map(word => text.match(word)?.length ?? 0), [0, 40 * 500])
})

/** A text of so many sentences, each of its own. */
const longText = (word: string, sentences: number): string => Array.from({ length: sentences }, (_, i) => `${word} number ${i} ends here. `).join('')

t.test('one very large text holds no other call up, is one document, and keeps the memories whose text stays', async t => {
  const { call, engine, path } = openEngine(t)
  await call('POST', 'other/memories', { items: [{ content: 'A dog sleeps.' }] })
  const order: string[] = []
  const put = (content: string, more = {}) => call('POST', 'b/memories', { items: [{ content, document_id: 'book', ...more }] })
  const large = put(longText('first', 40_000)).then(answer => { order.push('retain'); return answer })
  const beside = call('POST', 'other/memories/recall', { query: 'dog' }).then(answer => { order.push('recall'); return answer })
  t.match(await beside, { body: { results: [{ text: 'A dog sleeps.' }] } })
  t.match(await large, { status: 200, body: { items_count: 1, operation_id: null } })
  t.same(order, ['recall', 'retain'])
  const document = async () => (await call<{ original_text: string, text_length: number, memory_unit_count: number }>('GET', 'b/documents/book')).body
  t.equal((await document()).original_text, longText('first', 40_000))
  t.match((await call('GET', 'b/documents/book/history')).body, { total: 1, items: [{ kind: 'retain', facts_added: (await document()).memory_unit_count }] })

  const idOf = async (words: string): Promise<string> => (await call('POST', 'b/memories/recall', { query: words })).body.results[0].id
  const [start, end] = [await idOf('first number 33'), await idOf('first number 39999')]
  // every piece is as long as before, and all but the first say the same
  t.match(await put(longText('first', 40_000).replaceAll(/first(?= number \d\d )/g, 'third')), { status: 200 })
  t.equal(await idOf('first number 39999'), end, 'it stays')
  t.not(await idOf('third number 33'), start, 'and what is new has an id of its own')
  await put('and more', { update_mode: 'append' })
  t.ok((await document()).original_text.endsWith('ends here. \n\nand more'))
  t.match(await put('A short one.'), { status: 200 })
  t.match(await document(), { original_text: 'A short one.', memory_unit_count: 1 }, 'what it does not say any more is gone')

  const leaving = new AbortController()
  const left = engine.request({
    method: 'POST', path: '/v1/default/banks/c/memories', query: '', headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ items: [{ content: longText('left', 40_000), document_id: 'left' }] })), signal: leaving.signal
  })
  for (let total; total === undefined || total === 0;) total = (await call('GET', 'c/memories/list?limit=1')).body.total
  leaving.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  const { original_text: kept } = (await call<{ original_text: string }>('GET', 'c/documents/left')).body
  t.ok(kept.length > 0 && longText('left', 40_000).startsWith(kept), 'of one whose client leaves the beginning stays, with its text')

  // closed between two pieces, the database is as a killed engine leaves it
  const cut = call('POST', 'd/memories', { items: [{ content: longText('cut', 40_000), document_id: 'cut' }] })
  for (let total; total === undefined || total === 0;) total = (await call('GET', 'd/memories/list?limit=1')).body.total
  const ended = t.rejects(cut)
  await engine.close()
  await ended
  const store = openStore(path)
  t.match(store.get(`SELECT original_text AS text FROM documents WHERE document_id = 'cut'`), { text: null })
  store.exec(`CREATE TRIGGER full BEFORE UPDATE ON documents BEGIN SELECT RAISE(FAIL, 'the disk is full'); END`)
  store.close()
  t.match(await call('GET', 'd/memories/list?limit=1'), { status: 200 }, 'where that cannot be written the rest can be read')
  await engine.close()
  const free = openStore(path)
  free.exec('DROP TRIGGER full')
  free.close()
  const { original_text: begun } = (await call<{ original_text: string }>('GET', 'd/documents/cut')).body
  t.ok(begun.length > 0 && longText('cut', 40_000).startsWith(begun), 'an engine that starts again tells what was kept')
})

t.test('an asynchronous retain and one that is waited for do not mix in a document', async t => {
  const { call } = openEngine(t)
  const itemsOf = (word: string): object[] => [{ content: longText(word, 20_000), document_id: 'd' }]
  const words = async (): Promise<readonly number[]> => {
    const { original_text: text } = (await call<{ original_text: string }>('GET', 'b/documents/d')).body
    return [/first/g, /second/g].map(word => text.match(word)?.length ?? 0)
  }
  const { body: { operation_id: first } } = await call('POST', 'b/memories', { items: itemsOf('first'), async: true })
  // the document is begun by the first operations of many
  while ((await call('GET', 'b/documents/d')).status === 404) await new Promise(resolve => { setImmediate(resolve) })
  t.equal((await call('POST', 'b/memories', { items: itemsOf('second') })).status, 200)
  t.match(await over(call, 'b', first), { status: 'completed' })
  t.same(await words(), [0, 20_000], 'the later one stands')

  const { body: { operation_id: again } } = await call('POST', 'b/memories', { items: itemsOf('first'), async: true })
  t.match(await over(call, 'b', again), { status: 'completed' })
  t.same(await words(), [20_000, 0])
  const { body: { operation_id: added } } = await call('POST', 'b/memories', { items: [{ ...itemsOf('second')[0], update_mode: 'append' }], async: true })
  t.match(await over(call, 'b', added), { status: 'completed' })
  t.same(await words(), [20_000, 20_000], 'and what is added is added whole')
})

t.test('a text is cut at its paragraphs and sentences, and its pieces are the text again', async t => {
  const { call } = openEngine(t)
  const sentence = (i: number): string => `Sentence number ${i} tells of the sea. `
  const long = Array.from({ length: 300 }, (_, i) => sentence(i) + (i % 20 === 19 ? '\n\n' : '')).join('')
  for (const text of [long, 'x'.repeat(7000), '😀'.repeat(3000), `${'a'.repeat(3000)}   \n\n  `, ' \n'.repeat(3000) + 'end', 'one']) {
    const pieces = chunkText(text, 3000)
    t.equal(pieces.join(''), text)
    t.ok(pieces.every(piece => piece.trim() !== '' && !/^[\udc00-\udfff]/.test(piece)))
  }
  await retain(call, 'b', { content: long, document_id: 'd' })
  const rows = await list(call, 'b')
  t.equal(rows.total, chunkText(long, 3000).length)
  t.ok(rows.items.every(({ text }: { text: string }) => text.length <= 3000 && text.endsWith('.')))
  await call('PATCH', 'c/config', {})
  await call('PUT', 'c', { retain_chunk_size: 200 })
  await retain(call, 'c', { content: long, document_id: 'd' })
  const { items: before } = await list(call, 'c', 'limit=1000')
  t.ok(before.length > rows.total)
  await retain(call, 'c', { content: long.slice(0, -20), document_id: 'd' })
  const { items: after } = await list(call, 'c', 'limit=1000')
  const known = new Set(before.map(({ id }: { id: string }) => id))
  t.equal(after.length, before.length)
  t.equal(after.filter(({ id }: { id: string }) => !known.has(id)).length, 1, 'of a document that is replaced, memories stay whose text does')
})

t.test('a memory is invalidated, comes back, is edited with its history, and is deleted for good', async t => {
  const { call, engine, path } = openEngine(t)
  await retain(call, 'b', { content: 'Paris is in Spain.', document_id: 'd', entities: [{ text: 'Paris' }] }, { content: 'The zebra-secret word.', document_id: 'd' })
  const { items } = await list(call, 'b')
  const paris = items.find(({ text }: { text: string }) => text.startsWith('Paris')).id
  const secret = items.find(({ text }: { text: string }) => text.startsWith('The')).id
  t.match((await call('PATCH', `b/memories/${paris}`, { text: 'Paris is in France.' })).body, { text: 'Paris is in France.', edited_at: String })
  t.match((await call('GET', `b/memories/${paris}/history`)).body, [{ previous_text: 'Paris is in Spain.', changed_at: String }])
  t.match((await call('PATCH', `b/memories/${paris}`, { state: 'invalidated', reason: 'wrong' })).body, { state: 'invalidated', invalidation_reason: 'wrong', entities: { length: 0 } })
  t.match(await call('GET', `b/memories/${paris}/history`), { status: 404, body: { detail: `Memory unit '${paris}' not found` } })
  t.same(await texts(call, 'b'), ['The zebra-secret word.'])
  t.same(await texts(call, 'b', 'state=invalidated'), ['Paris is in France.'])
  t.match(await call('PATCH', `b/memories/${paris}`, { text: 'x' }), { status: 409 })
  t.match((await call('PATCH', `b/memories/${paris}`, { state: 'valid' })).body, { state: 'valid', entities: ['Paris'] })
  t.match(await call('PATCH', `b/memories/${paris}`, { fact_type: 'rumour' }), { status: 400 })
  t.match(await call('GET', 'b/memories/no-id'), { status: 400, body: { detail: `Invalid memory_id: 'no-id' is not a valid UUID` } })
  t.match((await call('DELETE', `b/memories/${secret}`)).body, { success: true, deleted_count: 1 })
  t.match(await call('DELETE', `b/memories/${secret}`), { status: 404 })
  t.match(await call('GET', `b/memories/${secret}`), { status: 404 })
  t.equal((await call('GET', 'b/documents/d')).body.original_text, 'Paris is in Spain.', 'its part of the document went with it')
  await engine.close()
  const store = openStore(path)
  t.teardown(() => store.close())
  t.same(store.all(`SELECT count(*) AS count FROM text_1_docsize`), [{ count: 1 }])
  t.notOk(readFileSync(path).includes('zebra'), 'its bytes are overwritten')
})

t.test('lists are filtered by type, words, tags, times, documents and entities', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'red', tags: ['a'], timestamp: '2024-01-01' }, { content: 'green', tags: ['a', 'b'], timestamp: '2024-02-01', entities: [{ text: 'G' }] },
    { content: 'blue', timestamp: '2024-03-01' }, { content: 'no time', tags: ['c'], timestamp: 'unset', document_id: 'x' })
  t.same(await texts(call, 'b'), ['blue', 'green', 'red', 'no time'])
  t.same(await texts(call, 'b', 'limit=1&offset=1'), ['green'])
  t.same(await texts(call, 'b', 'q=RE'), ['green', 'red'])
  t.same(await texts(call, 'b', 'type=experience'), [])
  t.same(await texts(call, 'b', 'document_id=x'), ['no time'])
  t.same(await texts(call, 'b', 'start_date=2024-01-15&end_date=2024-02-15'), ['green'])
  const [{ id }] = (await call('GET', 'b/entities')).body.items
  t.same(await texts(call, 'b', `entity_id=${id}`), ['green'])
  const modes = { any: ['blue', 'green', 'red'], any_strict: ['green', 'red'], all: ['blue', 'green'], all_strict: ['green'], exact: ['green'] }
  for (const [mode, expected] of Object.entries(modes)) t.same(await texts(call, 'b', `tags=a&tags=b&tags_match=${mode}`), expected, mode)
  t.match(await call('GET', 'b/memories/list?tags_match=some'), { status: 422 })
  t.match(await call('GET', 'b/memories/list?start_date=soon'), { status: 400 })
  t.match((await call('DELETE', 'b/memories?type=experience')).body, { message: `Cleared 0 memory unit(s) of type 'experience' from bank 'b'`, deleted_count: 0 })
  t.match((await call('DELETE', 'b/memories')).body, { message: `Cleared 4 memory unit(s) from bank 'b'`, deleted_count: 4 })
  t.match((await call('GET', 'b/stats')).body, { total_nodes: 0, total_documents: 0 })
  t.match((await call('DELETE', 'b')).body, { deleted_count: 0 })
})

t.test('a graph shows the newest memories with what ties them', async t => {
  const { call } = openEngine(t)
  await retain(call, 'b', { content: 'Ann meets Bo.', entities: [{ text: 'Ann' }, { text: 'Bo' }], tags: ['x'], document_id: 'd', timestamp: '2024-01-01' },
    { content: 'Ann sleeps, and tells a long dream of the sea.', entities: [{ text: 'Ann' }], tags: ['x'], document_id: 'd', update_mode: 'append', timestamp: '2024-01-01T12:00:00' },
    { content: 'Years later.', timestamp: '2026-01-01' })
  const { nodes, edges, table_rows: rows, total_units: total, limit } = (await call('GET', 'b/graph')).body
  t.same({ total, limit }, { total: 3, limit: 1000 })
  t.match(nodes[1].data, { label: 'Ann sleeps, and tells a long d...', entities: 'Ann', color: '#90caf9' })
  t.same(edges.map(({ data }: { data: { linkType: string } }) => data.linkType).sort(), ['document', 'entity', 'tag', 'temporal'])
  t.match(edges.find(({ data }: { data: { linkType: string } }) => data.linkType === 'temporal').data, { weight: 0.5, lineStyle: 'dashed' })
  t.match(rows[1], { document_id: 'd', chunk_id: 'b_d_1', fact_type: 'world', tags: ['x'], proof_count: 1 })
  t.match((await call('GET', 'b/graph?limit=1')).body, { nodes: { length: 1 }, edges: { length: 0 }, total_units: 3 })
  t.equal((await call('GET', 'b/graph?tags=x&document_id=d&chunk_id=b_d_0')).body.total_units, 1)
})

t.test('a body that does not end is refused by what came first, and bodies of all requests together have a bound', async t => {
  const { engine, call } = openEngine(t, { bodiesBytes: 120 * 1024 * 1024 })
  const chunk = Buffer.alloc(1024 * 1024, ' ')
  /** A body of so many MB that then ends, or waits for ever. */
  const body = (most: number, waits = false): { readonly sent: () => number, readonly stream: Readable } => {
    let sent = 0
    const stream = new Readable({
      highWaterMark: 1,
      read () {
        if (sent++ < most) this.push(chunk)
        else if (!waits) this.push(null)
      }
    })
    return { sent: () => sent, stream }
  }
  const ask = async (stream: Readable, signal = new AbortController().signal, path = 'b/memories'): Promise<{ readonly status: number, readonly headers: object, readonly body: string }> => {
    const answer = await engine.request({
      method: 'POST', path: `/v1/default/banks/${path}`, query: '', headers: { 'content-type': 'application/json' }, body: stream, signal
    })
    return { ...answer, body: (answer.body as Buffer).toString() }
  }
  const endless = body(Infinity)
  t.match(await ask(endless.stream), { status: 413, body: /larger than 32 MB/ })
  t.ok(endless.sent() <= 103 && endless.stream.destroyed, `${endless.sent()} MB were read`)
  t.match(await ask(body(Infinity).stream, undefined, 'b/document-transfer'), { status: 400, body: /larger than 100 MB/ })

  const leaves = new AbortController()
  const stalled = body(90, true)
  const first = ask(stalled.stream, leaves.signal)
  while (stalled.sent() < 90) await new Promise(resolve => { setImmediate(resolve) })
  const second = await ask(body(60).stream)
  t.match(second, { status: 503, headers: { 'retry-after': '1' }, body: /together already take up 120 MB/ })
  t.equal((await call('GET', '/version')).status, 200, 'what has no body goes on')
  leaves.abort(new Error('left'))
  await t.rejects(first, { message: 'left' })
  t.match(await ask(body(60).stream), { status: 413 }, 'there is room again')
})

t.test('where the disk takes nothing, recall goes on, also after a restart, and what waits is written when there is room', async t => {
  const logs: string[] = []
  const log = (_level: string, message: string): void => { logs.push(message) }
  const { call, engine, path } = openEngine(t, { log })
  const recalled = async (): Promise<void> => {
    t.match(await call('POST', 'b/memories/recall', { query: 'tea' }), { status: 200, body: { results: [{ text: 'Tea.' }] } })
  }
  const logged = async (message: RegExp): Promise<void> => { while (!logs.some(each => message.test(each))) await recalled() }
  await retain(call, 'b', 'Tea.')
  const store = openStore(path)
  t.teardown(() => store.close())
  for (const [name, what] of [['lines', 'INSERT ON audit_log'], ['states', 'UPDATE ON operations']] as const) {
    store.exec(`CREATE TRIGGER no_${name} BEFORE ${what} BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
  }
  const { body: { operation_id: id } } = await call('POST', 'b/memories', { items: [{ content: 'Coffee.' }], async: true })
  await logged(/operations .* cannot be begun/)
  await logged(/lines of the audit log .* wait/)
  t.notOk(logs.some(each => /thread .* failed/.test(each)), 'the thread goes on')
  await engine.close()
  logs.length = 0
  await logged(/operations .* cannot be begun/)
  await engine.close()
  store.exec('DROP TRIGGER no_lines; DROP TRIGGER no_states')
  t.match(await over(call, 'b', id), { status: 'completed' })
  t.match((await call('GET', 'b/audit-logs')).body.items, [{ action: 'retain' }])
})
