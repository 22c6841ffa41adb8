import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { fakeUpstream, upstreamTable, type FakeUpstream } from '../../wire/fake-upstream.js'
import { apiOf, type Api } from './support.js'

const api = apiOf('api-status', 'api-upstreams', 'hub', 'remote-catalog')

const KEY = 'sk-or-v1-very-secret'

interface Rig extends Api {
  readonly one: FakeUpstream
}

/** Upstream `one`, a slot-backed row, and two providers. */
async function rig (t: Test): Promise<Rig> {
  const one = await fakeUpstream(t, ['m1', 'm2'])
  const gateway = await api(t, {
    files: {
      'etc/svc/upstreams.toml': `# mine\n${upstreamTable('one', one.url, { auth_style: 'bearer', auth_value_env: 'ONE_KEY' })}# the slot\n[[upstream]]\nname = "backed"\nkind = "slot"\nslot_name = "agent"\nurl = "http://127.0.0.1:8081/v1"\nenabled = false\n`,
      'etc/svc/providers.toml': '[[provider]]\ncatalog_id = "google_ai_studio" # ai\nenabled = false\n\n[[provider]]\ncatalog_id = "openai"\nname = "gpt"\nenabled = false\n',
      'etc/svc/api.env': `ONE_KEY="${KEY}"\n`
    }
  })
  return Object.assign(gateway, { one })
}

t.test('list and look: what is in force, how it is, and no key', async t => {
  const gateway = await rig(t)
  const list = await gateway.call('GET', '/api/upstreams')
  t.strictSame(list.json.map((row: { name: string, kind: string, source: string }) => `${row.name} ${row.kind} ${row.source}`), [
    'backed slot upstreams.toml', 'google-ai-studio remote providers.toml', 'gpt remote providers.toml', 'one remote upstreams.toml'
  ])
  t.match(list.json[3], {
    auth_style: 'bearer', auth_value_env: 'ONE_KEY', auth_configured: true, auth_key_present: true, timeout_seconds: 300,
    connect_timeout_seconds: null, retries: 0, fallback: { length: 0 }, breaker_failures: 5, model_filters: null,
    models: { length: 0 }, refreshed_at: null, error: null, circuit: { state: 'closed', failures: 0, retry_in_ms: 0 }
  })
  t.match(list.json[1], { auth_configured: true, auth_key_present: false, enabled: false })
  t.strictSame((await gateway.call('GET', '/api/upstreams/one')).json, list.json[3])
  t.strictSame((await gateway.call('GET', '/api/providers')).json.map(({ name }: { name: string }) => name), ['google-ai-studio', 'gpt', 'one'], 'no slots there')
  t.match((await gateway.call('GET', '/api/upstreams/nope')).json, { error: { code: 'upstream.not_found', details: { upstream: 'nope' } } })
  const catalog = (await gateway.call('GET', '/api/providers/catalog')).json as Array<Record<string, unknown>>
  t.strictSame(catalog.map(({ id }) => id), ['openai', 'anthropic', 'openrouter', 'google_ai_studio', 'deepseek', 'minimax', 'ollama', 'custom'])
  t.match(catalog[1], { base_url: 'https://api.anthropic.com/v1', auth: 'anthropic', auth_value_env: 'ANTHROPIC_API_KEY', category: 'cloud' })
  t.match(catalog[6], { auth: 'none', category: 'local' })
  t.notMatch(list.text, KEY)
})

t.test('a list is asked for once more where its server closes the connection, as one does that was idle, and then no more', async t => {
  const gateway = await api(t)
  const asked = new Map<Socket, number>()
  let most = 1
  const server = createServer(({ socket }, response) => {
    asked.set(socket, (asked.get(socket) ?? 0) + 1)
    if (asked.get(socket)! > most) socket.destroy()
    else response.end('{"data":[{"id":"far"}]}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  t.equal((await gateway.call('POST', '/api/upstreams', { name: 'far', url, auth_style: 'none' })).status, 201)
  const refresh = async (): Promise<object> => (await gateway.call('POST', '/api/upstreams/far/refresh')).json as object
  for (let i = 0; i < 4; i++) t.match(await refresh(), { models: ['far'], error: null })
  t.ok([...asked.values()].includes(2), 'a connection was closed while it was asked')
  most = 0
  const before = asked.size
  t.match(await refresh(), { error: String })
  t.ok(asked.size - before <= 2, `${asked.size - before} connections`)
})

t.test('create: with a template or an address, in its file, and asked for at once', async t => {
  const gateway = await rig(t)
  const two = await fakeUpstream(t, ['far'])
  const made = await gateway.call('POST', '/api/upstreams', { name: 'two', url: two.url, auth_style: 'none', retries: 2, fallback: ['one'], model_filters: { exclude: ['x*'] } })
  t.equal(made.status, 201)
  t.match(made.json, { name: 'two', source: 'upstreams.toml', retries: 2, fallback: ['one'], model_filters: { models: { length: 0 }, include: { length: 0 }, exclude: ['x*'] } })
  t.match(await gateway.file('etc/svc/upstreams.toml'), /^# mine\n[^]*# the slot\n[^]*\n\n\[\[upstream\]\]\nname = "two"\nurl = "[^"]+"\nauth_style = "none"\nretries = 2\nfallback = \[ "one" \]\n\n\[upstream\.model_filters\]\nexclude = \[ "x\*" \]\n$/,
    'nothing but what was given')
  t.match((await gateway.call('POST', '/api/upstreams/two/refresh')).json, { models: ['far'], error: null, refreshed_at: /^20/ })

  const router = await gateway.call('POST', '/api/upstreams', { name: 'router', catalog_id: 'openrouter', enabled: false })
  t.match(router.json, { url: 'https://openrouter.ai/api/v1', auth_style: 'bearer', auth_value_env: 'OPENROUTER_API_KEY', auth_configured: true, auth_key_present: false })
  t.match((await gateway.call('POST', '/api/upstreams', { name: 'eu', catalog_id: 'openai', url: 'https://eu.api.openai.com/v1', auth_value_env: 'EU_KEY', enabled: false })).json,
    { url: 'https://eu.api.openai.com/v1', auth_value_env: 'EU_KEY' }, 'what is given wins over the template')
  t.match((await gateway.call('POST', '/api/upstreams', { name: 'own', catalog_id: 'custom', url: 'http://user:pass@host/v1', auth_style: 'header', auth_header: 'X-Key', auth_value_env: 'OWN_KEY', enabled: false })).json,
    { url: 'http://host/v1', auth_style: 'header' })
  t.match(gateway.audit().find(row => row.target === 'own'), { category: 'provider', action: 'provider.create', outcome: 'ok', after: { url: 'http://host/v1' } })

  const before = await gateway.file('etc/svc/upstreams.toml')
  const refusals: Array<[object, number, string]> = [
    [{ name: 'one', url: 'http://x' }, 409, 'upstream.already_exists'],
    [{ name: 'gpt', url: 'http://x' }, 409, 'upstream.already_exists'],
    [{ name: 'google_ai_studio', url: 'http://x' }, 409, 'upstream.already_exists'],
    [{ name: 'svc', url: 'http://x' }, 400, 'upstream.protected'],
    [{ name: 'agent', url: 'http://x' }, 400, 'upstream.invalid'],
    [{ name: 'x' }, 400, 'upstream.invalid'],
    [{ name: 'x', catalog_id: 'nobody' }, 400, 'upstream.invalid'],
    [{ name: 'x', url: 'http://x', fallback: ['x'] }, 400, 'upstream.invalid'],
    [{ name: 'x', url: 'http://x', auth_style: 'header' }, 400, 'validation.invalid'],
    [{ name: 'Bad Name', url: 'http://x' }, 400, 'validation.invalid'],
    [{ name: 'x', url: 'http://x', auth_value_env: KEY }, 400, 'validation.invalid'],
    [{ name: 'x', url: 'http://x', kind: 'slot' }, 400, 'validation.unknown_keys'],
    [{ name: 'x', url: 'file:///etc/passwd' }, 400, 'validation.invalid']
  ]
  for (const [body, status, code] of refusals) {
    const refused = await gateway.call('POST', '/api/upstreams', body)
    t.equal(refused.status, status, JSON.stringify(body))
    t.match(refused.json, { error: { code } }, JSON.stringify(body))
    t.notMatch(refused.text, KEY, 'a key that was put in the wrong place is not repeated')
  }
  t.equal(await gateway.file('etc/svc/upstreams.toml'), before)
})

t.test('change: only what is given, in the file where it stands, with its comments', async t => {
  const gateway = await rig(t)
  await gateway.call('POST', '/api/upstreams/one/refresh')
  const patched = await gateway.call('PATCH', '/api/upstreams/one', { retries: 3, connect_timeout_seconds: 2, model_filters: { include: ['m*'] }, advertise_models: false })
  t.match(patched.json, { retries: 3, connect_timeout_seconds: 2, advertise_models: false, model_filters: { include: ['m*'] }, models: ['m1', 'm2'] })
  t.match(await gateway.file('etc/svc/upstreams.toml'), /^# mine\n\[\[upstream\]\]\nname = "one"\n[^]*retries = 3\n[^]*# the slot\n/)
  t.match((await gateway.call('PATCH', '/api/upstreams/one', { connect_timeout_seconds: null, model_filters: null })).json, { connect_timeout_seconds: null, model_filters: null, retries: 3 })
  t.match(gateway.audit()[0], { action: 'provider.edit', target: 'one', before: { connect_timeout_seconds: 2 }, after: { connect_timeout_seconds: null } })

  t.match((await gateway.call('PATCH', '/api/upstreams/google-ai-studio', { timeout_seconds: 60, url: 'http://127.0.0.1:1/v1', model_filters: { models: ['gemini'] } })).json,
    { source: 'providers.toml', timeout_seconds: 60, url: 'http://127.0.0.1:1/v1', models: ['gemini'] })
  t.match(await gateway.file('etc/svc/providers.toml'), /^\[\[provider\]\]\ncatalog_id = "google_ai_studio" # ai\nenabled = false\ntimeout_seconds = 60\nbase_url = "http:\/\/127\.0\.0\.1:1\/v1"\nmodels = \[ "gemini" \]\n\n\[\[provider\]\]/)
  t.match((await gateway.call('PATCH', '/api/upstreams/gpt', { retries: 1 })).json, { retries: 1 }, 'by its own name')

  const refusals: Array<[string, object, string]> = [
    ['gpt', { auth_style: 'none' }, 'upstream.invalid'], ['gpt', { model_filters: { include: ['x'] } }, 'upstream.invalid'],
    ['one', { fallback: ['two', 'one'] }, 'upstream.invalid'], ['one', { retries: 11 }, 'validation.invalid'], ['one', { name: 'other' }, 'validation.unknown_keys'],
    ['one', { auth_style: 'header' }, 'validation.invalid'], ['svc', { retries: 1 }, 'upstream.protected'], ['backed', { url: 'http://x' }, 'upstream.protected'],
    ['nope', { retries: 1 }, 'upstream.not_found']
  ]
  for (const [name, body, code] of refusals) {
    t.match((await gateway.call('PATCH', `/api/upstreams/${name}`, body)).json, { error: { code } }, `${name} ${JSON.stringify(body)}`)
  }
  t.match((await gateway.call('PATCH', '/api/upstreams/backed', { timeout_seconds: 9 })).json, { timeout_seconds: 9 }, 'not all of a slot\'s row is fixed')
})

t.test('delete, and what is there then', async t => {
  const gateway = await rig(t)
  t.strictSame((await gateway.call('DELETE', '/api/upstreams/one')).json, { ok: true, name: 'one', removed_from_toml: true, hint: 'its key ONE_KEY is kept' })
  t.match((await gateway.call('GET', '/api/upstreams/one')).status, 404)
  t.match(await gateway.file('etc/svc/upstreams.toml'), /^# mine\n+# the slot\n/)
  t.strictSame((await gateway.call('DELETE', '/api/upstreams/gpt')).json, { ok: true, name: 'gpt', removed_from_toml: true, hint: null })
  t.match(await gateway.file('etc/svc/providers.toml'), /^\[\[provider\]\]\ncatalog_id = "google_ai_studio" # ai\nenabled = false\n$/)
  t.match((await gateway.call('DELETE', '/api/upstreams/svc')).json, { error: { code: 'upstream.protected' } })
  t.match((await gateway.call('DELETE', '/api/upstreams/one')).json, { error: { code: 'upstream.not_found' } })
  t.match(gateway.audit().find(row => row.target === 'gpt'), { action: 'provider.delete', before: { name: 'gpt' } })
})

t.test('test: what the upstream says, and an end to being left alone', async t => {
  const gateway = await rig(t)
  t.match((await gateway.call('POST', '/api/upstreams/one/test')).json, { ok: true, status: 200, models_count: 2, error: null })
  t.equal(gateway.one.engine.requests[0]!.headers.authorization, `Bearer ${KEY}`)
  const cases: Array<[Parameters<FakeUpstream['list']>[0], object]> = [
    [{ status: 401, chunks: [`{"error":"bad key ${KEY}"}`] }, { ok: false, status: 401, models_count: null, error: 'GET /models answered 401' }],
    [{ chunks: [`<html>${KEY}`] }, { ok: false, status: 200, error: 'the model list is not JSON' }],
    [{ chunks: ['{}'] }, { ok: false, status: 200, error: 'the model list has no `data`' }]
  ]
  for (const [script, wanted] of cases) {
    gateway.one.list(script)
    const tested = await gateway.call('POST', '/api/upstreams/one/test')
    t.equal(tested.status, 200, 'what the upstream says is an answer')
    t.match(tested.json, wanted)
    t.notMatch(tested.text, KEY)
  }
  t.match((await gateway.call('GET', '/api/upstreams/one')).json, { models: ['m1', 'm2'], error: 'the model list has no `data`' }, 'the old list is kept')
  await gateway.one.engine.close()
  t.match((await gateway.call('POST', '/api/upstreams/one/test')).json, { ok: false, status: null, error: /./ })
  t.match((await gateway.call('POST', '/api/upstreams/nope/test')).json, { error: { code: 'upstream.not_found' } })
  t.match((await gateway.call('POST', '/api/upstreams/nope/refresh')).json, { error: { code: 'upstream.not_found' } })
})

t.test('a key goes only where it was meant to go', async t => {
  const gateway = await rig(t)
  const evil = { name: 'evil', url: 'http://evil.example/v1' }
  const required = { status: 409, json: { error: { code: 'upstream.key_required' } } }
  t.match(await gateway.call('POST', '/api/upstreams', { ...evil, auth_value_env: 'ONE_KEY' }), required, 'a secret of another upstream')
  t.match(await gateway.call('POST', '/api/upstreams', { ...evil, auth_value_env: 'PATH' }), required, 'the environment of the gateway')
  t.match(await gateway.call('POST', '/api/upstreams', { ...evil, auth_value_env: 'HF_TOKEN' }), required, 'a secret of the gateway itself, set or not')
  t.match(await gateway.call('PATCH', '/api/upstreams/one', { url: 'http://evil.example/v1' }), required, 'another address asks for the key again')
  t.match(await gateway.call('PATCH', '/api/upstreams/one', { url: 'http://evil.example/v1', auth_style: 'google_query' }), required)
  t.equal((await gateway.call('POST', '/api/upstreams', { ...evil, auth_style: 'none', auth_value_env: 'ONE_KEY' })).status, 201)
  t.match(await gateway.call('PATCH', '/api/upstreams/evil', { auth_style: 'bearer' }), required, 'in two steps as well')
  t.equal((await gateway.call('GET', '/api/upstreams/one')).json.url, gateway.one.url)

  t.equal((await gateway.call('PATCH', '/api/upstreams/one', { url: `${gateway.one.engine.origin}/other` })).status, 200, 'a path of the same address does not')
  const moved = await gateway.call('PATCH', '/api/upstreams/one', { url: 'http://new.example/v1', auth_value: 'sk-given-again' })
  t.equal(moved.status, 200)
  t.notMatch(moved.text, 'sk-given-again')
  t.match(await gateway.file('etc/svc/api.env'), 'sk-given-again')
  t.notMatch(await gateway.file('etc/svc/upstreams.toml'), 'sk-given-again')
  t.equal((await gateway.call('POST', '/api/upstreams', { name: 'fresh', url: 'http://lab.example/v1', auth_value_env: 'LAB_KEY' })).status, 201, 'a key that is not set yet')
  t.notMatch(JSON.stringify([gateway.logs, gateway.audit()]), 'sk-given-again')
})

t.test('a variable belongs to the address that named it first, with a value or without', async t => {
  const gateway = await rig(t)
  const required = { status: 409, json: { error: { code: 'upstream.key_required' } } }
  t.equal((await gateway.call('POST', '/api/upstreams', { name: 'first', url: 'http://first.example/v1', auth_value_env: 'LAB_KEY' })).status, 201)
  const second = { name: 'second', url: 'http://second.example/v1', auth_value_env: 'LAB_KEY' }
  t.match(await gateway.call('POST', '/api/upstreams', second), required, 'it has no value yet')
  t.match(await gateway.call('POST', '/api/upstreams', { ...second, auth_value_env: 'OPENAI_API_KEY' }), required, 'nor has that of a template')
  t.match(await gateway.call('POST', '/api/upstreams', { ...second, auth_value: 'sk-of-second' }), {
    ...required, json: { error: { param: 'auth_value_env', message: /'first' sends LAB_KEY to http:\/\/first\.example, which would get this key too/ } }
  })
  t.notMatch(await gateway.file('etc/svc/api.env'), 'sk-of-second')
  t.equal((await gateway.call('PATCH', '/api/upstreams/first', { url: 'http://moved.example/v1' })).status, 200, 'its own variable, still without a value')
  t.equal((await gateway.call('POST', '/api/upstreams', { ...second, auth_value_env: 'SECOND_KEY', auth_value: 'sk-of-second' })).status, 201)
})

t.test('rows written by hand that take a key somewhere else are told', async t => {
  const gateway = await api(t, {
    files: {
      'etc/svc/upstreams.toml': [
        upstreamTable('one', 'http://one.example/v1', { auth_style: 'bearer', auth_value_env: 'ONE_KEY' }),
        upstreamTable('two', 'http://two.example/v1', { auth_style: 'bearer', auth_value_env: 'ONE_KEY' }),
        upstreamTable('three', 'http://three.example/v1', { auth_style: 'bearer', auth_value_env: 'HF_TOKEN' }),
        upstreamTable('four', 'http://four.example/v1', { auth_style: 'bearer', auth_value_env: 'FOUR_KEY' })
      ].join('')
    }
  })
  const { diagnostics } = (await gateway.call('GET', '/api/status')).json as { diagnostics: Array<{ file: string, path: string, message: string, code: string }> }
  const told = diagnostics.filter(({ code }) => code === 'upstream.key_required')
  t.match(told.map(({ path, message }) => `${path}: ${message}`), [
    /^upstream\.0\.auth_value_env: ONE_KEY goes to http:\/\/one\.example, and is also the key of upstream 'two'/,
    /^upstream\.1\.auth_value_env: .* upstream 'one'/,
    /^upstream\.2\.auth_value_env: HF_TOKEN is a secret of the gateway itself/
  ])
  t.equal(told.length, 3)
  t.match(await gateway.call('POST', '/api/providers/two/credentials', { key: 'ONE_KEY', value: 'sk-x' }), { status: 409, json: { error: { code: 'upstream.key_required' } } })
})

t.test('keys are written and never shown', async t => {
  const gateway = await rig(t)
  const secret = 'sk-\\"new" key'
  const written = await gateway.call('POST', '/api/providers/gpt/credentials', { key: 'OPENAI_API_KEY', value: secret })
  t.strictSame(written.json, { ok: true, name: 'gpt', key: 'OPENAI_API_KEY', value: '••••••••', hint: 'POST /api/upstreams/gpt/test tests whether it is accepted' })
  t.match(await gateway.file('etc/svc/api.env'), 'OPENAI_API_KEY="sk-\\\\\\"new\\" key"')
  t.equal((await stat(join(gateway.home, 'etc/svc/api.env'))).mode & 0o777, 0o600)
  t.match((await gateway.call('GET', '/api/upstreams/gpt')).json, { auth_key_present: true })
  const refusals: Array<[string, object]> = [
    ['gpt', { key: 'ONE_KEY', value: secret }], ['gpt', { key: 'OPENAI_API_KEY', value: ' ' }], ['gpt', { key: 'OPENAI_API_KEY', value: `${secret}\nX=1` }]
  ]
  for (const [name, body] of refusals) {
    const refused = await gateway.call('POST', `/api/providers/${name}/credentials`, body)
    t.match(refused.json, { error: { code: 'provider.credential_write_failed' } }, JSON.stringify(body))
    t.equal(refused.status, 400)
    t.notMatch(refused.text, secret)
  }
  await gateway.call('PATCH', '/api/upstreams/one', { auth_style: 'none', auth_value_env: '' })
  t.match((await gateway.call('POST', '/api/providers/one/credentials', { key: 'ONE_KEY', value: 'x' })).json, { error: { code: 'provider.credential_write_failed', message: /auth_value_env/ } })
  t.match((await gateway.call('POST', '/api/providers/nope/credentials', { key: 'A', value: 'x' })).json, { error: { code: 'upstream.not_found' } })
  const everything = JSON.stringify([gateway.logs, gateway.audit(), gateway.gateway.kernel().events.list().events])
  for (const key of [KEY, 'sk-\\\\']) t.notMatch(everything, key)
})
