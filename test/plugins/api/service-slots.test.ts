import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { definePlugin, defineService } from '../../../kernel/contract/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime, type TestGateway, type TestGatewayOptions } from '../../../kernel/testing/index.js'
import services from '../../../plugins/api/services/index.js'
import slots from '../../../plugins/api/slots/index.js'

const painter = definePlugin({
  name: 'painter',
  kind: 'service',
  apiVersion: 1,
  register: ctx => ctx.addService(defineService({
    id: 'painter', name: 'Painter', description: 'paints', licence: { name: 'GPL-3.0', note: null, url: null }, unit: 'painter.service', port: 8188,
    verbs: ['start', 'restart'], probe: '/health', page: '/', mdns: true, slot: 'image', slotOffer: { bytes: 5, data: 'painter' }
  }))
})

interface Answer { readonly status: number, readonly json: unknown }

interface Painting extends TestGateway {
  readonly call: (method: string, path: string, body?: object) => Promise<Answer>
  /** How the installation ended. */
  readonly installed: () => Promise<unknown>
}

/** A gateway whose engines are containers, with an engine for images. */
async function painting (
  t: Test, image: string, files: Readonly<Record<string, string>> = {}, runtime = new FakeEngineRuntime({ form: 'container' }),
  { systemctl = '/nonexistent', ...options }: TestGatewayOptions & { readonly systemctl?: string } = {}
): Promise<Painting> {
  const engine = createFakeProviderPlugin({ name: 'brush', slotTypes: ['image'], defaultFor: [{ type: 'image' }], devices: ['cpu'], needsModel: false, image })
  const gateway = await createTestGateway({
    runtime, plugins: [services, slots, painter, engine], pluginConfig: { 'api-services': { systemctl } }, ...options,
    files: { 'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${t.testdir()}\n`, ...files }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const call: Painting['call'] = async (method, path, body) => {
    const answer = await gateway.fetch(`/api${path}`, { method, ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }) })
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? null : JSON.parse(text) as unknown }
  }
  const installed = async (): Promise<unknown> => {
    for (;;) {
      const { json } = await call('GET', '/services/painter/install')
      if ((json as { state: string }).state !== 'installing') return json
    }
  }
  return Object.assign(gateway, { call, installed })
}

t.test('what runs as a slot is brought as one, whose file says so, and goes with its installation alone', async t => {
  const gateway = await painting(t, 'registry.example/brush:1')
  t.match((await gateway.call('GET', '/services')).json, { services: [{ managed: false, runs_as: 'slot', installation: { state: 'absent' }, hints: ['`svc service install painter` brings it'] }] })
  for (const form of ['python', 'container']) t.match(await gateway.call('POST', '/services/painter/install', { form }), { status: 409, json: { error: { code: 'services.cannot_install' } } }, form)
  t.match(await gateway.call('POST', '/services/painter/install', {}), { status: 202, json: { state: 'installing', form: 'slot' } })
  t.match(await gateway.installed(), { state: 'installed', form: 'slot', message: 'it is slot img, which is loaded on request' })
  const file = join(gateway.home, 'etc/svc/slots/img.toml')
  t.match(await readFile(file, 'utf8'), /type = "image"[^]*\[meta\]\nservice = "painter"/)
  t.match((await gateway.call('GET', '/services')).json, { services: [{ managed: true, installation: { form: 'slot' }, hints: { length: 0 } }] })
  t.match(await gateway.call('PUT', '/slots/img/config', { enabled: false }), { status: 200 })
  t.match(await gateway.call('GET', '/services/painter/install'), { json: { state: 'absent' } }, 'a slot that is disabled does not serve')
  await gateway.call('POST', '/services/painter/install', {})
  t.match(await gateway.installed(), { state: 'installed' }, 'and is enabled by another installation')
  t.equal((await gateway.call('DELETE', '/services/painter/install')).status, 204)
  await t.rejects(readFile(file))
  t.equal((await gateway.call('DELETE', '/services/painter/install')).status, 204, 'twice')

  await gateway.call('POST', '/services/painter/install', {})
  t.match(await gateway.installed(), { state: 'installed' })
  await gateway.call('POST', '/slots', { name: 'mine', type: 'image' })
  const painted = join(gateway.home, 'var/lib/svc/painter/painted.png')
  await mkdir(dirname(painted), { recursive: true })
  await writeFile(painted, '')
  t.match(await gateway.call('DELETE', '/services/painter/install?data=true'), { status: 409, json: { error: { code: 'services.not_made_here', message: /slot mine/ } } })
  await readFile(painted)
  t.ok(gateway.gateway.kernel().config.snapshot.slots.has('img'), 'data that another slot has as well stays, and all else with it')
  await gateway.call('DELETE', '/slots/mine')
  const [folder, elsewhere] = [dirname(painted), join(gateway.home, 'elsewhere')]
  await rename(folder, elsewhere)
  await symlink(elsewhere, folder)
  const linked = await gateway.call('DELETE', '/services/painter/install?data=true')
  t.match(linked, { status: 409, json: { error: { code: 'services.data_linked', message: /rm -- /, details: { target: elsewhere } } } })
  await readFile(join(elsewhere, 'painted.png'))
  t.ok(gateway.gateway.kernel().config.snapshot.slots.has('img'), 'what is behind a link stays, and all else with it')
  await gateway.call('POST', '/slots', { name: 'mine', type: 'image' })
  t.equal((await gateway.call('DELETE', '/services/painter/install')).status, 204)
  await gateway.call('POST', '/services/painter/install', {})
  t.match(await gateway.installed(), { state: 'installed', message: /it is slot mine/ })
  t.match(await gateway.call('DELETE', '/services/painter/install?data=true'), { status: 409, json: { error: { code: 'services.not_made_here', message: /svc slot delete mine/ } } })
  t.strictSame([...gateway.gateway.kernel().config.snapshot.slots.keys()], ['mine'], 'what an operator made stays')
})

t.test('a slot that could not come up is not made, and the refusal says why', async t => {
  const named = await painting(t, 'registry.example/brush:1', { 'etc/svc/slots/img.toml': 'type = "image"\nenabled = false\n' })
  t.match(await named.call('POST', '/services/painter/install', {}), { status: 409, json: { error: { code: 'services.cannot_install', message: /Painter cannot run as a slot here: .*img.*exists/ } } })
  const nameless = await painting(t, 'brush')
  t.match(await nameless.call('POST', '/services/painter/install', {}), { status: 409, json: { error: { message: /unknown image 'brush'/ } } })
  t.strictSame([...nameless.gateway.kernel().config.snapshot.slots.keys()], [])
})

t.test('an image that cannot be pulled leaves no slot', async t => {
  const runtime = new FakeEngineRuntime({ form: 'container' })
  runtime.imagePresent = () => Promise.resolve(false)
  runtime.pull = () => Promise.reject(new Error('no such image'))
  const gateway = await painting(t, 'registry.example/brush:1', {}, runtime)
  await gateway.call('POST', '/services/painter/install', {})
  t.match(await gateway.installed(), { state: 'failed', message: /the image of slot img could not be pulled: no such image/ })
  t.strictSame([...gateway.gateway.kernel().config.snapshot.slots.keys()], [])
})

t.test('what runs as a slot is announced where its engine listens, and anew when that is elsewhere', async t => {
  const clock = new FakeClock(Date.parse('2026-11-27T00:00:00Z'))
  const folder = t.testdirName
  const systemctl = join(folder, 'systemctl')
  const ports: number[] = []
  const runtime = new FakeEngineRuntime({ form: 'container', onStart: ({ engine }) => { ports.push(engine.port) } })
  const gateway = await painting(t, 'registry.example/brush:1', {
    'etc/svc/api.env': `SVC_AVAHI_SERVICES_DIR=${folder}/avahi\n`,
    'etc/svc/svc.toml': '[server]\nhost = "127.0.0.1"\n',
    'etc/svc/slots/img.toml': 'type = "image"\nport = 8111\n'
  }, runtime, { clock, systemctl })
  await writeFile(systemctl, '#!/bin/sh\n[ "$1" != is-active ] || echo active\n', { mode: 0o755 })
  const file = join(folder, 'avahi/svc-addon-painter.service')
  const announced = async (): Promise<number> => Number(/<port>(\d+)</.exec(await readFile(file, 'utf8'))?.[1])
  const told = async (port: number): Promise<void> => {
    while (await announced().catch(() => 0) !== port) {
      await clock.advance(5_000)
      // as long as the look takes that is due now: its program would be ended by the next advance
      await gateway.call('GET', '/services/mdns')
    }
    t.match((await gateway.call('GET', '/services/mdns')).json, { advertised: ['painter'], advertisable: [{ id: 'painter', port }] })
    t.match((await gateway.call('GET', '/services')).json, { services: [{ mdns_url: new RegExp(`:${port}/$`) }] })
  }
  t.match(await gateway.call('POST', '/services/mdns', { advertise: true }), { json: { ok: true, advertised: ['painter'], message: /only on loopback: set \[server\] host/ } })
  await told(8111)
  await gateway.call('POST', '/slots/img/load', {})
  const first = ports.at(-1)!
  await told(first)
  t.match(await gateway.call('PUT', '/slots/img/config', { port: 8112 }), { status: 200 })
  await gateway.call('POST', '/slots/img/restart', {})
  t.not(ports.at(-1), first)
  await told(ports.at(-1)!)
  await gateway.call('POST', '/slots/img/unload', {})
  await told(8112)
  t.match((await gateway.call('POST', '/services/mdns', { advertise: false })).json, { ok: true, advertised: { length: 0 } })
  await t.rejects(readFile(file))
})
