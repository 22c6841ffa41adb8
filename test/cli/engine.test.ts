import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOnly } from '../mounts.js'
import { brokenLibrary, build, fakeRegistry, installedCopy, library, machineOf, version } from './installed-copy.js'

const machine = machineOf(installedCopy(t))

t.test('the embedded engine is installed, listed and removed', async t => {
  const registry = await fakeRegistry(t, { 'node-llama-cpp': { 'dist/index.js': library }, [build]: { 'bins/x.node': 'x'.repeat(5000) } }, version)
  const { svc, engines } = machine(t, registry)
  t.match(await svc('engine', 'list'), { code: 0, stdout: /No engine is installed.*svc engine install embedded/ })
  const installed = await svc('engine', 'install', 'embedded', '--gpu', 'none')
  t.equal(installed.code, 0, installed.stderr)
  t.match(installed.stderr, new RegExp(`^Installing the embedded engine for ${process.arch}, about \\d+ MB`))
  t.match(installed.stdout, new RegExp(`^embedded ${version} is installed: [\\d.]+ KB, for ${build.split('/')[1]}\\.\n`))
  t.same(readdirSync(engines), ['embedded'])
  t.match((await svc('engine', 'list')).stdout, new RegExp(`^ENGINE +VERSION +FOR +SIZE .*\nembedded +${version} +${build.split('/')[1]} `))
  t.match(JSON.parse((await svc('engine', 'list', '--json')).stdout), [{ name: 'embedded', version, builds: [build], folder: join(engines, 'embedded') }])
  t.match(await svc('engine', 'remove', 'embedded'), { code: 0, stdout: 'embedded is removed.\n' })
  t.same(readdirSync(engines), [])
  t.match(await svc('doctor'), { stdout: /neither llama-server nor the embedded engine is installed[^]*svc engine install embedded/ })
})

t.test('an installation that was killed is not taken for an engine, and the next one succeeds', async t => {
  const registry = await fakeRegistry(t, { 'node-llama-cpp': { 'dist/index.js': library }, [build]: { 'bins/x.node': 'x' } }, version)
  const { svc, start, engines } = machine(t, registry)
  const held = registry.hold(build)
  const cut = start('engine', 'install', 'embedded', '--gpu', 'none')
  await held.asked
  cut.child.kill('SIGKILL')
  await cut.finished.catch(() => undefined)
  t.ok(readdirSync(engines).some(name => name.startsWith('.new-')), 'something is left')
  t.match(await svc('engine', 'list'), { code: 0, stdout: /No engine is installed/ })
  held.release()
  const again = await svc('engine', 'install', 'embedded', '--gpu', 'none')
  t.equal(again.code, 0, again.stderr)
  t.match((await svc('engine', 'list')).stdout, version)
})

t.test('what is no engine, and what is not installed', async t => {
  const { svc } = machine(t)
  t.match(await svc('engine', 'install', 'vllm'), { code: 2, stderr: /there is no engine 'vllm' to install/ })
  t.match(await svc('engine', 'remove', 'embedded'), { code: 1, stderr: /^Error: embedded is not installed/ })
})

t.test('what cannot be installed says why, and leaves nothing', async t => {
  const broken = await fakeRegistry(t, { 'node-llama-cpp': { 'dist/index.js': brokenLibrary }, [build]: { 'bins/x.node': 'x' } }, version)
  const here = machine(t, broken)
  t.match(await here.svc('engine', 'install', 'embedded', '--gpu', 'none'), {
    code: 1, stderr: /Error: the engine cannot run on this machine: .*Illegal instruction\nNothing was installed/
  })
  t.same(readdirSync(here.engines), [])
  const offline = machine(t)
  t.match(await offline.svc('engine', 'install', 'embedded', '--gpu', 'none'), { code: 1, stderr: /Error: npm install failed[^]*ECONNREFUSED/ })
  t.same(readdirSync(offline.engines), [])
  const nowhere = join(here.home, 'nowhere')
  t.match(await here.svc('engine', 'install', 'embedded', '--home', nowhere), { code: 1, stderr: /there is no gateway home at/ })
  t.notOk(existsSync(nowhere))
})

t.test('a state folder that cannot be written', async t => {
  const { svc, home } = machine(t, await fakeRegistry(t, {}, version))
  const release = readOnly(t, join(home, 'var/lib/svc'))
  if (release === null) return t.comment('nothing may be mounted here')
  t.match(await svc('engine', 'install', 'embedded'), { code: 1, stderr: /Error: \S+\/engines cannot be written \(EROFS\)\nRun it as the user of the gateway/ })
  release()
})
