import t, { type Test } from 'tap'
import { definePlugin, defineRuntime, LABEL_INSTANCE, LABEL_SLOT, type AnyPlugin } from '../../kernel/contract/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime, type TestGateway } from '../../kernel/testing/index.js'
import { until } from './wire-gateway.js'

const never = new AbortController().signal
const slotFile = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nruntime = "far"\n[model]\ndefault = "fake-model"\n'
const files = {
  'etc/svc/svc.toml': '[slots]\nautostart = false\n',
  'var/lib/svc/registry/registry.toml': '[models.fake-model]\nname = "Fake"\npath = "/dev/null"\n',
  'etc/svc/slots/one.toml': slotFile,
  'etc/svc/slots/two.toml': slotFile,
  'etc/svc/slots/other.toml': slotFile
}

/** A driver that outlives gateways, as a cluster does, and may be away. */
interface Far { readonly runtime: FakeEngineRuntime, readonly plugin: AnyPlugin, isAway: boolean, tries: number }

function far (t: Test): Far {
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const self: Far = {
    runtime,
    isAway: false,
    tries: 0,
    plugin: definePlugin({
      name: 'far',
      kind: 'runtime',
      apiVersion: 1,
      register: ctx => ctx.addRuntime(defineRuntime({
        name: 'far',
        form: 'container',
        open: async () => {
          self.tries++
          if (self.isAway) throw new Error('it is away')
          return runtime
        }
      }))
    })
  }
  return self
}

interface Rig { readonly far: Far, readonly clock: FakeClock, readonly gateway: TestGateway }

/** The second gateway of a home whose first one left three engines there, and which starts while the driver is away. */
async function startedLate (t: Test, change: Record<string, string> = {}): Promise<Rig> {
  const [home, clock, there] = [t.testdir(), new FakeClock(), far(t)]
  const start = async (more: Record<string, string>): Promise<TestGateway> => {
    const here = new FakeEngineRuntime()
    t.teardown(() => here.destroy())
    const plugins = [createFakeProviderPlugin(), there.plugin]
    return await createTestGateway({ home, clock, files: more, runtime: here, plugins, stopEngines: false })
  }
  const first = await start(files)
  for (const slot of ['one', 'two', 'other']) await first.slots.load(slot, { signal: never })
  await first.close()
  t.equal(there.runtime.running, 3)
  there.isAway = true
  const gateway = await start(change)
  t.teardown(() => gateway.close())
  return { far: there, clock, gateway }
}

t.test('a driver that opens late has its engines adopted, and those removed that no slot wants any more', async t => {
  const { far, clock, gateway } = await startedLate(t, { 'etc/svc/slots/other.toml': slotFile.replace('[model]', 'enabled = false\n[model]') })
  await t.rejects(gateway.slots.load('one', { signal: never }), { message: /runtime 'far' is not available: it is away$/ }, 'until then a slot says why it does not start')
  t.equal(far.runtime.running, 3, 'and what it has is left alone')
  far.isAway = false
  await clock.advance(60_000)
  await until(() => ['one', 'two'].every(slot => gateway.slots.status(slot).state === 'ready'), 'they are adopted without anyone asking')
  t.ok(['one', 'two'].every(slot => gateway.slots.status(slot).adopted))
  await until(() => far.runtime.running === 2, 'the engine of the slot that is switched off is removed')
  t.equal(far.runtime.started.length, 3, 'nothing was started anew')
  const { tries } = far
  await clock.advance(600_000)
  t.equal(far.tries, tries, 'and it is not opened again')
})

t.test('a request that finds the driver back takes over the engine that its slot has there', async t => {
  const { far, gateway } = await startedLate(t)
  const [before] = await far.runtime.list({ [LABEL_SLOT]: 'one' })
  far.isAway = false
  await gateway.slots.load('one', { signal: never })
  t.match(gateway.slots.status('one'), { state: 'ready', adopted: true, engineId: before!.id })
  await until(() => gateway.slots.status('two').state === 'ready', 'and so are those of the others')
  t.equal(far.runtime.started.length, 3, 'nothing was started anew')
  const ids = (await far.runtime.list({})).map(({ labels }) => labels[LABEL_SLOT])
  t.strictSame(ids.toSorted(), ['one', 'other', 'two'], 'no slot has two')
})

t.test('an engine that no longer fits its slot goes before the request that finds the driver back starts another', async t => {
  const { far, gateway } = await startedLate(t, { 'etc/svc/slots/one.toml': slotFile.replace('[model]', '[server]\nextra_args = "--other"\n[model]') })
  far.isAway = false
  await gateway.slots.load('one', { signal: never })
  t.match(gateway.slots.status('one'), { state: 'ready', adopted: false })
  t.equal(far.runtime.started.length, 4)
  t.equal((await far.runtime.list({ [LABEL_SLOT]: 'one' })).length, 1)
})

t.test('a gateway that stops while a driver is away looks for it no more', async t => {
  const { far, clock, gateway } = await startedLate(t)
  await gateway.close()
  const { tries } = far
  await clock.advance(3_600_000)
  t.equal(far.tries, tries)
  t.equal((await far.runtime.list({})).filter(({ labels }) => labels[LABEL_INSTANCE] !== undefined).length, 3, 'its engines stay for the next one')
})
