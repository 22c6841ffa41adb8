import { spawnSync } from 'node:child_process'
import { readdirSync, symlinkSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime, settle } from '../../../../kernel/testing/index.js'
import { version } from '../../../../kernel/version.js'
import slotsApi from '../../../../plugins/api/slots/index.js'
import updatesApi from '../../../../plugins/api/updates/index.js'
import { decide } from '../../../../plugins/services/updates/decision.js'
import updates from '../../../../plugins/services/updates/index.js'
import { parseManifest, type Manifest } from '../../../../plugins/services/updates/manifest.js'
import { standingOf } from '../../../../plugins/services/updates/standing.js'
import { run } from '../../../cli/support.js'
import { readOnly } from '../../../mounts.js'
import { channelServer, manifestText } from './channel-server.js'

const manifestOf = (fields: Readonly<Record<string, unknown>> = {}): Manifest => parseManifest(manifestText(fields), 'here', 'stable')
const from = ({ url }: { readonly url: string }): Record<string, Record<string, unknown>> => ({ updates: { releases_url: url } })

t.test('a release is taken when it is newer, fits this machine and takes this one over; an older one when it is asked for', async t => {
  type Case = readonly [name: string, current: string, fields: object, target: string | null, expected: string | RegExp]
  const cases: readonly Case[] = [
    ['newer', '1.0.0', { version: '1.0.1' }, null, 'available'],
    ['a release after its candidates', '1.1.0-rc.2', { version: '1.1.0' }, null, 'available'],
    ['a candidate of the release that runs', '1.1.0', { version: '1.1.0-rc.2' }, null, /older than the running 1\.1\.0/],
    ['the same', '1.0.0', { version: '1.0.0' }, null, 'current'],
    ['the same, revoked: nothing to install', '1.0.0', { version: '1.0.0', revoked: true }, null, 'current'],
    ['older', '1.2.0', { version: '1.1.9' }, null, /1\.1\.9 of the channel is older than the running 1\.2\.0/],
    ['older, by name', '1.2.0', { version: '1.1.9' }, '1.1.9', 'available'],
    ['another one than was asked for', '1.0.0', { version: '1.2.0' }, '1.1.0', /1\.1\.0 was requested, but the manifest is for 1\.2\.0/],
    ['revoked', '1.0.0', { version: '1.1.0', revoked: true, revoked_reason: 'it eats models' }, null, /1\.1\.0 is revoked: it eats models/],
    ['revoked, by name', '1.0.0', { version: '1.1.0', revoked: true }, '1.1.0', /1\.1\.0 is revoked$/],
    ['for this machine', '1.0.0', { version: '1.1.0', platforms: ['linux-x64', 'linux-arm64'] }, null, 'available'],
    ['for another machine', '1.0.0', { version: '1.1.0', platforms: ['darwin-arm64'] }, null, /is for darwin-arm64, and this machine is linux-x64/],
    ['from this release on', '1.4.2', { version: '2.0.0', upgrade_from: '>=1.4' }, null, 'available'],
    ['from a later release on', '1.3.0', { version: '2.0.0', upgrade_from: '>=1.4' }, null, /updates from >=1\.4 only, and 1\.3\.0 runs/],
    ['from nowhere', '1.3.0', { version: '2.0.0', upgrade_from: 'soon' }, null, /'soon', which is not a version range/]
  ]
  for (const [name, current, fields, target, expected] of cases) {
    const decision = decide({ current, platform: 'linux-x64', manifest: manifestOf({ ...fields }), target })
    if (typeof expected === 'string') t.equal(decision.kind, expected, name)
    else t.match(decision, { kind: 'refused', why: expected }, name)
  }
})

t.test('a manifest of another schema, another channel or with a broken field is refused with the reason', async t => {
  const cases: ReadonlyArray<readonly [text: string, why: RegExp]> = [
    ['<html>', /is not JSON/],
    ['[]', /_schema is missing/],
    [manifestText({ _schema: 'svc.releases.v2' }), /_schema is "svc\.releases\.v2", and this release reads svc\.releases\.v1/],
    [manifestText({ channel: 'nightly' }), /is of channel 'nightly', not 'stable'/],
    [manifestText({ version: 'v1.2' }), /version is no version/],
    [manifestText({ version: '1.2.3+build' }), /version is no version/],
    [manifestText({ digest_sha256: 'abc', url: '' }), /url .*; digest_sha256 must be 64 hex digits/]
  ]
  for (const [text, why] of cases) {
    t.throws(() => parseManifest(text, 'https://x.example/stable.json', 'stable'), { code: 'system.update_manifest_invalid', message: why }, text.slice(0, 60))
  }
  t.equal(manifestOf({ digest_sha256: `sha256:${'B'.repeat(64)}` }).digest_sha256, 'b'.repeat(64), 'a digest may say what it is')
  t.match(manifestOf({ rollback_policy: 'any' }), { rollback_policy: 'any' }, 'fields of later releases stay')
})

t.test('the channel is asked, chosen and shown, by the routes and at the prompt', async t => {
  const channel = await channelServer(t)
  channel.files.set('/stable.json', manifestText({ notes_url: 'https://x.example/notes' }))
  channel.files.set('/stable-98.0.0.json', manifestText({ version: '98.0.0' }))
  const revoked = { version: '99.1.0-nightly.1', revoked: true, revoked_reason: 'it eats models' }
  channel.files.set('/nightly.json', manifestText({ channel: 'nightly', ...revoked }))
  const gateway = await createTestGateway({ plugins: [updates, updatesApi], pluginConfig: from(channel) })
  t.teardown(() => gateway.close())
  const call = async (method: string, path: string, body?: unknown): Promise<{ status: number, json: unknown }> => {
    const answer = await gateway.fetch(`/api/updates/${path}`, {
      method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    })
    return { status: answer.status, json: await answer.json() as unknown }
  }
  const svc = (...args: string[]): ReturnType<typeof run> => run(['update', ...args, '--url', gateway.baseUrl])

  t.match(await call('GET', 'state'), { status: 200, json: { svc: { current: version, available: null, channel: 'stable' }, autoCheck: true, installation: { kind: 'checkout', advice: /git pull/ } } })
  t.strictSame(channel.asked, [], 'the state asks no one')
  t.match(await call('GET', 'check'), {
    status: 200,
    json: { current: version, latest: '99.0.0', channel: 'stable', update_available: true, blocked: null, manifest_url: `${channel.url}/stable.json`, manifest: { version: '99.0.0' } }
  })
  t.match(await call('GET', 'state'), { json: { svc: { available: '99.0.0' } } }, 'what a check found is remembered')
  t.match(await call('GET', 'check?version=98.0.0'), { json: { latest: '98.0.0', update_available: true } }, 'one version has a manifest of its own')
  t.match(await call('GET', 'check?version=97.0.0'), { status: 500, json: { error: { code: 'system.update_error', message: /answers 404/ } } })

  const shown = await svc('--check')
  t.match(shown, { code: 0, stdout: /Current +\S+\nLatest +99\.0\.0\nChannel +stable\nAvailable +yes\nNotes +https:\/\/x\.example\/notes\nThis installation does not update itself: it is a checkout/ }, shown.stdout + shown.stderr)
  const nightly = await svc('--check', '--channel', 'nightly')
  t.match(nightly, { code: 0, stdout: /Channel +nightly\nAvailable +no\nNot installed: 99\.1\.0-nightly\.1 is revoked: it eats models\./ }, nightly.stdout + nightly.stderr)
  t.match(await call('GET', 'channel'), { status: 200, json: { channel: 'nightly' } }, 'the channel is kept')
  t.match(JSON.parse((await svc('--check', '--channel', 'stable', '--json')).stdout), { latest: '99.0.0', update_available: true })
  t.match(await svc('--check', '--channel', 'weekly'), { code: 2 })
  t.match(await svc('--check', '--target', '98.0.0'), { code: 0, stdout: /Latest +98\.0\.0/ })
  t.match(await svc('--target', '97.0.0'), { code: 1, stderr: /answers 404/ })

  t.match(await call('PUT', 'channel', { channel: 'weekly' }), { status: 400, json: { error: { code: 'channel.unknown', message: /there are stable, nightly/ } } })
  t.match(await call('PUT', 'channel', {}), { status: 400, json: { error: { code: 'channel.invalid' } } })
  t.match(await call('PUT', 'channel', { channel: 'stable', version: '1' }), { status: 400, json: { error: { code: 'channel.invalid' } } })

  channel.files.set('/stable.json', (_request, response) => { response.writeHead(302, { location: 'file:///etc/passwd' }).end() })
  t.match(await call('GET', 'check'), { status: 500, json: { error: { code: 'system.update_error' } } }, 'a redirect leads to HTTP only')
  channel.files.set('/stable.json', 'x'.repeat(300_000))
  t.match(await call('GET', 'check'), { status: 500, json: { error: { code: 'system.update_error' } } }, 'a manifest is a page of text')
  channel.files.set('/stable.json', manifestText({ channel: 'nightly' }))
  t.match(await call('GET', 'check'), { status: 400, json: { error: { code: 'system.update_manifest_invalid' } } })

  const file = join(t.testdir(), 'releases.json')
  await writeFile(file, manifestText({ version: '97.0.0' }))
  const { config } = gateway.gateway.kernel()
  for (const place of [file, `file://${file}`]) {
    await config.setSecret('SVC_RELEASES_URL', place)
    t.match(await call('GET', 'check'), { json: { latest: '97.0.0' } }, 'a file is read as it is')
  }
  await config.setSecret('SVC_RELEASES_URL', `${channel.url}/any?token=1`)
  channel.files.set('/any', manifestText({ channel: 'nightly' }))
  await call('PUT', 'channel', { channel: 'nightly' })
  t.match(await call('GET', 'check?version=99.0.0'), { status: 200, json: { latest: '99.0.0' } })
  t.equal(channel.asked.at(-1), '/any?token=1&channel=nightly&version=99.0.0')
})

t.test('without an address of releases no request leaves the machine, and a checkout asks nobody by itself', async t => {
  const channel = await channelServer(t)
  channel.files.set('/stable.json', manifestText())
  const clock = new FakeClock()
  const gateway = await createTestGateway({ plugins: [updates, updatesApi], clock, pluginConfig: from(channel) })
  t.teardown(() => gateway.close())
  clock.advance(48 * 60 * 60 * 1000)
  await settle()
  t.strictSame(channel.asked, [])
  const bare = await createTestGateway({ plugins: [updates, updatesApi], installation: { root: t.testdir(), restart: null } })
  t.teardown(() => bare.close())
  t.match(await (await bare.fetch('/api/updates/check')).json(), { error: { code: 'system.update_unconfigured' } })
})

t.test('of several orders at one instant one begins, and the others are told that an update is under way', async t => {
  const home = t.testdir({
    releases: {
      'current': t.fixture('symlink', 'svc-2.0.0'),
      'launch.mjs': '',
      'svc-2.0.0': {},
      'svc-1.0.0': { 'package.json': '{ "name": "svc-gateway", "version": "1.0.0" }' }
    }
  })
  const base = join(home, 'releases')
  process.env.SVC_LAUNCHED = String(process.pid)
  t.teardown(() => { delete process.env.SVC_LAUNCHED })
  const channel = await channelServer(t)
  // asked, and silent: the update that began stays at its first step
  channel.files.set('/stable.json', () => undefined)
  const gateway = await createTestGateway({
    plugins: [updates, updatesApi], pluginConfig: from(channel), installation: { root: join(base, 'svc-2.0.0'), restart: null }
  })
  t.teardown(() => gateway.close())
  await writeFile(join(gateway.gateway.kernel().config.paths.state, 'svc.previous'), join(base, 'svc-1.0.0'))
  const together = async (path: string, body?: string): Promise<string[]> => {
    const answers = await Promise.all(Array.from({ length: 4 }, async () => {
      const answer = await gateway.fetch(`/api/updates/${path}`, {
        method: 'POST', ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } })
      })
      return [answer.status, await answer.json()] as [number, { error: { code: string } }]
    }))
    return answers.map(([status, { error }]) => status === 202 ? 'begun' : error.code).toSorted()
  }
  const others = ['system.update_busy', 'system.update_busy', 'system.update_busy']
  t.strictSame(await together('rollback'), [...others, 'system.update_trial_failed'], 'the release before this one is tried once')
  t.strictSame(await together('apply', '{}'), ['begun', ...others], 'a rollback that failed blocks nothing')
  t.strictSame(await together('rollback'), [...others, 'system.update_busy'], 'and there is no rollback while a release is being fetched')
})

t.test('slots that run otherwise than they would be started now are listed with what differs, and restarted on demand', async t => {
  const runtime = new FakeEngineRuntime()
  const slot = (port: number): string => `type = "llm"\nprovider = "fake"\ndevice = "cpu"\nport = ${port}\n[model]\ndefault = "fake-model"\n`
  const provider = createFakeProviderPlugin({ argvSegments: ({ port }) => ({ base: ['--port', String(port), '--fast', 'no'] }) })
  const gateway = await createTestGateway({
    plugins: [updates, updatesApi, slotsApi, provider], runtime,
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n',
      'etc/svc/slots/agent.toml': slot(8081),
      'etc/svc/slots/other.toml': slot(8082),
      'etc/svc/slots/idle.toml': slot(8083),
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n'
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const svc = (...args: string[]): ReturnType<typeof run> => run(['update', ...args, '--url', gateway.baseUrl])
  const call = async (method: string, path: string, body?: unknown): Promise<{ status: number, json: unknown }> => {
    const answer = await gateway.fetch(path, {
      method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    })
    return { status: answer.status, json: await answer.json() as unknown }
  }
  for (const name of ['agent', 'other']) t.match(await call('POST', `/api/slots/${name}/load`), { status: 200 })
  t.match(await svc('--drift'), { code: 0, stdout: 'All running slots have their current settings.\n' })
  for (const name of ['agent', 'idle']) {
    t.match(await call('PUT', `/api/slots/${name}/config`, { server: { extra_args: '--fast yes', env: { LICENCE: 'secret' } } }), { status: 200 })
  }
  t.strictSame(await call('GET', '/api/updates/slot-drift'), {
    status: 200,
    json: {
      count: 1,
      slots: [{ slot: 'agent', diffs: [{ key: '--fast', running: 'no', rendered: 'yes' }, { key: 'env.LICENCE', running: null, rendered: 'set' }] }]
    }
  }, 'one that does not run has not drifted')
  t.match(await svc('--drift'), { code: 0, stdout: /agent +--fast +no +yes\nagent +env\.LICENCE +- +set\n/ })
  t.match(await svc('--drift', '--check'), { code: 2 })
  t.match(await call('POST', '/api/updates/restart-slots', { slots: ['agent', 'none'] }), { status: 404, json: { error: { code: 'slot.not_found' } } })
  t.strictSame(await call('POST', '/api/updates/restart-slots', { slots: ['other'] }), { status: 200, json: { restarted: [], failed: [], count: 0 } })
  const started = runtime.started.length
  t.match(await svc('--restart-slots'), { code: 0, stdout: 'Restarted: agent.\n' })
  t.equal(runtime.started.length, started + 1, 'and no other')
  t.match(await call('GET', '/api/updates/slot-drift'), { json: { count: 0, slots: { length: 0 } } })

  await call('PUT', '/api/slots/agent/config', { provider: 'nobody', server: { extra_args: '' } })
  const failed = await svc('--restart-slots')
  t.match(failed, { code: 1, stdout: 'No slot was restarted.\n', stderr: /1 could not be restarted\nagent: / }, failed.stderr)
})

t.test('an installation by npm, a container and what was unpacked by hand say what to do instead of an update', async t => {
  const folder = t.testdir({
    'lib': { node_modules: { 'svc-gateway': {} } }, '.dockerenv': '', 'app': {}, 'releases': { 'svc-2.0.0': {}, 'launch.mjs': '' }
  })
  symlinkSync('svc-2.0.0', join(folder, 'releases/current'))
  const facts = { env: {}, pid: 1, ppid: 1, marks: [join(folder, 'none')] }
  t.match(await standingOf({ ...facts, root: join(folder, 'app'), env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' } }), { kind: 'container' }, 'a pod has no marks')
  const cases: ReadonlyArray<readonly [root: string, marks: readonly string[], expected: object]> = [
    ['lib/node_modules/svc-gateway', [], { kind: 'npm', advice: /npm install -g svc-gateway@latest/ }],
    ['app', [join(folder, 'none'), join(folder, '.dockerenv')], { kind: 'container', advice: /pull the newer image/ }],
    ['app', [], { kind: 'other', advice: /unpack the archive of a release/ }],
    ['releases/svc-2.0.0', [], { kind: 'unlaunched', advice: /start it with \S+launch\.mjs in place of svc/ }]
  ]
  for (const [name, marks, expected] of cases) {
    t.match(await standingOf({ ...facts, root: join(folder, name), marks }), expected, name)
  }

  const channel = await channelServer(t)
  channel.files.set('/stable.json', manifestText())
  const root = join(folder, 'lib/node_modules/svc-gateway')
  const installation = { root, restart: null }
  const gateway = await createTestGateway({ plugins: [updates, updatesApi], pluginConfig: from(channel), installation })
  t.teardown(() => gateway.close())
  const order = async (path: string): Promise<unknown> => await (await gateway.fetch(`/api/updates/${path}`, {
    method: 'POST', body: '{}', headers: { 'content-type': 'application/json' }
  })).json()
  for (const path of ['apply', 'rollback']) {
    const { error } = await order(path) as { error: unknown }
    t.match(error, { code: 'system.update_editable_install', message: /npm install -g svc-gateway@latest/, details: { kind: 'npm' } }, path)
  }
  t.match(await run(['update', '--url', gateway.baseUrl]), { code: 1, stderr: /npm installed it: npm install -g svc-gateway@latest/ })
})

t.test('a rollback in a folder of releases that cannot be written fails with its reason, and the next one is not kept waiting; a start sweeps copies of dead trials', async t => {
  const report = { version: '1.0.0', config: { ok: true, problems: [] }, database: { ok: true, from: 1, to: 1, message: null }, plugins: [] }
  const base = join(t.testdir({
    releases: {
      'launch.mjs': '',
      'svc-2.0.0': {},
      'svc-1.0.0': {
        'package.json': '{ "name": "svc-gateway", "version": "1.0.0" }',
        'dist': { lib: { 'svc.cjs': `console.log(${JSON.stringify(JSON.stringify(report))})` } }
      }
    }
  }), 'releases')
  symlinkSync('svc-2.0.0', join(base, 'current'))
  process.env.SVC_LAUNCHED = String(process.pid)
  t.teardown(() => { delete process.env.SVC_LAUNCHED })
  const { pid: dead } = spawnSync(process.execPath, ['--version'])
  const copies = [`upgrade-${process.pid}-aB3dE6`, `upgrade-${dead}-aB3dE6`, 'upgrade-aB3dE6']
  const gateway = await createTestGateway({
    plugins: [updates, updatesApi], installation: { root: join(base, 'svc-2.0.0'), restart: null },
    files: Object.fromEntries(copies.map(name => [`var/lib/svc/${name}/etc/svc/api.env`, 'HF_TOKEN=x']))
  })
  t.teardown(() => gateway.close())
  const { state } = gateway.gateway.kernel().config.paths
  t.strictSame(readdirSync(state).filter(name => name.startsWith('upgrade-')), copies.slice(0, 1), 'a check that still runs keeps its copy')
  await writeFile(join(state, 'svc.previous'), join(base, 'svc-1.0.0'))
  const rollBack = async (): Promise<unknown> => await (await gateway.fetch('/api/updates/rollback', { method: 'POST' })).json()
  const release = readOnly(t, base)
  if (release === null) return void t.comment('SKIPPED: nothing may be mounted here')
  t.match(await rollBack(), { error: { code: 'system.update_swap_failed' } })
  release()
  t.match(await rollBack(), { rolled_back: true, rolled_back_to: '1.0.0', restart_required: true })
})
