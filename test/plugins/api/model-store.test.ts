import { existsSync, linkSync, lstatSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import events from '../../../plugins/api/events/index.js'
import modelStore from '../../../plugins/api/model-store/index.js'
import npuRt, { provider as npuRtProvider } from '../../../plugins/providers/npu-rt/index.js'
import library from '../../../plugins/services/library/index.js'
import { discoverUrls } from '../../../plugins/api/config/urls.js'
import { folderState, mountPoints, suggestStores } from '../../../plugins/api/model-store/folder-state.js'
import { copyStore, planMigration, removeSource } from '../../../plugins/api/model-store/migration.js'
import { filesBelow, isWithin, movedPath, movedPaths } from '../../../plugins/api/model-store/tree.js'
import { watchedOps } from '../../kernel/config/change.js'
import { apiOf, openStream, type Api, type ApiOptions } from './support.js'

const api = apiOf('api-model-store', 'api-config', 'api-events', 'api-settings')

const never = new AbortController().signal
const nothing = (): void => {}

function write (root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

/** A gateway with two files and a link in its store, registered, and an empty folder beside it. */
async function withStore (
  t: Test, options: ApiOptions = {}
): Promise<Api & { readonly source: string, readonly target: string }> {
  const gateway = await api(t, {
    ...options,
    svc: '[models]\nauto_scan_on_start = false\n', files: { 'var/lib/svc/registry/registry.toml': '' }, group: [events, library, modelStore]
  })
  const source = join(gateway.home, 'var/lib/svc/models')
  const target = join(gateway.home, 'big/models')
  write(source, { 'llm/a.gguf': 'a'.repeat(1000), 'llm/a.mmproj.gguf': 'p', 'hub/blobs/x': 'blob' })
  symlinkSync('../blobs/x', join(source, 'hub/link'))
  symlinkSync(join(source, 'llm/a.gguf'), join(source, 'absolute.gguf'))
  mkdirSync(target, { recursive: true })
  const { models } = gateway.gateway.kernel()
  await models.put('a', { path: join(source, 'llm/a.gguf'), mmproj: join(source, 'llm/a.mmproj.gguf'), metadata: { parts: [join(source, 'llm/a.gguf')] } })
  await models.put('elsewhere', { path: '/mnt/other/b.gguf' })
  return Object.assign(gateway, { source, target })
}

const STORE = '/api/settings/models/store'

t.test('a provider adds the folder of its own models to [models], which is read and written with the rest, and known while the provider is off', async t => {
  const svc = '[models]\nauto_scan_on_start = false\nflm_store = "/srv/npu/models"\n'
  const { call, gateway, home } = await api(t, { svc, group: [library, modelStore, npuRt] })
  const store = (): string => gateway.kernel().models.engineStore(npuRtProvider)
  t.match(await call('GET', '/api/config/models'), { status: 200, json: { store: /^$/, flm_store: '/srv/npu/models' } })
  t.equal(store(), '/srv/npu/models', 'as older files have it')
  t.match(await call('PUT', '/api/config/models', { flm_store: 'npu' }), { status: 400, json: { error: { message: /flm_store must be an absolute path/ } } })
  t.match(await call('PUT', '/api/config/models', { flm_store: '/srv/other/models' }), { status: 200, json: { flm_store: '/srv/other/models' } })
  t.equal(store(), '/srv/other/models')
  t.match(readFileSync(join(home, 'etc/svc/svc.toml'), 'utf8'), 'flm_store = "/srv/other/models"')

  const off = await api(t, { svc: `${svc}[plugins]\ndisabled = ["npu-rt"]\n`, group: [library, modelStore, npuRt] })
  t.match(await off.call('GET', '/api/config/models'), { status: 200, json: { flm_store: '/srv/npu/models' } })
  t.strictSame(off.gateway.kernel().config.snapshot.diagnostics, [])

  const without = await api(t, { group: [library, modelStore] })
  t.match(await without.call('PUT', '/api/config/models', { flm_store: '/srv/npu/models' }), { status: 400, json: { error: { code: 'config.invalid' } } })
})

t.test('the model store is shown with its space and who decides it', async t => {
  const { call, source, home } = await withStore(t)
  const { json } = await call('GET', STORE)
  t.match(json, {
    store: /^$/, effective: source, fallback_active: true, pull_root_legacy: null,
    current_state: {
      path: source, exists: true, is_directory: true, readable: true, writable: true, files_count: 5, size_bytes: 1005,
      free_mb: Number
    }
  })
  t.ok(Array.isArray(json.suggestions))
  t.same((await call('GET', '/api/config/models')).json, {
    roots: [], auto_scan_on_start: false, file_extensions: ['.gguf', '.safetensors'], store: ''
  })
  t.ok(home)
})

t.test('another store, with the models moved there', async t => {
  const gateway = await withStore(t)
  const { call, source, target } = gateway
  const asked = await call('POST', STORE, { path: `${target}/` })
  t.match(asked.json, { status: 'needs_migration', plan: { source, target, files_count: 5, size_bytes: 1005, same_filesystem: true }, state: { files_count: 0 } })
  t.ok(existsSync(join(source, 'llm/a.gguf')), 'nothing was done')
  t.equal((await call('GET', STORE)).json.store, '')

  const events = await openStream(t, gateway, '/api/events/stream?type=store.*')
  const moved = await call('POST', `${STORE}/migrate`, { path: target })
  t.equal(moved.status, 200)
  t.match(moved.json, {
    status: 'ok', config: { store: target }, state: { path: target, files_count: 5 }, migration: { source, target, moved: 5, failed: { length: 0 } },
    scan: { scanned_roots: [target] }
  })
  t.match((await events.next())!.data, { type: 'store.progress', data: { total_files: 5, total_bytes: 1005 } })
  t.equal(readFileSync(join(target, 'llm/a.gguf'), 'utf8'), 'a'.repeat(1000))
  t.equal(readlinkSync(join(target, 'hub/link')), '../blobs/x')
  t.equal(readlinkSync(join(target, 'absolute.gguf')), join(target, 'llm/a.gguf'))
  t.same((await filesBelow(source)).length, 0)
  t.notOk(existsSync(join(source, 'llm')), 'emptied folders go')
  t.ok(existsSync(source))
  const { models } = gateway.gateway.kernel()
  t.match(models.get('a'), { path: join(target, 'llm/a.gguf'), mmproj: join(target, 'llm/a.mmproj.gguf'), metadata: { parts: [join(target, 'llm/a.gguf')] } })
  t.equal(models.get('elsewhere')?.path, '/mnt/other/b.gguf')
  t.equal(models.store, target)
  t.match(gateway.audit()[0], { category: 'model', action: 'model.store', outcome: 'ok', before: { store: source }, after: { store: target, migration: { moved: 5 } } })
  t.match(gateway.audit()[1], { action: 'model.store', message: /nothing was changed/ })
  t.match((await call('GET', STORE)).json, { store: target, effective: target, fallback_active: false })
  t.match((await call('POST', STORE, { path: target })).json, { status: 'ok', migration: null }, 'it is the store already')
})

t.test('rows and setting of a store that moves are one change', async t => {
  let isFull = false
  const fileOps = watchedOps((_index, name, path) => {
    if (isFull && name === 'rename' && path.includes('.svc.toml.')) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
  })
  const gateway = await withStore(t, { fileOps })
  const { call, source, target } = gateway
  const { models } = gateway.gateway.kernel()
  isFull = true
  t.equal((await call('POST', `${STORE}/migrate`, { path: target })).status, 500)
  t.match([models.get('a')?.path, models.store], [join(source, 'llm/a.gguf'), source], 'the setting could not be written, so no row moves')
  isFull = false
  t.equal((await call('POST', `${STORE}/migrate`, { path: target })).status, 200)
  t.match([models.get('a')?.path, models.store], [join(target, 'llm/a.gguf'), target])
})

t.test('another store, with the models left behind', async t => {
  const { call, source, target } = await withStore(t)
  t.match((await call('POST', STORE, { path: target, keep: true })).json, { status: 'ok', migration: null, config: { store: target } })
  t.ok(existsSync(join(source, 'llm/a.gguf')))
})

t.test('folders that cannot be the store', async t => {
  const gateway = await withStore(t)
  const { call, home, source, target } = gateway
  write(home, { file: 'x' })
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['relative/path', 'config.invalid'], [join(home, 'nowhere'), 'models.store_missing'], [join(home, 'file'), 'models.store_not_directory'],
    [join(source, 'llm'), 'config.invalid'], [join(home, 'var/lib/svc'), 'config.invalid']
  ]
  for (const [path, code] of cases) t.match(await call('POST', STORE, { path }), { status: 400, json: { error: { code, param: 'path' } } }, path)
  for (const [path, code] of cases.slice(1, 3)) {
    for (const key of ['store', 'pull_root']) {
      t.match(await call('PUT', '/api/config/models', { [key]: path }), { status: 400, json: { error: { code } } }, `${key} ${code}`)
    }
  }
  t.equal((await call('POST', STORE, {})).status, 400)
  write(target, { 'llm/a.gguf': 'another file' })
  const clash = await call('POST', STORE, { path: target, migrate: true })
  t.match(clash, { status: 400, json: { error: { code: 'models.store_migration_failed', message: /stay in .*already exists and is another file/ } } })
  t.equal(readFileSync(join(source, 'llm/a.gguf'), 'utf8').length, 1000, 'nothing is lost')
  t.equal((await call('GET', STORE)).json.store, '')
  const { jobs } = gateway.gateway.kernel()
  const job = jobs.create({ kind: 'model-pull', target: 'big-one' })
  t.match(await call('POST', STORE, { path: target, migrate: true }), { status: 400, json: { error: { message: /download into the current store is running.*big-one/ } } })
  jobs.update(job.id, { state: 'cancelled' })
})

t.test('the environment variable overrides the configured model store', async t => {
  const { createTestGateway } = await import('../../../kernel/testing/index.js')
  const folder = t.testdir({ env: {}, other: {} })
  const gateway = await createTestGateway({ plugins: [library, modelStore], env: { PATH: process.env.PATH, SVC_MODEL_STORE: join(folder, 'env') } })
  t.teardown(() => gateway.close())
  t.match(await (await gateway.fetch(STORE)).json(), { store: /^$/, effective: join(folder, 'env'), fallback_active: true })
  const answer = await gateway.fetch(STORE, { method: 'POST', body: JSON.stringify({ path: join(folder, 'other') }) })
  t.match(await answer.json(), { error: { code: 'config.invalid', message: /SVC_MODEL_STORE/ } })
})

t.test('a copied model stands under both names until the source is removed', async t => {
  const folder = t.testdir({ source: { 'a.gguf': 'aaa', 'deep': { 'b.gguf': 'bbb' } }, target: {} })
  const [source, target] = [join(folder, 'source'), join(folder, 'target')]
  const plan = await planMigration(source, target)
  // an earlier try that was cut off: one file is there already
  linkSync(join(source, 'a.gguf'), join(target, 'a.gguf'))
  const files = await copyStore(plan, never, nothing)
  t.same(files.map(({ path }) => path), ['a.gguf', 'deep/b.gguf'])
  t.equal(statSync(join(source, 'a.gguf')).nlink, 2, 'both names stand until the source is removed')
  const stop = new AbortController()
  stop.abort(new Error('stopping'))
  await t.rejects(copyStore(plan, stop.signal, nothing), { code: 'models.store_migration_failed', message: /stay in/ })
  t.match(await removeSource(plan, files), { moved: 2, failed: { length: 0 } })
  t.equal(readFileSync(join(target, 'deep/b.gguf'), 'utf8'), 'bbb')
  t.match(await removeSource(plan, files), { failed: [join(source, 'a.gguf'), join(source, 'deep/b.gguf')] })
  await t.rejects(planMigration(join(target, 'a.gguf'), source), { code: 'models.store_migration_failed' })
  t.match(await planMigration(join(folder, 'never'), target), { files_count: 0 })
})

t.test('models are copied when the new store is on another file system', async t => {
  const other = '/dev/shm'
  if (!existsSync(other) || statSync(other).dev === statSync(t.testdir()).dev) {
    t.pass('there is no second file system here')
    return
  }
  const { mkdtempSync, rmSync } = await import('node:fs')
  const source = mkdtempSync('/dev/shm/svc-store-')
  t.teardown(() => rmSync(source, { recursive: true, force: true }))
  const target = t.testdir({})
  write(source, { 'x/a.gguf': 'a'.repeat(100_000), 'b.gguf': 'b' })
  const plan = await planMigration(source, target)
  t.equal(plan.same_filesystem, false)
  const files = await copyStore(plan, never, nothing)
  t.equal(readFileSync(join(target, 'x/a.gguf'), 'utf8'), 'a'.repeat(100_000))
  t.ok(Math.abs(statSync(join(target, 'b.gguf')).mtimeMs - statSync(join(source, 'b.gguf')).mtimeMs) < 2)
  t.same(await copyStore(plan, never, nothing), files, 'once more does nothing')
  t.match(await removeSource(plan, files), { moved: 2, failed: { length: 0 } })
  t.same((await filesBelow(target)).map(({ path }) => path), ['b.gguf', 'x/a.gguf'], 'no part file is left')
})

t.test('PUT /api/config/models writes the section and scans again', async t => {
  const { call, source } = await withStore(t)
  const { status, json } = await call('PUT', '/api/config/models', { auto_scan_on_start: true, file_extensions: ['.gguf'] })
  t.equal(status, 200)
  t.match(json, { auto_scan_on_start: true, file_extensions: ['.gguf'], scan: { scanned_roots: [source] } })
  t.match(await call('PUT', '/api/config/models', { roots: ['relative'] }), { status: 400, json: { error: { code: 'config.invalid' } } })
  t.match(await call('PUT', '/api/config/models', { nonsense: 1 }), { status: 400, json: { error: { code: 'config.invalid' } } })
})

t.test('GET /api/config/urls gives the addresses as the caller reaches them', async t => {
  const gateway = await api(t)
  const { port } = new URL(gateway.baseUrl)
  t.same((await gateway.call('GET', '/api/config/urls')).json, {
    api: `http://127.0.0.1:${port}`, openwebui: 'http://127.0.0.1:3001', openwebui_enabled: false, hermes: '', hermes_enabled: false,
    comfyui: 'http://127.0.0.1:8188'
  })
  const urls = (headers: Record<string, string>, env: Record<string, string> = {}) =>
    discoverUrls({ headers, port: 8080, variable: name => env[name], imagePort: 8188 })
  t.match(urls({ 'host': 'box.lan:8080', 'x-forwarded-host': 'ai.example, proxy', 'x-forwarded-proto': 'https' }), {
    api: 'https://ai.example', openwebui: 'https://ai.example:3001', comfyui: 'https://ai.example:8188'
  })
  t.match(urls({ host: '[::1]:8080' }), { api: 'http://[::1]:8080', comfyui: 'http://[::1]:8188' })
  t.match(urls({ 'host': 'good', 'x-forwarded-host': 'bad"><script>' }), { api: 'http://good' })
  t.match(urls({}), { api: 'http://127.0.0.1:8080' })
  t.match(urls({ host: 'a' }, { SVC_OPENWEBUI_PUBLIC_URL: 'https://chat.example/', SVC_HERMES_PUBLIC_URL: 'https://h.example', SVC_COMFYUI_PUBLIC_URL: 'no url' }), {
    openwebui: 'https://chat.example', openwebui_enabled: true, hermes: 'https://h.example', hermes_enabled: true, comfyui: 'http://a:8188'
  })
})

t.test('folders of containers and pseudo file systems are not suggested as stores', async t => {
  t.ok(isWithin('/a/b', '/a') && isWithin('/a', '/a') && isWithin('/a', '/') && !isWithin('/ab', '/a'))
  t.equal(movedPath('/a/b/c', '/a', '/x/y'), '/x/y/b/c')
  t.equal(movedPath('/ab/c', '/a', '/x'), '/ab/c')
  t.same(movedPaths({ a: ['/a/1', 2, null], b: { c: '/b' } }, '/a', '/x'), { a: ['/x/1', 2, null], b: { c: '/b' } })
  const mounts = '/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/sdb1 /mnt/big\\040disk xfs rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nnas:/x /nas nfs4 rw 0 0\n'
  t.same(mountPoints(mounts), ['/', '/mnt/big disk', '/nas'])
  const file = join(t.testdir({ mounts: `x ${t.testdirName} ext4 rw 0 0\ny /nowhere ext4 rw 0 0\n` }), 'mounts')
  for (const { path, free_mb: free } of await suggestStores('/x', file)) t.match([path, free], [join(t.testdirName, 'models'), Number])
  const inContainer = join(t.testdir({ hosts: '', mounts: '' }), 'mounts')
  writeFileSync(inContainer, `x ${join(t.testdirName, 'hosts')} ext4 rw 0 0\ny /var/lib/docker/overlay2/ab/merged ext4 rw 0 0\nz /etc/resolv.conf ext4 rw 0 0\n`)
  t.same(await suggestStores('/x', inContainer), [], 'what a container engine mounts is no place for models')
  t.same(await suggestStores('/x', '/nowhere'), [])
  t.match(await folderState('/nowhere/at/all'), { exists: false, is_directory: false, files_count: 0, free_mb: null })
  t.ok(lstatSync('/'))
})
