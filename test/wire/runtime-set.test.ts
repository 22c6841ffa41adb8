import t, { type Test } from 'tap'
import { RuntimeSet } from '../../kernel/runtime/runtime-set.js'
import { createTestGateway, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
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
