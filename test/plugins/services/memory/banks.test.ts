import { chmod, readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import docs from '../../../../plugins/api/docs/index.js'
import { bounded, whole } from '../../../../plugins/api/memory/body.js'
import { engineRoutes } from '../../../../plugins/api/memory/engine-routes.js'
import { subgraphOf } from '../../../../plugins/api/memory/subgraph.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost } from './host.js'

t.test('the engine\'s own routes reach it as they are, and what it destroys, refuses or answers wrongly is told', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  fake.bank('b')

  await t.test('each reaches the engine at its own address, query and body as they came', async t => {
    for (const { method, url, target = url, body, confirmed } of engineRoutes) {
      if (confirmed === true) continue
      fake.seen.splice(0)
      const path = (of: string): string => of.replace(':id', 'id-1')
      await host.call(method, `/api/memory/banks/b${path(url)}?limit=3&q=a%20b`, body === true ? '{"query":  "x"}' : undefined)
      t.match(fake.seen.at(-1), { method, url: `/v1/default/banks/b${path(target)}?limit=3&q=a%20b`, body: body === true ? '{"query":  "x"}' : /^$/ }, `${method} ${url}`)
    }
    t.ok(engineRoutes.length > 40)
  })

  await t.test('a bank is deleted by who repeats its id', async t => {
    fake.bank('old')
    for (const [query, body] of [['', undefined], ['?confirm=other', undefined], ['', { confirm: 'other' }], ['?confirm=other', { confirm: 'old' }]] as const) {
      const { status, json } = await host.call('DELETE', `/api/memory/banks/old${query}`, body)
      t.match({ status, json }, { status: 400, json: { error: { code: 'memory.confirm_required', param: 'confirm' } } })
    }
    t.ok(fake.banks.has('old'))
    t.match((await host.audit())[0], { action: 'memory.bank.delete', target: 'old', outcome: 'error' })
    t.equal((await host.call('DELETE', '/api/memory/banks/old?confirm=old')).status, 200)
    t.notOk(fake.banks.has('old'))
    t.match((await host.audit())[0], { action: 'memory.bank.delete', target: 'old', outcome: 'ok', actor: 'dashboard' })
    fake.bank('old')
    t.equal((await host.call('DELETE', '/api/memory/banks/old', { confirm: 'old' })).status, 200)
  })

  await t.test('every deletion is written down with how it ended', async t => {
    const table: ReadonlyArray<readonly [string, string, string, string]> = [
      ['/banks/b/config', 'memory.bank_config.delete', 'b', 'ok'],
      ['/banks/b/memories?type=world', 'memory.memories.delete', 'b', 'ok'],
      ['/banks/b/documents/none', 'memory.document.delete', 'b/none', 'error'],
      ['/banks/b/directives/d-1', 'memory.directive.delete', 'b/d-1', 'ok'],
      ['/banks/b/operations/o-1', 'memory.operation.delete', 'b/o-1', 'error'],
      ['/banks/b/mental-models/m-1', 'memory.mental_model.delete', 'b/m-1', 'ok']
    ]
    for (const [path, action, target, outcome] of table) {
      for (const [prefix, actor] of [['/api/memory', 'mcp:ann'], ['/api/memory/hindsight/v1/default', 'mcp:ann']]) {
        const { status } = await host.call('DELETE', `${prefix}${path}`, undefined, { 'x-svc-agent': 'ann' })
        t.equal(status < 300, outcome === 'ok', `${prefix}${path}: ${status}`)
        const [end, begun] = await host.audit()
        t.match(end, { action, target, outcome, actor, category: 'memory' })
        t.match(begun, { action, target, outcome: 'pending', actor, category: 'memory', request_id: end!.request_id })
      }
    }
  })

  await t.test('a deletion is in the audit trail before the engine hears of it: a gateway that is killed leaves no effect without its row', async t => {
    const heard: unknown[] = []
    const path = '/v1/default/banks/shared/documents/heard'
    fake.instead.set(path, (_request, response) => {
      void host.audit().then(([row]) => {
        heard.push(row)
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"success":true,"memory_units_deleted":1}')
      })
    })
    t.teardown(() => fake.instead.delete(path))
    const ways: ReadonlyArray<readonly [string, string, object | undefined, string]> = [
      ['DELETE', '/api/memory/banks/shared/documents/heard', undefined, 'memory.document.delete'],
      ['DELETE', '/api/memory/hindsight/v1/default/banks/shared/documents/heard', undefined, 'memory.document.delete'],
      ['POST', '/api/memory/delete', { ids: ['heard'] }, 'memory.items.delete']
    ]
    for (const [n, [method, way, body, action]] of ways.entries()) {
      t.equal((await host.call(method, way, body)).status, 200)
      t.match(heard[n], { action, outcome: 'pending', severity: 'info', actor: 'dashboard' }, `${method} ${way}`)
      t.match((await host.audit())[0], { action, outcome: 'ok' })
    }
  })

  await t.test('what the engine refuses keeps its status and its words; its own failures are a 502', async t => {
    const gone = await host.call('GET', '/api/memory/banks/none/stats')
    t.match([gone.status, gone.json], [404, { error: { code: 'memory.engine_error', details: { upstream_status: 404 } }, detail: 'Bank \'none\' not found' }])
    fake.instead.set('/v1/default/banks/b/stats', (_request, response) => { response.writeHead(500, { 'content-type': 'text/html' }).end('<h1>oops</h1>') })
    const broken = await host.call('GET', '/api/memory/banks/b/stats')
    t.match([broken.status, broken.json.error], [502, { code: 'memory.engine_error', details: { upstream_status: 500 } }])
    const one = await host.call('DELETE', '/api/memory/banks/b/memories/u-1')
    t.match([one.status, one.json.error], [501, { code: 'memory.engine_unsupported', message: /invalidate/ }], 'which a real server cannot')
    fake.instead.clear()
  })

  await t.test('answers of another shape are no answers', async t => {
    const answer = (path: string, text: string): void => {
      fake.instead.set(`/v1/default/banks/b${path}`, (_request, response) => { response.writeHead(200, { 'content-type': 'application/json' }).end(text) })
    }
    const table: ReadonlyArray<readonly [string, string, string, string, object]> = [
      ['POST', '/recall', '/memories/recall', '{"results":{}}', { expected_key: 'results', expected_type: 'list', got_keys: ['results'] }],
      ['POST', '/reflect', '/reflect', '{"answer":"x"}', { expected_key: 'text', expected_type: 'string', got_keys: ['answer'] }],
      ['GET', '/directives', '/directives', '[]', { expected_key: 'items', expected_type: 'list' }],
      ['GET', '/stats', '/stats', '"fine"', { expected_type: 'object' }]
    ]
    for (const [method, path, target, text, details] of table) {
      answer(target, text)
      const { status, json } = await host.call(method, `/api/memory/banks/b${path}`, method === 'POST' ? { query: 'x' } : undefined)
      t.match([status, json.error], [502, { code: 'memory.engine_shape', details }], path)
    }
    fake.instead.set('/v1/default/banks', (_request, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>') })
    for (const headers of [{}, { 'x-svc-agent': 'coder' }]) {
      const { status, json } = await host.call('GET', '/api/memory/banks', undefined, headers)
      t.match([status, json.error], [502, { code: 'memory.engine_shape', details: { expected_key: 'banks', expected_type: 'list' } }], 'the list of banks')
    }
    fake.instead.clear()
  })

  await t.test('names in a path are names', async t => {
    for (const bank of ['-a', 'a.b', 'a%2Fb', 'a%20b', 'x'.repeat(129)]) {
      t.match((await host.call('GET', `/api/memory/banks/${bank}/stats`)).json?.error, { code: 'memory.invalid_bank' }, bank)
    }
    for (const id of ['a%2Fb', 'a%20b', '%2e%2e%2fx', 'x'.repeat(257)]) {
      t.match((await host.call('GET', `/api/memory/banks/b/documents/${id}`)).json?.error, { code: 'memory.invalid_path' }, id)
    }
  })

  await t.test('what engines answer 410 is made of what took its place', async t => {
    t.match((await host.call('GET', '/api/memory/banks/b/profile')).json, { bank_id: 'b', name: 'b', disposition: { skepticism: 3, literalism: 3, empathy: 3 }, mission: /^$/ })
    const body = { disposition: { empathy: 5 }, mission: 'help' }
    t.match((await host.call('PUT', '/api/memory/banks/b/profile', body)).json, { disposition: { skepticism: 3, empathy: 5 }, mission: 'help' })
    t.match(fake.seen.slice(-2), [
      { method: 'PATCH', url: '/v1/default/banks/b/config', body: '{"updates":{"disposition_empathy":5,"reflect_mission":"help"}}' },
      { method: 'GET', url: '/v1/default/banks?q=b&limit=1000' }
    ])
    t.equal((await host.call('PUT', '/api/memory/banks/b/profile', { disposition: { empathy: 9 } })).status, 400)

    const file = await host.call('GET', '/api/memory/banks/b/document-transfer')
    t.match([file.status, file.text, file.headers.get('content-type')], [200, 'PK zip bytes', 'application/zip'])
    t.match(file.headers.get('content-disposition'), /b-documents\.zip/)
    t.strictSame(fake.calls.slice(-3).map(call => call.replace(/[0-9a-f-]{36}/, 'id')), [
      'POST /v1/default/banks/b/document-transfer/export', 'GET /v1/default/banks/b/operations/id',
      'GET /v1/default/files/download/tenants/public/banks/b/exports/1/transfer.zip'
    ])
    const form = new FormData()
    form.append('file', new Blob(['PK']), 'x.zip')
    fake.instead.set('/v1/default/banks/b/document-transfer', (_request, response, bytes) => {
      response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify({ operation_id: 'op', status: 'pending', bytes: bytes.length }))
    })
    const sent = await host.fetch('/api/memory/banks/b/document-transfer?on_conflict=replace', { method: 'POST', body: form })
    t.match([sent.status, await sent.json()], [202, { operation_id: 'op' }])
    t.equal(fake.seen.at(-1)!.url, '/v1/default/banks/b/document-transfer?on_conflict=replace')
    fake.instead.clear()
  })

  await t.test('an export whose client leaves is cancelled', async t => {
    const say = (response: ServerResponse, value: object): void => { response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value)) }
    const leaves = new AbortController()
    const cancelled = new Promise<void>(resolve => {
      fake.instead.set('/v1/default/banks/b/document-transfer/export', (_request, response) => say(response, { operation_id: 'op-1' }))
      fake.instead.set('/v1/default/banks/b/operations/op-1', ({ method }, response) => {
        say(response, { status: 'processing', success: true })
        if (method === 'DELETE') resolve()
        else leaves.abort()
      })
    })
    await t.rejects(host.fetch('/api/memory/banks/b/document-transfer', { signal: leaves.signal }))
    await cancelled
    t.equal(fake.calls.at(-1), 'DELETE /v1/default/banks/b/operations/op-1')
    fake.instead.clear()
  })

  await t.test('a body whose client left before it was read is no body that is waited for', async t => {
    const left = new PassThrough().destroy()
    await t.rejects(whole(left), { message: 'the body broke off' })
    await t.rejects(bounded(left, 0, 1024).toArray(), { message: 'the body broke off' })
  })

  await t.test('a body in small chunks goes on in larger ones, byte for byte', async t => {
    const crumbs = Array.from({ length: 150_000 }, (_, i) => Buffer.from([i % 251]))
    const sizes = [1, 20_000, 3, 70_000, 5, 16_383, 16_383, 16_383, 16_383, 16_383, 2]
    for (const [chunks, most] of [[crumbs, 3], [sizes.map((size, i) => Buffer.alloc(size, i)), 8]] as const) {
      const told = await bounded(Readable.from(chunks, { objectMode: false }), 0, 2 ** 20).toArray() as Buffer[]
      t.ok(Buffer.concat(told).equals(Buffer.concat(chunks)))
      t.ok(told.length <= most, `${told.length} chunks`)
    }
    await t.rejects(bounded(Readable.from(crumbs, { objectMode: false }), 0, 149_999).toArray(), { code: 'request.too_large' })
  })

  await t.test('the part of a graph that can be drawn', async t => {
    for (const text of ['one', 'two', 'three', 'four']) fake.bank('g').units.push({ id: text, text, document_id: text, tags: [], metadata: {}, mentioned_at: '2026-01-01T00:00:00Z' })
    const part = async (query: string) => await host.call('GET', `/api/memory/banks/g/graph/subgraph?${query}`)
    t.match((await part('')).json, { total_units: 4, total_edges: 5, returned_nodes: 4, returned_edges: 5, truncated: false, mode: 'top', center: null })
    t.match((await part('mode=ego&node=four&depth=1')).json, { returned_nodes: 3, truncated: true, center: 'four' })
    t.match((await part('mode=ego&node=none')).json.error, { code: 'memory.node_not_found' })
    for (const query of ['mode=ego', 'depth=3', 'limit=501', 'by=size', 'kind=x', 'odd=1']) {
      const { status, json } = await part(query)
      t.match([status, json.error.code], [422, 'memory.invalid_query'], query)
    }
  })

  await t.test('whether the graph is extracted, by which slot, and what came of it', async t => {
    for (const url of ['/api/memory/graph', '/api/memory/graph/status']) {
      t.match((await host.call('GET', url)).json, {
        enabled: false, extraction_slot: 'utility', route: 'utility', slot_resolves: false, available_slots: { length: 0 }, llm_timeout_s: 300,
        errors: Number, in_flight: Number, builds_ok: Number, last_built_at: '2026-11-22T17:46:12.233578+00:00', last_error: null
      })
    }
    const retried = (await host.call('POST', '/api/memory/graph/retry')).json
    t.match(retried, { queued: fake.banks.size, skipped: 0, banks: { b: { queued: 1, skipped: 0, failed: 0 } } })
    t.match(await host.audit(), [{ action: 'memory.graph.retry_failed', outcome: 'ok' }])
    fake.instead.set('/v1/default/banks/b/operations', (_request, response) => { response.writeHead(500, { 'content-type': 'application/json' }).end('{"detail":"database is down"}') })
    const failing = await host.call('POST', '/api/memory/graph/retry')
    t.match([failing.status, failing.json.error], [502, { code: 'memory.engine_error', message: /database is down/ }], 'not told as nothing to retry')
    fake.instead.set('/v1/default/banks', (_request, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>') })
    t.match((await host.call('POST', '/api/memory/graph/retry')).json.error, { code: 'memory.engine_shape', details: { expected_type: 'object' } })
    t.match((await host.call('GET', '/api/memory/graph')).json, { errors: 0, last_error: /not a JSON object/ })
    fake.instead.clear()
    for (const [method, path, body] of [['PUT', '/api/memory/graph', { enabled: true }], ['POST', '/api/memory/graph/retry']] as const) {
      const { status, json } = await host.call(method, path, body, { 'x-svc-agent': 'ann' })
      t.match([status, json.error.code], [403, 'memory.operator_only'], path)
    }
    t.match((await host.call('GET', '/api/memory/graph')).json, { enabled: false })
    for (const body of [{ enabled: 'yes' }, { llm_timeout_s: 5 }, { colour: 'red' }]) {
      t.match((await host.call('PUT', '/api/memory/graph', body)).json.error, { code: 'config.memory_graph_invalid' })
    }
  })
})

t.test('the embedded engine knows every route that is offered below /api/memory/banks', async t => {
  const host = await memoryHost(t)
  await host.call('POST', '/api/memory/add', { text: 'Alice works at Acme Corp.' })
  for (const { method, url, body, confirmed } of engineRoutes) {
    if (confirmed === true) continue
    const { status, json, text } = await host.call(method, `/api/memory/banks/shared${url.replace(':id', 'id-1')}`, body === true ? '{}' : undefined)
    // what is missing is the thing that `id-1` would be, never the route
    t.ok([200, 201, 202, 400, 404, 409, 422, 501].includes(status) && json.detail !== 'Not Found', `${method} ${url}: ${status} ${text.slice(0, 200)}`)
  }
  for (const [query, code] of [['mode=ego', 'memory.invalid_query'], ['mode=ego&node=none', 'memory.node_not_found'], ['kind=entities&by=recency&top_k=3', undefined]] as const) {
    t.equal((await host.call('GET', `/api/memory/banks/shared/graph/subgraph?${query}`)).json.error?.code, code, query)
  }
  for (const [path, action] of [['/documents/none', 'memory.document.delete'], ['/directives/none', 'memory.directive.delete'], ['/config', 'memory.bank_config.delete']] as const) {
    const { status } = await host.call('DELETE', `/api/memory/banks/shared${path}`)
    t.match((await host.audit())[0], { action, outcome: status < 300 ? 'ok' : 'error' })
  }

  await t.test('and of its graph a part is told: what is around one, of a type, with a word, or the newest entities', async t => {
    const memories = '/api/memory/hindsight/v1/default/banks/g/memories'
    const said = (content: string, timestamp: string, ...names: string[]): object => (
      { content, timestamp, entities: names.map(text => ({ text })) })
    await host.call('POST', memories, { items: [said('Ann meets Bo.', '2024-01-01', 'Ann', 'Bo'), said('Bo meets Cy.', '2025-01-01', 'Bo', 'Cy'), said('It rained.', '2026-01-01')] })
    const part = async (query: string) => (await host.call('GET', `/api/memory/banks/g/graph/subgraph?${query}`)).json
    const labels = async (query: string): Promise<string[]> =>
      (await part(query)).nodes.map(({ data }: { data: { label: string } }) => data.label).sort()
    const idOf = async (query: string): Promise<string> => (await part(query)).nodes[0].data.id
    const [ann, rain, cy] = [await idOf('q=ann'), await idOf('q=RAIN'), await idOf('kind=entities&q=cy')]
    t.same(await labels(`mode=ego&node=${ann}`), ['Ann meets Bo.', 'Bo meets Cy.'])
    t.match(await part(`mode=ego&node=${ann}`), {
      center: ann, mode: 'ego', total_units: 3, returned_nodes: 2, returned_edges: 1, truncated: true, edges: [{ data: { linkType: 'entity', entityName: 'Bo' } }]
    })
    t.same(await labels('by=recency&top_k=1'), ['It rained.'])
    t.equal((await host.call('PATCH', `${memories}/${rain}`, { fact_type: 'experience' })).status, 200)
    t.same(await labels('type=experience'), ['It rained.'])
    t.match(await part('type=world&q=bo'), { total_units: 2, returned_nodes: 2, truncated: false })

    t.match(await part('kind=entities'), { total_entities: 3, total_edges: 2, returned_nodes: 3, returned_edges: 2, truncated: false })
    t.same(await labels('kind=entities&top_k=1'), ['Bo'])
    t.same(await labels('kind=entities&by=recency&top_k=2'), ['Bo', 'Cy'])
    t.same(await labels(`kind=entities&mode=ego&node=${cy}`), ['Bo', 'Cy'])
  })
})

/** What agents and operators are offered: `METHOD path`, below /api/memory, with how it answers on a bank with one memory. */
const offered: ReadonlyArray<readonly [route: string, body: object | null, status: number, answer: object]> = [
  ['POST add', { text: 'Bob lives in Paris.', document_id: 'bob' }, 200, { id: 'bob', timestamp: String }],
  ['POST search', { query: 'Bob', limit: 3 }, 200, { items: [{ id: 'bob', text: 'Bob lives in Paris.', timestamp: String, dataset: 'shared', tags: ['agent:anonymous'], metadata: {}, score: Number, type: 'world' }] }],
  ['POST recall', { query: 'Bob', max_tokens: 100, types: ['world'] }, 200, { items: [{ id: 'bob' }] }],
  ['GET list', null, 200, { items: [{ id: 'bob' }], next_cursor: null }],
  ['GET graph', null, 200, { enabled: false, extraction_slot: 'utility' }],
  ['GET graph/status', null, 200, { enabled: false, extraction_slot: 'utility', slot_resolves: false, available_slots: [], in_flight: 0, llm_timeout_s: 300 }],
  ['PUT graph', { llm_timeout_s: 200 }, 200, { llm_timeout_s: 200 }],
  ['POST graph/retry', null, 200, { queued: 0, skipped: 0, banks: {} }],
  ['GET engine', null, 200, {
    enabled: true, engine: 'embedded', reachable: true, version: String, features: {}, banks_total: 1,
    steps: { vectors: /no enabled slot of type embedding/, rerank: /no enabled slot of type reranking/, extraction: 'the graph is off: svc memory graph enable' }
  }],
  ['GET banks', null, 200, { banks: [{ bank_id: 'shared' }] }],
  ['PUT banks/{bank}', { name: 'Shared' }, 200, { bank_id: 'shared', name: 'Shared' }],
  ['PATCH banks/{bank}', { name: 'Common' }, 200, { bank_id: 'shared', name: 'Common' }],
  ['GET banks/{bank}/stats', null, 200, { bank_id: 'shared', total_nodes: 1 }],
  ['GET banks/{bank}/stats/timeseries', null, 200, { bank_id: 'shared', buckets: Array }],
  ['GET banks/{bank}/profile', null, 200, { bank_id: 'shared', name: 'Common' }],
  ['PUT banks/{bank}/profile', { disposition: { skepticism: 2, literalism: 3, empathy: 4 } }, 200, { bank_id: 'shared', name: 'Common' }],
  ['GET banks/{bank}/config', null, 200, { bank_id: 'shared', config: {} }],
  ['PATCH banks/{bank}/config', { updates: { enable_observations: false } }, 200, { overrides: { enable_observations: false } }],
  ['DELETE banks/{bank}/config', null, 200, { overrides: {} }],
  ['GET banks/{bank}/graph', null, 200, { nodes: [{}], edges: [] }],
  ['GET banks/{bank}/graph/subgraph', null, 200, { nodes: [{}], returned_nodes: 1, truncated: false, mode: 'top' }],
  ['GET banks/{bank}/entities/graph', null, 200, { nodes: [], edges: [] }],
  ['GET banks/{bank}/entities', null, 200, { items: [], total: 0 }],
  ['GET banks/{bank}/entities/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['GET banks/{bank}/memories', null, 200, { items: [{ text: 'Bob lives in Paris.' }], total: 1 }],
  ['GET banks/{bank}/memories/{id}', null, 200, { text: 'Bob lives in Paris.' }],
  ['GET banks/{bank}/memories/{id}/history', null, 200, {}],
  ['GET banks/{bank}/documents', null, 200, { items: [{ id: 'bob' }], total: 1 }],
  ['GET banks/{bank}/documents/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['PATCH banks/{bank}/documents/{id}', { tags: ['x'] }, 404, { error: { code: 'memory.engine_error' } }],
  ['DELETE banks/{bank}/documents/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['POST banks/{bank}/documents/{id}/reprocess', null, 404, { error: { code: 'memory.engine_error' } }],
  ['GET banks/{bank}/tags', null, 200, { items: [{ tag: 'agent:anonymous', count: 1 }] }],
  ['POST banks/{bank}/recall', { query: 'Bob' }, 200, { results: [{ text: 'Bob lives in Paris.' }] }],
  ['POST banks/{bank}/reflect', { query: 'Bob' }, 501, { error: { code: 'memory.engine_unsupported' } }],
  ['GET banks/{bank}/mental-models', null, 200, { items: [] }],
  ['POST banks/{bank}/mental-models', { name: 'Bob', source_query: 'Who is Bob?' }, 200, { operation_id: String }],
  ['GET banks/{bank}/mental-models/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['PATCH banks/{bank}/mental-models/{id}', { name: 'x' }, 404, { error: { code: 'memory.engine_error' } }],
  ['DELETE banks/{bank}/mental-models/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['POST banks/{bank}/mental-models/{id}/refresh', null, 404, { error: { code: 'memory.engine_error' } }],
  ['GET banks/{bank}/mental-models/{id}/history', null, 404, { error: { code: 'memory.engine_error' } }],
  ['GET banks/{bank}/directives', null, 200, { items: [] }],
  ['POST banks/{bank}/directives', { name: 'short', content: 'Answer briefly' }, 200, { name: 'short' }],
  ['PATCH banks/{bank}/directives/{id}', { is_active: false }, 404, { error: { code: 'memory.engine_error' } }],
  ['DELETE banks/{bank}/directives/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['GET banks/{bank}/operations', null, 200, { operations: Array }],
  ['GET banks/{bank}/operations/{id}', null, 200, { status: 'not_found' }],
  ['DELETE banks/{bank}/operations/{id}', null, 404, { error: { code: 'memory.engine_error' } }],
  ['POST banks/{bank}/operations/{id}/retry', null, 404, { error: { code: 'memory.engine_error' } }],
  ['POST banks/{bank}/consolidate', null, 501, { error: { code: 'memory.engine_unsupported' } }],
  ['POST banks/{bank}/consolidation/recover', null, 200, {}],
  ['GET banks/{bank}/export', null, 200, { version: '1' }],
  ['POST banks/{bank}/import', { version: '1', directives: [] }, 200, {}],
  ['GET banks/{bank}/document-transfer', null, 200, {}],
  ['POST banks/{bank}/document-transfer', null, 415, {}],
  ['DELETE banks/{bank}/memories/{id}', null, 200, {}],
  ['DELETE banks/{bank}/memories', null, 200, { success: true }],
  ['POST delete', { ids: ['bob'] }, 200, { deleted: 0 }],
  ['DELETE banks/{bank}', null, 400, { error: { code: 'memory.confirm_required' } }]
]

t.test('every route of the memory is in the OpenAPI document, and answers on the embedded engine', async t => {
  const host = await memoryHost(t, { plugins: [docs] })
  const { paths } = (await host.call('GET', '/api/openapi.json')).json as { paths: Record<string, Record<string, object>> }
  const described = Object.entries(paths).filter(([path]) => path.startsWith('/api/memory/') && !path.includes('/hindsight/'))
    .flatMap(([path, its]) => Object.keys(its).map(method => `${method.toUpperCase()} ${path.slice('/api/memory/'.length)}`))
  const names = new Set([...offered.map(([route]) => route), 'PATCH banks/{bank}/memories/{id}'])
  t.strictSame(described.filter(route => !names.has(route)), [], 'none is described that is not in the table')
  let memory = ''
  for (const [route, body, wanted, shape] of offered) {
    // the other address of GET graph
    t.ok(described.includes(route) || route === 'GET graph/status', `${route} is described`)
    const [method = '', path = ''] = route.split(' ')
    const id = path.startsWith('banks/{bank}/memories/') ? memory : '5d8b8a04-fefb-4312-b6f8-04b65e09f014'
    const { status, json } = await host.call(method, `/api/memory/${path.replace('{bank}', 'shared').replace('{id}', id)}`, body ?? undefined)
    t.match({ status, json }, { status: wanted, ...Object.keys(shape).length === 0 ? {} : { json: shape } }, route)
    if (route === 'GET banks/{bank}/memories') memory = json.items[0].id
  }
})

t.test('which steps need a model is told with why each of them is off, and what has its slot is on', async t => {
  const slot = (type: string): string => `type = "${type}"\ndevice = "cpu"\n[model]\ndefault = "demo"\n`
  const host = await memoryHost(t, { files: { 'etc/svc/slots/embed.toml': slot('embedding'), 'etc/svc/slots/rerank.toml': slot('reranking'), 'etc/svc/slots/utility.toml': slot('llm') } })
  const steps = async (): Promise<unknown> => (await host.call('GET', '/api/memory/engine')).json.steps
  t.strictSame(await steps(), { vectors: null, rerank: null, extraction: 'the graph is off: svc memory graph enable' })
  t.match((await host.call('PUT', '/api/memory/graph', { enabled: true })).json, { enabled: true, status: { slot_resolves: true } })
  t.strictSame(await steps(), { vectors: null, rerank: null, extraction: null })
  t.match((await host.call('PUT', '/api/memory/graph', { enabled: false })).json, { enabled: false, status: { in_flight: 0 } })
  t.match(await steps(), { extraction: /the graph is off/ })
})

t.test('a Hindsight server that systemd runs is told its slot and restarted, and elsewhere it is said what to set', async t => {
  const fake = await fakeHindsight(t)
  const folder = t.testdir()
  const systemctl = join(folder, 'systemctl')
  await writeFile(systemctl, `#!/bin/sh\necho "$@" >> ${folder}/calls\n[ "$1" != cat ] || [ -e ${folder}/unit ]\n`)
  await chmod(systemctl, 0o755)
  const slot = 'type = "llm"\nprovider = "none"\ndevice = "cpu"\n'
  const host = await memoryHost(t, {
    url: fake.url,
    pluginConfig: { 'api-memory': { systemctl, unit_folder: folder } },
    files: { 'etc/svc/slots/chat.toml': slot, 'etc/svc/slots/other.toml': slot }
  })
  const wrong = await host.call('PUT', '/api/memory/graph', { extraction_slot: 'none' })
  t.match([wrong.status, wrong.json.error], [422, { code: 'config.memory_graph_slot_invalid', details: { available_slots: 'chat,other' } }])
  t.match((await host.call('PUT', '/api/memory/graph', { enabled: true, extraction_slot: 'chat' })).json, {
    enabled: true, extraction_slot: 'chat', status: { enabled: true, slot_resolves: true },
    propagation: { model: 'svc/chat', written: false, restarted: false, error: /HINDSIGHT_API_LLM_MODEL=svc\/chat/ }
  })
  await writeFile(join(folder, 'unit'), '')
  t.match((await host.call('PUT', '/api/memory/graph', { extraction_slot: 'other', llm_timeout_s: 60 })).json.propagation, {
    slot: 'other', timeout_s: 60, written: true, daemon_reloaded: true, restarted: true, error: null
  })
  t.match(await readFile(join(folder, 'hindsight-api.service.d/extraction-model.conf'), 'utf8'), /Environment="HINDSIGHT_API_LLM_MODEL=svc\/other"\nEnvironment="HINDSIGHT_API_LLM_TIMEOUT=60"\nEnvironment="HINDSIGHT_API_LLM_STRICT_SCHEMA=true"/)
  t.match(await readFile(join(folder, 'calls'), 'utf8'), /daemon-reload\nrestart hindsight-api\.service\n$/)
  t.notOk((await host.call('PUT', '/api/memory/graph', { enabled: false })).json.propagation, 'the server need not know')
})

t.test('a subgraph is chosen by degree or date, and has the edges between its nodes', async t => {
  const nodes = ['a', 'b', 'c', 'd'].map((id, i) => ({ data: { id, date: `2026-01-0${i + 1}` } }))
  const edges = [['a', 'b'], ['a', 'c'], ['b', 'd']].map(([source, target]) => ({ data: { source, target } }))
  const ids = (wish: object): string => subgraphOf({ nodes, edges }, { mode: 'top', depth: 1, limit: 240, topK: 200, by: 'degree', ...wish })!.nodes.map(({ data }) => data.id).join('')
  t.equal(ids({ topK: 2 }), 'ab')
  t.equal(ids({ topK: 2, by: 'recency' }), 'cd')
  t.equal(ids({ limit: 1 }), 'a')
  t.equal(ids({ mode: 'ego', node: 'c', depth: 0 }), 'c')
  t.equal(ids({ mode: 'ego', node: 'c', depth: 1 }), 'ac')
  t.equal(ids({ mode: 'ego', node: 'c', depth: 2 }), 'abc')
  t.equal(ids({ mode: 'ego', node: 'c', depth: 2, limit: 2 }), 'ac')
  const named = ['a', 'b', 'c', 'd'].map(id => ({ data: { id, label: id } }))
  const met = [['a', 'b', '2026-01-03'], ['a', 'c', '2026-01-02'], ['c', 'd', null]].map(([source, target, lastCooccurred]) => ({ data: { source, target, lastCooccurred } }))
  const newest = (topK: number): string => subgraphOf({ nodes: named, edges: met }, { mode: 'top', depth: 1, limit: 9, topK, by: 'recency' })!.nodes.map(({ data }) => data.id).join('')
  t.same([newest(2), newest(3)], ['ab', 'abc'], 'what has no date is as new as its newest edge')
  t.equal(subgraphOf({ nodes, edges }, { mode: 'ego', node: 'z', depth: 1, limit: 9, topK: 9, by: 'degree' }), null)
})
