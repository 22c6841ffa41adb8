import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../../kernel/testing/index.js'
import builtins from '../../../../plugins/index.js'
import { apiOf, openStream } from '../support.js'

const api = apiOf('api-events', 'api-secrets', 'api-upstreams', 'remote-catalog')

t.test('a secret is set and removed, and never shown', async t => {
  const gateway = await api(t, { files: { 'etc/svc/api.env': '# kept\nOLD_KEY="old-value"\n' } })
  const events = await openStream(t, gateway, '/api/events/stream?type=system.*')
  t.match((await gateway.call('GET', '/api/secrets')).json, { secrets: [{ name: 'OLD_KEY', set: true, masked: '••••••••', updated_at: /T.*Z$/ }] })
  const value = 'hunter2 "with" \\ and ümläuts'
  const set = await gateway.call('PUT', '/api/secrets/HF_TOKEN', { value })
  t.same([set.status, set.text], [204, ''])
  const { config } = gateway.gateway.kernel()
  t.equal(config.secret('HF_TOKEN'), value)
  const path = join(gateway.home, 'etc/svc/api.env')
  t.equal(statSync(path).mode & 0o777, 0o600, 'a file that was open to others is not any more')
  t.equal(readFileSync(path, 'utf8'), '# kept\nOLD_KEY="old-value"\nHF_TOKEN="hunter2 \\"with\\" \\\\ and ümläuts"\n')
  t.match((await events.next())!.data, { type: 'system.secret_updated', source: 'secret:HF_TOKEN', data: { name: 'HF_TOKEN' } })
  t.same((await gateway.call('GET', '/api/secrets')).json.secrets.map(({ name }: { name: string }) => name), ['HF_TOKEN', 'OLD_KEY'])
  t.equal((await gateway.call('POST', '/api/secrets/HF_TOKEN', { value: 'second' })).status, 204)
  t.equal(config.secret('HF_TOKEN'), 'second')
  await events.next()
  t.equal((await gateway.call('DELETE', '/api/secrets/HF_TOKEN')).status, 204)
  t.match((await events.next())!.data, { type: 'system.secret_deleted' })
  t.equal((await gateway.call('DELETE', '/api/secrets/HF_TOKEN')).status, 204, 'gone is gone')
  t.equal(config.secret('HF_TOKEN'), undefined)
  t.match(gateway.audit().map(({ action, target, outcome }) => `${action} ${target} ${outcome}`), [
    'secrets.delete HF_TOKEN ok', 'secrets.delete HF_TOKEN ok', 'secrets.set HF_TOKEN ok', 'secrets.set HF_TOKEN ok'
  ])
  t.notMatch(JSON.stringify(gateway.audit()), /hunter2|second/)

  for (const name of ['lower', '1A', 'A-B', 'A'.repeat(65), 'A%20B', '_A']) {
    t.match(await gateway.call('PUT', `/api/secrets/${name}`, { value: 'x' }), { status: 400, json: { error: { code: 'secret.name_invalid' } } }, name)
    t.match(await gateway.call('DELETE', `/api/secrets/${name}`), { status: 400, json: { error: { code: 'secret.name_invalid' } } }, name)
  }
  for (const name of ['PATH', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'NODE_OPTIONS', 'SVC_HOME', 'PYTHONPATH', 'BASH_ENV', 'DYLD_INSERT_LIBRARIES']) {
    const answer = await gateway.call('PUT', `/api/secrets/${name}`, { value: 'x' })
    t.match(answer, { status: 400, json: { error: { code: 'secret.name_invalid', message: new RegExp(`^${name} controls programs`) } } }, name)
  }
  await t.rejects(config.setSecret('LD_AUDIT', 'x'), { code: 'secret.name_invalid' }, 'also past the route')
  t.notMatch(readFileSync(path, 'utf8'), /^(PATH|LD_|SVC_HOME)/m)
  for (const [i, bad] of ['', 'two\nlines', 'tab\t', '\u0000', 'a\u2028b', 'zero\u200bwidth', '\ud800', 'x'.repeat(8_193)].entries()) {
    const answer = await gateway.call('PUT', '/api/secrets/A', { value: bad })
    t.match(answer, { status: 400, json: { error: { code: 'secret.value_invalid', param: 'value' } } }, `value ${i}`)
  }
  for (const body of [{}, { value: 1 }, { value: 'x', other: 'hunter2' }, '{"value": "hunter2']) {
    const answer = await gateway.call('PUT', '/api/secrets/A', body)
    t.equal(answer.status, 400)
    t.notMatch(answer.text, /hunter2/, 'a refusal repeats nothing')
  }
  t.equal((await gateway.call('GET', '/api/secrets/OLD_KEY')).status, 405, 'there is no way to read one')
})

t.test('a value goes to no upstream that named the variable before it was there, unless that is meant', async t => {
  const gateway = await api(t)
  const add = async (name: string, url: string, rest: object): Promise<void> => {
    t.equal((await gateway.call('POST', '/api/upstreams', { name, url, enabled: false, ...rest })).status, 201)
  }
  await add('lurking', 'https://lurking.example/v1', { auth_value_env: 'LAB_KEY' })
  const set = (name: string, body: object): ReturnType<typeof gateway.call> => gateway.call('PUT', `/api/secrets/${name}`, body)
  const refused = await set('LAB_KEY', { value: 'hunter2hunter2' })
  t.match(refused, {
    status: 409,
    json: {
      error: {
        code: 'upstream.key_required',
        param: 'upstreams',
        message: /^LAB_KEY would be sent by upstream 'lurking' \(https:\/\/lurking\.example\)/,
        details: { variable: 'LAB_KEY', upstreams: [{ name: 'lurking', origin: 'https://lurking.example' }] }
      }
    }
  })
  t.notMatch(refused.text, /hunter2/)
  t.equal((await set('LAB_KEY', { value: 'hunter2hunter2', upstreams: ['other'] })).status, 409)
  t.notMatch((await gateway.call('GET', '/api/secrets')).text, /LAB_KEY/)
  t.equal((await set('LAB_KEY', { value: 'hunter2hunter2', upstreams: ['lurking'] })).status, 204)
  t.equal((await set('LAB_KEY', { value: 'another' })).status, 409, 'a new value as well')
  await add('openai', 'https://api.openai.com/v1', { auth_value_env: 'OPENAI_API_KEY' })
  t.equal((await set('OPENAI_API_KEY', { value: 'sk-x' })).status, 204, 'where the template of the variable sends it')
  await add('keyless', 'https://keyless.example/v1', { auth_style: 'none', auth_value_env: 'FREE_KEY' })
  t.equal((await set('FREE_KEY', { value: 'x' })).status, 204, 'it sends none')
})

t.test('a file that cannot be written', async t => {
  const gateway = await api(t)
  rmSync(join(gateway.home, 'etc/svc/api.env'), { force: true })
  mkdirSync(join(gateway.home, 'etc/svc/api.env'))
  const answer = await gateway.call('PUT', '/api/secrets/HF_TOKEN', { value: 'hunter2hunter2' })
  t.equal(answer.status, 500)
  t.match(answer.json.error.code, /^(secret\.write_failed|config\.parse_error)$/)
  t.notMatch(answer.text, /hunter2/)
  t.match(gateway.audit()[0], { action: 'secrets.set', outcome: 'error' })
})

/** Bytes of every file below a folder, but for those that hold the secrets. */
function filesBelow (folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name !== 'api.env' && entry.name !== 'proxmox.json')
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}

t.test('a secret is nowhere but in its file', async t => {
  const SECRET = 'Zx9!geheim/+wert=42'
  const TOKEN = 'Qy7!proxmox/+wert=24'
  const forms = [SECRET, TOKEN].flatMap(value =>
    [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), Buffer.from(value).toString('base64')])
  // an upstream that shows the key it was given in its refusals, as some do
  const upstream = createServer((request, response) => {
    const key = `${request.headers.authorization ?? ''} ${request.url ?? ''}`
    response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: `wrong key: ${key}` } }))
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => upstream.close())
  const { port } = upstream.address() as AddressInfo
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({
    builtins,
    plugins: [createFakeProviderPlugin()],
    runtime,
    env: { PATH: process.env.PATH },
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n',
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nprofile = "cpu-llm"\n[model]\ndefault = "fake-model"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n',
      'etc/svc/upstreams.toml': ['bearer', 'google_query'].map(style =>
        `[[upstream]]\nname = "${style.replace('_', '-')}"\nurl = "http://127.0.0.1:${port}/v1"\nauth_style = "${style}"\nauth_value_env = "UP_KEY"\n`).join('\n')
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const send = (method: string, path: string, body?: unknown): Promise<Response> => gateway.fetch(path, {
    method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  })
  t.equal((await send('PUT', '/api/secrets/UP_KEY', { value: SECRET, upstreams: ['bearer', 'google-query'] })).status, 204)
  t.equal(gateway.gateway.kernel().config.secret('UP_KEY'), SECRET)

  // whatever may come in touch with it
  await (await send('GET', '/v1/models')).text()
  await (await send('POST', '/v1/chat/completions', { model: 'bearer/x', messages: [] })).text()
  await (await send('POST', '/v1/chat/completions', { model: 'google-query/x', messages: [] })).text()
  await (await send('PUT', '/api/secrets/lower', { value: SECRET })).text()
  const proxmox = { host: '127.0.0.1', port, user: 'svc@pve', token_name: 'gateway', token_value: TOKEN }
  const answers = await Promise.all([
    send('PUT', '/api/settings/proxmox', proxmox), send('POST', '/api/settings/proxmox/test', proxmox),
    send('PUT', '/api/settings/proxmox', { ...proxmox, port: 0 }), send('PUT', '/api/settings/proxmox', { ...proxmox, token_value: `${TOKEN}\n` })
  ].map(async answer => (await answer).text()))
  t.match(answers[0], /"token_value_set":true/)
  await (await send('PUT', '/api/secrets/UP_KEY', { value: `${SECRET}\n` })).text()
  gateway.gateway.kernel().events.emit({ type: 'test.careless', source: 'system', message: `used ${SECRET}`, data: { url: `http://x/?k=${encodeURIComponent(SECRET)}` } })
  gateway.gateway.kernel().activity.record({ category: 'slot', action: 'slot.careless', target: 'agent', actor: 'x', message: SECRET, after: { note: SECRET } })
  await gateway.slots.load('agent')
  await send('POST', '/api/slots/agent/unload')
  await send('POST', '/api/slots/agent/load', { model: SECRET })
  const exported = await Promise.all([
    send('POST', '/api/profiles/cpu-llm/export', {}), send('POST', '/api/stacks/snapshot', {}), send('POST', '/api/stacks/saber/export', {})
  ].map(async answer => (await answer).text()))

  const openapi = await (await send('GET', '/api/openapi.json')).json() as { paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>> }
  const names: Readonly<Record<string, string>> = { name: 'agent', id: 'fake-model' }
  let asked = 0
  const telling: string[] = []
  for (const [path, methods] of Object.entries(openapi.paths)) {
    if (methods.get === undefined) continue
    const address = path.replaceAll(/\{(\w+)\}/g, (_all, key: string) => names[key] ?? 'x')
    const isStream = JSON.stringify(methods.get).includes('text/event-stream')
    const text = isStream ? await beginning(t, gateway.baseUrl, address) : await (await send('GET', address)).text()
    asked++
    telling.push(...forms.filter(form => text.includes(form)).map(() => `GET ${address}`))
  }
  t.strictSame(telling, [], 'no route tells a secret')
  t.ok(asked > 30, `${asked} routes were asked`)
  for (const form of forms) {
    t.notOk(exported.join('').includes(form), 'envelopes')
    t.notOk(answers.join('').includes(form), 'answers')
    t.notOk(JSON.stringify(gateway.logs).includes(form), 'log lines')
    t.notOk(JSON.stringify(gateway.gateway.kernel().events.list()).includes(form), 'events')
    t.notOk(JSON.stringify(gateway.gateway.kernel().activity.list({ limit: 1000 })).includes(form), 'audit rows')
    t.notOk(filesBelow(gateway.home).includes(Buffer.from(form, 'utf8').toString('latin1')), 'files of the home, the database among them')
  }
  t.ok(existsSync(join(gateway.home, 'var/lib/svc/svc.db')))
})

/** Streams in which nothing has happened here. */
const QUIET = ['/api/agent/approvals/events', '/api/mcp/stream', '/api/plugins/agent/log', '/api/slots/agent/logs/stream']

/** What the streams of what was written down must have reached. */
const REACHED: Readonly<Record<string, string>> = {
  '/api/activity/stream': 'slot.careless', '/api/events/stream': 'test.careless', '/api/journal/stream': 'test.careless'
}

/** What a stream begins with, with all that happened before; a refusal as a whole. */
async function beginning (t: Test, base: string, address: string): Promise<string> {
  const controller = new AbortController()
  const query = address === '/api/events/stream' ? '?since=0' : ''
  const response = await fetch(base + address + query, { signal: controller.signal })
  if (response.status !== 200) return await response.text()
  const reader = response.body!.getReader()
  const isQuiet = QUIET.includes(address)
  const timer = isQuiet ? setTimeout(() => controller.abort(), 100) : null
  let text = ''
  try {
    while (isQuiet || !text.includes(REACHED[address] ?? '\n\n') || !text.endsWith('\n\n')) {
      const { done, value } = await reader.read()
      if (done) break
      text += Buffer.from(value).toString()
    }
  } catch (error) {
    if (!controller.signal.aborted) throw error
  }
  if (timer !== null) clearTimeout(timer)
  controller.abort()
  if (!isQuiet) t.match(text, REACHED[address] ?? /\n\n$/, `${address} has told something`)
  return text
}
