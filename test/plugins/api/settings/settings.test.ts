import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { svcSchema } from '../../../../cli/offline/svc-schema.js'
import { applyClasses, definePlugin, type PluginSetting } from '../../../../kernel/contract/index.js'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import { applyPlan, warningsOf } from '../../../../plugins/api/settings/apply-plan.js'
import { changedKeys, isTable, pick } from '../../../../plugins/api/settings/changes.js'
import settingsApi from '../../../../plugins/api/settings/index.js'
import { masked, withoutMasks } from '../../../../plugins/api/settings/masked.js'
import { applyClassOf, settingKeys, settingsSchema, type SettingsSchema } from '../../../../plugins/api/settings/setting-keys.js'
import imagegen from '../../../../plugins/providers/imagegen/index.js'
import library from '../../../../plugins/services/library/index.js'
import updates from '../../../../plugins/services/updates/index.js'
import { api as wholeApi, apiOf, openStream } from '../support.js'

const api = apiOf('api-settings', 'api-events', 'memory', 'memory-engine')

const tuned = definePlugin({
  name: 'tuned',
  kind: 'service',
  apiVersion: 1,
  configSchema: z.strictObject({ depth: z.int().min(1).max(9).default(3), api_key: z.string().optional() }),
  register: ctx => {
    ctx.addSetting({ key: 'depth', schema: z.int().min(1).max(9).default(3), description: 'How deep', apply: 'live' })
    ctx.addSetting({ key: 'api_key', schema: z.string(), description: 'Its key', apply: 'slot-restart' })
  }
})

t.test('settings are read without secrets, and a change keeps comments', async t => {
  // all plugins: none of them tells an event of its own when settings change
  const gateway = await wholeApi(t, { svc: '# a comment\n[dispatcher]\nping_interval_s = 7\n' })
  const { json } = await gateway.call('GET', '/api/settings')
  t.match(json, { slots: { autostart: false, idle_timeout_s: 300 }, dispatcher: { ping_interval_s: 7, hold_headers_s: 2 } })
  t.equal(json.server.port, 8080, 'what is configured')
  t.strictSame(json._svc, { served: { host: '127.0.0.1', port: Number(new URL(gateway.baseUrl).port) } }, 'and where it is served')
  t.equal((await gateway.call('PUT', '/api/settings', { _svc: json._svc, slots: json.slots })).status, 200, 'what was read can be sent back')

  const events = await openStream(t, gateway, '/api/events/stream?type=system.*')
  const saved = await gateway.call('PUT', '/api/settings', {
    slots: { idle_timeout_s: 60, publish_host: '0.0.0.0' }, dispatcher: { ping_interval_s: null }, server: { port: 9000 },
    memory: { graph: { new_key: 1 } }
  }, { 'x-request-id': 'req-1' })
  t.equal(saved.status, 200)
  t.match(saved.json, {
    slots: { idle_timeout_s: 60, autostart: false }, dispatcher: { ping_interval_s: 10 },
    _svc: {
      apply_plan: {
        live: ['dispatcher.ping_interval_s', 'slots.idle_timeout_s'], slot_restart: ['slots.publish_host'], gateway_restart: ['server.port'],
        unknown: ['memory.graph.new_key'], slots: { length: 0 }
      },
      warnings: [/exposes engines/]
    }
  })
  const keys = ['dispatcher.ping_interval_s', 'memory.graph.new_key', 'server.port', 'slots.idle_timeout_s', 'slots.publish_host']
  t.match((await events.next())!.data, { type: 'system.config_save', data: { keys } })
  t.match(gateway.audit()[0], {
    category: 'settings', action: 'settings.update', target: 'svc.toml', outcome: 'ok', request_id: 'req-1',
    before: { slots: { idle_timeout_s: 300 }, dispatcher: { ping_interval_s: 7 } }, after: { slots: { idle_timeout_s: 60 } }
  })
  t.notOk('autostart' in (gateway.audit()[0]!.after as { slots: object }).slots, 'only what changed')
  const file = await gateway.file('etc/svc/svc.toml')
  t.match(file, /# a comment/)
  t.match(file, /idle_timeout_s = 60/)
  t.notMatch(file, /ping_interval_s/)

  const same = await gateway.call('PATCH', '/api/settings', { slots: { idle_timeout_s: 60 } })
  t.match(same.json._svc.apply_plan, { live: { length: 0 }, slot_restart: { length: 0 }, gateway_restart: { length: 0 }, unknown: { length: 0 } }, 'nothing changed')
  t.equal(gateway.gateway.kernel().events.list({ type: 'system.*' }).events.length, 1)
  t.equal((await gateway.call('PATCH', '/api/settings', {})).status, 200)
  t.equal((await gateway.call('POST', '/api/settings', {})).status, 405)
})

t.test('a change that is refused changes nothing', async t => {
  const gateway = await api(t)
  const before = await gateway.file('etc/svc/svc.toml')
  const refusals: ReadonlyArray<readonly [unknown, string]> = [
    [{ slots: { idle_timeout_s: -1 } }, 'slots.idle_timeout_s'], [{ slots: { idle_timeout: 1 } }, 'slots.idle_timeout'], [{ nonsense: {} }, 'nonsense'],
    [{ slots: { port_range_end: 8000 } }, 'slots.port_range_end'], [{ meta: { schema_version: 2 } }, 'meta.schema_version'], [{ server: 3 }, 'server'],
    [{ slots: { nothing: null } }, 'slots.nothing'], [{ slots: { max_slots: 5 }, server: { port: 'x' } }, 'server.port']
  ]
  for (const [patch, path] of refusals) {
    const { status, json } = await gateway.call('PUT', '/api/settings', patch)
    t.match({ status, json }, { status: 400, json: { error: { code: 'config.invalid', param: path, details: { fields: [{ path, message: /./ }] } } } }, path)
  }
  t.equal(await gateway.file('etc/svc/svc.toml'), before)
  t.match(gateway.audit()[0], { action: 'settings.update', outcome: 'error', before: null })
  t.match(await gateway.call('PUT', '/api/settings', '{'), { status: 400, json: { error: { code: 'request.invalid_json' } } })
  t.match(await gateway.call('PUT', '/api/settings', '[1]'), { status: 400, json: { error: { code: 'request.not_an_object' } } })
  await writeFile(join(gateway.home, 'etc/svc/svc.toml'), 'broken = = 1\n')
  t.match(await gateway.call('PUT', '/api/settings', { slots: { max_slots: 3 } }), { status: 500, json: { error: { code: 'config.parse_error' } } })
  t.equal(await gateway.file('etc/svc/svc.toml'), 'broken = = 1\n')
  const reloaded = (await gateway.call('POST', '/api/settings/reload')).json
  t.match(reloaded, { slots: { max_slots: 0 }, _svc: { diagnostics: [{ file: 'svc.toml', message: /not valid TOML/ }] } }, 'the last good one stays')
})

t.test('a slot whose engine runs with other settings is named', async t => {
  const gateway = await api(t)
  await gateway.slots.load('agent')
  const { json } = await gateway.call('PUT', '/api/settings', { slots: { publish_host: '127.0.0.2' } })
  t.same(json._svc.apply_plan.slots, ['agent'])
  await gateway.slots.restart('agent')
  t.same((await gateway.call('PUT', '/api/settings', { slots: { max_slots: 9 } })).json._svc.apply_plan.slots, [])
})

t.test('reload tells what another writer changed', async t => {
  const gateway = await api(t)
  await writeFile(join(gateway.home, 'etc/svc/svc.toml'), '[slots]\nautostart = false\nmax_slots = 4\n')
  const { json } = await gateway.call('POST', '/api/settings/reload')
  t.match(json, { slots: { max_slots: 4 }, _svc: { apply_plan: { live: ['slots.max_slots'] } } })
  t.match(gateway.audit()[0], { action: 'settings.reload', before: { slots: { max_slots: 0 } }, after: { slots: { max_slots: 4 } } })
  const again = (await gateway.call('POST', '/api/settings/reload')).json
  t.equal(again._svc.revision, json._svc.revision)
})

t.test('the schema and the apply plan describe every setting', async t => {
  // all plugins: what any of them adds to the schema must go together
  const gateway = await wholeApi(t, { providers: [createFakeProviderPlugin(), tuned] })
  const schema = (await gateway.call('GET', '/api/settings/schema')).json
  t.match(schema.properties.slots.properties.idle_timeout_s, { type: 'integer', minimum: 0, default: 300, description: /Idle seconds/, apply_class: 'live' })
  t.match(schema.properties.plugins.properties.config.properties.tuned.properties, {
    depth: { type: 'integer', minimum: 1, maximum: 9, description: 'How deep', apply_class: 'live' }, api_key: { type: 'string', apply_class: 'slot-restart' }
  })
  const plan = (await gateway.call('GET', '/api/settings/apply-plan')).json
  t.same(plan.apply_classes, [...applyClasses])
  t.match(plan.registry, {
    'slots.idle_timeout_s': { apply_class: 'live', services: { length: 0 } },
    'slots.publish_host': { apply_class: 'slot-restart', services: ['slots'] },
    'server.port': { apply_class: 'gateway-restart', services: ['gateway'] },
    'plugins.config': { apply_class: 'gateway-restart' },
    'plugins.config.tuned.depth': { apply_class: 'live' }
  })
})

t.test('settings of plugins are checked by the plugin, and their secrets are not shown', async t => {
  const gateway = await api(t, { providers: [createFakeProviderPlugin(), tuned], svc: '[plugins.config.gone]\nx = 1\n' })
  t.match(await gateway.call('PUT', '/api/settings', { plugins: { config: { tuned: { depth: 10 } } } }), {
    status: 400, json: { error: { code: 'config.invalid', param: 'plugins.config.tuned.depth' } }
  })
  t.match(await gateway.call('PUT', '/api/settings', { plugins: { config: { tuned: { deep: 1 } } } }), { status: 400, json: { error: { param: 'plugins.config.tuned.deep' } } })
  const saved = await gateway.call('PUT', '/api/settings', { plugins: { config: { tuned: { depth: 5, api_key: 'hunter2' }, gone: { y: 2 } } } })
  t.match(saved.json, {
    plugins: { config: { tuned: { depth: 5, api_key: '***' } } },
    _svc: { apply_plan: { live: ['plugins.config.tuned.depth'], slot_restart: ['plugins.config.tuned.api_key'], gateway_restart: ['plugins.config.gone.y'] } }
  })
  t.notMatch(JSON.stringify([gateway.audit(), gateway.gateway.kernel().events.list().events]), /hunter2/)
  const { json } = await gateway.call('GET', '/api/settings')
  t.equal((await gateway.call('PUT', '/api/settings', { ...json, slots: { ...json.slots, max_slots: 7 } })).status, 200)
  t.match(await gateway.file('etc/svc/svc.toml'), /api_key = "hunter2"/, 'writing back what was read keeps the secret')
})

t.test('a table of svc.toml is read, changed and checked as before while the plugin that owns it is switched off', async t => {
  const svc = '[images]\nstrip_metadata = false\n[telemetry]\nenabled = true\nchannel = "nightly"\n[plugins]\ndisabled = ["imagegen", "updates"]\n'
  const gateway = await api(t, { svc, group: [settingsApi, imagegen, library, updates] })
  t.strictSame(gateway.gateway.report().filter(({ state }) => state === 'disabled').map(({ name }) => name).sort(), ['imagegen', 'updates'])
  t.strictSame(gateway.gateway.kernel().config.snapshot.diagnostics, [])
  const tables = async (): Promise<unknown> => {
    const { images, telemetry } = (await gateway.call('GET', '/api/settings')).json
    return { images, telemetry }
  }
  t.strictSame(await tables(), { images: { strip_metadata: false }, telemetry: { enabled: true, channel: 'nightly' } })
  t.equal((await gateway.call('PUT', '/api/settings', { images: { strip_metadata: true }, telemetry: { enabled: null, channel: 'stable' } })).status, 200)
  t.strictSame(await tables(), { images: { strip_metadata: true }, telemetry: { enabled: false, channel: 'stable' } })
  t.match(await gateway.file('etc/svc/svc.toml'), '[images]\nstrip_metadata = true\n[telemetry]\nchannel = "stable"\n')
  t.match(await gateway.call('PUT', '/api/settings', { telemetry: { channel: 'weekly' } }), { status: 400, json: { error: { param: 'telemetry.channel' } } })
})

t.test('each setting says what a change of it takes', async t => {
  const keys = settingKeys(settingsSchema(svcSchema, [{ plugin: 'p', key: 'a.b', schema: z.boolean(), description: 'd', apply: 'slot-restart' } as PluginSetting]))
  t.equal(keys.get('plugins.config.p.a.b'), 'slot-restart')
  t.equal(applyClassOf(keys, 'plugins.config.p.other'), 'gateway-restart')
  t.equal(applyClassOf(keys, 'memory.graph.unknown'), null)
  t.equal(applyClassOf(keys, 'slots.max_slots'), 'live')
  const leaves = (value: object, path: string[] = []): string[] => Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, key]
    return isTable(inner) && Object.keys(inner).length > 0 ? leaves(inner, at) : [at.join('.')]
  })
  for (const key of leaves(svcSchema.parse({}))) t.ok(keys.has(key), `${key} has an apply class`)
  const described = (schema: SettingsSchema, path: string): void => {
    if (schema.apply_class !== undefined) t.match(schema.description, /^[A-Z].{8,}[^.]$/, `${path} is described`)
    for (const [key, inner] of Object.entries(schema.properties ?? {})) described(inner, `${path}.${key}`)
  }
  described(settingsSchema(svcSchema, []), '')

  t.same(changedKeys({ a: 1, b: { c: [1], d: 2 }, e: { f: 1 } }, { a: 1, b: { c: [2], d: 2 }, g: { h: 1 } }), ['b.c', 'e.f', 'g.h'])
  t.same(pick({ a: 1, b: { c: [2], d: 2 } }, ['b.c', 'e.f', 'a']), { b: { c: [2] }, a: 1 })
  const settings = { a: { token: 'x', url: 'http://u:p@h/', n: 1, keys: { token: 'y' } } }
  const mask = masked(settings)
  t.match(mask, { a: { token: '***', url: /REDACTED\*\*\*@h/, n: 1 } })
  t.same(withoutMasks({ a: { ...mask.a, n: 2 } }, settings), { a: { n: 2, keys: {} } })
  t.same(withoutMasks({ a: { token: 'z', other: '***' } }, settings), { a: { token: 'z', other: '***' } })
  t.same(applyPlan(['slots.max_slots', 'x.y'], keys, ['s']), { live: ['slots.max_slots'], slot_restart: [], gateway_restart: [], unknown: ['x.y'], slots: ['s'] })
  t.same(warningsOf(svcSchema.parse({})), [])
  t.equal(warningsOf(svcSchema.parse({
    server: { host: '0.0.0.0', allowed_hosts: ['*'], allowed_origins: ['*'] }, slots: { publish_host: '10.0.0.1' }, models: { pull_root: '/m' }
  })).length, 5)
})
