import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sentenceFor } from '../../plugins/services/demo/sentence.js'
import { borrowedEngine, build, fakeRegistry, installedCopy, library, machineOf, version } from './installed-copy.js'
import { run } from './support.js'

t.setTimeout(600_000)

const machine = machineOf(installedCopy(t))

t.test('serve --demo brings the engine when nothing else is there, and --no-install does not', async t => {
  const registry = await fakeRegistry(t, { 'node-llama-cpp': { 'dist/index.js': library }, [build]: { 'bins/x.node': 'x' } }, version)
  const without = machine(t, registry)
  const bare = await without.svc('demo', '--no-install', '--home', without.home)
  t.equal(bare.code, 1)
  t.match(bare.stderr, /neither llama-server nor embedded is installed; run `svc engine install embedded`/, 'the slot says what it lacks')
  t.notOk(existsSync(without.engines))
  const brought = machine(t, registry)
  const begun = brought.start('serve', '--demo', '--port', '0')
  await begun.line(/is ready at (\S+)/)
  begun.child.kill('SIGTERM')
  t.match((await begun.finished).stderr, /^There is no container engine and no llama-server here\.\nInstalling the embedded engine for [^]*The embedded engine \S+ is installed/)
  t.ok(existsSync(join(brought.engines, 'embedded')))
  const failing = machine(t)
  const served = failing.start('serve', '--demo', '--port', '0')
  await served.line(/is ready at (\S+)/)
  served.child.kill('SIGTERM')
  t.match(await served.finished, { code: 0, stderr: /Warning: the embedded engine could not be installed: npm install failed[^]*Try again with: svc engine install embedded/ })
})

t.test('an installed engine serves, and is not removed under a slot that runs on it', async t => {
  const { svc, start, home, engines } = machine(t)
  borrowedEngine(home)
  const served = start('serve', '--demo', '--port', '0')
  const url = await served.line(/is ready at (\S+)/)
  // what only asks the gateway needs no program of its own
  const asked = (...args: string[]): ReturnType<typeof run> => run([...args, '--url', url])
  const chat = await asked('chat', 'Hello')
  t.equal(chat.stdout.trim(), sentenceFor('svc'), chat.stderr)
  t.match(await svc('engine', 'remove', 'embedded'), { code: 1, stderr: /^Error: slot agent runs on embedded\nUnload it first \(svc slot unload agent\), or use --force\./ })
  t.ok(existsSync(join(engines, 'embedded')))
  t.match(await svc('engine', 'remove', 'embedded', '--force'), { code: 0, stdout: 'embedded is removed.\nSlots without an engine now: agent\n', stderr: /Unloading slot agent/ })
  t.notOk(existsSync(join(engines, 'embedded')))
  t.match(await asked('slot', 'load', 'agent'), { code: 1, stderr: /svc engine install embedded/ })
  borrowedEngine(home)
  t.match(await asked('slot', 'load', 'agent'), { code: 0 }, 'one that comes back is used without a restart')
  served.child.kill('SIGTERM')
  t.match(await served.finished, { code: 0, stdout: /^chat +svc chat --url/m }, 'commands as this user calls them')
})

t.test('setup --auto brings the engine, and --no-pull only names it', async t => {
  const registry = await fakeRegistry(t, { 'node-llama-cpp': { 'dist/index.js': library }, [build]: { 'bins/x.node': 'x' } }, version)
  const { svc, home, engines } = machine(t, registry)
  writeFileSync(join(home, 'etc/svc/api.env'), 'HF_ENDPOINT="http://127.0.0.1:9"\n')
  const named = await svc('setup', '--auto', '--no-pull', '--no-extensions')
  t.match(named.stderr, /No engine for models was found: [^]*Slots start once there is one: svc engine install embedded/)
  t.notOk(existsSync(engines))
  const brought = await svc('setup', '--auto', '--no-extensions')
  t.match(brought.stderr, /The embedded engine is installed/)
  t.ok(existsSync(join(engines, 'embedded')))
})
