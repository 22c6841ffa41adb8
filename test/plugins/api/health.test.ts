import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import t from 'tap'
import { svcSchema } from '../../../cli/offline/svc-schema.js'
import { definePlugin, hardwareSchema, type PluginStanding } from '../../../kernel/contract/index.js'
import { featuresOf } from '../../../plugins/api/status/features.js'
import { writeTree } from '../../kernel/config/support.js'
import { strixHalo } from '../../kernel/hardware/machines/strix-halo.js'
import { apiOf, groupOf } from './support.js'

const names = ['api-slots', 'api-status']
const api = apiOf(...names)

t.test('the parts of a gateway that is well', async t => {
  const tools = definePlugin({ name: 'mcp-tools', kind: 'mcp', apiVersion: 1, register () {} })
  const gateway = await api(t, { group: [...groupOf(...names), tools] })
  const { status, json } = await gateway.call('GET', '/api/health/system')
  t.equal(status, 200)
  t.match(json, {
    status: 'ok',
    checks: {
      disk_state: { ok: true, floor_mb: 500, path: join(gateway.home, 'var/lib/svc') }, disk_config: { ok: true, path: join(gateway.home, 'etc/svc') },
      slot_manager: { ok: true, slots: 1, errored: 0 }, event_bus: { ok: true },
      activity: { ok: true, since: null, lost: 0, reason: null }, plugins: { ok: true, failed: { length: 0 } }, mcp_mount: { ok: true, servers: ['mcp-tools'] }
    }
  })
  t.ok(json.checks.disk_state.free_mb > 500)
})

t.test('a slot in error, a tool server that fell, a folder that is gone', async t => {
  const broken = definePlugin({ name: 'mcp-broken', kind: 'mcp', apiVersion: 1, register () { throw new Error('no') } })
  const gateway = await api(t, { group: [...groupOf(...names), broken], onStart: () => { throw new Error('no memory') } })
  t.equal((await gateway.call('POST', '/api/slots/agent/load')).status, 502)
  t.match((await gateway.call('GET', '/api/health/system')).json, {
    status: 'degraded', checks: { slot_manager: { ok: false, slots: 1, errored: 1 }, mcp_mount: { ok: false, servers: { length: 0 } }, plugins: { ok: false, failed: ['mcp-broken'] }, disk_config: { ok: true } }
  })
  t.match((await gateway.call('GET', '/api/health')).json, { status: 'degraded', degraded_by: ['plugin mcp-broken', 'slot agent'] })
  rmSync(join(gateway.home, 'etc'), { recursive: true })
  t.match(await gateway.call('GET', '/api/health/system'), { status: 200, json: { checks: { disk_config: { ok: false, free_mb: null } } } })
})

t.test('audit rows that cannot be written', async t => {
  const gateway = await api(t)
  const database = new Database(join(gateway.home, 'var/lib/svc/svc.db'))
  t.teardown(() => { database.close() })
  const trail = async () => (await gateway.call('GET', '/api/health/system')).json.checks.activity
  const change = (seconds: number) => gateway.call('PUT', '/api/slots/agent/config', { idle_timeout_s: seconds })
  database.exec('CREATE TRIGGER full BEFORE INSERT ON activity BEGIN SELECT RAISE(FAIL, \'database or disk is full\'); END')
  t.equal((await change(60)).status, 200, 'what was asked for happens')
  const { since, lost } = await trail()
  t.match(await gateway.call('GET', '/api/health'), { status: 200, json: { status: 'degraded' } })
  await change(61)
  const later = await trail()
  t.match(later, { ok: false, since, reason: /disk is full/ })
  t.ok(later.lost > lost, 'it counts')
  t.match((await gateway.call('GET', '/api/health/system')).json, { status: 'degraded' })
  database.exec('DROP TRIGGER full')
  await change(62)
  t.same(await trail(), { ok: true, since: null, lost: 0, reason: null })
  t.match((await gateway.call('GET', '/api/health')).json, { status: 'ok' })
})

t.test('a slot in error is not ok, until nobody wants it', async t => {
  const gateway = await api(t, { onStart: () => { throw new Error('no memory') } })
  const said = async (): Promise<unknown[]> => [
    (await gateway.call('GET', '/api/status')).json.status, (await gateway.call('GET', '/api/health')).json.status
  ]
  t.same(await said(), ['ok', 'ok'])
  await gateway.call('POST', '/api/slots/agent/load')
  t.same(await said(), ['degraded', 'degraded'])
  await gateway.call('PUT', '/api/slots/agent/config', { enabled: false })
  t.same(await said(), ['ok', 'ok'])
})

t.test('status answers HEAD, as the command line asks', async t => {
  const gateway = await api(t)
  const { status, text } = await gateway.call('HEAD', '/api/status')
  t.match({ status, text }, { status: 200, text: /^$/ })
})

t.test('features say what this host and its plugins offer', async t => {
  const root = t.testdir()
  writeTree(root, strixHalo.tree)
  const gateway = await api(t, { machine: { root } })
  t.match((await gateway.call('GET', '/api/features')).json, { npu: true, mcp_supervisor: false })
  const config = svcSchema.parse({ memory: { enabled: true } })
  const plugins = (state: string, ...routes: string[]): readonly PluginStanding[] =>
    [{ name: 'it', state, routes }] as unknown as readonly PluginStanding[]
  const none = hardwareSchema.parse({})
  t.same(featuresOf(plugins('active', 'POST /api/comfyui/switchover', 'GET /api/memory'), config, none), {
    comfyui_switchover: true, memory: true, mcp_supervisor: false, memory_engine: 'embedded', npu: false
  })
  t.match(featuresOf(plugins('failed', 'POST /api/comfyui/switchover', 'GET /api/memory'), config, none), { comfyui_switchover: false, memory: false, memory_engine: null })
  t.match(featuresOf(plugins('active', 'GET /api/memory/graph'), svcSchema.parse({ memory: { enabled: false } }), none), { memory: false, memory_engine: null })
  t.match(featuresOf(plugins('active', 'GET /api/memorable'), config, none), { memory: false })
})
