import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineRoute, svcError, type AnyRoute, type HttpMethod } from '../../../kernel/contract/index.js'
import { actorOf } from '../../../kernel/http/actor.js'
import { createGuards } from '../../../kernel/http/guard/guards.js'
import { allowedMethods } from '../../../kernel/http/methods.js'
import { openApiDocument, openApiPath } from '../../../kernel/http/openapi/openapi.js'
import { requestIdOf } from '../../../kernel/http/server/request-id.js'
import { createTestGateway, FakeEngineRuntime, settle, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'

t.test('the Host guard refuses names that are not the gateway\'s', async t => {
  const guards = createGuards({ allowedHosts: ['Gateway.LAN'], allowedOrigins: [], ownNames: ['box', 'box.local'] })
  const cases: Array<[string | undefined, boolean]> = [
    ['localhost', true], ['LOCALHOST:8080', true], ['a.localhost', true], ['127.0.0.1', true], ['127.0.0.1:8080', true], ['192.168.0.7:80', true], ['[::1]', true],
    ['[::1]:8080', true], ['[fe80::1]:1', true], ['box', true], ['box.local:8080', true], ['gateway.lan', true], ['0x7f.1', false], ['2130706433', false],
    [undefined, false], ['', false], [':80', false], ['evil.example', false], ['127.0.0.1.evil.example', false], ['localhost.evil.example', false], ['evil-localhost', false],
    ['localhost:80:80', false], ['[::1', false], ['[::1]x', false], ['localhost, evil', false], ['127.0.0.1/x', false], ['user@127.0.0.1', false]
  ]
  for (const [host, allowed] of cases) t.equal(guards.host({ host, remote: '203.0.113.9', path: '/' }) === null, allowed, `Host: ${host}`)
  t.match(guards.host({ host: 'evil.example', remote: '127.0.0.1', path: '/' }), { code: 'request.host_not_allowed', status: 421, message: /evil\.example/ })
  t.equal(createGuards({ allowedHosts: ['*'], allowedOrigins: [], ownNames: [] }).host({ host: 'anything', remote: undefined, path: '/' }), null)
  for (const host of ['host.docker.internal', 'host.docker.internal:8080', 'host.containers.internal:8080']) {
    for (const [remote, allowed] of [
      ['127.0.0.1', true], ['::1', true], ['::ffff:172.17.0.3', true], ['10.88.0.4', true], ['192.168.65.1', true], ['fd00::2', true],
      ['203.0.113.9', false], ['172.32.0.1', false], ['2001:db8::1', false], [undefined, false]
    ] as const) t.equal(guards.host({ host, remote, path: '/' }) === null, allowed, `${host} from ${remote}`)
  }
})

t.test('the Origin guard refuses pages of origins that are not allowed', async t => {
  const guards = createGuards({ allowedHosts: [], allowedOrigins: ['https://App.example/'], ownNames: [] })
  const cases: Array<[string | undefined, string | undefined, object]> = [
    [undefined, 'localhost', { allow: null }], ['http://localhost:8080', 'localhost:8080', { allow: null }], ['HTTP://LOCALHOST:8080', 'localhost:8080', { allow: null }],
    ['https://app.example', 'localhost', { allow: 'https://app.example' }], ['https://app.example:444', 'localhost', { refusal: { status: 403 } }],
    ['http://localhost:3000', 'localhost:8080', { refusal: { status: 403 } }], ['null', 'localhost', { refusal: { status: 403 } }], ['file://', 'localhost', { refusal: { status: 403 } }],
    ['http://evil.example', 'localhost', { refusal: { code: 'request.origin_not_allowed' } }], ['http://localhost.evil', undefined, { refusal: { status: 403 } }]
  ]
  for (const [origin, host, verdict] of cases) t.match(guards.origin({ origin, host, site: undefined, path: '/v1/models' }), verdict, `${origin} to ${host}`)
  t.strictSame(createGuards({ allowedHosts: [], allowedOrigins: ['*'], ownNames: [] }).origin({ origin: 'null', host: 'x', site: 'cross-site', path: '/api/slots' }), { allow: 'null' })
  const limited = createGuards({ allowedHosts: [], allowedOrigins: ['https://chat.example/v1', 'http://all.example'], ownNames: [] })
  const places: Array<[origin: string | undefined, site: string, path: string, allowed: boolean]> = [
    ['https://chat.example', 'cross-site', '/v1/models', true], ['https://chat.example', 'cross-site', '/api/slots', false], ['https://chat.example', 'cross-site', '/v1x', false],
    ['http://all.example', 'cross-site', '/api/slots', true], [undefined, 'cross-site', '/api/openapi.json', false], [undefined, 'cross-site', '/mcp/admin', false],
    [undefined, 'cross-site', '/upstream/agent/', false], [undefined, 'same-origin', '/api/slots', true], [undefined, 'none', '/api/docs', true],
    [undefined, 'cross-site', '/v1/models', true], [undefined, 'cross-site', '/', true]
  ]
  for (const [origin, site, path, allowed] of places) {
    t.equal('allow' in limited.origin({ origin, site, path, host: 'localhost:8080' }), allowed, `${origin ?? 'no origin'}, ${site}, ${path}`)
  }
  t.match(limited.origin({ origin: 'https://chat.example', site: undefined, path: '/api/slots', host: 'x' }), { refusal: { message: /beyond \/v1/ } })
})

t.test('request ids and actors are checked, and the methods of a path are known', async t => {
  for (const id of ['abc', 'A-1_2.3:4', 'x'.repeat(128)]) t.equal(requestIdOf({ headers: { 'x-request-id': id } }), id)
  const made = ['a b', '', 'x'.repeat(129), 'a\tb', 'ä', '<script>'].map(id => requestIdOf({ headers: { 'x-request-id': id } }))
  for (const id of made) t.match(id, /^[A-Za-z0-9._:-]{8,128}$/)
  t.equal(new Set([...made, requestIdOf({ headers: {} })]).size, made.length + 1, 'each its own')
  t.equal(actorOf({}), 'dashboard')
  t.equal(actorOf({ 'x-svc-agent': 'coder-1' }), 'mcp:coder-1')
  t.equal(actorOf({ 'x-svc-agent': 'Not <ok>' }), 'dashboard')
  const routes = [['GET', '/a'], ['POST', '/a'], ['DELETE', '/a/:id'], ['GET', '/a/list'], ['GET', '/a/:id/b.c'], ['PUT', '/files/*'], ['GET', '/']]
    .map(([method, url]) => ({ method, url }) as AnyRoute)
  const cases: Array<[string, string]> = [
    ['/a', 'GET HEAD POST'], ['/a/', 'GET HEAD POST'], ['/a/1', 'DELETE'], ['/a/list', 'GET HEAD'], ['/a/1/b.c', 'GET HEAD'], ['/a/1/bxc', ''], ['/files/x/y', 'PUT'], ['/files/', ''],
    ['/b', ''], ['/', 'GET HEAD'], ['/a/1/2', '']
  ]
  for (const [path, methods] of cases) t.equal(allowedMethods(routes, path).join(' '), methods, path)
})

interface Category { name: string, children: Category[] }
const category = z.object({ name: z.string(), get children () { return z.array(category) } }) as z.ZodType<Category>
const unit = z.enum(['a', 'b']).meta({ id: 'Unit', description: 'a unit' })

const documented: AnyRoute[] = [
  defineRoute({ method: 'GET', url: '/api/doc', summary: 'plain', schema: { response: z.object({ ok: z.boolean() }) }, handler: () => ({ ok: true }) }),
  defineRoute({
    method: 'GET', url: '/api/doc/*', summary: 'wildcard', schema: { params: z.object({ '*': z.string().meta({ description: 'the rest' }) }) }, handler: () => ({})
  }),
  defineRoute({ method: 'GET', url: '/api/doc/:id', summary: 'a parameter nobody described', handler: () => ({}) }),
  defineRoute({
    method: 'POST',
    url: '/api/doc/:id/tree',
    summary: 'recursive',
    status: 201,
    schema: {
      params: z.object({ id: z.coerce.number() }), querystring: z.object({ unit, dry: z.stringbool().default(false) }),
      body: category, response: category
    },
    handler: () => ({ name: 'x', children: [] })
  }),
  defineRoute({ method: 'DELETE', url: '/api/doc/:id', summary: 'no answer', schema: { body: z.object({ units: z.array(unit) }) }, handler: () => undefined }),
  defineRoute({ method: 'PUT', url: '/api/doc/:id', summary: 'a form', schema: { body: z.object({ file: z.string() }) }, bodyKind: 'stream', handler: () => 1 }),
  defineRoute({ method: 'PATCH', url: '/api/doc/:id', summary: 'bytes', bodyKind: 'stream', consumes: 'application/zip', handler: () => 1 }),
  defineRoute({ method: 'GET', url: '/api/doc-:id', summary: 'a name like another', produces: 'text/plain', handler: () => 'x' })
]

interface Operation {
  readonly operationId: string
  readonly parameters: ReadonlyArray<{ readonly name: string, readonly in: string, readonly required: boolean }>
  readonly responses: Readonly<Record<string, unknown>>
  readonly requestBody?: { readonly content: object }
}

t.test('the OpenAPI document has every route, and every reference leads somewhere', async t => {
  const document = openApiDocument(documented.map(route => ({ plugin: 'documented', route })), '1.2.3')
  const paths = document.paths as Record<string, Record<string, Operation>>
  t.strictSame(Object.keys(paths), ['/api/doc', '/api/doc-{id}', '/api/doc/{id}', '/api/doc/{id}/tree', '/api/doc/{path}'])
  const operations = Object.values(paths).flatMap(path => Object.values(path))
  t.equal(operations.length, documented.length)
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, documented.length, 'operation ids are unique')
  for (const [path, methods] of Object.entries(paths)) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    for (const [method, { parameters, responses }] of Object.entries(methods)) {
      const inPath = parameters.filter(parameter => parameter.in === 'path')
      t.strictSame(inPath.map(({ name }) => name), names, `${method} ${path}: every placeholder is a parameter`)
      t.ok(inPath.every(({ required }) => required))
      t.ok(responses.default !== undefined)
    }
  }
  const tree = paths['/api/doc/{id}/tree']!.post!
  t.ok(tree.responses['201'])
  t.strictSame(tree.parameters.map(({ name, required }) => `${name} ${required}`), ['id true', 'unit true', 'dry false'])
  t.ok(paths['/api/doc/{id}']!.delete!.responses['204'])
  const { put, patch } = paths['/api/doc/{id}']!
  t.strictSame([put, patch].map(operation => Object.keys(operation!.requestBody!.content)), [['multipart/form-data'], ['application/zip']])
  assertSound(t, document)
  t.equal(openApiPath('/a/:b/*'), '/a/{b}/{path}')
})

t.test('a gateway with everything built in documents what it serves', async t => {
  let document = (): Record<string, unknown> => ({})
  const reader = definePlugin({
    name: 'reader', kind: 'service', apiVersion: 1, requires: { openapi: core.openapi }, register: ctx => { document = () => ctx.services.openapi.document() }
  })
  const gateway = await createTestGateway({ builtins, plugins: [reader], runtime: new FakeEngineRuntime() })
  t.teardown(() => gateway.close())
  const paths = document().paths as Record<string, Record<string, Operation>>
  const routes = gateway.gateway.report().flatMap(({ routes }) => routes)
  t.ok(routes.length > 20)
  for (const route of routes) {
    const [method, url] = route.split(' ') as [string, string]
    t.ok(paths[openApiPath(url)]?.[method.toLowerCase()], route)
  }
  const ids = Object.values(paths).flatMap(path => Object.values(path)).map(({ operationId }) => operationId)
  t.equal(new Set(ids).size, ids.length, 'operation ids are unique')
  assertSound(t, document())
})

function assertSound (t: Test, document: Record<string, unknown>): void {
  const refs: string[] = []
  JSON.stringify(document, (key, value: unknown) => {
    if (key === '$ref') refs.push(value as string)
    return value
  })
  t.ok(refs.length > 5)
  for (const ref of new Set(refs)) {
    const at = ref.slice(2).split('/').reduce<unknown>((here, part) => (here as Record<string, unknown> | undefined)?.[part], document)
    t.ok(ref.startsWith('#/') && at !== undefined, `${ref} is there`)
  }
  const { schemas } = document.components as { schemas: Record<string, unknown> }
  for (const name of Object.keys(schemas)) t.match(name, /^[A-Za-z0-9._-]+$/)
  t.notMatch(JSON.stringify(document), /\$defs|"\$schema"/)
}

async function gatewayWith (t: Test, ...routes: AnyRoute[]): Promise<TestGateway> {
  const plugin = definePlugin({
    name: 'routes-of-a-test', kind: 'routes', apiVersion: 1, register: ctx => { for (const route of routes) ctx.addRoute(route) }
  })
  const files = { 'etc/svc/svc.toml': '[server]\napi_body_limit_bytes = 2048\nv1_body_limit_bytes = 4096\n' }
  const gateway = await createTestGateway({ plugins: [plugin], runtime: new FakeEngineRuntime(), files })
  t.teardown(() => gateway.close())
  return gateway
}

interface Seen { body: unknown, params: unknown, query: unknown }

t.test('a route that is declared as data parses its body, parameters and query', async t => {
  const seen: Seen[] = []
  const echo = (method: HttpMethod, url: string, more: object): AnyRoute => defineRoute({
    method,
    url,
    summary: 'x',
    ...more,
    handler: ({ body, params, query }) => {
      seen.push({ body, params, query })
      return { ok: true }
    }
  })
  const made: string[] = []
  const late = <S>(name: string, schema: S): S => {
    made.push(name)
    return schema
  }
  const plain = (url: string, handler: () => unknown): AnyRoute => defineRoute({ method: 'GET', url, summary: 'x', handler })
  const gateway = await gatewayWith(t,
    echo('POST', '/api/strict', { schema: { body: z.strictObject({ name: z.string(), size: z.int().min(1).max(9).default(3) }) } }),
    echo('POST', '/api/loose', { schema: { body: z.looseObject({ name: z.string().optional() }) } }),
    echo('POST', '/api/raw', { bodyKind: 'buffer' }),
    echo('POST', '/api/any', { bodyKind: 'json' }),
    echo('POST', '/api/none', {}),
    echo('POST', '/api/large', { bodyKind: 'buffer', bodyLimit: 10_000 }),
    echo('POST', '/v1/raw', { bodyKind: 'buffer' }),
    echo('GET', '/api/query/:id', {
      schema: { params: z.object({ id: z.coerce.number().int() }),
        querystring: z.strictObject({ n: z.coerce.number().max(5).optional() }) }
    }),
    echo('POST', '/api/late/:id', {
      schema: {
        get params () { return late('params', z.object({ id: z.coerce.number() })) },
        get body () { return late('body', z.strictObject({ name: z.string() })) },
        get response () { return late('response', z.strictObject({ ok: z.literal(true) })) }
      }
    }),
    echo('POST', '/api/late-mistake', { schema: { get body () { return late('mistake', {} as z.ZodType) } } }),
    defineRoute({ method: 'POST', url: '/api/created', summary: 'x', status: 201, handler: () => ({ id: 1 }) }),
    defineRoute({ method: 'DELETE', url: '/api/gone', summary: 'x', handler: () => undefined }),
    plain('/api/crash', () => { throw new TypeError('secret detail') }),
    plain('/api/late-crash', () => Promise.reject(new Error('secret detail'))),
    plain('/api/refused', () => { throw svcError('slot.crash_looping', 'not yet', { details: { retry_after_s: 3 } }) }),
    defineRoute({ method: 'GET', url: '/api/wrong', summary: 'x', schema: { response: z.object({ n: z.number() }) }, handler: () => ({ n: 'x' }) }),
    plain('/api/circle', () => {
      const it: Record<string, unknown> = {}
      it.it = it
      return it
    })
  )
  const post = (path: string, body: string | Buffer | undefined, headers: Record<string, string> = { 'content-type': 'application/json' }): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers, ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }) })

  t.test('schemas behind getters are made with the first request that needs them', async t => {
    t.strictSame(made.filter(name => name !== 'response'), [], 'not by the start; answers are checked in tests alone')
    t.equal((await post('/api/late/7', '{"name":"a"}')).status, 200)
    t.match(seen.at(-1), { body: { name: 'a' }, params: { id: 7 } })
    t.strictSame(new Set(made), new Set(['params', 'body', 'response']))
    t.match(await (await post('/api/late/x', '{"name":"a"}')).text(), /validation\.invalid.*id/)
    t.match(await (await post('/api/late/7', '{}')).text(), /validation\.invalid.*name/)
    t.equal((await post('/api/late-mistake', '{}')).status, 500)
    const logged = gateway.logs.filter(({ level }) => level === 'error').map(({ fields }) => (fields.err as Error).message)
    t.match(logged.at(-1), /schema\.body of POST \/api\/late-mistake is not a zod schema/)
  })
  t.test('a body is checked against its schema, and not sent back in a refusal', async t => {
    const cases: Array<[string, string | Buffer | undefined, number, unknown]> = [
      ['/api/strict', '{"name":"a"}', 200, { name: 'a', size: 3 }], ['/api/strict', '{"name":"a","size":9}', 200, { name: 'a', size: 9 }],
      ['/api/strict', '', 400, /validation\.invalid.*name/], ['/api/strict', undefined, 400, /validation\.invalid/], ['/api/strict', '{"name":"a","size":10}', 400, /validation\.invalid.*size/],
      ['/api/strict', '{"name":"a","siez":1}', 400, /validation\.unknown_keys.*siez.*size/], ['/api/strict', '{', 400, /request\.invalid_json/], ['/api/strict', '[1]', 400, /request\.not_an_object/],
      ['/api/strict', 'null', 400, /request\.not_an_object/], ['/api/strict', '{"name":"secret-value","size":"secret-value"}', 400, /validation\.invalid/],
      ['/api/strict', '\ufeff{"name":"marked"}', 200, { name: 'marked', size: 3 }],
      ['/api/loose', '{"other":1}', 200, { other: 1 }], ['/api/loose', '', 200, {}], ['/api/any', '', 200, {}], ['/api/any', '{"a":{"b":[]}}', 200, { a: { b: [] } }],
      ['/api/raw', 'anything', 200, Buffer.from('anything')], ['/api/raw', Buffer.from([0, 255, 10]), 200, Buffer.from([0, 255, 10])], ['/api/raw', undefined, 200, Buffer.alloc(0)],
      ['/api/none', '{"ignored":', 200, undefined], ['/api/raw', 'x'.repeat(2049), 413, /request\.too_large/], ['/api/large', 'x'.repeat(9_000), 200, Buffer.from('x'.repeat(9_000))],
      ['/v1/raw', 'x'.repeat(4_096), 200, Buffer.from('x'.repeat(4_096))], ['/v1/raw', 'x'.repeat(4_097), 413, /request\.too_large/]
    ]
    for (const [path, body, status, expected] of cases) {
      const response = await post(path, body)
      const text = await response.text()
      const name = `${path} ${String(body).slice(0, 40)}`
      t.equal(response.status, status, name)
      if (expected instanceof RegExp) t.match(text.replaceAll('\n', ''), expected, name)
      else t.strictSame(seen.at(-1)!.body, expected, name)
      t.notMatch(text, /secret-value/, 'what was submitted is not sent back')
      t.ok(response.headers.get('x-request-id'), name)
    }
    t.equal((await post('/api/strict', '{"name":"a"}', {})).status, 200, 'the content type does not matter')
  })
  t.test('parameters and queries are converted as their schema says, and refused where they do not fit', async t => {
    t.equal((await gateway.fetch('/api/query/7?n=5')).status, 200)
    t.match(seen.at(-1), { params: { id: 7 }, query: { n: 5 } })
    for (const [path, code] of [
      ['/api/query/x', 'validation.invalid'], ['/api/query/7?n=6', 'validation.invalid'], ['/api/query/7?m=1', 'validation.unknown_keys']
    ] as const) {
      const response = await gateway.fetch(path)
      t.equal(response.status, 400)
      t.match(await response.json(), { error: { code, type: 'invalid_request_error', details: { fields: [{}] } } }, path)
    }
  })
  t.test('an answer has its status, and an unexpected failure is told to the log only', async t => {
    const created = await post('/api/created', '')
    t.equal(created.status, 201)
    t.match(created.headers.get('content-type'), /application\/json/)
    const none = await gateway.fetch('/api/gone', { method: 'DELETE' })
    t.equal(none.status, 204)
    t.equal(await none.text(), '')
    const refused = await gateway.fetch('/api/refused')
    t.equal(refused.status, 503)
    t.equal(refused.headers.get('retry-after'), '3')
    for (const path of ['/api/crash', '/api/late-crash', '/api/wrong', '/api/circle']) {
      const crashed = await gateway.fetch(path)
      t.equal(crashed.status, 500, path)
      const text = await crashed.text()
      t.match(JSON.parse(text), { error: { code: 'system.internal', request_id: crashed.headers.get('x-request-id')! } })
      t.notMatch(text, /secret detail/, 'the log has it, the client has not')
    }
    const logged = gateway.logs.filter(({ level }) => level === 'error').map(({ fields }) => (fields.err as Error).message)
    t.ok(logged.includes('secret detail'))
    const wrong = await gateway.fetch('/api/created')
    t.equal(wrong.status, 405)
    t.equal(wrong.headers.get('allow'), 'POST')
  })
})

t.test('the signal of a call follows the client, not the request', async t => {
  let tell = (_: AbortSignal): void => {}
  const gateway = await gatewayWith(t, defineRoute({
    method: 'POST',
    url: '/api/wait',
    summary: 'x',
    handler: async call => {
      const { signal } = call
      await settle()
      if (signal.aborted) throw new Error('the body is read, the client is there')
      const told = new Promise<void>(resolve => { signal.addEventListener('abort', () => resolve()) })
      tell(signal)
      if (call.request.headers['x-wait'] !== undefined) await told
      return { ok: true }
    }
  }))
  const calm = new Promise<AbortSignal>(resolve => { tell = resolve })
  t.equal((await gateway.fetch('/api/wait', { method: 'POST', body: 'x' })).status, 200)
  t.notOk((await calm).aborted, 'an answer that is complete aborts nothing')
  const left = new Promise<AbortSignal>(resolve => { tell = resolve })
  const controller = new AbortController()
  const answer = gateway.fetch('/api/wait', { method: 'POST', body: 'x', headers: { 'x-wait': '1' }, signal: controller.signal }).catch(() => null)
  const signal = await left
  const aborted = new Promise<void>(resolve => { signal.addEventListener('abort', () => resolve()) })
  controller.abort()
  await Promise.all([answer, aborted])
  t.match(signal.reason, { message: /closed its connection/ })
})
