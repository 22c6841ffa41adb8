import { chmodSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { AUTHORIZATION, FakeProxmox, TOKEN, type Mischief } from './fake-proxmox.js'
import { apiOf, refused, until, type Api } from '../support.js'

const api = apiOf('api-proxmox', 'api-settings', 'api-slots', 'api-stats')

const PATH = '/api/settings/proxmox'
const FILE = 'etc/svc/proxmox.json'
const OTHER_TOKEN = '00000000-1111-2222-3333-444444444444'

/** Wherever a token could show. */
function shownTo (gateway: Api): string {
  const { events, activity } = gateway.gateway.kernel()
  return JSON.stringify([events.list(), activity.list({ limit: 1000 }), gateway.logs])
}

function eventTypes (gateway: Api): string[] {
  return gateway.gateway.kernel().events.list({ type: 'system.proxmox_*' }).events.map(({ type }) => type.replace('system.proxmox_', ''))
}

t.test('from nothing to a host and back', async t => {
  const host = await FakeProxmox.start(t)
  const gateway = await api(t)
  const nothing = {
    configured: false, host: null, port: null, user: null, token_name: null, verify_ssl: null, token_value_set: false,
    status: { configured: false }
  }
  t.same((await gateway.call('GET', PATH)).json, nothing)
  const { token_value: token, ...rest } = host.settings
  await refused(t, gateway, ['PUT', PATH, rest], 400, 'proxmox.token_required', /token_value/)
  t.same((await gateway.call('GET', PATH)).json, nothing, 'what is refused is not saved')
  t.notOk(existsSync(join(gateway.home, FILE)))

  const saved = await gateway.call('PUT', PATH, host.settings)
  t.equal(saved.status, 200)
  t.same(saved.json, {
    configured: true, ...rest, verify_ssl: false, token_value_set: true,
    status: {
      configured: true, ok: true, node: 'pve', host_mem_total_mb: 131_072, host_mem_used_mb: 40_960, host_mem_free_mb: 90_112, host_cpu_pct: 5.3,
      host_cpu_count: 32, host_uptime_s: 86_400, tenants_running: 2, tenants_total: 3, tenants_allocated_mb: 73_728,
      tenants: [
        { type: 'qemu', vmid: 100, name: 'web', status: 'running', maxmem_mb: 8192, mem_mb: 3072, maxcpu: 4, cpu_pct: 1, node: 'pve' },
        { type: 'lxc', vmid: 101, name: 'gateway', status: 'running', maxmem_mb: 65_536, mem_mb: 12_288, maxcpu: 16, cpu_pct: 12.3, node: 'pve' },
        { type: 'qemu', vmid: 102, name: 'spare', status: 'stopped', maxmem_mb: 4096, mem_mb: 0, maxcpu: 2, cpu_pct: 0, node: 'pve' }
      ]
    }
  })
  t.equal(statSync(join(gateway.home, FILE)).mode & 0o777, 0o600)
  t.same(JSON.parse(await gateway.file(FILE)), {
    proxmox: { host: '127.0.0.1', port: host.port, verify_ssl: false, service: 'PVE' }, auth: TOKEN
  })
  const questions = host.asked.length
  t.same((await gateway.call('GET', PATH)).json, saved.json)
  t.equal(host.asked.length, questions, 'a recent answer is shown again')
  t.match((await gateway.call('GET', '/api/stats/hardware')).json.host, { configured: true, ok: true, node: 'pve', tenants_total: 3 })
  t.notOk('tenants' in (await gateway.call('GET', '/api/stats/hardware')).json.host)
  await until(() => host.sockets.size === 0, 'no connection stays')

  chmodSync(join(gateway.home, FILE), 0o644)
  const changed = await gateway.call('PUT', PATH, { ...rest, host: 'localhost', verify_ssl: true })
  t.match(changed.json, { host: 'localhost', verify_ssl: true, token_value_set: true, status: { ok: false, error: /certificate/ } })
  t.equal(JSON.parse(await gateway.file(FILE)).auth.token_value, token, 'the token is kept')
  t.equal(statSync(join(gateway.home, FILE)).mode & 0o777, 0o600, 'what was opened to others is closed again')

  t.same((await gateway.call('DELETE', PATH)).json, { configured: false, existed: true })
  t.notOk(existsSync(join(gateway.home, FILE)))
  t.same((await gateway.call('DELETE', PATH)).json, { configured: false, existed: false })
  t.same((await gateway.call('GET', PATH)).json, nothing)
  t.match((await gateway.call('GET', '/api/stats/hardware')).json.host, { configured: false })
  t.same(eventTypes(gateway), ['save', 'save', 'unreachable', 'remove'])
  t.match(gateway.audit().map(({ action, outcome }) => `${String(action)} ${String(outcome)}`), [
    'settings.proxmox_remove ok', 'settings.proxmox_remove ok', 'settings.proxmox_save ok', 'settings.proxmox_save ok', 'settings.proxmox_save error'
  ])
  t.match(gateway.audit()[2], { before: { host: '127.0.0.1' }, after: { host: 'localhost' }, target: 'proxmox.json' })
  t.notOk(shownTo(gateway).includes(token))
})

t.test('settings that make no sense change nothing', async t => {
  const host = await FakeProxmox.start(t)
  const gateway = await api(t)
  await gateway.call('PUT', PATH, host.settings)
  const before = await gateway.file(FILE)
  const questions = host.asked.length
  const cases: ReadonlyArray<readonly [object, string]> = [
    [{ node: 'pve' }, 'node'], [{ host: undefined }, 'host'], [{ host: '' }, 'host'], [{ host: 'https://pve' }, 'host'], [{ host: 'pve:8006' }, 'host'],
    [{ host: 'pve/x' }, 'host'], [{ host: 'a b' }, 'host'], [{ host: 'user@pve' }, 'host'], [{ host: 'pve?x' }, 'host'], [{ host: 'a..b' }, 'host'],
    [{ port: 0 }, 'port'], [{ port: 65_536 }, 'port'], [{ port: '8006' }, 'port'], [{ port: 1.5 }, 'port'], [{ user: 'root' }, 'user'],
    [{ user: 'root@pam!x' }, 'user'], [{ user: 'a=b@pam' }, 'user'], [{ user: 'a\r\nb@pam' }, 'user'], [{ token_name: 'svc@pve!gateway' }, 'token_name'],
    [{ token_name: '' }, 'token_name'], [{ token_value: '' }, 'token_value'], [{ token_value: 'two words' }, 'token_value'], [{ token_value: 'ü' }, 'token_value'],
    [{ token_value: `${OTHER_TOKEN}\r\nX: y` }, 'token_value'], [{ token_value: null }, 'token_value'], [{ verify_ssl: 'yes' }, 'verify_ssl']
  ]
  for (const [over, field] of cases) {
    for (const [method, path] of [['PUT', PATH], ['POST', `${PATH}/test`]] as const) {
      const { status, json, text } = await gateway.call(method, path, { ...host.settings, ...over })
      t.match({ status, code: json.error.code, param: json.error.param }, { status: 400, code: 'proxmox.config_invalid', param: field }, `${method} ${JSON.stringify(over)}`)
      t.ok(json.error.message.includes(field), json.error.message)
      t.notOk(text.includes(TOKEN.token_value) || text.includes(OTHER_TOKEN), 'a refusal repeats no token')
    }
  }
  t.match(await gateway.call('PUT', PATH, '{'), { status: 400, json: { error: { code: 'request.invalid_json' } } })
  t.equal(await gateway.file(FILE), before)
  t.equal(host.asked.length, questions, 'nobody was asked')
  for (const fine of ['pve', 'pve.home.arpa', '192.0.2.7', '2001:db8::7', '[2001:db8::7]', 'node_1']) {
    const { token_value: _, ...rest } = host.settings
    await refused(t, gateway, ['POST', `${PATH}/test`, { ...rest, host: fine }], 400, 'proxmox.token_required')
  }
})

t.test('a test asks and saves nothing', async t => {
  const host = await FakeProxmox.start(t)
  const gateway = await api(t)
  const test = async (over: object = {}) => (await gateway.call('POST', `${PATH}/test`, { ...host.settings, ...over })).json
  t.same(await test(), { ok: true, node: 'pve', host_mem_total_mb: 131_072, tenants_total: 3 })
  t.match(await test({ verify_ssl: true }), { ok: false, error: /not trusted.*verify_ssl/ })
  t.match(await test({ token_value: OTHER_TOKEN }), { ok: false, error: /does not accept the token/ })
  t.match(await test({ user: 'root@pam' }), { ok: false, error: /does not accept the token/ })
  t.match(await test({ token_name: 'other' }), { ok: false, error: /does not accept the token/ })
  t.match(await test({ host: 'no-such-host.invalid' }), { ok: false, error: /no-such-host\.invalid/ })
  host.privileges.vmAudit = false
  t.match(await test(), { ok: true, tenants_total: 0 })
  host.privileges.audit = false
  t.match(await test(), { ok: false, error: /\/nodes\/pve\/status \(403\).*PVEAuditor/ })
  host.privileges.audit = true

  host.nodes = [{ node: 'a', status: 'online', local: false }, { node: 'b', status: 'online', local: true }, { node: 'c', status: 'offline', local: false }]
  t.match(await test(), { ok: true, node: 'b' }, 'of a cluster, the node that answers')
  host.nodes = [{ node: 'a', status: 'offline', local: false }, { node: 'b', status: 'online', local: true }]
  t.match(await test(), { ok: true, node: 'b' })
  host.nodes = [{ node: 'a', status: 'offline', local: true }]
  t.match(await test(), { ok: false, error: /no node that is online/ })
  host.nodes = [{ node: 'a/../b?', status: 'online', local: true }]
  t.match(await test(), { ok: false, error: /unlike Proxmox/ }, 'a name is no path')
  host.nodes = [{ node: 'pve', status: 'online', local: true }]

  const mischief: ReadonlyArray<readonly [Mischief, RegExp]> = [
    ['cut', /reset/], ['html', /unlike Proxmox/], ['wrong-shape', /unlike Proxmox/], ['endless', /more than \d+ bytes/], ['echo', /answers \/nodes with 500/]
  ]
  for (const [kind, error] of mischief) {
    host.mischief = kind
    const answer = await test()
    t.match(answer, { ok: false, error }, kind)
    t.notOk(JSON.stringify(answer).includes(TOKEN.token_value), kind)
  }
  await host.close()
  t.match(await test(), { ok: false, error: /the connection was refused; check host and port$/ })
  t.notOk(existsSync(join(gateway.home, FILE)))
  t.same(eventTypes(gateway), [])
  t.notOk(shownTo(gateway).includes(TOKEN.token_value))
  t.notOk(shownTo(gateway).includes(AUTHORIZATION))
})

t.test('a host that says nothing keeps nobody else waiting', async t => {
  const host = await FakeProxmox.start(t)
  host.mischief = 'stall'
  const content = { proxmox: { host: '127.0.0.1', port: host.port }, auth: TOKEN }
  const gateway = await api(t, { files: { [FILE]: JSON.stringify(content) } })
  const stats = async () => (await gateway.call('GET', '/api/stats/hardware')).json.host
  t.match(await stats(), { configured: true, ok: false, error: /first time/ })
  await until(() => host.pending === 1, 'the host is asked')
  t.match(await stats(), { ok: false, error: /first time/ })
  t.equal(host.pending, 1, 'the question runs on, and is the only one')
  t.match((await gateway.call('GET', '/api/metrics')).json.hardware.host, { ok: false })
  const waiting = gateway.call('GET', PATH)
  t.match((await waiting).json, { configured: true, status: { ok: false, error: /did not answer completely within 3 seconds/ } })
  t.same(host.asked, ['/nodes'])
  t.match(await stats(), { ok: false, error: /3 seconds/ }, 'what came of it is kept')
  t.same(host.asked, ['/nodes'])
  t.same(eventTypes(gateway), ['unreachable'])

  const forgotten = gateway.call('POST', `${PATH}/test`, host.settings).catch(() => null)
  await until(() => host.pending === 1, 'a test runs')
  await gateway.close()
  await forgotten
  await until(() => host.sockets.size === 0, 'a gateway that stops takes its questions along')
})

t.test('switched off while it asks, and on again', async t => {
  const host = await FakeProxmox.start(t)
  const gateway = await api(t)
  const shownHost = async () => (await gateway.call('GET', '/api/stats/hardware')).json.host
  const disable = async (...names: string[]) => t.equal((await gateway.call('PUT', '/api/settings', { plugins: { disabled: names } })).status, 200)
  t.match((await gateway.call('PUT', PATH, host.settings)).json, { status: { ok: true } })
  host.mischief = 'stall'
  const test = gateway.call('POST', `${PATH}/test`, host.settings)
  await until(() => host.pending === 1, 'a test runs')
  await disable('api-proxmox')
  await until(() => host.sockets.size === 0, 'what it asked is ended')
  t.match(await test, { status: 503, json: { error: { code: 'plugin.unavailable' } } })
  t.match(await shownHost(), { configured: false }, 'the numbers of the machine stay')
  t.equal((await gateway.call('GET', PATH)).status, 404)
  host.mischief = null
  await disable()
  t.match((await gateway.call('GET', PATH)).json, { configured: true, status: { ok: true, node: 'pve' } })
  t.match(await shownHost(), { configured: true, ok: true, node: 'pve' })
})

t.test('a file that cannot be used', async t => {
  const host = await FakeProxmox.start(t)
  const gateway = await api(t)
  const path = join(gateway.home, FILE)
  const good = { proxmox: { host: '127.0.0.1', port: host.port, verify_ssl: false, service: 'PVE' }, auth: TOKEN }
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['', /not valid JSON/], [`{"auth": "${TOKEN.token_value}`, /not valid JSON/], ['null', /missing or wrong/], ['{}', /proxmox is missing/],
    [JSON.stringify({ proxmox: good.proxmox }), /auth is missing/], [JSON.stringify({ ...good, auth: { ...TOKEN, token_value: 7 } }), /auth\.token_value must be/],
    [JSON.stringify({ ...good, proxmox: { ...good.proxmox, port: 0 } }), /proxmox\.port must be/],
    [JSON.stringify({ ...good, proxmox: { ...good.proxmox, service: 'PMG' } }), /proxmox\.service must be PVE/], ['x'.repeat(70_000), /not a settings file/]
  ]
  const { token_value: token, ...rest } = host.settings
  for (const [text, error] of cases) {
    writeFileSync(path, text)
    const answer = await gateway.call('GET', PATH)
    t.equal(answer.status, 200)
    const wanted = { configured: true, host: null, token_value_set: false, status: { ok: false, error } }
    t.match(answer.json, wanted, text.slice(0, 60))
    t.match(answer.json.status.error, /DELETE/, 'and what mends it')
    t.notOk(answer.text.includes(token))
    t.match((await gateway.call('GET', '/api/stats/hardware')).json.host, { configured: true, ok: false, error })
    await refused(t, gateway, ['PUT', PATH, rest], 400, 'proxmox.token_required')
  }
  t.match(await gateway.call('PUT', PATH, host.settings), { status: 200, json: { status: { ok: true } } }, 'saving mends it')
  writeFileSync(path, JSON.stringify({ ...good, comment: 'mine' }))
  t.match((await gateway.call('GET', PATH)).json, { configured: true, status: { ok: true } }, 'what is not known is left aside')
  writeFileSync(path, 'x')
  t.same((await gateway.call('DELETE', PATH)).json, { configured: false, existed: true }, 'so does removing it')

  mkdirSync(path)
  t.match((await gateway.call('GET', PATH)).json, { status: { ok: false, error: /not a settings file/ } })
  await refused(t, gateway, ['PUT', PATH, host.settings], 500, 'proxmox.write_failed', /proxmox\.json cannot be written/)
  await refused(t, gateway, ['DELETE', PATH], 500, 'proxmox.write_failed')
  t.match(gateway.audit()[0], { action: 'settings.proxmox_remove', outcome: 'error' })
  rmSync(path, { recursive: true })
  t.notOk(shownTo(gateway).includes(token))
})
