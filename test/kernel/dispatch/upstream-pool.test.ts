import t, { type Test } from 'tap'
import { Agent } from 'undici'
import {
  externalProviderSchema, svcConfigSchema, upstreamSchema, type ConfigService, type ConfigSnapshot, type Logger, type NewEvent,
  type Upstream, upstreamTemplateSchema
} from '../../../kernel/contract/index.js'
import { upstreamTarget } from '../../../kernel/dispatch/upstream/upstream-auth.js'
import { templates as given } from '../../../plugins/providers/remote-catalog/templates.js'
import { UpstreamPool } from '../../../kernel/dispatch/upstream/upstream-pool.js'
import { upstreamOfProvider } from '../../../kernel/dispatch/upstream/upstream-rows.js'
import { createFakeEngine, FakeClock, settle, type FakeEngine, type SeenRequest } from '../../../kernel/testing/index.js'

const templates = given.map(row => upstreamTemplateSchema.parse(row))
const never = new AbortController().signal
const SECRET = 'sk-very-secret'

interface Rig {
  readonly pool: UpstreamPool
  readonly clock: FakeClock
  readonly events: NewEvent[]
  /** Everything that was logged, as text. */
  readonly logged: () => string
  readonly changes: () => number
  readonly replaced: readonly string[]
  /** Origin and connect timeout. */
  readonly left: ReadonlyArray<readonly [string, number | undefined]>
  readonly configure: (upstreams: readonly Upstream[]) => void
}

function upstream (url: string, config: Record<string, unknown> = {}): Upstream {
  return upstreamSchema.parse({ name: 'one', url, auth_style: 'none', ...config })
}

function rig (t: Test, upstreams: readonly Upstream[], { dispatcher = {}, providers = [] }: { dispatcher?: object
  providers?: object[] } = {}): Rig {
  const clock = new FakeClock()
  const events: NewEvent[] = []
  const lines: unknown[] = []
  const replaced: string[] = []
  const left: Array<readonly [string, number | undefined]> = []
  let changes = 0
  const svc = svcConfigSchema.parse({ dispatcher })
  const snapshotOf = (list: readonly Upstream[]): ConfigSnapshot =>
    ({
      svc, upstreams: list, providers: providers.map(row => externalProviderSchema.parse(row)), templates
    }) as unknown as ConfigSnapshot
  let snapshot = snapshotOf(upstreams)
  const line = (...parts: unknown[]): void => { lines.push(...parts) }
  const agent = new Agent()
  const pool = new UpstreamPool({
    config: { get snapshot () { return snapshot }, secret: (name: string) => name === 'THE_KEY' ? SECRET : undefined } as unknown as ConfigService,
    clock,
    events: { emit: (event: NewEvent) => { events.push(event) } } as never,
    log: { debug: line, info: line, warn: line, error: line } as unknown as Logger,
    dispatcher: () => agent,
    token: 'here',
    changed: () => { changes++ },
    replaced: name => { replaced.push(name) },
    left: ({ origin, connectTimeoutMs }) => { left.push([origin, connectTimeoutMs]) }
  })
  t.teardown(async () => {
    pool.close()
    await agent.destroy()
  })
  return {
    pool,
    clock,
    events,
    logged: () => JSON.stringify(lines, (_key, value: unknown) => value instanceof Error ? `${value.stack} ${JSON.stringify(value)}` : value),
    changes: () => changes,
    replaced,
    left,
    configure: list => {
      const previous = snapshot
      snapshot = snapshotOf(list)
      pool.follow(snapshot, previous)
    }
  }
}

async function server (t: Test, ids: readonly string[] = ['a', 'b']): Promise<FakeEngine> {
  const engine = await createFakeEngine()
  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ object: 'list', data: ids.map(id => ({ id, object: 'model' })) })] })
  t.teardown(() => engine.close())
  return engine
}

t.test('lists are fetched once, kept, and asked for again when they are old', async t => {
  const engine = await server(t)
  const { pool, clock, changes } = rig(t, [upstream(`${engine.origin}/v1/`)], { dispatcher: { models_ttl_s: 100 } })
  t.ok(pool.isDue('untried'))
  await Promise.all([pool.refresh('untried', never), pool.refresh('untried', never), pool.refresh('old', never)])
  t.equal(engine.requests.length, 1, 'one fetch at a time')
  t.equal(engine.requests[0]!.url, '/v1/models')
  t.match(pool.views(), [{ name: 'one', models: ['a', 'b'], error: null, refreshed_at: '2023-11-14T22:13:20.000Z' }])
  t.equal(changes(), 1)
  t.notOk(pool.isDue('untried') || pool.isDue('empty') || pool.isDue('old'))
  await clock.advance(101_000)
  await pool.refresh('untried', never)
  await pool.refresh('empty', never)
  t.equal(engine.requests.length, 1)
  await pool.refresh('old', never)
  t.equal(engine.requests.length, 2)
  t.equal(changes(), 1, 'the same list changes nothing')
})

t.test('a dead upstream never slows the list beyond the prefetch timeout, and only the first time', async t => {
  const [dead, alive] = [await server(t), await server(t, ['fine'])]
  dead.answer({ headAfterMs: Infinity })
  const { pool, clock } = rig(t, [upstream(dead.origin, { name: 'dead' }), upstream(alive.origin, { name: 'alive' })])
  let over = false
  const listing = pool.refresh('untried', never).then(() => { over = true })
  await alive.request(0)
  await clock.advance(7_999)
  t.notOk(over)
  await clock.advance(1)
  await listing
  t.strictSame([...pool.routes().keys()], ['fine', 'alive/fine'], 'what has come counts')
  t.equal(clock.pending, 0)
  const gone = rig(t, [upstream(dead.origin)])
  const controller = new AbortController()
  const left = gone.pool.refresh('untried', controller.signal)
  controller.abort()
  await left
  t.equal(gone.clock.pending, 0, 'who leaves waits no longer')
})

t.test('an upstream that fails keeps its last list, says so once, and is tried again after a pause', async t => {
  const engine = await server(t)
  const { pool, clock, events } = rig(t, [upstream(engine.origin)], { dispatcher: { models_ttl_s: 100 } })
  await pool.refresh('untried', never)
  const good = '{"object":"list","data":[{"id":"new"},{"id":""},{"id":7},null,{}]}'
  const bad: Array<[Parameters<FakeEngine['answer']>[0], RegExp]> = [
    [{ status: 500, chunks: ['no'] }, /answered 500/], [{ chunks: [`<html>${SECRET}`] }, /^the model list is not JSON$/], [{ chunks: ['{"models":[]}'] }, /no `data`/],
    [{ status: 302, headers: { location: 'http://127.0.0.1:1/' }, chunks: [] }, /answered 302/], [{ chunks: ['{"data":'], dieAfter: 1 }, /./],
    [{ chunks: Array.from({ length: 9 }, () => 'x'.repeat(1024 * 1024)) }, /larger than 8 MiB/]
  ]
  for (const [script, error] of bad) {
    engine.answer(script)
    await clock.advance(101_000)
    await pool.refresh('old', never)
    t.match(pool.views()[0], { models: ['a', 'b'], error })
  }
  t.equal(events.length, 1, 'told when it fell ill, not at every try')
  t.match(events[0], { type: 'system.upstream_unhealthy', severity: 'warn', data: { upstream: 'one' } })
  const asked = engine.requests.length
  await pool.refresh('old', never)
  await clock.advance(15_000)
  await pool.refresh('old', never)
  t.equal(engine.requests.length, asked, 'not within 15 s')
  engine.answer({ chunks: [good] })
  await clock.advance(1)
  t.notOk(pool.isDue('empty'), 'a list that is there is good enough to look a model up')
  await pool.refresh('old', never)
  t.match(pool.views()[0], { models: ['new'], error: null })
})

t.test('an upstream without a list is asked again when somebody wants a model', async t => {
  const engine = await server(t)
  engine.answer({ status: 503, chunks: [] })
  const { pool, clock } = rig(t, [upstream(engine.origin)])
  await pool.refresh('untried', never)
  t.notOk(pool.isDue('empty'))
  await clock.advance(15_001)
  t.ok(pool.isDue('empty'))
  t.notOk(pool.isDue('untried'), 'the list of models does not wait for it again')
})

t.test('only so many at once', async t => {
  let active = 0
  let most = 0
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const engines = await Promise.all(Array.from({ length: 6 }, () => server(t)))
  for (const engine of engines) {
    engine.answer(() => {
      most = Math.max(most, ++active)
      return { headAfterMs: Infinity }
    })
  }
  const { pool } = rig(t, engines.map(({ origin }, i) => upstream(origin, { name: `u${i}` })), { dispatcher: { prefetch_parallel_cap: 2 } })
  const controller = new AbortController()
  const listing = pool.refresh('untried', controller.signal)
  await Promise.all([engines[0]!.request(0), engines[1]!.request(0)])
  for (let i = 0; i < 20; i++) await settle()
  t.equal(most, 2)
  controller.abort()
  release()
  await Promise.all([listing, gate])
})

t.test('routes and rows: the first upstream has an id, every upstream has its own names', async t => {
  const [a, b, off, quiet] = [await server(t, ['x', 'b/y']), await server(t, ['x', 'y', 'z']), await server(t), await server(t, ['q'])]
  const { pool } = rig(t, [
    upstream(a.origin, { name: 'a' }), upstream(b.origin, { name: 'b', model_filters: { exclude: ['z'] } }), upstream(off.origin, { name: 'off', enabled: false }),
    upstream(quiet.origin, { name: 'quiet', advertise_models: false }), upstream('http://127.0.0.1:1', { name: 'slot', kind: 'slot', slot_name: 'agent' })
  ])
  await pool.refresh('untried', never)
  t.equal(off.requests.length, 0, 'who is off is not asked')
  t.strictSame(Object.fromEntries([...pool.routes()].map(([id, route]) => [id, `${route.upstream}: ${route.modelId}`])), {
    'x': 'a: x', 'a/x': 'a: x', 'b/y': 'b: y', 'a/b/y': 'a: b/y', 'b/x': 'b: x', 'y': 'b: y', 'z': 'b: z', 'b/z': 'b: z', 'q': 'quiet: q', 'quiet/q': 'quiet: q'
  }, 'filters hide nothing from dispatch, and a full name wins over a raw one')
  t.strictSame(listedIds(pool), { a: ['x', 'b/y'], b: ['x', 'y'] })
})

t.test('an upstream that becomes another forgets what it said', async t => {
  const [a, b] = [await server(t, ['of-a']), await server(t, ['of-b'])]
  const { pool, configure, replaced } = rig(t, [upstream(a.origin), upstream(a.origin, { name: 'two' })])
  await pool.refresh('untried', never)
  configure([upstream(b.origin), upstream(a.origin, { name: 'two', advertise_models: false })])
  t.strictSame(pool.views().map(({ models }) => models), [[], ['of-a']], 'only what the list depends on counts')
  await pool.refresh('untried', never)
  t.strictSame([...pool.routes().keys()], ['of-b', 'one/of-b', 'of-a', 'two/of-a'])
  t.strictSame(replaced, ['one'])

  a.answer({ headAfterMs: 20, chunks: ['{"data":[{"id":"late"}]}'] })
  configure([upstream(a.origin)])
  const late = pool.refresh('untried', never)
  await a.request(2)
  configure([upstream(b.origin)])
  await pool.refresh('untried', never)
  await late
  t.strictSame(pool.views()[0]!.models, ['of-b'], 'an answer to the old question does not count')
})

t.test('a way that no upstream takes any more is left, and one that another upstream takes is not', async t => {
  const [a, b] = ['http://a.example:1', 'http://b.example:2']
  const both = [upstream(`${a}/v1`), upstream(`${a}/other`, { name: 'two' })]
  const { configure, left } = rig(t, both)
  const steps: ReadonlyArray<readonly [Upstream[], Array<readonly [string, number | undefined]>]> = [
    [[both[1]!], []],
    [[upstream(`${b}/v1`, { name: 'two' })], [[a, undefined]]],
    [[upstream(`${b}/v1`, { name: 'two', connect_timeout_seconds: 3 })], [[b, undefined]]],
    [[upstream(`${b}/v1`, { name: 'two', connect_timeout_seconds: 3, timeout_seconds: 9 })], []],
    [[upstream(`${b}/v1`, { name: 'two', connect_timeout_seconds: 3, enabled: false })], [[b, 3000]]],
    [[], []]
  ]
  for (const [next, expected] of steps) {
    const before = left.length
    configure(next)
    t.strictSame(left.slice(before), expected)
  }
})

t.test('keys: every style, and never in a log, an event, an error or a view', async t => {
  const engine = await server(t)
  engine.answer({ status: 401, chunks: ['{"error":"bad key"}'] })
  const styles: Array<[Record<string, unknown>, (request: SeenRequest) => unknown, unknown]> = [
    [{ auth_style: 'bearer' }, ({ headers }) => headers.authorization, `Bearer ${SECRET}`],
    [{ auth_style: 'anthropic' }, ({ headers }) => [headers['x-api-key'], headers['anthropic-version']], [SECRET, '2023-06-01']],
    [{ auth_style: 'header', auth_header: 'X-My-Key' }, ({ headers }) => headers['x-my-key'], SECRET],
    [{ auth_style: 'google_query' }, ({ url }) => url, `/v1/models?key=${SECRET}`],
    [{ auth_style: 'none' }, ({ headers, url }) => [headers.authorization, url], [undefined, '/v1/models']],
    [{ auth_style: 'bearer', auth_value_env: 'NOT_SET' }, ({ headers }) => headers.authorization, undefined],
    [{ auth_style: 'anthropic', auth_value_env: '' }, ({ headers }) => [headers['x-api-key'], headers['anthropic-version']], [undefined, '2023-06-01']]
  ]
  for (const [config, seen, expected] of styles) {
    const { pool, events, logged } = rig(t, [upstream(`${engine.origin}/v1`, { auth_value_env: 'THE_KEY', ...config })])
    const n = engine.requests.length
    await pool.refresh('untried', never)
    t.strictSame(seen(await engine.request(n)), expected, JSON.stringify(config))
    t.notMatch(JSON.stringify([pool.views(), events]) + logged(), SECRET, `${JSON.stringify(config)}: not told`)
    t.equal(events.length, 1)
  }
})

t.test('where calls to an upstream go', async t => {
  const cases: Array<[string, string, string]> = [
    ['http://h/v1', 'http://h', '/v1/chat/completions'], ['http://h/v1/', 'http://h', '/v1/chat/completions'], ['https://h:444', 'https://h:444', '/chat/completions'],
    ['http://h/a/b?api-version=2', 'http://h', '/a/b/chat/completions?api-version=2'], ['http://[::1]:9/v1', 'http://[::1]:9', '/v1/chat/completions']
  ]
  for (const [url, origin, path] of cases) t.match(upstreamTarget(upstream(url), '/chat/completions', () => undefined), { origin, path }, url)
  const keyed = upstream('http://h/v1?a=b', { auth_style: 'google_query', auth_value_env: 'K' })
  t.equal(upstreamTarget(keyed, '/models', () => 'a&b=c').path, '/v1/models?a=b&key=a%26b%3Dc')
})

t.test('providers.toml names upstreams by template', async t => {
  const row = (config: object) => upstreamOfProvider(externalProviderSchema.parse(config), templates)
  t.match(row({ catalog_id: 'openai' }), { name: 'openai', url: 'https://api.openai.com/v1', auth_style: 'bearer', auth_value_env: 'OPENAI_API_KEY', enabled: true })
  t.match(row({ catalog_id: 'google_ai_studio', name: 'gemini', auth_value_env: 'MINE', enabled: false }), { name: 'gemini', auth_value_env: 'MINE', enabled: false })
  t.match(row({ catalog_id: 'anthropic', models: ['m'] }), { auth_style: 'anthropic', model_filters: { models: ['m'] } })
  t.match(row({ catalog_id: 'own', base_url: 'http://h/v1' }), { name: 'own', url: 'http://h/v1', auth_style: 'none' })
  t.match(row({ catalog_id: 'own', base_url: 'http://h/v1', auth_value_env: 'K' }), { auth_style: 'bearer' })
  t.equal(row({ catalog_id: 'unknown' }), null)
  t.equal(row({ catalog_id: 'constructor' }), null, 'a member of every object is no template')
  const { pool } = rig(t, [upstream('http://own/v1', { name: 'openai' })], { providers: [{ catalog_id: 'openai' }, { catalog_id: 'deepseek' }] })
  t.strictSame(pool.all().map(({ name, url }) => `${name} ${url}`), ['openai http://own/v1', 'deepseek https://api.deepseek.com/v1'], 'upstreams.toml wins')
})

t.test('lists with pages, long lists, and lists that never end', async t => {
  const page = (from: number, count: number, more: boolean): string => JSON.stringify({
    data: Array.from({ length: count }, (_, i) => ({ id: `m${from + i}` })), has_more: more, first_id: `m${from}`, last_id: `m${from + count - 1}`
  })
  const paged = await server(t)
  paged.answer(({ url }) => {
    const after = new URL(url, 'http://x').searchParams.get('after_id')
    return { chunks: [after === null ? page(0, 20, true) : page(Number(after.slice(1)) + 1, 20, after !== 'm39')] }
  })
  const anthropic = rig(t, [upstream(`${paged.origin}/v1?beta=1`, { auth_style: 'anthropic', auth_value_env: 'THE_KEY' })])
  await anthropic.pool.refresh('untried', never)
  t.equal(anthropic.pool.views()[0]!.models.length, 60)
  t.strictSame(paged.requests.map(({ url }) => url), ['/v1/models?beta=1&limit=1000', '/v1/models?beta=1&limit=1000&after_id=m19', '/v1/models?beta=1&limit=1000&after_id=m39'])

  const many = await server(t, Array.from({ length: 1_000 }, (_, i) => `vendor/model-${i}`))
  const { pool } = rig(t, [upstream(many.origin)])
  await pool.refresh('untried', never)
  t.equal(pool.routes().size, 2_000)
  t.equal(many.requests[0]!.url, '/models', 'nobody else is asked for what he may not know')

  const stubborn = await server(t)
  stubborn.answer({ chunks: [page(0, 3, true)] })
  const same = rig(t, [upstream(stubborn.origin)])
  await same.pool.refresh('untried', never)
  t.equal(stubborn.requests.length, 2, 'the same page again is the end')
  const endless = await server(t)
  let n = 0
  endless.answer(() => ({ chunks: [page(n++, 1, true)] }))
  const bounded = rig(t, [upstream(endless.origin)])
  await bounded.pool.refresh('untried', never)
  t.equal(endless.requests.length, 20)
})

t.test('models that the filters name can be asked for, listed or not, also while there is no list', async t => {
  const engine = await server(t, ['a', 'b'])
  engine.answer({ status: 500, chunks: [] })
  const { pool, clock } = rig(t, [upstream(engine.origin, { model_filters: { models: ['a', 'hidden'] } })])
  await pool.refresh('untried', never)
  t.strictSame([...pool.routes().keys()], ['a', 'one/a', 'hidden', 'one/hidden'])
  engine.answer({ chunks: ['{"data":[{"id":"a"},{"id":"b"}]}'] })
  await clock.advance(15_001)
  await pool.refresh('empty', never)
  t.strictSame(pool.views()[0]!.models, ['a', 'b', 'hidden'])
  t.strictSame(listedIds(pool), { one: ['a', 'hidden'] })
})

t.test('one is asked at any time, and its answer counts', async t => {
  const engine = await server(t)
  const { pool, clock } = rig(t, [upstream(engine.origin)])
  const [one] = pool.all()
  t.match(await pool.ask(one!, never), { rows: [{ id: 'a' }, { id: 'b' }], status: 200, error: null })
  t.match(pool.views()[0], { models: ['a', 'b'], error: null })
  engine.answer({ status: 401, chunks: [] })
  t.match(await pool.ask(one!, never), { ids: null, status: 401, error: 'GET /models answered 401' })
  t.match(pool.views()[0], { models: ['a', 'b'], error: 'GET /models answered 401' })
  await engine.close()
  t.match(await pool.ask(one!, never), { ids: null, status: null, error: /./ })
  const silent = await server(t)
  silent.answer({ headAfterMs: Infinity })
  const slow = rig(t, [upstream(silent.origin)])
  const leaving = new AbortController()
  const answer = slow.pool.ask(slow.pool.all()[0]!, leaving.signal)
  await silent.request(0)
  leaving.abort(new Error('left'))
  await t.rejects(answer, { message: 'left' })
  t.equal(clock.pending, 0)
})

t.test('those that failed last come last, and some are asked before anybody needs them', async t => {
  const [bad, good, eager] = [await server(t), await server(t, ['g']), await server(t, ['e'])]
  bad.answer({ status: 500, chunks: [] })
  const { pool, clock } = rig(t, [
    upstream(bad.origin, { name: 'bad' }), upstream(good.origin, { name: 'good' }), upstream(eager.origin, { name: 'eager', warmup_strategy: 'always' })
  ], { dispatcher: { prefetch_parallel_cap: 1, models_ttl_s: 20 } })
  pool.warm()
  await eager.request(0)
  t.equal(bad.requests.length + good.requests.length, 0)
  await pool.refresh('untried', never)
  await clock.advance(30_000)
  bad.answer({ headAfterMs: Infinity })
  const listing = pool.refresh('old', never)
  await good.request(1)
  await eager.request(1)
  await bad.request(1)
  await clock.advance(8_000)
  await listing
  t.strictSame(pool.views().map(({ name, error }) => `${name} ${error === null}`), ['bad false', 'good true', 'eager true'])
})

t.test('gateways that a question came through are named, and wait less for each other', async t => {
  const engine = await server(t)
  engine.answer({ headAfterMs: Infinity })
  const { pool, clock } = rig(t, [upstream(engine.origin)])
  let over = false
  const listing = pool.refresh('untried', never, ['a', 'b', 'c']).then(() => { over = true })
  t.equal((await engine.request(0)).headers['x-svc-via'], 'a, b, c, here')
  await clock.advance(1_999)
  t.notOk(over)
  await clock.advance(1)
  await listing
})

function listedIds (pool: UpstreamPool): unknown {
  return Object.fromEntries(pool.listed().map(({ upstream, rows }) => [upstream, rows.map(({ id }) => id)]))
}
