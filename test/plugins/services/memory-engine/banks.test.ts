import { setMaxListeners } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import memoryEngine from '../../../../plugins/services/memory-engine/index.js'
import { openEngine } from './support.js'

for (const { name, run } of pluginConformance(memoryEngine)) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('banks are made, listed, changed, measured and deleted as the wire says', async t => {
  const { engine, call, path } = openEngine(t)
  t.match((await call('GET', '/health')).body, { status: 'healthy', database: 'connected' })
  t.match((await call('GET', '/version')).body, { api_version: '1.1.0', features: { bank_config_api: true } })
  t.same((await call('DELETE', 'none')).body, { success: true, message: `Bank 'none' and all associated data deleted successfully`, deleted_count: 0 })
  t.match(await call('GET', 'none/stats'), { status: 404, body: { detail: `Bank 'none' not found` } })
  t.match(await call('GET', 'none/profile'), { status: 410, body: { detail: /GET \/v1\/default\/banks\/\{bank_id\}\/config/ } })
  t.same((await call('PUT', 'b%20ü:1', { name: 'One', mission: 'help', disposition: { skepticism: 1, literalism: 2, empathy: 5 }, odd: 1 })), {
    status: 200, headers: { 'content-type': 'application/json', 'x-ignored-params': 'odd' },
    body: { bank_id: 'b ü:1', name: 'One', disposition: { skepticism: 1, literalism: 2, empathy: 5 }, mission: 'help', background: 'help' }
  })
  t.match((await call('PATCH', 'b%20ü:1', { retain_mission: 'r' })).body, { name: 'One', mission: 'help' })
  t.match((await call('GET', '/v1/default/banks?q=ON')).body, { banks: [{ bank_id: 'b ü:1', fact_count: 0, display_alias: null }], total: 1, limit: 100, offset: 0 })
  t.match((await call('PATCH', 'b%20ü:1/config', { updates: { retain_mission: null, retain_chunk_size: 500 } })).body, {
    config: { retain_chunk_size: 500, retain_mission: null, reflect_mission: 'help' },
    overrides: { retain_chunk_size: 500, reflect_mission: 'help', disposition_empathy: 5 }
  })
  for (const updates of [
    { consolidation_llm_batch_size: 0 }, { consolidation_max_memories_per_round: 0.5 }, { retain_strategies: { a: 'x'.repeat(100_001) } }
  ]) t.match(await call('PATCH', 'b%20ü:1/config', { updates }), { status: 400, body: { detail: /^Invalid value for '/ } }, Object.keys(updates).join())
  t.match(await call('PATCH', 'b%20ü:1/config', { updates: { no_such: 1 } }), { status: 400, body: { detail: /^Unknown configuration fields: \['no_such'\]/ } })
  t.match(await call('PATCH', 'b%20ü:1/config', { updates: { disposition_empathy: 9 } }), { status: 400 })
  t.same((await call('DELETE', 'b%20ü:1/config')).body.overrides, {})
  t.match((await call('GET', 'b%20ü:1/stats')).body, { total_nodes: 0, total_links: 0, nodes_by_fact_type: {}, last_memory_write_at: null })
  const { body: series } = await call('GET', 'b%20ü:1/stats/memories-timeseries?period=1d')
  t.match(series, { trunc: 'hour', buckets: { length: 24 } })
  t.match(await call('GET', 'b%20ü:1/stats/memories-timeseries?period=2y'), { status: 400 })
  t.match(await engine.status(), { reachable: true, version: '1.1.0', banks: 1, steps: { vectors: 'there is none' } })
  t.match((await call('DELETE', 'b%20ü:1')).body, { deleted_count: 0 })
  t.same((await call('GET', '/v1/default/banks')).body.banks, [])
  t.equal(statSync(path).mode & 0o777, 0o600, 'the owner’s alone')
})

t.test('what its clients left before its turn is not begun, and holds nothing up', async t => {
  const { engine, call } = openEngine(t)
  await call('PUT', 'b', {})
  const long = call('POST', 'b/memories', { items: Array.from({ length: 5000 }, (_, i) => ({ content: `long ${i}` })) })
  const client = new AbortController()
  setMaxListeners(0, client.signal) // one for each call
  const left = Array.from({ length: 20 }, (_, i) => engine.request({
    method: 'POST', path: '/v1/default/banks/b/memories', query: '', headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ items: [{ content: `left ${i}` }] })), signal: client.signal
  }))
  const ends = Promise.allSettled(left)
  await new Promise(resolve => { setImmediate(resolve) })
  client.abort(new Error('the client left'))
  t.ok((await ends).every(({ status }) => status === 'rejected'))
  t.match(await long, { status: 200 })
  t.match((await call('GET', 'b/memories/list?limit=1')).body, { total: 5000 })
})

t.test('a large body goes to the engine in pieces, whether it comes whole or bit by bit, and one that breaks off leaves nothing', async t => {
  const { engine, call } = openEngine(t)
  const text = 'word '.repeat(400_000)
  const body = (id: string): Buffer => Buffer.from(JSON.stringify({ items: [{ content: text, document_id: id }] }))
  const post = (sent: Buffer | Readable) => engine.request({
    method: 'POST', path: '/v1/default/banks/b/memories', query: '', headers: { 'content-type': 'application/json' }, body: sent,
    signal: new AbortController().signal
  })
  const sizes: number[] = []
  let [inTurn, mostInTurn] = [0, 0]
  const { postMessage } = Worker.prototype
  t.teardown(() => { Worker.prototype.postMessage = postMessage })
  Worker.prototype.postMessage = function (this: Worker, message: { readonly bytes?: Uint8Array }, ...rest: []) {
    const size = message.bytes?.buffer.byteLength ?? 0
    sizes.push(size)
    mostInTurn = Math.max(mostInTurn, inTurn += size)
    setImmediate(() => { inTurn = 0 })
    postMessage.call(this, message, ...rest)
  }
  t.equal((await post(body('whole'))).status, 200)
  t.equal((await post(Readable.from([body('bits').subarray(0, 1_500_000), body('bits').subarray(1_500_000)]))).status, 200)
  const all = body('crumbs')
  const crumbs = Array.from({ length: Math.ceil(all.length / 9000) }, (_, i) => all.subarray(i * 9000, (i + 1) * 9000))
  t.equal((await post(Readable.from(crumbs))).status, 200)
  t.ok(Math.max(...sizes) <= 256 * 1024 && sizes.length > 12, `pieces of at most ${Math.max(...sizes)} bytes`)
  t.ok(mostInTurn <= 256 * 1024, `${mostInTurn} bytes in one turn of the event loop`)
  for (const id of ['whole', 'bits', 'crumbs']) t.equal((await call('GET', `b/documents/${id}`)).body.original_text, text)
  const broken = new PassThrough()
  const answer = post(broken)
  broken.write(body('broken').subarray(0, 1_000_000))
  broken.destroy(new Error('the line is cut'))
  await t.rejects(answer, { message: 'the line is cut' })
  t.match((await call('GET', 'b/documents')).body, { total: 3 })
})

t.test('what cannot be read is a 422 that says where, and unknown paths and methods answer as the server’s do', async t => {
  const { call } = openEngine(t)
  const detail = async (body: unknown): Promise<unknown> => (await call('PATCH', 'x/config', body)).body.detail
  t.match(await detail({}), [{ type: 'missing', loc: ['body', 'updates'], msg: 'Field required', input: {} }])
  t.match(await detail({ updates: 7 }), [{ type: 'dict_type', loc: ['body', 'updates'], input: 7 }])
  t.match(await detail(Buffer.from('{"a":')), [{ type: 'json_invalid', loc: ['body', Number], ctx: { error: String } }])
  t.match(await detail(undefined), [{ type: 'missing', loc: ['body'], input: null }])
  t.match(await call('PUT', 'x', { name: 5, disposition: { skepticism: 9, literalism: 1 } }), {
    status: 422, body: { detail: [{ type: 'string_type', loc: ['body', 'name'] }, { type: 'less_than_equal', ctx: { le: 5 } }, { type: 'missing', loc: ['body', 'disposition', 'empathy'] }] }
  })
  t.match(await call('GET', '/v1/default/banks?limit=x&nice=1'), { status: 422, body: { detail: [{ type: 'int_parsing', loc: ['query', 'limit'], input: 'x' }] } })
  t.match(await call('GET', '/v1/default/banks?nice=1'), { status: 200, headers: { 'x-ignored-params': 'nice' } })
  t.match(await call('GET', 'x/nothing'), { status: 404, body: { detail: 'Not Found' } })
  t.match(await call('GET', 'a%2Fb/stats'), { status: 404, body: { detail: 'Not Found' } })
  t.match(await call('GET', '%zz/stats'), { status: 404 })
  t.match(await call('POST', 'x/stats'), { status: 405, headers: { allow: 'GET' }, body: { detail: 'Method Not Allowed' } })
  t.match(await call('GET', 'x/stats/?a=1', undefined, { host: 'here:1' }), { status: 307, headers: { location: 'http://here:1/v1/default/banks/x/stats?a=1' } })
  t.match(await call('PUT', 'x'.repeat(193), {}), { status: 400 })
})

t.test('a database that cannot be used fails each request with its reason, and is used once it can be', async t => {
  const path = join(t.testdir(), 'memory.db')
  writeFileSync(path, 'no database at all, and long enough to be taken for none of its headers'.repeat(20))
  const { engine, call } = openEngine(t, { path: () => path })
  await t.rejects(call('GET', '/health'), /not a database/)
  let status = await engine.status()
  // a busy machine may take longer to open it than a status waits
  while (/within \d+ s/.test(status.detail ?? '')) status = await engine.status()
  t.match(status, { reachable: false, degraded: true, detail: /not a database/ })
  writeFileSync(path, '')
  t.match(await call('GET', '/health'), { status: 200 })
  await engine.close()
  t.match(await call('PUT', 'again', {}), { status: 200 }, 'a request opens what was closed')
})
