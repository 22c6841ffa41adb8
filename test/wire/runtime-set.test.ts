import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { definePlugin, defineRuntime } from '../../kernel/contract/index.js'
import { RuntimeSet } from '../../kernel/runtime/runtime-set.js'
import { createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
import { api, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { eventually } from '../kernel/runtime/support.js'
import statusPlugin from '../../plugins/api/status/index.js'
import { until } from './wire-gateway.js'

const never = new AbortController().signal
const SURFACE = '[surfaces.chat]\npath = "/v1/chat/completions"\n'
const PROGRAM = 'process = ["node", "--port", "{port}", "--host", "{host}"]\n'
const files = {
  'etc/svc/svc.toml': '[slots]\nautostart = false\n',
  'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\n${PROGRAM}${SURFACE}`,
  'etc/svc/engines/both.toml': `name = "both"\napiVersion = 1\nneeds_model = false\nimage = "x/both:1"\ncommand = ["--port", "{port}"]\n${PROGRAM}${SURFACE}`,
  'etc/svc/engines/shy.toml': `name = "shy"\napiVersion = 1\nneeds_model = false\nruntime = "process"\nimage = "x/shy:1"\ncommand = ["--port", "{port}"]\n${PROGRAM}${SURFACE}`,
  'etc/svc/slots/bare.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\n',
  'etc/svc/slots/boxed.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\n',
  'etc/svc/slots/chosen.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "process"\n',
  'etc/svc/slots/shy.toml': 'type = "llm"\nprovider = "shy"\ndevice = "cpu"\n',
  'etc/svc/slots/bold.toml': 'type = "llm"\nprovider = "shy"\ndevice = "cpu"\nruntime = "container"\n'
}
const slots = ['bare', 'boxed', 'chosen', 'shy', 'bold'] as const

function runtimes (t: Test): { containers: FakeEngineRuntime, processes: FakeEngineRuntime } {
  const made = { containers: new FakeEngineRuntime(), processes: new FakeEngineRuntime({ form: 'process' }) }
  t.teardown(() => Promise.all([made.containers.destroy(), made.processes.destroy()]))
  return made
}

const has = (runtime: FakeEngineRuntime): string[] => runtime.started.map(({ slot }) => slot).sort()

t.test('a slot runs as its file says, else as its engine says, else as the gateway does', async t => {
  const { containers, processes } = runtimes(t)
  const gateway = await createTestGateway({ files, runtime: new RuntimeSet([containers, processes]) })
  t.teardown(() => gateway.close())
  for (const slot of slots) await gateway.slots.load(slot, { signal: never })
  t.strictSame(has(containers), ['bold', 'boxed'])
  t.strictSame(has(processes), ['bare', 'chosen', 'shy'])
  t.strictSame(slots.map(slot => gateway.slots.runtime(slot)), ['process', 'container', 'process', 'process', 'container'])
  t.strictSame(slots.map(slot => gateway.slots.outlook(slot).image), [null, 'x/both:1', null, null, 'x/shy:1'])
  await processes.crash('chosen')
  await until(() => gateway.slots.status('chosen').state === 'error', 'its end is seen')
  await containers.crash('boxed')
  await until(() => gateway.slots.status('boxed').state === 'error', 'and so is a container\'s')
  t.strictSame(['bare', 'shy', 'bold'].map(slot => gateway.slots.status(slot).state), ['ready', 'ready', 'ready'])
})

t.test('without a container engine all of them run as processes', async t => {
  const { processes } = runtimes(t)
  const gateway = await createTestGateway({ files, runtime: processes })
  t.teardown(() => gateway.close())
  for (const slot of slots) await gateway.slots.load(slot, { signal: never })
  t.equal(has(processes).length, slots.length)
})

t.test('the next gateway adopts from each driver what it has, and removes what its slot moved away from', async t => {
  const home = t.testdir()
  const { containers, processes } = runtimes(t)
  const start = (more: Record<string, string>): Promise<TestGateway> =>
    createTestGateway({ home, files: more, runtime: new RuntimeSet([containers, processes]), stopEngines: false })
  const first = await start(files)
  for (const slot of slots) await first.slots.load(slot, { signal: never })
  await first.close()
  t.equal(containers.running + processes.running, slots.length)

  const second = await start({ 'etc/svc/slots/chosen.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\n' })
  const stays = slots.filter(slot => slot !== 'chosen')
  await until(() => stays.every(slot => second.slots.status(slot).state === 'ready'), 'they are adopted')
  t.ok(stays.every(slot => second.slots.status(slot).adopted))
  t.equal(processes.running, 2, 'the process of the slot that is a container now was removed')
  await second.slots.load('chosen', { signal: never })
  t.strictSame(has(containers), ['bold', 'boxed', 'chosen'])
  await second.close()
})

t.test('unless it is told otherwise, a stop leaves containers and ends processes', async t => {
  const { containers, processes } = runtimes(t)
  const gateway = await createTestGateway({ files, runtime: new RuntimeSet([containers, processes]) })
  for (const slot of slots) await gateway.slots.load(slot, { signal: never })
  await gateway.close()
  t.strictSame([containers.running, processes.running], [2, 0])
})

t.test('an engine of one driver is found while another is silent or fails', async t => {
  const { containers, processes } = runtimes(t)
  const found = { id: 'x', state: 'running' }
  const having = Object.assign(Object.create(processes) as typeof processes, { inspect: async (id: string) => id === 'x' ? found : null })
  const answering = (inspect: () => Promise<null>): RuntimeSet =>
    new RuntimeSet([Object.assign(Object.create(containers) as typeof containers, { inspect }), having])
  t.equal(await answering(() => new Promise(() => {})).inspect('x'), found)
  const failing = answering(() => Promise.reject(new Error('no answer')))
  t.equal(await failing.inspect('x'), found)
  await t.rejects(failing.inspect('y'), /no answer/, 'what one driver cannot tell is not taken for gone')
  t.equal(await answering(async () => null).inspect('y'), null)
})

const SHED = 'var/lib/svc/plugins/node_modules/svc-plugin-shed'
const PORT_SERVER = 'const [port, host] = process.argv.slice(1); require("http").createServer((q, s) => {' +
  ' console.log(q.url); s.end(JSON.stringify({ pid: process.pid })) }).listen(+port, host)'

/** A package from outside: what it imports is the published contract. */
async function shedPackage (version: string, open = 'shed(join(ctx.stateDir, "engines"))'): Promise<Record<string, string>> {
  return {
    [`${SHED}/package.json`]: JSON.stringify({
      name: 'svc-plugin-shed', version, type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'runtime' }
    }),
    [`${SHED}/shed.js`]: await readFile(new URL('../kernel/runtime/fixtures/shed.js', import.meta.url), 'utf8'),
    [`${SHED}/index.js`]: `import { join } from 'node:path'
import { definePlugin, defineRuntime } from 'svc-gateway/plugin'
import { shed } from './shed.js'
export default definePlugin({ name: 'shed', kind: 'runtime', apiVersion: 1, register: ctx => ctx.addRuntime(${open}) })
`
  }
}

const program = JSON.stringify(['node', '-e', PORT_SERVER, '{port}', '{host}'])
const shedHome = {
  'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n[plugins]\nallow = ["svc-plugin-shed"]\n',
  'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\nprocess = ${program}\n${SURFACE}`,
  'etc/svc/engines/kept.toml': `name = "kept"\napiVersion = 1\nneeds_model = false\nruntime = "shed"\nprocess = ${program}\n${SURFACE}`,
  'etc/svc/slots/plain.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\n',
  'etc/svc/slots/asked.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\nruntime = "shed"\n',
  'etc/svc/slots/implied.toml': 'type = "llm"\nprovider = "kept"\ndevice = "cpu"\n'
}

t.test('a package brings a driver: its slots run there, and the next gateway finds their engines after a kill', async t => {
  const home = await liveHome(t, { ...shedHome, ...await shedPackage('0.1.0') })
  const names = ['plain', 'asked', 'implied'] as const
  const pidOf = async (gateway: { url: string }, slot: string): Promise<number> =>
    ((await api(gateway, 'POST', '/v1/chat/completions', { model: slot, messages: [] })).json as { pid: number }).pid

  const first = await startLive(t, home)
  const pids = await Promise.all(names.map(name => pidOf(first, name)))
  t.match((await api(first, 'GET', '/api/status')).json, {
    runtimes: [
      { name: 'process', form: 'process', default: true },
      { name: 'shed', form: 'process', default: false, info: { driver: 'shed', reason: 'a plugin brings it' }, problem: null }
    ]
  })
  const shedOf = (list: unknown): unknown => (list as { plugins: Array<{ name: string }> }).plugins.find(({ name }) => name === 'shed')
  t.match(shedOf((await api(first, 'GET', '/api/plugins')).json), { kind: 'runtime', state: 'active', dependents: { slots: ['asked'] } })
  await first.kill('SIGKILL')

  const second = await startLive(t, home)
  for (const [i, name] of names.entries()) t.equal(await pidOf(second, name), pids[i], `${name} was adopted`)
  t.match(JSON.stringify((await api(second, 'GET', '/api/slots/asked/logs')).json), '/v1/chat/completions', 'its log is read there')
  process.kill(pids[1]!, 'SIGKILL')
  await eventually('its end is seen', async () => ((await api(second, 'GET', '/api/slots/asked')).json as { state: string }).state === 'error')
  t.match((await api(second, 'GET', '/api/slots/implied')).json, { state: 'ready' })

  await writeHome(home, await shedPackage('0.2.0'))
  t.match(shedOf((await api(second, 'POST', '/api/plugins/reload', {})).json), {
    version: '0.1.0',
    waiting: { version: '0.2.0', state: 'restart', message: 'it provides a runtime that engines run on; restart the gateway to replace it' }
  })
  await writeHome(home, { 'etc/svc/svc.toml': shedHome['etc/svc/svc.toml'].replace('"svc-plugin-shed"', '') })
  await api(second, 'POST', '/api/plugins/reload', {})
  t.equal(await pidOf(second, 'implied'), pids[2], 'one that leaves keeps the engines that it has')
  t.match(await api(second, 'POST', '/api/slots/asked/load', {}), {
    status: 502, json: { error: { message: /uses runtime 'shed', which no plugin provides; there are container, process, docker, podman, kubernetes$/ } }
  }, 'and gets no others')
  t.match(await api(second, 'POST', '/api/slots/implied/unload', { force: true }), { status: 200 })
  t.throws(() => process.kill(pids[2]!, 0), { code: 'ESRCH' }, 'it still ends them')
  t.equal(await second.kill('SIGTERM'), 0)
})

t.test('a driver that does not open keeps back its own slots, says why, and is tried again', async t => {
  const open = `defineRuntime({ name: 'shed', form: 'process', open: async signal => {
    if (!existsSync(join(ctx.stateDir, 'go'))) throw new Error('the shed is locked')
    return await shed(join(ctx.stateDir, 'engines')).open(signal)
  } })`
  const files = await shedPackage('0.1.0', open)
  const index = `${SHED}/index.js`
  const gateway = await createTestGateway({
    files: { ...shedHome, ...files, [index]: `import { existsSync } from 'node:fs'\n${files[index]}` }, plugins: [statusPlugin]
  })
  t.teardown(() => gateway.close())
  await gateway.slots.load('plain', { signal: never })
  await t.rejects(gateway.slots.load('asked', { signal: never }), { message: /runtime 'shed' is not available: the shed is locked$/ })
  t.match(await (await gateway.fetch('/api/status')).json(), { runtimes: [{}, { name: 'shed', info: null, problem: 'the shed is locked' }] })
  t.ok(gateway.logs.some(({ level, message }) => level === 'error' && /^runtime 'shed' is not available: the shed is locked; slots that use it do not start until it is$/.test(message)))
  await writeFile(join(gateway.home, 'var/lib/svc/plugin-state/shed/go'), '')
  await gateway.slots.load('asked', { signal: never })
  t.match(await (await gateway.fetch('/api/status')).json(), { runtimes: [{}, { name: 'shed', info: { driver: 'shed' }, problem: null }] })
})

t.test('a driver that opens with another form than it declares is closed each time', async t => {
  let opened = 0
  let closed = 0
  const liar = definePlugin({
    name: 'liar',
    kind: 'runtime',
    apiVersion: 1,
    register: ctx => ctx.addRuntime(defineRuntime({
      name: 'liar',
      form: 'container',
      open: async () => {
        opened++
        return Object.assign(new FakeEngineRuntime({ form: 'process' }), { close: async () => { closed++ } })
      }
    }))
  })
  const slot = { 'etc/svc/slots/asked.toml': 'type = "llm"\nprovider = "both"\ndevice = "cpu"\nruntime = "liar"\n' }
  const { processes } = runtimes(t)
  const gateway = await createTestGateway({ files: { ...files, ...slot }, runtime: processes, plugins: [liar] })
  t.teardown(() => gateway.close())
  for (let time = 0; time < 2; time++) {
    await t.rejects(gateway.slots.load('asked', { signal: never }), { message: /it declares form 'container' but opened with form 'process'$/ })
  }
  t.ok(opened >= 2)
  t.equal(closed, opened)
})
