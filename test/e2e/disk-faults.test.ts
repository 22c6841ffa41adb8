import { spawnSync } from 'node:child_process'
import * as fsPromises from 'node:fs/promises'
import { chmod, chown, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
import builtins from '../../plugins/index.js'
import { readOnly, smallDisk } from '../mounts.js'
import { chat, liveHome, readStream, startLive, writeHome } from './live-gateway.js'
import { mayBeNobody, NOBODY } from './nobody.js'

t.setTimeout(300_000)

const SKIPPED = 'skipped: no file system can be mounted here; the tests of kernel/config inject these errors'
const SLOT = 'provider = "fake"\ndevice = "cpu"\n'
const files = {
  'etc/svc/svc.toml': '[slots]\nautostart = false\n',
  'etc/svc/slots/agent.toml': SLOT,
  'etc/svc/slots/cold.toml': SLOT,
  'var/lib/svc/registry/registry.toml': '[models.known]\npath = "/known.gguf"\n'
}

/** Every kind of file that the gateway writes for somebody. */
const changes: ReadonlyArray<readonly [method: string, path: string, body: object]> = [
  ['PUT', '/api/slots/agent/config', { idle_timeout_s: 60 }],
  ['POST', '/api/slots', { name: 'two', provider: 'fake', device: 'cpu' }],
  ['DELETE', '/api/slots/cold', {}],
  ['PUT', '/api/settings', { slots: { idle_timeout_s: 60 } }],
  ['PUT', '/api/secrets/FIRST_KEY', { value: 'x' }],
  ['POST', '/api/models', { id: 'new', path: '/usr' }],
  ['POST', '/api/profiles', { name: 'mine', image: 'x:1', device_class: 'cpu' }],
  ['POST', '/api/upstreams', { name: 'up', url: 'http://127.0.0.1:1/v1', auth_style: 'none' }]
]

async function start (t: Test, home: string): Promise<TestGateway> {
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ builtins, plugins: [createFakeProviderPlugin()], runtime, home })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return gateway
}

type Change = typeof changes[number]

async function send (gateway: TestGateway, [method, path, body]: Change): Promise<{ status: number, json: unknown }> {
  const response = await gateway.fetch(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, json: text === '' ? null : JSON.parse(text) }
}

/** Content of everything that people configure, by path. */
async function configured (home: string): Promise<Record<string, string>> {
  const all: Record<string, string> = {}
  for (const root of ['etc/svc', 'var/lib/svc/registry']) {
    for (const entry of await readdir(join(home, root), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      // the probe's own cache may come at any time
      if (entry.isFile() && entry.name !== 'hardware.json') all[path] = await readFile(path, 'utf8')
    }
  }
  return all
}

/** Refuses every change for the same reason, alters no file, and serves as before. */
async function refuses (t: Test, gateway: TestGateway, list: typeof changes, message: RegExp, reason: string): Promise<void> {
  const before = await configured(gateway.home)
  for (const change of list) {
    const wanted = { code: /^(config|secret)\.write_failed$/, message, details: { reason } }
    t.match(await send(gateway, change), { status: 500, json: { error: wanted } }, `${change[0]} ${change[1]}`)
  }
  t.strictSame(await configured(gateway.home), before, 'nothing is half-written, nothing is left beside it')
  const answer = await chat(gateway.baseUrl, { stream: true })
  t.match(readStream(await answer.text()), { done: true, error: null }, 'it serves')
  t.equal((await chat(gateway.baseUrl, { model: 'cold' })).status, 200, 'also from a slot that has to start first')
  for (const path of ['/api/slots', '/api/models', '/api/activity', '/api/status']) t.equal((await gateway.fetch(path)).status, 200, path)
}

t.test('a disk that gets full, and has room again', async t => {
  const home = smallDisk(t, 16)
  if (home === null) return t.comment(SKIPPED)
  const fill = async (): Promise<void> => {
    // what is left of the last page
    for (const size of [1 << 20, 1 << 12]) {
      for (let n = 0; ; n++) if (await writeFile(join(home, `fill-${size}-${n}`), Buffer.alloc(size)).then(() => false, () => true)) break
    }
  }
  const drain = async (): Promise<void> => {
    for (const name of await readdir(home)) if (name.startsWith('fill-')) await rm(join(home, name))
  }
  await writeHome(home, files)
  await fill()
  await t.rejects(start(t, home), { code: 'config.write_failed', message: /gateway\.lock cannot be written: the disk is full; free some space/ })
  await drain()
  const gateway = await start(t, home)
  t.equal((await chat(gateway.baseUrl, {})).status, 200)
  await fill()
  await refuses(t, gateway, changes, /the disk is full; free some space and try again/, 'ENOSPC')
  const trail = async (): Promise<unknown> => (await (await gateway.fetch('/api/health/system')).json() as { checks: { activity: unknown } }).checks.activity
  t.match(await trail(), { ok: false, since: String, reason: /full/ })
  t.match(await (await gateway.fetch('/api/health')).json(), { status: 'degraded' })
  await drain()
  for (const change of changes) t.ok((await send(gateway, change)).status < 300, `${change[0]} ${change[1]}`)
  const { records } = await (await gateway.fetch('/api/activity?outcome=ok')).json() as { records: unknown[] }
  t.ok(records.length >= changes.length, 'audit rows are written again')
  t.same(await trail(), { ok: true, since: null, lost: 0, reason: null })
})

t.test('a configuration that is read-only, and a home that is', async t => {
  const home = await liveHome(t, files)
  const release = readOnly(t, join(home, 'etc/svc'))
  if (release === null) return t.comment(SKIPPED)
  const gateway = await start(t, home)
  const ofRegistry = (path: string): boolean => path === '/api/models'
  await refuses(t, gateway, changes.filter(([, path]) => !ofRegistry(path)), /read-only; mount it writable/, 'EROFS')
  t.equal((await send(gateway, changes.find(([, path]) => ofRegistry(path))!)).status, 201, 'the registry is elsewhere')
  release()
  t.equal((await send(gateway, changes[0]!)).status, 200)
  await gateway.close()
  t.ok(readOnly(t, home))
  await t.rejects(start(t, home), { code: 'config.write_failed', message: /gateway\.lock cannot be written: the file system is read-only/ })
})

t.test('a file where the folder of slots should be', async t => {
  const home = await liveHome(t, { ...files, 'etc/svc/slots.txt': 'not a folder' })
  const [folder, kept] = [join(home, 'etc/svc/slots'), join(home, 'kept')]
  await rename(folder, kept)
  await rename(`${folder}.txt`, folder)
  const gateway = await start(t, home)
  const status = async (): Promise<unknown> => await (await gateway.fetch('/api/status')).json()
  t.match(await status(), { status: 'degraded', diagnostics: [{ file: 'slots', message: /must be a folder/ }] })
  t.match(await send(gateway, changes[1]!), {
    status: 500, json: { error: { code: 'config.write_failed', message: /slots\/two\.toml.*a folder on its path is a file; remove that file/ } }
  })
  t.equal(await readFile(folder, 'utf8'), 'not a folder')
  await rm(folder)
  await cp(kept, folder, { recursive: true })
  await gateway.fetch('/api/settings/reload', { method: 'POST' })
  t.match(await status(), { status: 'ok', diagnostics: { length: 0 } })
  t.equal((await chat(gateway.baseUrl, {})).status, 200)
})

t.test('a folder that is read-only for a moment, while a change lets go of its lock', async t => {
  const home = await liveHome(t, files)
  const probe = readOnly(t, join(home, 'etc/svc'))
  if (probe === null) return t.comment(SKIPPED)
  probe()
  let release: (() => void) | null = null
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({
    builtins, plugins: [createFakeProviderPlugin()], runtime, home,
    fileOps: {
      ...fsPromises,
      rename: async (from, to) => {
        await fsPromises.rename(from, to)
        if (String(to).endsWith('agent.toml')) release ??= readOnly(t, join(home, 'etc/svc'))
      }
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const [config] = changes
  t.equal((await send(gateway, config!)).status, 200, 'the change itself is there')
  t.ok(release, 'the folder is read-only by now')
  t.match(await send(gateway, config!), { status: 500, json: { error: { code: 'config.write_failed', details: { reason: 'EROFS' } } } })
  // from the moment that the folder is writable, its removal is tried again
  t.ok((await readdir(join(home, 'etc/svc'))).includes('.config.lock'), 'its lock could not be removed')
  release!()
  for (const change of changes) t.ok((await send(gateway, change)).status < 300, `${change[0]} ${change[1]}`)
  t.notOk((await readdir(join(home, 'etc/svc'))).includes('.config.lock'), 'and is gone')
})

t.test('files that belong to somebody else', async t => {
  if (!mayBeNobody()) return t.comment('skipped: only root may start a gateway as somebody else')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n', 'etc/svc/slots/agent.toml': 'device = "cpu"\n', 'etc/svc/slots/locked.toml': 'device = "cpu"\n'
  })
  const [svc, state] = [join(home, 'etc/svc/svc.toml'), join(home, 'var/lib/svc')]
  await mkdir(state, { recursive: true })
  for (const folder of [home, join(home, 'var'), join(home, 'var/lib')]) await chmod(folder, 0o755)
  const run = () => startLive(t, home, { HOME: home }, NOBODY)
  await t.rejects(run(), { message: /var\/lib\/svc\/gateway\.lock cannot be written: permission denied.*\(config\.write_failed\)/ }, 'the state folder')
  await chown(state, NOBODY, NOBODY)

  await chmod(join(home, 'etc/svc/slots/locked.toml'), 0o600)
  const gateway = await run()
  const get = async (path: string): Promise<unknown> => await (await fetch(`${gateway.url}${path}`)).json()
  t.match(await get('/api/status'), {
    slots: [{ name: 'agent' }], diagnostics: [{ file: 'slots/locked.toml', message: /cannot be read: permission denied/ }]
  }, 'a slot file costs its slot')
  t.match(await get('/api/slots/locked'), { kind: 'unread', metadata: { message: /fix it/, file_problems: [{ message: /permission denied/ }] } })
  const put = await fetch(`${gateway.url}/api/slots/agent/config`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"workers":2}' })
  t.match(await put.json(), { error: { code: 'config.write_failed', message: /permission denied; the user that runs the gateway/, details: { reason: 'EACCES' } } })
  t.equal(await gateway.kill('SIGTERM'), 0)

  for (const name of await readdir(state)) if (name.startsWith('svc.db')) await chown(join(state, name), 0, 0)
  await t.rejects(run(), { message: /svc\.db cannot be opened: permission denied.*\(state\.database_failed\)/ }, 'the database')
  await chmod(svc, 0o600)
  await t.rejects(run(), { message: /\(config\.parse_error\)\s+svc\.toml: cannot be read: permission denied/ }, 'svc.toml')
})

/** Runs a program as process 1 of a pid namespace of its own, as a container does. */
const asContainer = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL'] as const

t.test('a gateway that was killed as process 1 keeps no other process 1 from its home', async t => {
  if (spawnSync(asContainer[0], [...asContainer.slice(1), 'true']).status !== 0) return t.comment('skipped: no namespaces may be made here')
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n' })
  const inContainer = () => startLive(t, home, {}, undefined, asContainer)
  const first = await inContainer()
  await t.rejects(inContainer(), {
    message: new RegExp(`ended with 1: .*process 1 of another container or host\\) at ${first.url} .*\\(gateway\\.home_in_use\\)`)
  })
  const put = (url: string): Promise<Response> => fetch(`${url}/api/slots`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"later","device":"cpu"}'
  })
  // what a kill in the middle of a write leaves
  const lock = await readFile(join(home, 'var/lib/svc/gateway.lock'), 'utf8')
  await writeFile(join(home, 'etc/svc/.config.lock'), lock)
  await first.kill('SIGKILL')
  const second = await inContainer()
  t.equal((await put(second.url)).status, 201, 'its other locks are known to be dead as well')
  await second.kill('SIGKILL')
  const third = await startLive(t, home)
  t.equal((await fetch(`${third.url}/api/slots/later`)).status, 200, 'a gateway outside of a container sees it too')
  t.equal(await third.kill('SIGTERM'), 0)
})

t.test('two programs on one home: the second ends, and says where the first is', async t => {
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n' })
  const first = await startLive(t, home)
  await t.rejects(startLive(t, home), {
    message: new RegExp(`ended with 1: .*process ${first.pid}\\) at ${first.url} .*stop it, or set SVC_HOME.*\\(gateway\\.home_in_use\\)`)
  })
  t.equal((await fetch(`${first.url}/api/health`)).status, 200, 'the first goes on')
  t.equal(await first.kill('SIGTERM'), 0)
  const next = await startLive(t, home)
  t.equal(await next.kill('SIGTERM'), 0)
})
