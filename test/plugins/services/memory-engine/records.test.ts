import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { form, over } from './models-support.js'
import { openEngine } from './support.js'

t.test('what was asked of a bank is on record without its texts, and a bank can do without', async t => {
  const { call, engine } = openEngine(t)
  await call('PUT', 'b', {})
  await call('POST', 'b/memories', { items: [{ content: 'A secret.' }] })
  const { body: { operation_id: id } } = await call('POST', 'b/memories', { items: [{ content: 'Another secret.' }], async: true })
  await over(call, 'b', id)
  await call('GET', 'b/memories/list')
  const { body } = await call('GET', 'b/audit-logs')
  t.same(body.items.map(({ action, transport }: Record<string, string>) => `${action} ${transport}`).toSorted(),
    ['create_bank http', 'retain http', 'retain http', 'retain system'])
  t.match(body.items[0], { id: String, bank_id: 'b', started_at: String, ended_at: String, duration_ms: Number, metadata: {} })
  t.match((await call('GET', 'b/audit-logs?action=retain&transport=http&limit=1')).body, { total: 2, items: { length: 1 } })
  t.match((await call('GET', 'b/audit-logs/stats')).body, { period: '7d', trunc: 'day', buckets: [{ actions: { create_bank: 1, retain: 3 }, total: 4 }] })
  t.match((await call('GET', `b/audit-logs/${body.items[0].id}`)).body, { request: null, response: null })
  t.notMatch(JSON.stringify(body), /secret/)
  t.match(await call('GET', 'b/audit-logs/x'), { status: 404 })
  t.match(await call('GET', 'b/audit-logs/stats?period=5y'), { status: 400 })
  await call('PATCH', 'b/config', { updates: { audit_log_enabled: false } })
  await call('POST', 'b/memories', { items: [{ content: 'Quiet.' }] })
  t.match((await call('GET', 'b/audit-logs?action=retain&transport=http')).body, { total: 2 })
  const { body: text } = await engine.request({ method: 'GET', path: '/metrics', query: '', headers: {}, body: null, signal: new AbortController().signal })
  t.match((text as Buffer).toString(), /^memory_memories 3$.*^memory_operations\{status="completed"\} 2$/ms)
})

t.test('files of text are retained in the background, and others are refused by name before anything is kept', async t => {
  const { call } = openEngine(t)
  const { status, body } = await call('POST', 'b/files/retain', ...form('files', 'n.md', Buffer.from('# Notes\nGrace met Heidi in Paris.'), 'text/markdown'))
  t.equal(status, 200)
  t.match(await over(call, 'b', body.operation_ids[0]), { status: 'completed', operation_type: 'file_convert_retain' })
  t.match((await call('GET', 'b/operations')).body.operations, [{ task_type: 'file_convert_retain', filename: 'n.md', document_id: /^file_/ }])
  t.match((await call('GET', 'b/documents?q=Heidi')).body, { total: 1, items: [{ id: /^file_/ }] })
  const bad: ReadonlyArray<readonly [string, Buffer, string, RegExp]> = [
    ['a.pdf', Buffer.from('%PDF-1.7'), 'application/pdf', /'a\.pdf' is not a text file/], ['a.txt', Buffer.from([104, 0, 105]), 'text/plain', /is not a text file/],
    ['a.txt', Buffer.from([0xff, 0xfe, 0x41]), 'text/plain', /not UTF-8/]
  ]
  for (const [name, bytes, type, why] of bad) t.match(await call('POST', 'b/files/retain', ...form('files', name, bytes, type)), { status: 422, body: { detail: [{ msg: why }] } }, name)
  t.match(await call('POST', 'b/files/retain', ...form('other', 'a.txt', Buffer.from('x'))), { status: 422 })
  t.equal((await call('GET', 'b/documents')).body.total, 1)
})

t.test('another name of a bank leads to it, belongs to one bank alone, and goes with it', async t => {
  const { call } = openEngine(t)
  await call('PUT', 'b', { name: 'Bee' })
  await call('PUT', 'c', {})
  t.match(await call('POST', 'b/aliases', { alias: 'bee', primary: true }), { status: 201, body: { bank_id: 'b', aliases: [{ alias: 'bee', primary: true }] } })
  await call('POST', 'bee/memories', { items: [{ content: 'Hello there.' }] })
  t.match((await call('GET', 'b/memories/list')).body, { total: 1 })
  for (const alias of ['bee', 'c', 'x/y', ' ']) t.match((await call('POST', 'c/aliases', { alias })).status, /400|409/, alias)
  t.match((await call('PATCH', 'b/aliases/bee', { primary: false })).body, { aliases: [{ primary: false }] })
  t.match(await call('DELETE', 'c/aliases/bee'), { status: 404 })
  await call('PUT', 'private__bo', {})
  await call('POST', 'private__bo/aliases', { alias: 'bo' })
  t.match(await call('GET', 'bo/stats'), { status: 404 }, 'what is one agent’s alone has one name')
  await call('DELETE', 'bee')
  t.match(await call('GET', 'bee/aliases'), { status: 404 })
})

t.test('a bank with 10,000 other names gets no more until one of them goes', async t => {
  const { call, path, engine } = openEngine(t)
  await call('PUT', 'b', {})
  await engine.close()
  const store = openStore(path)
  store.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
    INSERT INTO bank_aliases (alias, bank, created_at) SELECT 'alias ' || i, (SELECT seq FROM banks), 0 FROM n`)
  store.close()
  t.equal((await call('POST', 'b/aliases', { alias: 'the last' })).status, 201)
  t.match(await call('POST', 'b/aliases', { alias: 'one more' }), { status: 409, body: { detail: /has 10000 aliases[^]*delete one/ } })
  t.match(await call('GET', 'one%20more/stats'), { status: 404 })
  t.equal((await call('DELETE', 'b/aliases/alias%207')).status, 200)
  t.equal((await call('POST', 'b/aliases', { alias: 'one more' })).status, 201)
  t.equal((await call('PUT', 'c', {})).status, 200)
  t.equal((await call('POST', 'c/aliases', { alias: 'c too' })).status, 201, 'other banks have their own')
})
