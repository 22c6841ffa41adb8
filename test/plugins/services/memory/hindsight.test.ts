import { once } from 'node:events'
import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { svcSchema } from '../../../../cli/offline/svc-schema.js'
import type { ConfigService } from '../../../../kernel/contract/index.js'
import { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import type { MemoryEngine } from '../../../../plugins/services/memory/engine.js'
import { Memory } from '../../../../plugins/services/memory/memory.js'
import services from '../../../../plugins/api/services/index.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost, type HostOptions, type MemoryHost } from './host.js'

const PASSAGE = '/api/memory/hindsight'

/** With the list of services, on a machine without systemd. */
const listed = (t: Test, options: HostOptions = {}): Promise<MemoryHost> =>
  memoryHost(t, { plugins: [services], pluginConfig: { 'api-services': { systemctl: 'no-systemctl', downloads: false } }, ...options })
const row = async (host: MemoryHost): Promise<unknown> => (await host.call('GET', '/api/services')).json.services[0]

t.test('the wire passes byte for byte, below the prefix of unmodified clients', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url, apiEnv: 'HINDSIGHT_API_TENANT_API_KEY=k-of-the-gateway\n' })
  fake.seen.splice(0)

  await t.test('paths, queries and their escapes', async t => {
    for (const path of ['/v1/default/banks/a%20b/stats', '/v1/default/banks/x:y/memories/list?limit=3&q=%C3%BC+a&tags=a&tags=b', '/metrics']) {
      await host.call('GET', `${PASSAGE}${path}`)
      t.equal(fake.seen.at(-1)!.url, path)
    }
  })

  await t.test('bodies, types and the key of the gateway', async t => {
    const body = '{"items":[{"content":"Grüße"}],  "odd":1}'
    const { status, json } = await host.call('POST', `${PASSAGE}/v1/default/banks/b/memories`, body, { 'authorization': 'Bearer mine', 'x-svc-client': 'cli', 'cookie': 'a=b' })
    t.match({ status, json }, { status: 200, json: { success: true, items_count: 1 } })
    const seen = fake.seen.at(-1)!
    t.equal(Buffer.from(seen.body, 'latin1').toString(), body)
    t.match(seen.headers, { 'authorization': 'Bearer k-of-the-gateway', 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) })
    t.notOk(seen.headers.cookie ?? seen.headers['x-svc-client'])
  })

  await t.test('compression, ignored parameters, what it varies by and when to come back', async t => {
    const packed = gzipSync('{"results":[]}')
    fake.instead.set('/v1/default/banks/b/memories/recall', (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip', 'vary': 'Accept-Encoding', 'x-ignored-params': 'odd' }).end(packed)
    })
    const raw = request(`${host.baseUrl}${PASSAGE}/v1/default/banks/b/memories/recall`, { method: 'POST', headers: { 'accept-encoding': 'gzip, deflate', 'content-type': 'application/json' } })
    raw.end('{"query":"x"}')
    const [response] = await once(raw, 'response') as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    t.match(response.headers, { 'content-encoding': 'gzip', 'vary': 'Accept-Encoding', 'x-ignored-params': 'odd' })
    t.ok(Buffer.concat(chunks).equals(packed))
    t.equal(fake.seen.at(-1)!.headers['accept-encoding'], 'gzip, deflate')
    fake.instead.set('/v1/default/banks/b/memories/recall', (_request, response) => {
      response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '30' }).end('{"detail":"full"}')
    })
    const full = await host.call('POST', `${PASSAGE}/v1/default/banks/b/memories/recall`, { query: 'x' })
    t.match([full.status, full.headers.get('retry-after'), full.json], [503, '30', { detail: 'full' }])
    const admin = await host.call('POST', '/api/memory/banks/b/recall', { query: 'x' })
    t.match([admin.status, admin.headers.get('retry-after'), admin.json], [503, '30', { error: { code: 'memory.engine_error' }, detail: 'full' }])
    fake.instead.clear()
  })

  await t.test('a redirect stays below the prefix, and one to elsewhere is not told', async t => {
    const answer = await host.fetch(`${PASSAGE}/v1/default/banks/b/stats/`, { redirect: 'manual' })
    t.match([answer.status, answer.headers.get('location')], [307, `${PASSAGE}/v1/default/banks/b/stats`])
    t.equal((await host.call('GET', `${PASSAGE}/v1/default/banks/b/stats/`)).status, 200, 'and is followed')
    fake.instead.set('/v1/away', (_request, response) => { response.writeHead(307, { location: 'http://elsewhere.example/v1' }).end() })
    const away = await host.fetch(`${PASSAGE}/v1/away`, { redirect: 'manual' })
    t.match([away.status, away.headers.get('location')], [307, null])
  })

  await t.test('files are streamed: the first part is there before the last is sent', async t => {
    const path = '/v1/default/banks/b/files/retain'
    const [head, tail] = ['--x\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n', '--x--\r\n']
    const arrived = new Promise<string>(resolve => {
      fake.arriving.set(path, incoming => incoming.once('data', chunk => resolve(String(chunk))))
    })
    const upload = request(`${host.baseUrl}${PASSAGE}${path}`, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' } })
    upload.write(head)
    t.equal(await arrived, head)
    upload.end(tail)
    const [response] = await once(upload, 'response') as [IncomingMessage]
    response.resume()
    t.equal(response.statusCode, 200)
    t.match(fake.seen.at(-1), { body: head + tail, headers: { 'content-type': 'multipart/form-data; boundary=x' } })
  })

  await t.test('a client that leaves cancels the engine\'s work', async t => {
    const asked = new Promise<void>(resolve => { fake.instead.set('/v1/default/banks/b/reflect', () => resolve()) })
    const leaving = new AbortController()
    const answer = host.fetch(`${PASSAGE}/v1/default/banks/b/reflect`, { method: 'POST', body: '{"query":"x"}', headers: { 'content-type': 'application/json' }, signal: leaving.signal })
    await asked
    leaving.abort()
    await t.rejects(answer)
    await fake.left('POST /v1/default/banks/b/reflect')
    fake.instead.clear()
  })
})

t.test('an upload beyond the limit of the gateway is refused, and the engine has none of it', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url, svc: '[server]\nupload_limit_bytes = 1024\n' })
  const { status, json } = await host.call('POST', `${PASSAGE}/v1/default/banks/b/memories`, { items: [{ content: 'x'.repeat(2000) }] })
  t.match({ status, json }, { status: 413, json: { error: { code: 'request.too_large' }, detail: /upload_limit_bytes/ } })
  t.notOk(fake.banks.has('b'))

  for (const path of [`${PASSAGE}/v1/default/banks/b/files/retain`, '/api/memory/banks/b/document-transfer']) {
    // one that does not say how much comes
    const upload = request(`${host.baseUrl}${path}`, { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' } })
    upload.write('x'.repeat(2000))
    upload.end()
    const [response] = await once(upload, 'response') as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    t.match({ status: response.statusCode, json: JSON.parse(Buffer.concat(chunks).toString()) as unknown },
      { status: 413, json: { error: { code: 'request.too_large' }, detail: /upload_limit_bytes/ } }, path)
  }
  t.match((await host.call('GET', '/api/status')).json, { memory_degraded: false })
})

t.test('the memory is switched on and off while the gateway runs, and says before how', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n' } })
  const routes: ReadonlyArray<readonly [string, string, unknown?]> = [
    ['GET', '/api/memory/banks'], ['GET', '/api/memory/list'], ['POST', '/api/memory/add', { text: 'x' }],
    ['POST', '/api/memory/search', { query: 'x' }], ['POST', '/api/memory/delete', { ids: ['a'] }],
    ['DELETE', '/api/memory/banks/a?confirm=a'], ['GET', `${PASSAGE}/version`], ['POST', `${PASSAGE}/v1/default/banks/a/memories`, { items: [] }]
  ]
  for (const [method, path, body] of routes) {
    const { status, json, headers } = await host.call(method, path, body)
    t.match({ status, json }, { status: 503, json: { error: { code: 'memory.unavailable', message: /svc memory enable/ }, detail: /svc memory enable/ } }, `${method} ${path}`)
    t.equal(headers.get('x-should-retry'), 'false', 'it does not pass by itself')
  }
  t.match((await host.call('GET', '/api/memory/engine')).json, { enabled: false, engine: null, reachable: false, detail: /svc memory enable/ })
  t.match((await host.call('GET', '/api/status')).json, { memory_enabled: false, memory_degraded: null })

  await host.call('PUT', '/api/settings', { memory: { enabled: true, engine: 'hindsight', url: fake.url } })
  t.match((await host.call('GET', '/api/memory/engine')).json, {
    enabled: true, engine: 'hindsight', reachable: true, version: '1.1.0', features: { observations: true }, banks_total: 0, degraded: false, detail: null
  })
  t.match((await host.call('GET', '/api/status')).json, { memory_enabled: true, memory_degraded: false })
  t.equal((await host.call('POST', '/api/memory/add', { text: 'x' })).status, 200)

  await host.call('PUT', '/api/settings', { memory: { enabled: false } })
  t.equal((await host.call('GET', '/api/memory/banks')).status, 503)
  t.match((await host.call('GET', '/api/status')).json, { memory_enabled: false, memory_degraded: null })
})

t.test('the key is really tried, and a server that is away is told, seen and taken up again', async t => {
  const fake = await fakeHindsight(t)
  fake.key = 'right'
  const host = await listed(t, { url: fake.url })
  t.match(await row(host), { id: 'hindsight', up: false, detail: /requires a key/ }, 'among the services, too')
  t.match((await host.call('GET', '/api/memory/engine')).json, { reachable: false, version: '1.1.0', degraded: true, detail: /requires a key; put it into api.env as HINDSIGHT_API_TENANT_API_KEY/ })
  t.match((await host.call('GET', '/api/status')).json, { memory_degraded: true })
  await host.call('PUT', '/api/secrets/HINDSIGHT_API_TENANT_API_KEY', { value: 'wrong' })
  t.match((await host.call('GET', '/api/memory/engine')).json, { reachable: false, detail: /refuses the key/ })
  await host.call('PUT', '/api/secrets/HINDSIGHT_API_TENANT_API_KEY', { value: 'right' })
  t.match((await host.call('GET', '/api/memory/engine')).json, { reachable: true, degraded: false })
  t.match(await row(host), {
    up: true, detail: `${fake.url} answers as version 1.1.0`, stat: { label: 'banks', value: Number }, hints: [new RegExp(`is kept there.*${fake.url}`)]
  })
  t.match((await host.call('GET', '/api/services/health')).json.services[0], { id: 'hindsight', up: true })

  fake.instead.set('/v1/default/banks', (_request, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>') })
  t.match((await host.call('GET', '/api/memory/engine')).json, { reachable: false, degraded: true, detail: /is not a Hindsight server; check \[memory\] url/ })
  fake.instead.clear()
  t.match((await host.call('GET', '/api/memory/engine')).json, { reachable: true, degraded: false })

  const { url } = fake
  await fake.stop()
  const { status, json } = await host.call('POST', '/api/memory/add', { text: 'it must not be lost' })
  t.match({ status, json }, { status: 503, json: { error: { code: 'memory.engine_unreachable' } } }, 'refused, not swallowed')
  t.equal((await host.call('GET', `${PASSAGE}/v1/default/banks/b/stats`)).status, 503)
  await host.until('/api/status', ({ memory_degraded: degraded }) => degraded === true)
  t.match((await host.call('GET', '/api/memory/engine')).json, { enabled: true, reachable: false, degraded: true, detail: /127\.0\.0\.1/ })
  t.match(await row(host), { up: false, detail: new RegExp(url), stat: null })
})

t.test('a server that answers and does nothing any more is told as soon as it is asked for something, and when it is well again', async t => {
  const fake = await fakeHindsight(t)
  const clock = new FakeClock()
  const host = await memoryHost(t, { url: fake.url, apiEnv: 'HINDSIGHT_API_TENANT_API_KEY=first\n', clock })
  const isDegraded = async (degraded: boolean): Promise<void> => {
    await host.until('/api/status', ({ memory_degraded: now }) => now === degraded)
  }
  const answers = (status: number) => (_request: unknown, response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"detail":"no"}')
  }
  const asks = async (): Promise<number> => (await host.call('POST', '/api/memory/banks/b/recall', { query: 'x' })).status
  await isDegraded(false)
  for (const status of [401, 403, 500, 502, 504]) {
    // to whatever it is asked but its health, or to that as well
    for (const path of ['/v1/default/banks', '/v1/default/banks/b/memories/recall', ...status < 500 ? [] : ['/health']]) fake.instead.set(path, answers(status))
    await clock.advance(1000)
    await asks()
    await isDegraded(true)
    t.match(host.logs.at(-1), { level: 'warn', message: /^the memory is degraded: / }, `${status} to all`)
    fake.instead.clear()
    await clock.advance(1000)
    await asks()
    await isDegraded(false)
    t.match(host.logs.at(-1), { level: 'info', message: 'the memory has recovered' })
  }
  fake.key = 'second'
  await clock.advance(1000)
  t.equal(await asks(), 401, 'its key was withdrawn')
  await isDegraded(true)
  t.match(host.logs.at(-1), { level: 'warn', message: /refuses the key HINDSIGHT_API_TENANT_API_KEY/ })
  fake.key = 'first'
  await clock.advance(10_000)
  await isDegraded(false)

  fake.instead.set('/v1/default/banks/b/memories/recall', answers(422))
  const looks = (): number => fake.looks.filter(({ url }) => url === '/health').length
  const before = looks()
  await clock.advance(1000)
  for (const status of [404, 409, 422, 429, 501, 503]) {
    fake.instead.set('/v1/default/banks/b/memories/recall', answers(status))
    t.equal(await asks(), status)
  }
  await clock.advance(1000)
  await asks()
  t.equal(looks(), before, 'what it refuses for a reason of the request, or because it is full, is no trouble')
})

t.test('a memory that needs no server is not shown as one that is down', async t => {
  const host = await listed(t)
  t.match(await row(host), { id: 'hindsight', up: false, detail: /9177/, hints: [/is the embedded engine, which runs within it/] })
  await host.call('PUT', '/api/settings', { memory: { enabled: false } })
  t.match(await row(host), { hints: [/is off: svc memory enable/] })
})

t.test('a server whose language model is a slot that is too narrow for what it asks is shown with the way out', async t => {
  const slot = (context: number): string => `type = "llm"\ndevice = "cpu"\n[model]\ndefault = "demo"\ncontext_size = ${context}\n`
  const fake = await fakeHindsight(t)
  for (const [url, first] of [[undefined, /is the embedded engine/], [fake.url, /is kept there/]] as const) {
    const hints = async (context: number): Promise<unknown> => {
      const host = await listed(t, { ...url === undefined ? {} : { url }, files: { 'etc/svc/slots/utility.toml': slot(context) } })
      return (await row(host) as { readonly hints: unknown }).hints
    }
    t.match(await hints(4096), [first, /slot utility with context_size = 4096,.* svc slot edit utility --ctx-size 16384$/])
    t.notMatch(await hints(16_384), [first, /context_size/], 'one that is wide enough is not')
  }
})

t.test('a model that writes an answer has the time of its own variable', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url, apiEnv: 'SVC_MEMORY_REFLECT_TIMEOUT_S=0.2\n' })
  fake.instead.set('/v1/default/banks/b/reflect', () => { /* never */ })
  const { status, json } = await host.call('POST', '/api/memory/banks/b/reflect', { query: 'x' })
  t.match([status, json.error], [503, { code: 'memory.engine_unreachable' }], 'the setting would have it wait for 900 s')
  await host.call('PUT', '/api/secrets/SVC_MEMORY_REFLECT_TIMEOUT_S', { value: 'soon' })
  const leaving = new AbortController()
  const waiting = host.fetch('/api/memory/hindsight/v1/default/banks/b/reflect', { method: 'POST', body: '{}', signal: leaving.signal })
  await host.call('POST', '/api/memory/banks/b/recall', { query: 'x' })
  leaving.abort()
  await t.rejects(waiting, { name: 'AbortError' }, 'one that is no number counts for nothing')
})

t.test('a server is looked at once a second, however many requests get through to it or fail', async t => {
  const clock = new FakeClock()
  let [looks, isWell, isCut] = [0, false, false]
  const engine: MemoryEngine = {
    name: 'hindsight',
    request: () => isCut ? Promise.reject(new Error('cut')) : Promise.resolve({ status: 200, headers: {}, body: Buffer.from('{}') }),
    status: () => {
      looks++
      const detail = isWell ? null : 'it does not list its banks'
      return Promise.resolve({ reachable: true, version: null, features: {}, banks: null, degraded: !isWell, detail })
    }
  }
  const config = { snapshot: { svc: svcSchema.parse({ memory: { enabled: true } }) } } as ConfigService
  const log = { info: () => {}, warn: () => {} }
  const memory = new Memory({ config, clock, log, engines: { embedded: () => engine, hindsight: () => engine } })
  t.teardown(() => memory.close())
  memory.follow()
  const ask = async (): Promise<void> => {
    const signal = new AbortController().signal
    for (let i = 0; i < 20; i++) await memory.engine().request({ method: 'GET', path: '/version', query: '', headers: {}, body: null, signal }).catch(() => {})
  }
  await memory.status()
  await ask()
  t.match([looks, memory.health.degraded], [1, true])
  isWell = true
  await clock.advance(1000)
  await ask()
  t.match([looks, memory.health.degraded], [2, false], 'and is well again before the next look of its own')
  isCut = true
  await ask()
  t.equal(looks, 2, 'nor is one that is well, however many requests fail')
  await clock.advance(1000)
  t.equal(looks, 3, 'but it is, a second after the last look')
  await ask()
  await clock.advance(1000)
  t.equal(looks, 4)
})
