import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue, type ToolSource } from '../../../kernel/contract/index.js'
import { createTestGateway, FakeClock, type TestGateway, type TestGatewayOptions } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { readUntil, until } from '../../wire/wire-gateway.js'

let tools: ToolCatalogue
const hung: AbortSignal[] = []
let shouted = 0

const shop = definePlugin({
  name: 'shop',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools },
  register: ctx => {
    tools = ctx.services.tools
    ctx.addTool(defineTool({
      server: 'shop', name: 'who', description: 'Who calls', input: z.object({}),
      handler: async ({ agent, actor, private: isPrivate }) => ({ agent, actor, private: isPrivate })
    }))
    ctx.addTool(defineTool({
      server: 'shop', name: 'shout', description: 'Is loud', input: z.object({}),
      handler: async () => {
        shouted++
        return { text: 'x'.repeat(100_000) }
      }
    }))
    ctx.addTool(defineTool({
      server: 'shop', name: 'hang', description: 'Hangs', input: z.object({}), handler: ({ signal }) => {
        hung.push(signal)
        return new Promise(() => {})
      }
    }))
  }
})

async function start (t: Test, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await createTestGateway({ builtins, plugins: [shop], ...options })
  t.teardown(() => gateway.close())
  return gateway
}

interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

const JSON_HEADERS = { 'content-type': 'application/json', 'accept': 'application/json, text/event-stream' }

async function post (gateway: TestGateway, message: unknown, headers: Record<string, string> = {}, path = '/mcp/shop'): Promise<Asked> {
  const response = await gateway.fetch(path, {
    method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body: typeof message === 'string' ? message : JSON.stringify(message)
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) as Record<string, unknown> }
}

const ask = (method: string, params: object = {}, id: number | string = 1): object => ({ jsonrpc: '2.0', id, method, params })
const call = (name: string, args: object = {}, id: number | string = 1): object => ask('tools/call', { name, arguments: args }, id)
const initialize = (name = 'Claude Code', protocolVersion = '2025-06-18'): object =>
  ask('initialize', { protocolVersion, capabilities: {}, clientInfo: { name, version: '1' } })
const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'many', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {}
}
const valueOf = ({ body }: Asked): unknown => JSON.parse((body.result as { content: Array<{ text: string }> }).content[0]!.text)

t.test('what is no message of the protocol is refused in its words', async t => {
  const gateway = await start(t)
  const cases: Array<[string, Promise<Asked>, number, number]> = [
    ['no JSON', post(gateway, '{"a'), 400, -32700],
    ['another type', post(gateway, '{}', { 'content-type': 'text/plain' }), 415, -32000],
    ['no message', post(gateway, { hello: 1 }), 400, -32600],
    ['an empty batch', post(gateway, []), 400, -32600],
    ['too deep', post(gateway, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}`), 400, -32600],
    ['too many values', post(gateway, ask('ping', { a: Array.from({ length: 100_000 }, () => []) })), 400, -32600],
    ['too many arguments', post(gateway, call('who', Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`a${i}`, 1])))), 400, -32600],
    ['an unknown revision', post(gateway, ask('ping'), { 'mcp-protocol-version': '1999-01-01' }), 400, -32000],
    ['an unknown method', post(gateway, ask('tools/frobnicate')), 200, -32601],
    ['no name', post(gateway, ask('tools/call')), 200, -32602],
    ['no such tool', post(gateway, call('gone')), 200, -32602],
    ['a method that this server lacks', post(gateway, ask('resources/list')), 200, -32601]
  ]
  for (const [what, asked, status, code] of cases) {
    const { status: got, body } = await asked
    t.match([got, body], [status, { jsonrpc: '2.0', error: { code } }], what)
  }
  t.match(await post(gateway, ask('ping'), {}, '/mcp/nothing'), { status: 404, body: { error: { code: 'mcp.unknown_server' } } })
  t.match(await post(gateway, ask('ping'), {}, '/mcp/shop/mcp/'), { status: 200, body: { result: {} } }, 'a slash at the end')
  t.match((await post(gateway, [ask('ping', {}, 1), { jsonrpc: '2.0', method: 'notifications/initialized' }, ask('nope', {}, 'b')])).body as unknown,
    [{ id: 1, result: {} }, { id: 'b', error: { code: -32601 } }], 'a batch')
  const lists = await post(gateway, Array.from({ length: 100 }, (_, id) => id === 98 ? call('who', {}, id) : ask(id === 99 ? 'ping' : 'tools/list', {}, id)), {}, '/mcp/admin')
  const answers = lists.body as unknown as Array<{ id: number, result?: unknown, error?: unknown }>
  t.ok(JSON.stringify(answers).length < 1_100_000, 'the answers of a batch have one bound')
  t.same(answers.map(({ id }) => id), [...answers.keys()], 'each has one')
  t.match([answers[0], ...answers.slice(97)], [
    { result: { tools: Array } }, { error: { code: -32600, message: /request this one separately/ } }, { error: { code: -32602 } }, { result: {} }
  ], 'a list that has no room is asked for again')
  const loud = await post(gateway, Array.from({ length: 100 }, (_, id) => call('shout', {}, id)))
  const told = (loud.body as unknown as Array<{ result?: unknown }>).filter(({ result }) => result !== undefined).length
  t.equal(told, shouted, 'whatever has run is told')
  t.ok(shouted >= 10 && shouted < 20, `${shouted} calls had room, and no other was run`)
  for (const note of [{ jsonrpc: '2.0', method: 'notifications/initialized' }, { jsonrpc: '2.0', id: 5, result: {} }]) {
    t.equal((await post(gateway, note)).status, 202)
  }
  for (const accept of ['application/json', '*/*', 'text/event-stream']) {
    t.match(await post(gateway, ask('ping'), { accept }), { status: 200, body: { result: {} } }, `Accept: ${accept}`)
  }
})

t.test('a client that looks for sign-in or for a stream that is not there hears at once that there is none', async t => {
  const gateway = await start(t)
  for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/mcp/shop', '/mcp/shop/.well-known/openid-configuration']) {
    const response = await gateway.fetch(path)
    t.match([response.status, response.headers.get('content-type')], [404, /^application\/json/], path)
    t.match(await response.json(), { error: { code: 'system.http_404' } })
  }
  for (const accept of ['text/event-stream', 'application/json']) {
    const response = await gateway.fetch('/mcp/shop', { headers: { accept } })
    t.match([response.status, response.headers.get('allow')], [405, /POST/])
    await response.text()
  }
})

t.test('a session is a name and no more: any id is taken, an ended one is gone, and thousands cost nothing', async t => {
  const gateway = await start(t)
  const first = await post(gateway, initialize())
  t.match(first.body, { result: { protocolVersion: '2025-06-18', serverInfo: { name: 'svc-shop' }, capabilities: { tools: { listChanged: true } } } })
  t.match((await post(gateway, initialize('x', '2031-01-01'))).body, { result: { protocolVersion: '2025-11-25' } }, 'an unknown revision gets the newest')
  const session = { 'mcp-session-id': first.headers.get('mcp-session-id')! }
  t.match(await post(gateway, call('who'), session), { status: 200 })
  t.match(await post(gateway, call('who'), { 'mcp-session-id': 'from-before-the-restart' }), { status: 200 })
  const remove = (headers: Record<string, string>): Promise<Response> => gateway.fetch('/mcp/shop', { method: 'DELETE', headers })
  t.equal((await remove(session)).status, 200)
  t.equal((await remove(session)).status, 404)
  t.match(await post(gateway, call('who'), session), { status: 404, body: { error: { code: -32001 } } })
  t.equal((await gateway.fetch('/mcp/shop', { headers: { ...session, accept: 'text/event-stream' } })).status, 404)
  t.equal((await remove({})).status, 400)

  // thousands of requests by `fetch` would cost more than their answers
  const agent = new Agent({ keepAlive: true, maxSockets: 40 })
  t.teardown(() => agent.destroy())
  const send = async (method: string, headers: Record<string, string>, message?: object): Promise<IncomingMessage> => {
    const request = httpRequest(`${gateway.baseUrl}/mcp/shop`, { agent, method, headers })
    const response = once(request, 'response') as Promise<[IncomingMessage]>
    request.end(message === undefined ? undefined : JSON.stringify(message))
    return (await response)[0]
  }
  const statusOf = async (message: object, headers: Record<string, string>): Promise<number> => {
    const response = await send('POST', { ...JSON_HEADERS, ...headers }, message)
    await once(response.resume(), 'end')
    return response.statusCode!
  }
  // of both eras, each under a name of its own, and none is seen again
  const arriveOne = async (client: number): Promise<void> => {
    const own = { 'x-svc-agent': `agent-${client}` }
    const status = client % 2 === 0
      ? await statusOf(ask('tools/list', { _meta: modernMeta }), { ...own, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' })
      : await statusOf(initialize(`client ${client}`), own)
    if (status !== 200) throw new Error(`client ${client} was answered ${status}`)
    if (client % 20 !== 1) return
    // and some leave in the middle of a stream
    const stream = await send('GET', { 'accept': 'text/event-stream', 'mcp-session-id': `session-${client}` })
    if (stream.statusCode !== 200) throw new Error(`the stream of client ${client} was answered ${stream.statusCode}`)
    stream.destroy()
  }
  const arrive = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at += 40) await Promise.all(Array.from({ length: 40 }, (_, i) => arriveOne(at + i)))
  }
  const kept = async (): Promise<{ readonly running: number, readonly streams: number, readonly ended: number }> =>
    (await (await gateway.fetch('/api/plugins/mcp-servers')).json() as { health: Awaited<ReturnType<typeof kept>> }).health
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const held = (): number => {
    gc()
    return process.memoryUsage().heapUsed
  }
  await arrive(80)
  const before = held()
  await arrive(2000)
  let health = await kept()
  while (health.streams > 0) health = await kept()
  t.match(health, { running: 0, ended: 1 }, 'what was left open is let go')
  const grown = held() - before
  t.ok(grown < 5_000_000, `2,000 clients that never say goodbye hold ${Math.round(grown / 1e3)} kB`)
})

t.test('who calls: the header, else what the client calls itself, else nobody', async t => {
  const gateway = await start(t)
  const id = (await post(gateway, initialize('Claude Code (dev)'))).headers.get('mcp-session-id')!
  const who = async (headers: Record<string, string>): Promise<unknown> => valueOf(await post(gateway, call('who'), headers))
  t.strictSame(await who({}), { agent: null, actor: 'mcp:anonymous', private: false })
  t.strictSame(await who({ 'mcp-session-id': id }), { agent: 'claude-code-dev', actor: 'mcp:claude-code-dev', private: false })
  t.strictSame(await who({ 'mcp-session-id': id, 'x-svc-agent': 'Hermes_1', 'x-svc-private': 'yes' }), { agent: 'Hermes_1', actor: 'mcp:Hermes_1', private: true })
  for (const name of ['private:x', 'a b', 'x'.repeat(65), '']) t.match(await who({ 'x-svc-agent': name }), { actor: 'mcp:anonymous' }, name)
})

t.test('many clients at once, all with the same request id: each gets its own answer', async t => {
  const gateway = await start(t)
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'who' }
  const answers = await Promise.all(Array.from({ length: 60 }, async (_, i) => {
    const own = { 'x-svc-agent': `agent-${i}` }
    if (i % 2 === 0) return await post(gateway, call('who'), { ...own, 'mcp-session-id': 'one for all' })
    return await post(gateway, ask('tools/call', { name: 'who', arguments: {}, _meta: modernMeta }), { ...own, ...modern })
  }))
  t.strictSame(answers.map(answer => (valueOf(answer) as { agent: string }).agent), answers.map((_, i) => `agent-${i}`))
})

t.test('a tool that hangs ends with its client: cancelled, or gone', async t => {
  const gateway = await start(t)
  const session = { 'mcp-session-id': 'session-1' }
  const cancelled = post(gateway, call('hang', {}, 'call-1'), session)
  await until(() => hung.length === 1, 'the tool runs')
  for (const another of [{}, { 'mcp-session-id': 'session-2' }]) {
    t.equal((await post(gateway, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'call-1' } }, another)).status, 202)
    t.notOk(hung[0]!.aborted, 'that was no session of it')
  }
  await post(gateway, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'call-1' } }, session)
  t.match(await cancelled, { status: 200, body: { result: { isError: true } } })
  t.ok(hung[0]!.aborted)
  const leaving = new AbortController()
  const left = gateway.fetch('/mcp/shop', { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify(call('hang')), signal: leaving.signal }).catch(() => null)
  await until(() => hung.length === 2, 'the tool runs again')
  t.match(await post(gateway, call('who')), { status: 200 }, 'others are served meanwhile')
  leaving.abort()
  await left
  await until(() => hung[1]!.aborted, 'it was told that its client has left')
  t.match(await (await gateway.fetch('/api/plugins/mcp-servers')).json(), { health: { running: 0 } })
})

t.test('a call that says nothing for a while becomes a stream that is kept alive', async t => {
  const clock = new FakeClock()
  const gateway = await start(t, { clock })
  const before = hung.length
  const asked = gateway.fetch('/mcp/shop', { method: 'POST', headers: { ...JSON_HEADERS, 'mcp-session-id': 's' }, body: JSON.stringify(call('hang', {}, 9)) })
  await until(() => hung.length > before, 'the tool runs')
  await clock.advance(5_000)
  const response = await asked
  t.match(response.headers.get('content-type'), /event-stream/)
  t.equal(response.headers.get('x-accel-buffering'), 'no')
  const reading = readUntil(response, text => text.includes('"id":9'))
  await clock.advance(15_000)
  await post(gateway, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }, { 'mcp-session-id': 's' })
  const text = await reading
  t.match(text, /^: /m, 'comments')
  t.match(text, /mcp\.cancelled/)
})

t.test('a client that wants to hear how a call goes on hears each ten seconds that it does', async t => {
  const clock = new FakeClock()
  const gateway = await start(t, { clock })
  for (const [i, headers] of [{}, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'hang' }].entries()) {
    const before = hung.length
    const leaving = new AbortController()
    const _meta = { ...i === 0 ? {} : modernMeta, progressToken: 'p' }
    const response = await gateway.fetch('/mcp/shop', {
      method: 'POST', headers: { ...JSON_HEADERS, ...headers }, signal: leaving.signal, body: JSON.stringify(ask('tools/call', { name: 'hang', arguments: {}, _meta }))
    })
    await until(() => hung.length > before, 'the tool runs')
    const reading = readUntil(response, text => text.includes('20 s'))
    await clock.advance(20_000)
    const told = [...(await reading).matchAll(/"progress":(\d+),"message":"([^"]*)"/g)].map(([, progress, message]) => `${progress} ${message}`)
    t.strictSame(told, ['0 hang begins', '10 hang runs for 10 s', '20 hang runs for 20 s'])
    leaving.abort()
  }
})

t.test('clients hear that tools changed, on a stream that ends with the gateway and one for each session', async t => {
  const gateway = await start(t)
  const listen = async (session: string): Promise<Response> =>
    await gateway.fetch('/mcp/shop', { headers: { 'accept': 'text/event-stream', 'mcp-session-id': session } })
  const looked = await Promise.all(Array.from({ length: 65 }, (_, i) =>
    gateway.fetch('/mcp/shop', { method: 'HEAD', headers: { 'accept': 'text/event-stream', 'mcp-session-id': `head-${i}` } })))
  t.ok(looked.every(({ status }) => status === 200), 'who only looks at the headers takes no place')
  const [older, other] = [await listen('a'), await listen('b')]
  const newest = await listen('a')
  t.equal(await older.text(), '', 'the older stream of the session ended')
  const source: ToolSource = { id: 'late', title: 'Late', description: 'x', tools: () => [] }
  const off = tools.addServer(source)
  for (const stream of [newest, other]) t.match(await readUntil(stream, text => text.includes('list_changed')), /notifications\/tools\/list_changed/)
  off()
  const counts = async (streams: number): Promise<void> => {
    for (;;) {
      const { health } = await (await gateway.fetch('/api/plugins/mcp-servers')).json() as { health: { streams: number } }
      if (health.streams === streams) return
    }
  }
  // what was left is let go, and what is asked for is open, a moment later
  await counts(0)
  const open = await Promise.all(Array.from({ length: 64 }, (_, i) => listen(`many-${i}`)))
  await counts(64)
  t.equal((await listen('many-64')).status, 503, 'the 65th')
  await gateway.close()
  const ends = await Promise.all(open.map(stream => stream.text().then(() => true, () => true)))
  t.ok(ends.every(Boolean), 'all of them ended with the gateway')
})

t.test('names of this machine only, and those that are allowed', async t => {
  let gateway = await start(t, { env: { ...process.env, SVC_MCP_ALLOWED_HOSTS: 'tools.example, other.example' } })
  const statusOf = async (headers: Record<string, string>, method = 'POST'): Promise<[number, string | undefined]> => {
    const request = httpRequest(`${gateway.baseUrl}/mcp/shop`, { method, headers: { ...JSON_HEADERS, ...headers } })
    request.end(method === 'POST' ? JSON.stringify(ask('ping')) : undefined)
    const [response] = await once(request, 'response') as [{ statusCode: number, headers: Record<string, string>, resume (): void }]
    response.resume()
    return [response.statusCode, response.headers['access-control-expose-headers']]
  }
  t.match(await statusOf({ host: 'evil.example' }), [421])
  t.match(await statusOf({ host: 'tools.example' }), [200])
  t.match(await statusOf({ origin: 'https://evil.example' }), [403])
  t.match(await statusOf({ origin: 'https://other.example' }), [200, /mcp-session-id/], 'a page reads the id of its session')
  t.match(await statusOf({ 'origin': 'https://other.example', 'access-control-request-method': 'POST' }, 'OPTIONS'), [204])
  const env = { ...process.env, SVC_MCP_ALLOWED_HOSTS: '*', SVC_MCP_ALLOWED_ORIGINS: 'https://page.example, https://desk.example' }
  gateway = await start(t, { env })
  t.match(await statusOf({ host: 'evil.example' }), [200], 'a single * allows every name')
  for (const origin of ['https://page.example', 'https://desk.example']) t.match(await statusOf({ origin }), [200, /mcp-session-id/], origin)
  t.match(await statusOf({ origin: 'https://other.example' }), [403], 'pages that are named are all there are')
})
