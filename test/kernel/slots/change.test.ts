import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../kernel/testing/index.js'
import { reservePorts } from '../../ports.js'

const slot = (port: number, more = ''): string => `provider = "fake"\ndevice = "cpu"\nport = ${port}\n${more}`

async function gateway (t: Test, files: Record<string, string>): Promise<TestGateway> {
  const runtime = new FakeEngineRuntime()
  const started = await createTestGateway({ runtime, plugins: [createFakeProviderPlugin()], files })
  t.teardown(async () => {
    await started.close()
    await runtime.destroy()
  })
  return started
}

t.test('what no single write could do: slots that trade places', async t => {
  const { start, toml } = await reservePorts(t)
  const { slots, home } = await gateway(t, {
    'etc/svc/svc.toml': `[slots]\n${toml}`,
    'etc/svc/slots/a.toml': slot(start, 'default = true\n'),
    'etc/svc/slots/b.toml': slot(start + 1)
  })
  await t.rejects(slots.update('b', { default: true }), { code: 'slot.config_error' })
  await t.rejects(slots.update('b', { port: start }), { code: 'slot.port_conflict' })
  await slots.change(async draft => {
    await draft.update('b', { default: true, port: start })
    await draft.update('a', { default: false, port: start + 1 })
  })
  t.match([slots.config('a'), slots.config('b')], [{ port: start + 1, default: false }, { port: start, default: true }])
  await slots.change(async draft => {
    await draft.delete('a')
    t.match(await draft.create('c', { provider: 'fake', device: 'cpu', port: start + 1 }), { port: start + 1 }, 'the port is free again')
    t.match(await draft.create('d', { provider: 'fake', device: 'cpu' }), { port: undefined }, 'nobody asked for one')
  })
  t.same(readdirSync(join(home, 'etc/svc/slots')), ['b.toml', 'c.toml', 'd.toml'])
  t.same(slots.names(), ['b', 'c', 'd'])
})

t.test('one rule broken, nothing written; a dry run refuses the same and tells nobody', async t => {
  const { slots, home, gateway: running } = await gateway(t, {
    'etc/svc/slots/a.toml': slot(8081),
    'etc/svc/profiles.toml': '[profile.mine]\nimage = "x"\ndevice_class = "gpu"\n',
    'var/lib/svc/registry/registry.toml': '[models.m]\npath = "/dev/null"\ndefaults = { profile = "mine" }\n'
  })
  const before = readFileSync(join(home, 'etc/svc/slots/a.toml'), 'utf8')
  const { events } = running.kernel()
  const skips = (): number => events.list({ type: 'slot.preferred_profile_skipped' }).events.length
  for (const dryRun of [true, false]) {
    await t.rejects(slots.change(async draft => {
      await draft.update('a', { model: { default: 'm' } })
      await draft.create('b', { provider: 'fake', device: 'cpu', port: 8081 })
    }, { dryRun }), { code: 'slot.port_conflict' })
  }
  t.equal(readFileSync(join(home, 'etc/svc/slots/a.toml'), 'utf8'), before)
  t.equal(skips(), 0)
  const change = (dryRun: boolean) => slots.change(draft => draft.update('a', { model: { default: 'm' } }), { dryRun })
  const predicted = await change(true)
  t.equal(readFileSync(join(home, 'etc/svc/slots/a.toml'), 'utf8'), before)
  t.equal(skips(), 0)
  t.same(await change(false), predicted)
  t.same(slots.config('a'), predicted)
  t.equal(skips(), 1, 'the skip is told with the write')
})

t.test('profiles that are made along with the slots that use them', async t => {
  const { slots } = await gateway(t, { 'etc/svc/slots/a.toml': slot(8081) })
  await t.rejects(slots.update('a', { profile: 'fresh' }), { code: 'profiles.not_found' })
  const profile = {
    image: 'example.com/x:1', flags: '', mtp: false, device_class: 'cpu' as const, backend: null, cloned_from: null, intent: '', quant: ''
  }
  await slots.change(async draft => {
    await draft.config.putProfile('fresh', profile)
    await draft.update('a', { profile: 'fresh' })
  })
  t.equal(slots.config('a').profile, 'fresh')
  t.equal(slots.outlook('a').profile, 'fresh')
  await t.rejects(slots.change(async draft => {
    await draft.config.putProfile('fresh', { ...profile, device_class: 'gpu' })
    await draft.update('a', { profile: 'fresh' })
  }), { code: 'slot.config_error' }, 'the rules see the profiles of the draft')
})
