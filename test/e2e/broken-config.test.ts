import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Diagnostic } from '../../kernel/contract/index.js'
import settings from '../../plugins/api/settings/index.js'
import slots from '../../plugins/api/slots/index.js'
import status from '../../plugins/api/status/index.js'
import text from '../../plugins/v1/text/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
import { until } from '../wire/wire-gateway.js'
import { chat } from './live-gateway.js'

const plugins = [settings, slots, status, text, createFakeProviderPlugin()]
const good = 'provider = "fake"\ndevice = "cpu"\n'

async function start (t: Test, files: Readonly<Record<string, string>>): Promise<TestGateway> {
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ plugins, runtime, files })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return gateway
}

async function diagnostics (gateway: TestGateway): Promise<Diagnostic[]> {
  return (await (await gateway.fetch('/api/status')).json() as { diagnostics: Diagnostic[] }).diagnostics
}

async function reload (gateway: TestGateway): Promise<Diagnostic[]> {
  const response = await gateway.fetch('/api/settings/reload', { method: 'POST' })
  return (await response.json() as { _svc: { diagnostics: Diagnostic[] } })._svc.diagnostics
}

const banana = { file: 'slots/bad.toml', path: 'device', line: 2, message: /gpu-rocm.*gpu-vulkan.*gpu-cuda.*cpu.*npu/ }

t.test('a bad slot file at start: it is told with file, path and allowed values, and the other slots serve', async t => {
  const gateway = await start(t, {
    'etc/svc/slots/agent.toml': good,
    'etc/svc/slots/bad.toml': 'provider = "fake"\ndevice = "banana"\nidle_timeout = 3\n',
    'etc/svc/slots/cut.toml': 'provider = "fake"\n[model]\ndefault = "unfini'
  })
  const found = await diagnostics(gateway)
  t.match(found, [
    banana,
    { file: 'slots/bad.toml', path: 'idle_timeout', message: /idle_timeout_s/ },
    { file: 'slots/cut.toml', path: /^$/, message: /not valid TOML/ }
  ], 'all problems at once')
  t.equal((await chat(gateway.baseUrl, {})).status, 200, 'agent serves')
  t.equal((await gateway.fetch('/api/status').then(r => r.json()) as { status: string }).status, 'degraded')
  t.match(await (await gateway.fetch('/api/slots/bad')).json(), { kind: 'unread', metadata: { file_problems: [{ path: 'device' }, { path: 'idle_timeout' }] } },
    'whoever looks for the slot learns why it is not there')
  t.equal((await chat(gateway.baseUrl, { model: 'bad' })).status, 404)
})

t.test('a slot file that breaks on reload: the last good one stays in force, and running engines run on', async t => {
  const gateway = await start(t, { 'etc/svc/slots/agent.toml': good, 'etc/svc/slots/bad.toml': `${good}idle_timeout_s = 600\n` })
  const path = join(gateway.home, 'etc/svc/slots/bad.toml')
  t.equal((await chat(gateway.baseUrl, { model: 'bad' })).status, 200)
  for (const [text, expected] of [
    ['provider = "fake"\ndevice = "banana"\n', banana],
    ['provider = "fake"\ndevice = "cpu', { file: 'slots/bad.toml', path: '', message: /not valid TOML/ }]
  ] as const) {
    await writeFile(path, text)
    t.match(await reload(gateway), [expected])
    t.match(await (await gateway.fetch('/api/slots/bad')).json(), { state: 'ready', idle_timeout_s: 600 }, 'the slot is as it was')
    t.equal((await chat(gateway.baseUrl, { model: 'bad' })).status, 200)
  }
  await writeFile(path, `${good}idle_timeout_s = 900\n`)
  t.strictSame(await reload(gateway), [], 'mended')
  t.match(await (await gateway.fetch('/api/slots/bad')).json(), { state: 'ready', idle_timeout_s: 900 })
})

t.test('a broken svc.toml on reload changes nothing; at start it refuses the start and names every problem', async t => {
  const gateway = await start(t, { 'etc/svc/slots/agent.toml': good })
  const svc = join(gateway.home, 'etc/svc/svc.toml')
  await writeFile(svc, '[slots]\nport_range_start = "low"\npublish_hots = "x"\n')
  t.match(await reload(gateway), [
    { file: 'svc.toml', path: 'slots.port_range_start', message: /whole number/ },
    { file: 'svc.toml', path: 'slots.publish_hots', message: /publish_host/ }
  ])
  t.equal((await chat(gateway.baseUrl, {})).status, 200)
  const refused = await createTestGateway({ plugins, files: { 'etc/svc/svc.toml': '[slots]\nport_range_start = "low"\n[sluts]\n' } })
    .then(() => null, (error: unknown) => error as Error)
  t.match(refused?.message, /slots\.port_range_start/)
  t.match(refused?.message, /sluts/)
})

t.test('two gateways on one home: the second refuses and names the first', async t => {
  const gateway = await start(t, { 'etc/svc/slots/agent.toml': good })
  const second = await createTestGateway({ plugins, home: gateway.home }).then(() => null, (error: unknown) => error as Error)
  t.match(second, { code: 'gateway.home_in_use', message: new RegExp(`process ${process.pid}.*${gateway.baseUrl}`) })
})

interface Row {
  readonly name: string
  readonly kind: string
  readonly state: string
  readonly port: number | null
  readonly container_status: string
  readonly metadata: { readonly message: string, readonly adopted?: boolean, readonly file_problems?: readonly object[] }
}

async function row (gateway: TestGateway, name: string): Promise<Row | undefined> {
  return (await (await gateway.fetch('/api/slots')).json() as Row[]).find(slot => slot.name === name)
}

interface Restarted { readonly gateway: TestGateway, readonly runtime: FakeEngineRuntime, readonly path: string }

/** A home whose slot `agent` serves, left by a gateway that stopped and kept its engines; then a file is replaced. */
async function restarted (
  t: Test, text: string, file = 'etc/svc/slots/agent.toml', more: Readonly<Record<string, string>> = {}
): Promise<Restarted> {
  const runtime = new FakeEngineRuntime()
  const home = t.testdir()
  const path = join(home, file)
  const options = { plugins, runtime, home }
  const files = { 'etc/svc/slots/agent.toml': good, 'etc/svc/svc.toml': '[slots]\nautostart = false\n', ...more }
  const first = await createTestGateway({ ...options, files })
  t.equal((await chat(first.baseUrl, {})).status, 200)
  await first.gateway.stop()
  await writeFile(path, text)
  const gateway = await createTestGateway(options)
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return { gateway, runtime, path }
}

t.test('an engine whose slot file is broken at the start is kept, shown, and adopted when the file is mended', async t => {
  const { gateway, runtime, path } = await restarted(t, `${good}idle_timeout = 3\n`)
  t.equal(runtime.running, 1, 'it runs on')
  t.match(await row(gateway, 'agent'), {
    kind: 'unread', state: 'error', container_status: 'running',
    metadata: { message: /left running.*svc config reload/, file_problems: [{ path: 'idle_timeout' }] }
  })
  await reload(gateway)
  t.equal(runtime.running, 1, 'a reload of the same broken file changes nothing')
  await writeFile(path, good)
  t.strictSame(await reload(gateway), [])
  t.equal((await chat(gateway.baseUrl, {})).status, 200)
  t.equal(runtime.started.length, 1, 'the same engine')
  t.match(await row(gateway, 'agent'), { kind: 'local', state: 'ready', metadata: { adopted: true } })
})

t.test('a broken slot file that is removed, or mended to something else, ends the engine that was kept for it', async t => {
  const { gateway, runtime, path } = await restarted(t, 'provider = "fa')
  t.equal(runtime.running, 1)
  await rm(path)
  await reload(gateway)
  await until(() => runtime.running === 0, 'its slot no longer exists')
  t.equal(await row(gateway, 'agent'), undefined)

  const deleted = await restarted(t, 'provider = "fa')
  t.equal((await deleted.gateway.fetch('/api/slots/agent', { method: 'DELETE' })).status, 200)
  await until(() => deleted.runtime.running === 0, 'so it is with one that is deleted through the gateway')
  t.equal(await row(deleted.gateway, 'agent'), undefined)

  const other = await restarted(t, 'provider = "fa')
  await writeFile(other.path, `${good}[server.env]\nNEW = "1"\n`)
  await reload(other.gateway)
  t.equal((await chat(other.gateway.baseUrl, {})).status, 200)
  t.equal(other.runtime.started.length, 2, 'what was started from another configuration goes')
  t.equal(other.runtime.running, 1)
})

const profiles = '[profile.mine]\nimage = "example.com/x:1"\ndevice_class = "cpu"\n'
const withProfile = {
  'etc/svc/profiles.toml': profiles, 'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\nprofile = "mine"\n'
}
const registry = '[models.tiny]\npath = "/dev/null"\ncapabilities = ["chat"]\n'
const withModel = {
  'var/lib/svc/registry/registry.toml': registry, 'etc/svc/slots/agent.toml': `${good}[model]\ndefault = "tiny"\n`
}

for (const [what, file, bad, mended, files] of [
  ['profiles.toml is no TOML', 'etc/svc/profiles.toml', '[profile.mine', profiles, withProfile],
  ['its profile in profiles.toml has a typo', 'etc/svc/profiles.toml', profiles.replace('image', 'imgae'), profiles, withProfile],
  ['registry.toml is no TOML', 'var/lib/svc/registry/registry.toml', '[models.tiny', registry, withModel],
  ['its model in registry.toml has a typo', 'var/lib/svc/registry/registry.toml', registry.replace('path', 'paht'), registry, withModel]
] as const) {
  t.test(`an engine is kept, shown and adopted later when ${what} at the start`, async t => {
    const { gateway, runtime, path } = await restarted(t, bad, file, files)
    t.equal(runtime.running, 1, 'it runs on')
    const name = file.split('/').at(-1)!
    t.match(await row(gateway, 'agent'), {
      kind: 'local', state: 'error', container_status: 'running',
      metadata: { message: `${name} cannot be read; the slot's engine is left running; fix the file and run \`svc config reload\`` }
    })
    t.not((await chat(gateway.baseUrl, {})).status, 200, 'it serves nobody meanwhile')
    await reload(gateway)
    t.equal(runtime.running, 1, 'neither a request nor a reload of the same broken file ends it')
    await writeFile(path, mended)
    t.strictSame(await reload(gateway), [])
    t.equal((await chat(gateway.baseUrl, {})).status, 200)
    t.match(await row(gateway, 'agent'), { state: 'ready', metadata: { adopted: true } })
    t.equal(runtime.started.length, 1, 'the same engine')
  })
}

t.test('an engine that is kept for a broken profiles.toml goes with its slot, or when it is unloaded', async t => {
  for (const end of [['POST', '/api/slots/agent/unload'], ['DELETE', '/api/slots/agent']] as const) {
    const { gateway, runtime } = await restarted(t, '[profile.mine', 'etc/svc/profiles.toml', withProfile)
    const { status } = await gateway.fetch(end[1], { method: end[0] })
    t.ok(status < 300, `${end[0]}: ${status}`)
    await until(() => runtime.running === 0, 'the engine is gone')
  }
})

t.test('an engine that is kept for a broken slot file and ends by itself leaves nothing behind', async t => {
  const { gateway, runtime } = await restarted(t, 'provider = "fa')
  await runtime.crash('agent')
  t.match(await row(gateway, 'agent'), { kind: 'unread', container_status: 'stopped' })
})
