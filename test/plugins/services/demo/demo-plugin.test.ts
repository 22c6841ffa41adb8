import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FakeEngineRuntime } from '../../../../kernel/testing/fake-engine-runtime.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/test-gateway.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import { sentenceFor } from '../../../../plugins/services/demo/sentence.js'
import { bigramGguf } from '../../../../plugins/services/demo/bigram-gguf.js'
import demo from '../../../../plugins/services/demo/index.js'
import { writeOnce } from '../../../../plugins/services/demo/model-file.js'

for (const { name, run } of pluginConformance(demo)) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

async function gatewayAt (t: Test, home: string, provision = true): Promise<TestGateway> {
  const runtime = new FakeEngineRuntime()
  // an engine outlives its gateway
  t.teardown(() => runtime.destroy())
  return createTestGateway({ home, plugins: [llmServer, demo], pluginConfig: { demo: { provision } }, runtime })
}

const slotFiles = (home: string): Promise<string[]> => readdir(join(home, 'etc/svc/slots')).catch(() => [])
const store = (home: string): string => join(home, 'var/lib/svc/models')

t.test('a home without slots gets one that runs the demo model', async t => {
  const home = t.testdir()
  const first = await gatewayAt(t, home)
  await first.close()
  t.match(first.gateway.report().find(plugin => plugin.name === 'demo'), { state: 'active' })
  t.same(await slotFiles(home), ['agent.toml'])
  t.match(await readFile(join(home, 'etc/svc/svc.toml'), 'utf8'), /list_unloaded = true\nlist_virtual = false/, 'the list of models stays the same while the slot comes and goes')
  const slot = await readFile(join(home, 'etc/svc/slots/agent.toml'), 'utf8')
  t.match(slot, /device = "cpu"/)
  t.match(slot, /default = "svc-demo"/)
  t.match(slot, /idle_timeout_s = 0/)
  t.same(await readdir(store(home)), ['svc-demo.gguf'], 'no draft is left')
  t.ok(bigramGguf({ sentence: sentenceFor('svc') }).equals(await readFile(join(store(home), 'svc-demo.gguf'))))
  const registry = await readFile(join(home, 'var/lib/svc/registry/registry.toml'), 'utf8')
  t.match(registry, /svc demo model/)
  t.match(registry, /context_length = 32[_]?768/)

  await writeFile(join(home, 'etc/svc/slots/agent.toml'), slot.replace('idle_timeout_s = 0', 'idle_timeout_s = 7'))
  await (await gatewayAt(t, home)).close()
  t.match(await readFile(join(home, 'etc/svc/slots/agent.toml'), 'utf8'), /idle_timeout_s = 7/, 'a second start changes nothing')
})

t.test('it leaves alone what is there', async t => {
  await t.test('a home that has a slot gets no demo slot', async t => {
    const home = t.testdir({ etc: { svc: { slots: { 'other.toml': 'type = "llm"\ndevice = "cpu"\nport = 8090\n' } } } })
    await (await gatewayAt(t, home)).close()
    t.same(await slotFiles(home), ['other.toml'])
  })
  await t.test('a broken slot file is left as it is', async t => {
    const home = t.testdir({ etc: { svc: { slots: { 'agent.toml': 'device = "toaster"\n' } } } })
    await (await gatewayAt(t, home)).close()
    t.equal(await readFile(join(home, 'etc/svc/slots/agent.toml'), 'utf8'), 'device = "toaster"\n')
    t.same(await slotFiles(home), ['agent.toml'])
  })
  await t.test('a user\'s file with the demo model\'s name is not overwritten', async t => {
    const home = t.testdir({ var: { lib: { svc: { models: { 'svc-demo.gguf': 'mine' } } } } })
    await (await gatewayAt(t, home)).close()
    t.equal(await readFile(join(store(home), 'svc-demo.gguf'), 'utf8'), 'mine')
  })
  await t.test('everything, when it is not asked for', async t => {
    const home = t.testdir()
    await (await gatewayAt(t, home, false)).close()
    t.same(await slotFiles(home), [])
  })
})

t.test('a file is there as a whole or not at all', async t => {
  const path = join(t.testdir(), 'deep', 'file')
  const never = new AbortController().signal
  t.equal(await writeOnce(path, Buffer.from('first'), never), true)
  t.equal(await writeOnce(path, Buffer.from('second'), never), false)
  t.equal(await readFile(path, 'utf8'), 'first')
  const other = join(path, '..', 'other')
  await t.rejects(writeOnce(other, Buffer.from('x'), AbortSignal.abort(new Error('stop'))))
  t.same(await readdir(join(path, '..')), ['file'])
})
