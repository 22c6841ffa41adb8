import t from 'tap'
import { engineRoutes } from '../../../../plugins/api/memory/engine-routes.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost } from './host.js'

t.test('the engine\'s own routes for operators', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  fake.bank('b')

  await t.test('each reaches the engine at its own address, query and body as they came', async t => {
    for (const { method, url, target = url, body, confirmed } of engineRoutes) {
      if (confirmed === true) continue
      fake.seen.splice(0)
      const path = (of: string): string => of.replace(':id', 'id-1')
      await host.call(method, `/api/memory/banks/b${path(url)}?limit=3&q=a%20b`, body === true ? '{"query":  "x"}' : undefined)
      t.match(fake.seen.at(-1), { method, url: `/v1/default/banks/b${path(target)}?limit=3&q=a%20b`, body: body === true ? '{"query":  "x"}' : '' }, `${method} ${url}`)
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
        t.match((await host.audit())[0], { action, target, outcome, actor, category: 'memory' })
      }
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
})
