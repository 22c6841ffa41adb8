import { execFile } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { resolvePaths } from '../../kernel/config/paths.js'
import { acquireHomeLock } from '../../kernel/state/home-lock.js'
import { authorHome } from '../cli/plugins/author-home.js'
import { addedMistakes } from '../cli/plugins/mistakes.js'
import { sandbox } from '../cli/plugins/plugin-sandbox.js'
import { fakeApi, refuse, run, type Answer, type FakeApi } from '../cli/support.js'

t.setTimeout(600_000)

/** An API at the address that the lock of the home names, as if a gateway ran there. */
async function runningGateway (t: Test, home: string, answers: Readonly<Record<string, Answer>>): Promise<FakeApi> {
  const fake = await fakeApi(answers)
  const lock = await acquireHomeLock(resolvePaths({}, { home }), fake.url)
  t.teardown(async () => { await Promise.all([lock.release(), fake.close()]) })
  return fake
}

function report (name: string, state = 'active', more: object = {}): object {
  return { name: name.replace('svc-plugin-', ''), kind: 'provider', state, phase: 'report', code: null, message: null, origin: `package:${name}@1.0.0`, providers: [], ...more }
}

t.test('what is no plugin for this gateway is refused and leaves things as they were', async t => {
  const { plugin, pack, modules, svcToml } = sandbox(t)
  t.equal((await plugin('add', pack('@acme/svc-plugin-bar'))).code, 0, 'a scoped name')
  const before = svcToml()
  const cases: ReadonlyArray<readonly [object, RegExp]> = [
    [{ svc: undefined }, /has no "svc" field; it was not installed/],
    [{ svc: { apiVersion: 2, kind: 'provider' } }, /was written for version 2 of the plugin contract; this gateway has version 1/],
    [{ svc: { apiVersion: 1, kind: 'magic' } }, /must look like \{ "apiVersion": 1, "kind": "provider" \}/]
  ]
  for (const [more, expected] of cases) {
    t.match(await plugin('add', pack('@acme/svc-plugin-bar', more)), { code: 1, stdout: /^$/, stderr: expected })
  }
  const tarball = await packed(pack('@acme/svc-plugin-bar', { version: '2.0.0', svc: undefined }))
  t.match(await plugin('add', tarball), { code: 1, stderr: /has no "svc" field/ }, 'a tarball is looked at once it is installed')
  t.equal(svcToml(), before)
  t.match(JSON.parse(readFileSync(join(modules, '@acme/svc-plugin-bar/package.json'), 'utf8')), { version: '1.0.0', svc: { kind: 'provider' } }, 'the good one is back')
  t.ok(existsSync(join(modules, 'svc-gateway')))
  const nothing = await plugin('add', './nothing')
  t.match(nothing, { code: 1, stderr: /there is no folder or tarball at/ })
  const broken = await plugin('add', pack('svc-plugin-elsewhere', { os: ['nowhere'] }))
  t.match(broken, { code: 1, stderr: /npm install failed \(exit code \d+\)\n {2}npm error/ })
})

t.test('a valid tarball is installed as a plugin', async t => {
  const { plugin, pack, modules } = sandbox(t)
  t.equal((await plugin('add', await packed(pack('svc-plugin-foo')))).code, 0)
  t.ok(existsSync(join(modules, 'svc-plugin-foo/index.js')))
})

t.test('a running gateway loads it at once, and its answer decides the exit code', async t => {
  const { plugin, pack, home, svcToml } = sandbox(t)
  let answer: Answer = { plugins: [report('svc-plugin-foo'), { ...report('llm'), origin: 'builtin' }] }
  const fake = await runningGateway(t, home, { 'POST /api/plugins/reload': (request, response) => {
    if (typeof answer === 'function') return answer(request, response)
    response.end(JSON.stringify(answer))
  } })
  const folder = pack('svc-plugin-foo')
  t.match(await plugin('add', folder), { code: 0, stdout: /Plugin foo is active\.\n$/ })
  t.match(fake.seen[0]!.body, { again: ['svc-plugin-foo'] }, 'it is judged again, whatever came of it before')
  answer = { plugins: [report('svc-plugin-foo', 'active', { version: '0.9.0', waiting: { version: '1.0.0', state: 'restart', message: 'x' } })] }
  t.match(await plugin('add', folder), { code: 0, stdout: /Plugin foo: 0\.9\.0 active, 1\.0\.0 waits for a restart\.\n$/ })
  answer = { plugins: [report('svc-plugin-foo', 'active', { version: '0.9.0', waiting: { version: '1.0.0', state: 'failed', code: 'plugin.register_failed', phase: 'register', message: 'it threw' } })] }
  t.match(await plugin('add', folder), { code: 1, stderr: /foo: 0\.9\.0 active, 1\.0\.0 failed: plugin\.register_failed at register: it threw/ })
  answer = { plugins: [report('svc-plugin-foo', 'failed', { phase: 'register', code: 'plugin.register_failed', message: 'it threw' })] }
  t.match(await plugin('add', folder), { code: 1, stderr: /plugin foo is failed: plugin\.register_failed at register: it threw\n.*svc plugin remove/ })
  answer = (_request, response) => {
    t.match(svcToml(), 'allow = [', 'it is off the list before the gateway looks')
    refuse(response, 503, 'plugin.unavailable', 'not now')
  }
  t.match(await plugin('remove', 'svc-plugin-foo'), { code: 1, stdout: 'svc-plugin-foo is removed.\n', stderr: /not now/ })
})

t.test('what depends on a plugin keeps it, or is unloaded first', async t => {
  const { plugin, pack, home, modules } = sandbox(t)
  const done: string[] = []
  const slot = (_request: unknown, response: { end (text: string): void }): void => {
    done.push(`unload, ${existsSync(join(modules, 'svc-plugin-foo')) ? 'installed' : 'gone'}`)
    response.end(JSON.stringify({ name: 'agent', state: 'offline' }))
  }
  const reports = { plugins: [report('svc-plugin-foo', 'active', { dependents: { slots: ['agent'], plugins: ['door'] } })] }
  await runningGateway(t, home, { 'GET /api/plugins': reports, 'POST /api/plugins/reload': (_request, response) => {
    done.push('reload')
    response.end(JSON.stringify(reports))
  }, 'POST /api/slots/agent/unload': slot })
  t.equal((await plugin('add', pack('svc-plugin-foo'))).code, 0)
  t.match(await plugin('remove', 'svc-plugin-foo'), {
    code: 1, stderr: /slot agent, plugin door depend on svc-plugin-foo; nothing was removed\n[^]*svc plugin remove svc-plugin-foo --force/
  })
  t.ok(existsSync(join(modules, 'svc-plugin-foo')))
  done.length = 0
  t.match(await plugin('remove', 'svc-plugin-foo', '--force'), { code: 0, stdout: /is removed\.\n[^]*Slot agent has no engine any more/, stderr: /^Unloading slot agent\.\n$/ })
  t.strictSame(done, ['unload, installed', 'reload', 'unload, installed'])
  t.notOk(existsSync(join(modules, 'svc-plugin-foo')))
  t.equal((await plugin('add', pack('svc-plugin-foo'))).code, 0)
  t.match(await plugin('remove', 'foo'), { code: 1, stderr: /plugin door depend on svc-plugin-foo; nothing was removed\n[^]*svc plugin remove svc-plugin-foo --force/ }, 'the name that the list shows')
  t.match(await plugin('remove', 'foo', '--force'), { code: 0, stdout: /^svc-plugin-foo is removed\.\n/ })
  t.notOk(existsSync(join(modules, 'svc-plugin-foo')))
  t.match(await plugin('remove', 'foo', '--force'), { code: 1, stderr: /svc-plugin-foo is not installed/ })
})

t.test('list shows what the gateway says and what lies on the disk', async t => {
  const { plugin, pack, home, modules } = sandbox(t, '[plugins]\nallow = ["svc-plugin-gone", "svc-plugin-mine"]\n')
  t.equal((await plugin('add', pack('svc-plugin-foo'))).code, 0)
  symlinkSync(pack('svc-plugin-mine'), join(modules, 'svc-plugin-mine'))
  t.match((await plugin('list')).stdout, /svc-plugin-mine +installed +provider/, 'a linked folder is there')
  t.equal((await plugin('add', pack('svc-plugin-foo'))).code, 0)
  t.ok(existsSync(join(modules, 'svc-plugin-mine/package.json')), 'and stays, whatever else is installed')
  const { url } = await runningGateway(t, home, { 'GET /api/plugins': { plugins: [
    report('llm-server', 'active', { origin: 'builtin' }),
    report('svc-plugin-foo', 'active', { version: '1.0.0', waiting: { version: '2.0.0', state: 'restart', message: 'x' } }),
    report('svc-plugin-mine'),
    report('svc-plugin-gone', 'failed', { code: 'plugin.import_failed', phase: 'discover', message: 'is not installed', origin: 'package:svc-plugin-gone' })
  ] } })
  const { stdout, code } = await plugin('list')
  t.equal(code, 0)
  t.notMatch(stdout, /llm-server/, 'what was added is what a list is asked for')
  t.match(stdout, /^1 built in, active: (?:npx )?svc plugin list --all$/m)
  t.match((await plugin('list', '--all')).stdout, /llm-server +active +provider +builtin/)
  for (const line of [/foo +active/, /! foo: 1\.0\.0 active, 2\.0\.0 waits for a restart/, /mine +active/, /gone +missing/, /! gone: plugin\.import_failed at discover: is not installed/]) t.match(stdout, line)
  t.match(JSON.parse((await plugin('list', '--json')).stdout), { plugins: [{ package: null }, { package: { version: '1.0.0' } }, { package: { integrity: null } }, { package: { allowed: true } }] })
  const named = await run(['plugin', 'list', '--url', url])
  t.match(named.stdout, /gone +failed/, 'a gateway that is named need not be of this home')
})

t.test('mistakes that authors make: each is told with the file, the line and the mend when the package is added', async t => {
  const { onHome, pack } = await authorHome(t)
  for (const [i, { name, files, manifest, says }] of addedMistakes.entries()) {
    t.match(await onHome('plugin', 'add', pack(`svc-plugin-a${i}`, files, manifest)), { code: 1, stderr: says }, name)
  }
})

async function packed (folder: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--ignore-scripts'], { cwd: folder })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  return join(folder, filename)
}
