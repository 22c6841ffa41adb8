import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { METHODS, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import models from '../../../plugins/api/models/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import { distinctPlaces } from '../../../plugins/services/library/model-walk.js'
import pull from '../../../plugins/services/pull/index.js'
import { HostileRequests, seeded, type ApiDocument } from '../../hostile/requests.js'
import { send } from '../../hostile/send.js'
import { timesOfJson } from '../../processor-time.js'
import { api, openStream, type Answer, type Api } from '../../plugins/api/support.js'
import { rawClient } from '../connection/raw-client.js'

let gateway: Api
t.before(async () => { gateway = await api(t) })

t.test('a small body cannot keep the gateway busy', async t => {
  const wide = (count: number, value: unknown = 1): Record<string, unknown> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]))
  const hosts = Array.from({ length: 8_000 }, (_, i) => `h${i}.example`)
  const cases: ReadonlyArray<readonly [string, string, unknown, string]> = [
    ['POST', '/api/slots', { name: 'x', ...wide(4_000) }, 'request.too_complex'],
    ['POST', '/api/slots', { name: 'x', ...wide(990) }, 'validation.unknown_keys'],
    ['POST', '/api/slots', { name: 'x', options: wide(990) }, 'validation.invalid'],
    ['PUT', '/api/slots/agent/config', wide(990), 'validation.unknown_keys'],
    ['PUT', '/api/slots/agent/config', wide(990, null), 'validation.unknown_keys'],
    ['PATCH', '/api/settings', { server: { allowed_hosts: hosts } }, 'config.invalid'],
    ['PATCH', '/api/settings', { server: wide(990) }, 'config.invalid'],
    ['POST', '/api/profiles', wide(990), 'validation.unknown_keys'],
    ['POST', '/api/models', { id: 'm', path: '/dev/null', metadata: wide(990) }, 'validation.invalid']
  ]
  for (const [method, path, body, code] of cases) {
    let answer: Answer | undefined
    const times = await timesOfJson(async () => { answer = await gateway.call(method, path, body) })
    t.match(answer, { status: 400, json: { error: { code } } }, `${method} ${path}: ${answer?.text.slice(0, 200)}`)
    t.ok(answer!.text.length < 32 * 1024, `${method} ${path}: an answer of ${answer?.text.length} bytes`)
    t.ok(times < 50, `${method} ${path}: ${Math.round(times)} times a megabyte of JSON`)
  }
  const options = (value: number): unknown => ({ options: wide(250, value) })
  for (const value of [1, 2]) t.equal((await gateway.call('PUT', '/api/slots/agent/config', options(value))).status, 200)
})

t.test('a body that is nested too deeply is refused with the depth that is allowed', async t => {
  const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  for (const [method, path, around] of [
    ['PATCH', '/api/settings', (value: string) => value],
    ['POST', '/api/models', (value: string) => `{"id":"m","path":"/dev/null","metadata":${value}}`],
    ['PUT', '/api/slots/agent/config', (value: string) => `{"options":${value}}`],
    ['POST', '/api/stacks/import', (value: string) => `{"envelope":${value}}`]
  ] as const) {
    for (const levels of [65, 5_000, 100_000]) {
      const answer = await gateway.call(method, path, around(nested(levels)))
      t.match(answer, { status: 400, json: { error: { code: 'request.too_complex', message: /64 levels/, details: { max_depth: 64 } } } }, `${path} ${levels}`)
    }
    t.not((await gateway.call(method, path, around(nested(60)))).status, 500, `${path} with what is allowed`)
  }
})

t.test('what is no HTTP request is refused in the envelope, with an id', async t => {
  const head = 'Host: localhost\r\n'
  const cases: ReadonlyArray<readonly [string, string, number, string]> = [
    ['no HTTP at all', 'HELLO\r\n\r\n', 400, 'request.malformed'],
    ['an unknown method', `BREW /api/status HTTP/1.1\r\n${head}\r\n`, 400, 'request.malformed'],
    ['two lengths', `POST /api/slots HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`, 400, 'request.malformed'],
    ['headers without end', `GET /api/status HTTP/1.1\r\n${head}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'request.headers_too_large'],
    ['chunks with large extensions',
      `POST /api/slots HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`, 413, 'request.too_large'],
    ['an expectation', `POST /api/slots HTTP/1.1\r\n${head}Expect: more\r\nContent-Length: 2\r\n\r\n{}`, 417, 'request.expectation_failed']
  ]
  for (const [name, bytes, status, code] of cases) {
    const client = await rawClient(t, gateway.baseUrl)
    client.send(bytes)
    await client.closed
    const [, answered, head = '', body = ''] = /^HTTP\/1\.1 (\d+)([^]*?)\r\n\r\n([^]*)$/.exec(client.text()) ?? []
    t.equal(Number(answered), status, `${name}: ${client.text().slice(0, 200)}`)
    const { error } = JSON.parse(body) as { error: { code: string, request_id: string } }
    t.equal(error.code, code, name)
    t.match(head, new RegExp(`x-request-id: ${error.request_id}\r\n`), name)
  }
})

t.test('a method that a path does not have is 405, also for one that HTTP has only since lately', async t => {
  const paths: ReadonlyArray<readonly [string, string]> = [
    ['/api/settings', 'GET, HEAD, PATCH, PUT'], ['/api/slots/agent', 'DELETE, GET, HEAD'], ['/api/slots/metrics', 'GET, HEAD']
  ]
  const ask = (method: string, path: string): Promise<unknown> => new Promise((resolve, reject) => {
    request(`${gateway.baseUrl}${path}`, { method }, answer => {
      answer.resume().on('end', () => resolve({ status: answer.statusCode, allow: answer.headers.allow }))
    }).on('error', reject).end()
  })
  for (const [path, allow] of paths) {
    for (const method of METHODS.filter(method => method !== 'CONNECT' && !allow.split(', ').includes(method) && method !== 'OPTIONS')) {
      t.strictSame(await ask(method, path), { status: 405, allow }, `${method} ${path}`)
    }
  }
})

t.test('many requests and then no client: what was not begun never is', async t => {
  const client = await rawClient(t, gateway.baseUrl)
  const secret = 'DELETE /api/profiles/nobody HTTP/1.1\r\nHost: localhost\r\n\r\n'
  let answered = 0
  const app = gateway.gateway.app()
  const { routing } = app
  gateway.gateway.app().routing = (...pair) => { answered++; routing.apply(app, pair) }
  t.teardown(() => { app.routing = routing })
  client.send('GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n' + secret.repeat(500))
  client.socket.destroy()
  await (await gateway.fetch('/api/health')).text()
  t.ok(answered < 250, `${answered} of 501 were begun`)
})

t.test('a name that no file can have is not found, and no answer tells where files lie', async t => {
  const answer = await gateway.call('POST', `/api/comfyui/workflows/${'x'.repeat(300)}/launch`, {})
  t.match(answer, { status: 404, json: { error: { code: 'comfyui.workflow_not_found' } } }, answer.text)
  t.notMatch(answer.text, gateway.home)
})

t.test('the API document is made once for the plugins that there are', async t => {
  await (await gateway.fetch('/api/openapi.json')).text()
  const times = await timesOfJson(async () => {
    for (let i = 0; i < 20; i++) await (await gateway.fetch('/api/openapi.json')).text()
  })
  // making it costs a tenth of a second; what is left is to check the answer, and to send and to read it
  t.ok(times < 60, `${Math.round(times)} times a megabyte of JSON for 20`)
})

t.test('a chat template that leads out of the store is none, and one that is too long is not read', async t => {
  const folder = join(gateway.home, 'var/lib/svc/models/chat-templates')
  await gateway.call('GET', '/api/chat-templates')
  await writeFile(join(gateway.home, 'secret'), 'the secret')
  await symlink(join(gateway.home, 'secret'), join(folder, 'linked.jinja'))
  await writeFile(join(folder, 'long.jinja'), 'x'.repeat(4 * 1024 * 1024))
  const linked = await gateway.call('GET', '/api/chat-templates/linked')
  t.match(linked, { status: 404, json: { error: { code: 'chat_template.not_found' } } }, linked.text)
  t.notMatch((await gateway.call('GET', '/api/chat-templates')).text, /linked/)
  const long = await gateway.call('GET', '/api/chat-templates/long')
  t.equal(long.status, 200)
  t.ok(long.text.length < 600 * 1024, `${long.text.length} bytes`)
})

t.test('checks of chat templates stand in a short line', async t => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => gateway.call('POST', '/api/chat-templates/lint', { content: '{{ messages }}' })))
  const refused = answers.filter(({ status }) => status === 503)
  t.ok(refused.length > 0 && refused.length < 40, `${refused.length} of 40 are sent away`)
  t.match(refused[0]!.json, { error: { code: 'chat_template.busy' } })
  t.ok(refused[0]!.headers.get('retry-after'))
})

t.test('a file of this machine that is no model cannot be registered as one', async t => {
  const answer = await gateway.call('POST', '/api/models', { id: 'passwd', path: '/etc/passwd' })
  t.match(answer, { status: 400, json: { error: { code: 'model.unsupported_format' } } }, answer.text)
})

t.test('folders that are named again, or lie in each other, are looked at once', async t => {
  const root = await mkdtemp(join(tmpdir(), 'svc-scan-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  await mkdir(join(root, 'a/b'), { recursive: true })
  await writeFile(join(root, 'a/b/m.gguf'), 'no header')
  await symlink(join(root, 'a'), join(root, 'link'))
  const spelled = ['', '/', '/.', '/a/..', '/a', '/a/b', '/link', '//a//b/'].map(end => root + end)
  t.strictSame(await distinctPlaces(spelled, true), [await realpath(root)])
  const paths = Array.from({ length: 63 }, (_, i) => spelled[i % spelled.length])
  const { json } = await gateway.call('POST', '/api/models/scan/preview', { paths })
  t.equal(json.count, 1)
  let [isSlow, passed] = [false, 0]
  const clock = new FakeClock()
  const monotonic = clock.monotonic.bind(clock)
  clock.monotonic = () => monotonic() + (isSlow ? passed += 3_000 : passed)
  const slow = await api(t, { clock, group: [hub, library, models, pull] })
  await writeFile(join(root, 'a/n.gguf'), 'no header')
  t.match((await slow.call('POST', '/api/models/scan/preview', { paths: [root] })).json, { count: 2, truncated: undefined })
  isSlow = true
  t.match((await slow.call('POST', '/api/models/scan/preview', { paths: [root] })).json, { count: 0, truncated: true }, 'after some seconds what was found is all')
  isSlow = false
  t.strictSame((await distinctPlaces([`${root}/a`, `${root}/a/b`, `${root}/a/`], false)).length, 2)
})

t.test('as many readers of the journal as may are served, and no more', async t => {
  const tool = join(gateway.home, 'journalctl')
  await writeFile(tool, '#!/bin/sh\necho line\nexec sleep 600\n', { mode: 0o755 })
  const other = await api(t, { svc: `[plugins.config.api-logs]\njournalctl = "${tool}"\n` })
  const streams = []
  for (let i = 0; i < 16; i++) {
    const stream = await openStream(t, other, '/api/logs/stream?unit=svc.service')
    await stream.next()
    streams.push(stream)
  }
  const answer = await other.call('GET', '/api/logs/stream?unit=svc.service')
  t.match(answer, { status: 503, json: { error: { code: 'system.logs_busy' } } }, answer.text)
  for (const stream of streams) await stream.close()
})

t.test('requests that nobody means well with never make a 500 (npm run hostile sends a hundred thousand of them)', async t => {
  const other = await createTestGateway({
    builtins,
    plugins: [createFakeProviderPlugin()],
    runtime: new FakeEngineRuntime(),
    env: { PATH: process.env.PATH ?? '', HF_ENDPOINT: 'http://127.0.0.1:9' }
  })
  t.teardown(() => other.close())
  const document = await (await other.fetch('/api/openapi.json')).json() as ApiDocument
  const requests = new HostileRequests(document, seeded(Number(process.env['SVC_TEST_SEED'] ?? 1)), other.home)
  const failed: string[] = []
  for (let i = 0; i < 400; i++) {
    const request = requests.next()
    const { status, text } = await send(other.baseUrl, request)
    if (status === 500 || status === null) {
      failed.push(`${request.kind} ${request.method} ${request.path} ${request.body?.slice(0, 200)}: ${text.slice(-500)}`)
    }
  }
  t.strictSame(failed, [])
})
