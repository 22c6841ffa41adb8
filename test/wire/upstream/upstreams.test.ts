import { writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import settings from '../../../plugins/api/settings/index.js'
import upstreamRoutes from '../../../plugins/api/upstreams/index.js'
import { chatStream, createFakeEngine, type FakeEngine } from '../../../kernel/testing/index.js'
import { fakeUpstream, upstreamTable, type FakeUpstream } from '../fake-upstream.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const KEY = 'sk-upstream-secret'

async function upstream (t: Test, ids: readonly string[] = ['gpt-9']): Promise<FakeEngine> {
  const engine = await createFakeEngine()
  serve(engine, ids)
  t.teardown(() => engine.close())
  return engine
}

/** Lists models, and answers everything else with what it was asked. */
function serve (engine: FakeEngine, ids: readonly string[]): void {
  engine.answer(({ url, body }) => url.split('?')[0]!.endsWith('/models')
    ? { headers: JSON_TYPE, chunks: [JSON.stringify({ object: 'list', data: ids.map(id => ({ id })) })] }
    : { headers: JSON_TYPE, chunks: [body] })
}

function table (name: string, url: string, more = 'auth_style = "none"'): string {
  return `[[upstream]]\nname = "${name}"\nurl = "${url}"\n${more}\n`
}

function gatewayWith (t: Test, upstreams: string, options: WireOptions = {}): Promise<WireGateway> {
  return wireGateway(t, { ...options, files: { 'etc/svc/upstreams.toml': upstreams, 'etc/svc/api.env': `UP_KEY=${KEY}\n` } })
}

const chatCalls = (engine: FakeEngine) => engine.requests.filter(({ url }) => !url.split('?')[0]!.endsWith('/models'))

t.test('a request for an upstream model goes there, with the upstream\'s key and not the client\'s', async t => {
  const engine = await upstream(t)
  const styles: Array<[string, string, string, Record<string, unknown>]> = [
    ['/v1', 'auth_style = "bearer"\nauth_value_env = "UP_KEY"', '/v1/chat/completions', { 'authorization': `Bearer ${KEY}`, 'x-api-key': undefined }],
    ['/v1/', 'auth_style = "anthropic"\nauth_value_env = "UP_KEY"', '/v1/chat/completions', { 'authorization': undefined, 'x-api-key': KEY, 'anthropic-version': 'theirs' }],
    ['/api/v2?api-version=3', 'auth_style = "header"\nauth_header = "Api-Key"\nauth_value_env = "UP_KEY"', '/api/v2/chat/completions?api-version=3', { 'authorization': undefined, 'api-key': KEY }],
    ['', 'auth_style = "google_query"\nauth_value_env = "UP_KEY"', `/chat/completions?key=${KEY}`, { authorization: undefined }],
    ['/v1', 'auth_style = "none"', '/v1/chat/completions', { 'authorization': undefined, 'x-api-key': undefined, 'api-key': undefined }]
  ]
  for (const [path, auth, url, headers] of styles) {
    const gateway = await gatewayWith(t, table('up', `${engine.origin}${path}`, auth))
    const n = engine.requests.length
    const body = '{"messages": [],  "model":"gpt-9", "temperature": 0.10}'
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body,
      headers: {
        'authorization': 'Bearer theirs', 'x-api-key': 'theirs', 'api-key': 'theirs', 'anthropic-version': 'theirs', 'cookie': 'a=theirs', 'x-request-id': 'r-1', 'x-title': 'kept',
        'session_id': 'theirs', 'x-codex-installation-id': 'theirs', 'user-agent': 'codex_cli_rs/1 (who I am)', 'x-stainless-os': 'Linux'
      }
    })
    t.equal(response.status, 200, auth)
    t.equal(await response.text(), body, 'the body is passed on byte for byte')
    const seen = engine.requests.slice(n).find(request => request.method === 'POST')!
    t.equal(seen.url, url, auth)
    for (const [name, value] of Object.entries(headers)) t.equal(seen.headers[name], value, `${auth}: ${name}`)
    t.match(seen.headers, { 'x-request-id': 'r-1', 'x-title': 'kept', 'user-agent': 'svc' })
    for (const name of ['session_id', 'x-codex-installation-id', 'x-stainless-os']) t.equal(seen.headers[name], undefined, `${name} tells who asks`)
    t.equal(seen.headers.cookie, undefined)
    t.notMatch(JSON.stringify(gateway.logs), KEY)
  }
})

t.test('addressing: the first request looks the lists up, full names choose, and nothing falls back', async t => {
  const [one, two] = [await upstream(t, ['gpt-9', 'only-one']), await upstream(t, ['gpt-9', 'vendor/only-two'])]
  const gateway = await gatewayWith(t, table('one', `${one.origin}/v1`) + table('two', `${two.origin}/v1`))
  const cases: Array<[string, FakeEngine | null, string]> = [
    ['only-one', one, 'only-one'], ['gpt-9', one, 'gpt-9'], ['two/gpt-9', two, 'gpt-9'], ['vendor/only-two', two, 'vendor/only-two'], ['two/vendor/only-two', two, 'vendor/only-two'],
    ['two/only-one', null, ''], ['three/gpt-9', null, ''], ['gpt-10', null, '']
  ]
  for (const [model, engine, sent] of cases) {
    const before = chatCalls(one).length + chatCalls(two).length
    const response = await gateway.chat({ model })
    if (engine === null) {
      t.equal(response.status, 404, model)
      t.match(await response.json(), { error: { code: 'model.not_found', param: 'model' } }, model)
      t.equal(chatCalls(one).length + chatCalls(two).length, before, `${model}: nobody was asked`)
    } else {
      t.match(await response.json(), { model: sent }, model)
      t.equal(chatCalls(engine).length + chatCalls(engine === one ? two : one).length, before + 1)
      t.match(JSON.parse(chatCalls(engine).at(-1)!.body.toString()), { model: sent }, model)
    }
  }
  t.equal(gateway.runtime.started.length, 0, 'no slot was started for any of it')
  const list = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string, owned_by: string }> }
  t.strictSame(list.data.filter(({ owned_by }) => owned_by !== 'svc').map(({ id, owned_by }) => `${id} ${owned_by}`), ['gpt-9 one', 'only-one one', 'vendor/only-two two'])
})

t.test('a cold gateway waits for no list that cannot decide the name', async t => {
  const silent = async (): Promise<FakeUpstream> => {
    const up = await fakeUpstream(t, ['never-said'])
    up.list({ headAfterMs: Infinity })
    return up
  }
  const cold = async (...ups: ReadonlyArray<readonly [string, FakeUpstream]>): Promise<WireGateway> => wireGateway(t, {
    svc: '[dispatcher]\nprefetch_timeout_s = 600\n',
    files: { 'etc/svc/upstreams.toml': ups.map(([name, { url }]) => upstreamTable(name, url)).join('') }
  })
  const answeredBy = async (gateway: WireGateway, model: string, up: FakeUpstream, sent = model): Promise<void> => {
    const n = up.calls.length
    const response = await gateway.chat({ model })
    t.equal(response.status, 200, model)
    await response.text()
    t.equal(up.calls.length, n + 1, `${model} goes where it belongs`)
    t.equal((JSON.parse(up.calls.at(-1)!.body.toString()) as { model: string }).model, sent)
  }

  // a wait for a list that may take ten minutes fails the test: silent ones in front, more than are asked at once, and behind
  const a = await fakeUpstream(t, ['a-model', 'vendor/a-model'])
  const dead = await Promise.all(Array.from({ length: 6 }, silent))
  const among = await cold(['b', dead[0]!], ...dead.slice(2).map((up, i) => [`d${i}`, up] as const), ['a', a], ['c', dead[1]!])
  await answeredBy(among, 'a-model', a)
  await answeredBy(among, 'vendor/a-model', a)
  t.match(await (await among.fetch('/v1/models/a-model')).json(), { id: 'a-model', owned_by: 'a' })

  await answeredBy(await cold(['b', dead[0]!], ['a', a]), 'a/a-model', a, 'a-model')
  const stalled = await cold(['a', a], ['b', dead[0]!])
  await answeredBy(stalled, 'b/anything', dead[0]!, 'anything')
  t.match(await (await (await cold(['b', dead[0]!], ['a', a])).fetch('/v1/models/vendor/a-model')).json(), { owned_by: 'a' }, 'one row waits for its own list alone')

  // an upstream whose list fails can still be asked by a full name; what nobody has is not found as soon as all have spoken
  const failing = await fakeUpstream(t)
  failing.list({ status: 500, chunks: ['no'] })
  const mixed = await cold(['f', failing], ['a', a])
  t.match(await (await mixed.chat({ model: 'nobody-has-it' })).json(), { error: { code: 'model.not_found' } })
  await answeredBy(mixed, 'f/blind', failing, 'blind')
  t.match(await (await mixed.chat({ model: 'a/nobody-has-it' })).json(), { error: { code: 'model.not_found' } }, 'a list that is known is the last word')

  // the order decides between two that both have it, when both answer
  const twin = await fakeUpstream(t, ['a-model'])
  twin.list({ headAfterMs: 50, headers: JSON_TYPE, chunks: ['{"data":[{"id":"a-model"}]}'] })
  await answeredBy(await cold(['twin', twin], ['a', a]), 'a-model', twin)
})

t.test('answers pass through: errors in the upstream\'s own shape, streams byte for byte', async t => {
  const engine = await upstream(t)
  const gateway = await gatewayWith(t, table('up', engine.origin))
  await (await gateway.chat({ model: 'gpt-9' })).text()
  const refusal = '{"error":{"message":"You exceeded your quota","type":"insufficient_quota"}}'
  engine.answer({ status: 429, headers: { ...JSON_TYPE, 'retry-after': '7', 'x-ratelimit-remaining': '0', 'set-cookie': 'a=b', 'access-control-allow-origin': '*' }, chunks: [refusal] })
  const refused = await gateway.chat({ model: 'gpt-9', stream: true })
  t.equal(refused.status, 429)
  t.equal(await refused.text(), refusal)
  t.equal(refused.headers.get('retry-after'), '7')
  t.equal(refused.headers.get('x-ratelimit-remaining'), '0')
  t.equal(refused.headers.get('set-cookie'), null)
  t.equal(refused.headers.get('access-control-allow-origin'), null)
  const whole = `: hello\r\n\r\n${chatStream(['a', 'b']).join('')}`
  engine.answer({ headers: { ...SSE, 'content-length': String(whole.length) }, chunks: [whole.slice(0, 30), whole.slice(30)], everyMs: 2 })
  t.equal(await (await gateway.chat({ model: 'gpt-9', stream: true })).text(), whole)
  engine.answer({ headers: { ...SSE, 'content-length': String(whole.length) }, chunks: [whole.slice(0, 90)], dieAfter: 1 })
  t.match(await (await gateway.chat({ model: 'gpt-9', stream: true })).text(), /"dispatch\.upstream_failed".*"upstream":"up"/, 'the error is not cut to the length that was promised')
  engine.answer({ status: 302, headers: { location: 'http://127.0.0.1:1/elsewhere' }, chunks: [] })
  const away = await fetch(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', redirect: 'manual', body: '{"model":"gpt-9"}' })
  t.equal(away.status, 502, 'nobody follows a redirect')
})

t.test('a client that leaves frees the upstream, in every phase', async t => {
  const engine = await upstream(t)
  const gateway = await gatewayWith(t, table('up', engine.origin))
  await (await gateway.chat({ model: 'gpt-9' })).text()
  for (const [name, script, body] of [
    ['before the head', { headAfterMs: Infinity }, {}], ['in a stream', { headers: SSE, chunks: chatStream(['a', 'b']), hangAfter: 2 }, { stream: true }],
    ['in a body', { headers: JSON_TYPE, chunks: ['{', '}'], hangAfter: 1 }, {}]
  ] as const) {
    engine.answer(script)
    const controller = new AbortController()
    const n = engine.requests.length
    const answer = gateway.chat({ model: 'gpt-9', ...body }, controller.signal).then(response => response.text()).catch(() => 'aborted')
    const seen = await engine.request(n)
    controller.abort()
    t.equal(await seen.closed, 'aborted', name)
    await answer
  }
  // the lists are asked for while the client waits: it leaves then, too
  const silent = await upstream(t)
  silent.answer({ headAfterMs: Infinity })
  const waiting = await gatewayWith(t, table('up', silent.origin))
  const controller = new AbortController()
  const lost = waiting.chat({ model: 'gpt-9' }, controller.signal).catch(() => 'aborted')
  await until(() => waiting.gateway.inference().dispatcher.active.size === 1, 'it waits')
  controller.abort()
  await until(() => waiting.gateway.inference().dispatcher.active.size === 0, 'it is gone')
  t.equal(await lost, 'aborted')
})

t.test('upstreams that cannot be reached, or break off, or take too long', async t => {
  const engine = await upstream(t)
  const gateway = await gatewayWith(t, table('up', engine.origin, 'auth_style = "none"\ntimeout_seconds = 1'))
  await (await gateway.chat({ model: 'gpt-9' })).text()
  engine.answer({ headAfterMs: Infinity })
  const slow = await gateway.chat({ model: 'gpt-9' })
  t.equal(slow.status, 504)
  t.match(await slow.json(), { error: { code: 'dispatch.upstream_timeout', details: { upstream: 'up' } } })
  await engine.close()
  const gone = await gateway.chat({ model: 'gpt-9' })
  t.equal(gone.status, 502)
  t.match(await gone.json(), {
    error: { code: 'dispatch.upstream_unavailable', message: /before it answered$/, details: { upstream: 'up', cause: 'ECONNREFUSED' } }
  })
  t.equal(gone.headers.get('x-should-retry'), null, 'a retry may help')
})

/** An upstream that says what it says, whatever it was asked. */
async function rawUpstream (t: Test, answer: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    let text = ''
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      const list = '{"data":[{"id":"raw"}]}'
      if (text.startsWith('GET')) socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${list.length}\r\nConnection: close\r\n\r\n${list}`)
      else answer(socket, text)
      text = ''
    })
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('upstreams with a mind of their own', async t => {
  const cases: Array<[name: string, raw: string, expected: { status: number, text?: string | RegExp } | 'broken']> = [
    ['hints before the answer', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', { status: 200, text: 'ok' }],
    ['no length, ends with the connection', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok', { status: 200, text: 'ok' }],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nok', { status: 200, text: 'ok' }],
    ['pieces with a trailer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n', { status: 200, text: 'ok' }],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', { status: 502, text: /upstream_unavailable/ }],
    ['a length and pieces', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', { status: 502, text: /upstream_unavailable/ }],
    ['a shorter body than promised', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok', 'broken'],
    ['an upgrade nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', { status: 502 }],
    ['no HTTP', 'hello\r\n\r\n', { status: 502, text: /upstream_unavailable/ }],
    ['nothing', '', { status: 502, text: /upstream_unavailable/ }],
    ['an odd status', 'HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok', { status: 299, text: 'ok' }],
    ['no content', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, text: '' }],
    ['headers of one connection', 'HTTP/1.1 200 OK\r\nConnection: close\r\nKeep-Alive: timeout=1\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok', { status: 200, text: 'ok' }]
  ]
  for (const [name, raw, expected] of cases) {
    const origin = await rawUpstream(t, socket => socket.end(raw))
    // what no document has passes all the same
    const gateway = await gatewayWith(t, table('up', origin), { checkAnswers: false })
    const response = await gateway.chat({ model: 'raw' })
    if (expected === 'broken') {
      await t.rejects(response.text(), name)
    } else {
      t.equal(response.status, expected.status, name)
      if (expected.text !== undefined) t.match(await response.text(), expected.text, name)
      t.equal(response.headers.get('keep-alive')?.includes('timeout=1,') ?? false, false)
      t.equal(response.headers.get('upgrade'), null, name)
    }
    t.equal(gateway.gateway.inference().dispatcher.active.size, 0, `${name}: nothing is left`)
  }
})

t.test('an upstream that refuses before it has read the request', async t => {
  const origin = await rawUpstream(t, socket => {
    socket.pause()
    socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big')
    setTimeout(() => socket.destroy(), 50)
  })
  const gateway = await gatewayWith(t, table('up', origin))
  const response = await gateway.chat({ model: 'raw', filler: 'x'.repeat(8 * 1024 * 1024) })
  const text = await response.text()
  t.ok(response.status === 413 ? text === 'too big' : response.status === 502, `${response.status} ${text}`)
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')
})

t.test('a slow client slows the upstream down', async t => {
  const chunk = Buffer.from(`: ${'x'.repeat(64 * 1024)}\n\n`)
  let sent = 0
  const origin = await rawUpstream(t, socket => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n')
    const pump = (): void => {
      while (sent < 512 * 1024 * 1024 && !socket.destroyed) {
        sent += chunk.length
        if (!socket.write(chunk)) return
      }
    }
    socket.on('drain', pump)
    pump()
  })
  const gateway = await gatewayWith(t, table('up', origin))
  const response = await gateway.chat({ model: 'raw', stream: true })
  const reader = response.body!.getReader()
  await reader.read()
  let last = -1
  let still = 0
  await until(() => {
    still = sent === last ? still + 1 : 0
    last = sent
    return still > 30
  }, 'it stands still')
  t.ok(sent < 64 * 1024 * 1024, `${Math.round(sent / 1024 / 1024)} MiB were sent that nobody read`)
  let read = 0
  while (read < 80 * 1024 * 1024) read += (await reader.read()).value!.length
  t.pass('and goes on when the client does')
  await reader.cancel()
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')
})

t.test('what an upstream lists is taken within bounds: ids of any length would make every list of models slow', async t => {
  const engine = await upstream(t, ['x'.repeat(100_000), 'fine', `y${'z'.repeat(511)}`])
  const gateway = await gatewayWith(t, table('up', `${engine.origin}/v1`))
  const { data } = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string }> }
  const remote = data.map(({ id }) => id).filter(id => !id.startsWith('svc/'))
  t.strictSame(remote, ['fine', `y${'z'.repeat(511)}`])
  t.strictSame(gateway.gateway.inference().upstreams.views()[0]!.models, remote, 'nobody else sees it either')
})

t.test('pass_headers says what an upstream learns of a client', async t => {
  const engine = await upstream(t)
  const headers = { 'x-own': '1', 'x-session-id': '2', 'x-session-name': '3', 'x-title': '4', 'user-agent': 'me' }
  const cases: Array<[list: string, passed: string[]]> = [
    ['[]', []],
    ['["x-own", "x-session-*"]', ['x-own', 'x-session-id', 'x-session-name']],
    ['["*"]', Object.keys(headers)]
  ]
  for (const [list, passed] of cases) {
    const gateway = await gatewayWith(t, table('up', `${engine.origin}/v1`, `auth_style = "none"\npass_headers = ${list}`))
    const n = chatCalls(engine).length
    await gateway.fetch('/v1/chat/completions', { method: 'POST', body: '{"model":"gpt-9"}', headers })
    const seen = chatCalls(engine)[n]!
    const had = Object.entries(headers).filter(([name, value]) => seen.headers[name] === value)
    t.strictSame(had.map(([name]) => name), passed, list)
    t.match(seen.headers, { 'x-request-id': String, 'content-length': '17' })
  }
})

t.test('a changed key, address, header rule or time limit reaches the next request, also when a file was edited', async t => {
  const [first, second] = [await upstream(t), await upstream(t)]
  const row = (url: string, more = ''): string => table('up', `${url}/v1`, `auth_style = "bearer"\nauth_value_env = "UP_KEY"\n${more}`)
  const gateway = await gatewayWith(t, row(first.origin), { plugins: [upstreamRoutes, settings] })
  const send = async (path: string, body: object): Promise<void> => {
    const [method, url] = path.split(' ') as [string, string]
    const response = await gateway.fetch(url, { method, body: JSON.stringify(body), headers: JSON_TYPE })
    t.ok(response.ok, `${path}: ${response.status}`)
  }
  const seenBy = async (engine: FakeEngine): Promise<{ readonly key: unknown, readonly own: unknown }> => {
    const n = chatCalls(engine).length
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: '{"model":"up/gpt-9"}', headers: { 'x-own': '1' } })
    t.equal(response.status, 200)
    const { headers } = chatCalls(engine)[n]!
    return { key: headers.authorization, own: headers['x-own'] }
  }
  t.strictSame(await seenBy(first), { key: `Bearer ${KEY}`, own: undefined })
  await send('POST /api/providers/up/credentials', { key: 'UP_KEY', value: 'sk-second' })
  t.strictSame(await seenBy(first), { key: 'Bearer sk-second', own: undefined }, 'a key that was set')
  await send('PATCH /api/upstreams/up', { pass_headers: ['x-own'] })
  t.strictSame(await seenBy(first), { key: 'Bearer sk-second', own: '1' }, 'a row that was changed')
  await send('PATCH /api/upstreams/up', { url: `${second.origin}/v1`, auth_value: 'sk-third' })
  t.strictSame(await seenBy(second), { key: 'Bearer sk-third', own: '1' }, 'another address with its key')

  await writeFile(join(gateway.home, 'etc/svc/api.env'), 'UP_KEY=sk-by-hand\n', { mode: 0o600 })
  await writeFile(join(gateway.home, 'etc/svc/upstreams.toml'), row(first.origin))
  await send('POST /api/settings/reload', {})
  t.strictSame(await seenBy(first), { key: 'Bearer sk-by-hand', own: undefined }, 'files that were edited')
  await writeFile(join(gateway.home, 'etc/svc/upstreams.toml'), row(first.origin, 'timeout_seconds = 1\n'))
  await send('POST /api/settings/reload', {})
  first.answer({ headAfterMs: Infinity })
  const late = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: '{"model":"up/gpt-9"}' })
  t.match([late.status, await late.text()], [504, /dispatch\.upstream_timeout/], 'a time limit')
})

t.test('a redirect of an upstream is an error, and its refusal does not repeat the key', async t => {
  const engine = await upstream(t)
  const gateway = await gatewayWith(t, table('up', `${engine.origin}/v1`, 'auth_style = "bearer"\nauth_value_env = "UP_KEY"'))
  await gateway.fetch('/v1/models')
  const list = { headers: JSON_TYPE, chunks: ['{"data":[{"id":"gpt-9"}]}'] }
  const answer = (script: Parameters<FakeEngine['answer']>[0]): void => {
    engine.answer(request => request.url.endsWith('/models') ? list : typeof script === 'function' ? script(request) : script)
  }
  for (const stream of [false, true]) {
    for (const status of [301, 302, 307, 308]) {
      answer({ status, headers: { location: 'http://evil.example/v1/chat/completions' }, chunks: ['moved'] })
      const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'gpt-9', stream }), redirect: 'manual' })
      t.equal(response.status, 502)
      t.equal(response.headers.get('location'), null)
      t.equal(response.headers.get('x-should-retry'), 'false')
      t.match(await response.json(), { error: { code: 'dispatch.upstream_redirected', details: { upstream: 'up', status } } })
    }
  }
  const text = JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}. Again: ${KEY}` } })
  for (const cut of [text.length, 45, 50, 1]) {
    const chunks = Array.from({ length: Math.ceil(text.length / cut) }, (_, i) => text.slice(i * cut, (i + 1) * cut))
    answer({ status: 401, headers: { ...JSON_TYPE, 'content-length': String(text.length), 'www-authenticate': `Bearer ${KEY}` }, chunks })
    const response = await gateway.chat({ model: 'gpt-9' })
    t.equal(response.status, 401)
    t.notMatch(response.headers.get('www-authenticate'), KEY)
    t.equal(await response.text(), text.replaceAll(KEY, '*'.repeat(KEY.length)), `in pieces of ${cut}`)
  }
})
