import { rm, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { definePlugin } from '../../../kernel/contract/index.js'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { docsPage } from './docs-page.js'
import { api, apiPlugins, openStream, until } from './support.js'

const failing = definePlugin({ name: 'unlucky', kind: 'service', apiVersion: 1, register: () => { throw new Error('out of luck') } })

t.test('status and health describe slots, upstreams and plugins without secrets', async t => {
  const gateway = await api(t, {
    files: { 'etc/svc/upstreams.toml': '[[upstream]]\nname = "cloud"\nurl = "http://user:pass@127.0.0.1:9/v1"\nenabled = false\n' }
  })
  const { json } = await gateway.call('GET', '/api/status')
  t.match(json, {
    name: 'svc', version: /^\d+\.\d+\.\d+/, status: 'ok',
    hardware: { ram_mb: Number, gpus: Array, npu: Boolean, default_device: String },
    slots: [{ name: 'agent', state: 'offline', model: 'fake-model', port: 8081, type: 'llm', enabled: true }],
    upstreams: [{ name: 'cloud', kind: 'remote', url: 'http://127.0.0.1:9/v1' }],
    memory_enabled: false,
    memory_degraded: null,
    runtime: { driver: 'process', version: 'fake', endpoint: null, reason: 'a test asked for it' },
    plugins: { active: apiPlugins.length + 1, failed: 0, skipped: 0, disabled: 0 },
    diagnostics: { length: 0 },
    instance: gateway.info.instance,
    started_at: gateway.info.startedAt
  })
  t.ok(json.uptime_s >= 0)
  t.notOk('message' in json.slots[0], 'nothing to say')
  t.same((await gateway.call('GET', '/api/health')).json, { name: 'svc', version: json.version, status: 'ok', degraded_by: [] })
  const head = await gateway.call('HEAD', '/api/status')
  t.equal(head.status, 200)
  t.equal(head.text, '')
  t.equal((await gateway.call('POST', '/api/status')).status, 405)

  await writeFile(join(gateway.home, 'etc/svc/slots/agent.toml'), 'device = "abacus"\nport = 8081\n')
  const reloaded = await gateway.call('POST', '/api/settings/reload', undefined, { 'x-request-id': 'req-9' })
  const problem = { file: 'slots/agent.toml', path: 'device', message: /must be one of/, line: 1 }
  t.match(reloaded.json, { slots: { max_slots: 0 }, _svc: { revision: Number, diagnostics: [problem] } }, 'a broken file is no error of the reload')
  t.match(gateway.audit()[0], {
    category: 'settings', action: 'settings.reload', target: 'svc.toml', actor: 'dashboard', outcome: 'ok', request_id: 'req-9', after: { problems: 1 }
  })
  t.match((await gateway.call('GET', '/api/status')).json, { status: 'degraded', diagnostics: [problem] })
  t.match((await gateway.call('GET', '/api/health')).json, { status: 'degraded' })
  await rm(join(gateway.home, 'etc/svc/slots/agent.toml'))
  const mended = (await gateway.call('POST', '/api/settings/reload')).json
  t.match(mended, { _svc: { diagnostics: { length: 0 } } })
  t.ok(mended._svc.revision > reloaded.json._svc.revision)
  t.same((await gateway.call('GET', '/api/status')).json.slots, [])
  t.equal((await gateway.call('GET', '/api/settings/reload')).status, 405)
})

t.test('a failed plugin is told with its reason, and routes go on', async t => {
  const gateway = await api(t, { providers: [createFakeProviderPlugin(), failing] })
  const { json } = await gateway.call('GET', '/api/plugins')
  t.match(json.plugins.find((plugin: { name: string }) => plugin.name === 'unlucky'), {
    kind: 'service', state: 'failed', phase: 'register', code: 'plugin.register_failed', message: /out of luck/, origin: 'inline', ms: Number
  })
  t.match((await gateway.call('GET', '/api/plugins/api-slots')).json, { name: 'api-slots', kind: 'routes', state: 'active', code: null, message: null })
  t.match(await gateway.call('GET', '/api/plugins/No%20Name/log'), { status: 400 }, 'nobody can wait for a plugin that there can never be')
  t.match((await gateway.call('GET', '/api/plugins/nobody')), { status: 404, json: { error: { code: 'plugin.not_found', message: /nobody/ } } })
  t.match((await gateway.call('GET', '/api/status')).json, { status: 'degraded', plugins: { failed: 1 } })

  await writeFile(join(gateway.home, 'etc/svc/svc.toml'), '[plugins]\nallow = ["svc-plugin-missing"]\n')
  const reloaded = await gateway.call('POST', '/api/plugins/reload')
  t.equal(reloaded.status, 200)
  t.match(reloaded.json.plugins.find((plugin: { name: string }) => plugin.name === 'svc-plugin-missing'), {
    state: 'failed', code: 'plugin.import_failed', message: /svc plugin add/
  }, 'what is not installed is told, not installed')
  t.match(gateway.audit()[0], { category: 'plugin', action: 'plugin.reload', outcome: 'ok', after: { 'svc-plugin-missing': 'failed', 'api-slots': 'active' } })
  t.equal((await gateway.call('GET', '/api/slots')).status, 200, 'routes go on')
  for (const [method, path] of [['POST', '/api/plugins'], ['DELETE', '/api/plugins/api-slots'], ['PUT', '/api/plugins/reload']] as const) {
    t.equal((await gateway.call(method, path)).status, 405, `${method} ${path}`)
  }
})

t.test('an event stream begins where its reader left off', async t => {
  const gateway = await api(t)
  const { events } = gateway.gateway.kernel()
  const emit = (type: string, severity: 'info' | 'warn' | 'error' = 'info'): void =>
    events.emit({ type, severity, source: 'system', message: type, data: { n: 1 } })
  for (const type of ['a.one', 'b.two', 'a.three']) emit(type)
  emit('b.bad', 'error')
  const list = (await gateway.call('GET', '/api/events')).json
  t.match(list, { events: [{ id: 1, type: 'a.one', severity: 'info', source: 'system', message: 'a.one', data: { n: 1 } }, {}, {}, {}], next_since: 4, epoch: /./ })
  const types = async (query: string) => (await gateway.call('GET', `/api/events?${query}`)).json.events.map((event: { type: string }) => event.type)
  t.same(await types('type=a.*'), ['a.one', 'a.three'])
  t.same(await types('since=2'), ['a.three', 'b.bad'])
  t.same(await types('severity=warn'), ['b.bad'])
  t.same(await types('limit=1'), ['b.bad'])
  for (const path of ['/api/events?since=x', '/api/events?limit=0', '/api/events?kind=x', '/api/events/stream?severity=loud', '/api/events/stream?limit=5']) {
    t.match(await gateway.call('GET', path), { status: 400, json: { error: { code: 'events.invalid_query', param: /./, message: /./ } } }, path)
  }
  t.equal((await gateway.call('POST', '/api/events')).status, 405)

  const { epoch } = list
  const live = await openStream(t, gateway, '/api/events/stream?type=c.*')
  const resumed = await openStream(t, gateway, '/api/events/stream', { 'last-event-id': `${epoch}:3` })
  const replayed = await openStream(t, gateway, '/api/events/stream?since=1&type=a.*', { 'last-event-id': `${epoch}:3` })
  t.match(await resumed.next(), { id: `${epoch}:4`, event: 'message', data: { id: 4, type: 'b.bad' } })
  t.match(await replayed.next(), { data: { type: 'a.three' } }, 'what is asked for wins over what the browser remembers')
  emit('b.noise')
  emit('c.one')
  t.match(await live.next(), { data: { type: 'c.one', data: { n: 1 } } })
  t.match(await resumed.next(), { data: { type: 'b.noise' } })

  const subscribed = events.subscribe
  let released = false
  events.subscribe = (filter, signal) => {
    signal.addEventListener('abort', () => { released = true })
    return subscribed(filter, signal)
  }
  const leaver = await openStream(t, gateway, '/api/events/stream')
  emit('c.two')
  await leaver.next()
  await leaver.close()
  await until(() => released, 'the subscription of the one that left is given back')
})

t.test('enums are cached until the release or the providers change', async t => {
  const gateway = await api(t)
  const first = await gateway.call('GET', '/api/meta/enums')
  const tag = first.headers.get('etag')!
  t.equal(first.status, 200)
  t.match(tag, /^W\/"svc-enums-/)
  t.equal(first.headers.get('cache-control'), 'public, max-age=3600')
  t.same(first.json.providers.map((provider: { name: string }) => provider.name), ['imagegen', 'fake'])
  const again = await gateway.call('GET', '/api/meta/enums', undefined, { 'if-none-match': tag })
  t.equal(again.status, 304)
  t.equal(again.text, '')
  t.equal(again.headers.get('etag'), tag)
  t.equal(again.headers.get('cache-control'), 'public, max-age=3600')
  t.equal((await gateway.call('GET', '/api/meta/enums', undefined, { 'if-none-match': '"other"' })).status, 200)
  t.equal((await gateway.call('POST', '/api/meta/enums')).status, 405)
})

t.test('the documentation has every route and loads nothing from elsewhere', async t => {
  const gateway = await api(t)
  const openapi = (await gateway.call('GET', '/api/openapi.json')).json
  t.match(openapi, { openapi: '3.1.0', info: { title: 'svc' } })
  const routes = (await gateway.call('GET', '/api/plugins')).json.plugins.flatMap((plugin: { routes: string[] }) => plugin.routes)
  const documented = Object.entries(openapi.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`))
  t.same(documented.sort(), routes.sort(), 'every route is in it')
  const body = openapi.paths['/api/slots'].post.requestBody.content['application/json'].schema
  t.match(body.properties, { name: { type: 'string' }, device: { anyOf: [{ enum: Array }, { type: 'null' }] }, workers: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] } })
  t.match(openapi.paths['/api/events'].get.parameters, [{ name: 'since', in: 'query', required: false, schema: { type: 'integer' } }])

  const page = await gateway.call('GET', '/api/docs')
  t.equal(page.status, 200)
  t.match(page.headers.get('content-type'), /^text\/html/)
  const policy = page.headers.get('content-security-policy')!
  t.match(policy, /^default-src 'none'/)
  for (const [tag, directive] of [['script', 'script-src'], ['style', 'style-src']] as const) {
    const inline = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(page.text)![1]!
    const hash = createHash('sha256').update(inline).digest('base64')
    t.ok(policy.includes(`${directive} 'sha256-${hash}'`), `the policy lets the page's own ${tag} through`)
  }
  t.notMatch(page.text, /https?:\/\//, 'nothing comes from anywhere else')
  t.notMatch(page.text, /innerHTML|\son\w+=/, 'text of the document stays text')

  const { text: shown } = await docsPage(openapi)
  for (const path of Object.keys(openapi.paths)) t.ok(shown.includes(path), `the page shows ${path}`)
  t.match(shown, /Stable, dotted/, 'and what errors look like')
})
