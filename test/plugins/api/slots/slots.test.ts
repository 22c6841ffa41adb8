import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { svcError } from '../../../../kernel/contract/index.js'
import { createFakeProviderPlugin, createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import { reservePorts } from '../../../ports.js'
import { shippedFacts } from '../../../providers.js'
import { AGENT, apiOf, until, type Answer, type Api } from '../support.js'

const api = apiOf('api-slots', 'api-settings', 'api-config', 'api-status', 'api-models', 'api-events', 'imagegen', 'hub', 'library', 'pull')

const UPSTREAMS = '[[upstream]]\nname = "cloud"\nurl = "http://user:pass@127.0.0.1:9/v1"\nenabled = false\n' +
  '[[upstream]]\nname = "agent"\nurl = "http://127.0.0.1:9/v1"\nenabled = false\n'

interface Refusal {
  readonly call: readonly [string, string, unknown?]
  readonly status: number
  readonly code: string
  readonly message?: RegExp
}

/** Every answer of a refusal has the envelope, the code and no secret of its own. */
async function refused (t: Test, gateway: Api, { call: [method, path, body], status, code, message = /./ }: Refusal): Promise<Answer> {
  const answer = await gateway.call(method, path, body)
  t.equal(answer.status, status, `${method} ${path}: status`)
  t.match(answer.json, { error: { code, message, details: {}, request_id: answer.headers.get('x-request-id') } }, `${method} ${path}: ${code}`)
  return answer
}

t.test('the list has every slot, broken files among them', async t => {
  const gateway = await api(t, {
    files: {
      'etc/svc/upstreams.toml': UPSTREAMS,
      'etc/svc/slots/broken.toml': 'device = "abacus"\n',
      'etc/svc/slots/old.toml': '[slot]\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/seeing.toml': 'provider = "fake"\ndevice = "cpu"\n[model]\ndefault = "eyes"\n',
      'etc/svc/slots/blinkered.toml': 'provider = "fake"\ndevice = "cpu"\nvision = false\n[model]\ndefault = "eyes"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n[models.eyes]\npath = "/dev/null"\nmmproj = "/dev/null"\n',
      'etc/svc/slots/odd.toml': 'provider = "nobody"\ntype = "tts"\ndevice = "cpu"\n'
    }
  })
  const { json } = await gateway.call('GET', '/api/slots')
  t.same(json.map((row: { name: string }) => row.name), ['agent', 'blinkered', 'odd', 'old', 'seeing', 'broken', 'cloud'],
    'slots, those whose files cannot be read, then upstreams that no slot has the name of')
  t.match(json[0], { kind: 'local', state: 'offline', model_id: 'fake-model', image_status: 'present', container_status: 'stopped', mem_mb: 0 })
  t.notOk('config_drift' in json[0], 'drift is for the detail')
  const seeing = json.filter((row: { vision?: boolean }) => row.vision === true).map((row: { name: string }) => row.name)
  t.same(seeing, ['seeing'], 'vision is said of a slot whose model has a projector that it loads')
  t.match(json[2], { provider: 'nobody', metadata: { config_error: /no such provider: 'nobody'/ } }, 'a slot that cannot run is listed with the reason')
  t.match(json[5], { kind: 'unread', state: 'error', container_status: 'stopped', metadata: { file_problems: [{ path: 'device', line: 1 }] } })
  t.match(json[6], { _synthetic: true, kind: 'remote', status: 'offline', backend: 'remote', provider: 'remote-upstream', url: 'http://127.0.0.1:9/v1' })

  const written = t.capture(JSON, 'stringify', JSON.stringify)
  await gateway.call('GET', '/api/slots')
  const anew = written().map(({ args: [value] }) => value as { kind?: string, name?: string } | undefined).filter(value => value?.kind === 'local')
  t.same(anew, [], 'of slots that did not change the text is kept')

  t.match((await gateway.call('GET', '/api/slots/agent')).json, { name: 'agent', config_drift: false })
  t.match((await gateway.call('GET', '/api/slots/cloud')).json, { name: 'cloud', _synthetic: true })
  await refused(t, gateway, { call: ['GET', '/api/slots/none'], status: 404, code: 'slot.not_found', message: /GET \/api\/slots/ })
  t.same((await gateway.call('GET', '/api/slots/broken')).json, json[5], 'one whose file cannot be read is told alone as in the list')
  const broken = await refused(t, gateway, {
    call: ['POST', '/api/slots/broken/load', {}], status: 404, code: 'slot.not_found',
    message: /slots\/broken\.toml.*device.*\(line 1\).*reload, or DELETE \/api\/slots\/broken/
  })
  t.match(broken.json.error.details, { slot: 'broken', file: 'slots/broken.toml', problems: [{ path: 'device' }] })
  t.same((await gateway.call('GET', '/api/slots/broken/config')).json, { device: 'abacus' }, 'what is wrong can be read all the same')

  t.same((await gateway.call('GET', '/api/slots/old/config')).json, { provider: 'fake', device: 'cpu', model: { default: 'fake-model' } }, 'either shape')
  await writeFile(join(gateway.home, 'etc/svc/slots/agent.toml'), 'device = \n')
  await refused(t, gateway, { call: ['GET', '/api/slots/agent/config'], status: 500, code: 'config.parse_error', message: /slots\/agent\.toml/ })
  await gateway.call('POST', '/api/settings/reload')
  t.match((await gateway.call('GET', '/api/slots/agent')).json, {
    port: 8081, metadata: { file_problems: [{ message: /./, line: 1 }] }
  }, 'the last good content stays in force, and the record tells')
  await rm(join(gateway.home, 'etc/svc/slots/agent.toml'))
  t.same((await gateway.call('GET', '/api/slots/agent/config')).json, {}, 'deleted by hand and not noticed yet')
})

t.test('a slot whose file cannot be read is mended with an edit, and deleted', async t => {
  const files = { 'etc/svc/slots/odd.toml': 'provider = "fake"\ndevice = "abacus"\n', 'etc/svc/slots/torn.toml': 'device = "cp' }
  const gateway = await api(t, { files })
  await refused(t, gateway, { call: ['PUT', '/api/slots/odd/config', { idle_timeout_s: 5 }], status: 400, code: 'validation.invalid', message: /device/ })
  t.match((await gateway.call('PUT', '/api/slots/odd/config', { device: 'cpu' })).json, { name: 'odd', kind: 'local', device: 'cpu', enabled: true })
  t.same(await readFile(join(gateway.home, 'etc/svc/slots/odd.toml'), 'utf8'), 'provider = "fake"\ndevice = "cpu"\n')

  await refused(t, gateway, { call: ['PUT', '/api/slots/torn/config', { device: 'cpu' }], status: 500, code: 'config.parse_error', message: /torn/ })
  t.match((await gateway.call('DELETE', '/api/slots/torn')).json, { name: 'torn', deleted: true })
  await refused(t, gateway, { call: ['DELETE', '/api/slots/torn'], status: 404, code: 'slot.not_found' })
  t.notOk((await gateway.call('GET', '/api/slots')).json.some((row: { name: string }) => row.name === 'torn'))
  t.match(gateway.audit().find(({ outcome }) => outcome === 'ok'), { action: 'slot.delete', target: 'torn', before: null, outcome: 'ok' })
})

t.test('every route of one slot knows what does not exist, and what it cannot take', async t => {
  const gateway = await api(t)
  const routes: ReadonlyArray<readonly [string, string, unknown?]> = [
    ['DELETE', ''], ['GET', '/config'], ['PUT', '/config', {}], ['PATCH', '/defaults', {}], ['POST', '/backend', { backend: 'cpu' }],
    ['POST', '/load', {}], ['POST', '/unload', {}], ['POST', '/restart'], ['POST', '/swap', { model_id: 'x' }], ['GET', '/resolved'],
    ['GET', '/voices'], ['GET', '/state'], ['GET', '/state/stream'], ['GET', '/logs'], ['GET', '/logs/stream'], ['POST', '/pull'],
    ['GET', '/pull/status'], ['GET', '/pull/stream']
  ]
  for (const [method, rest, body] of routes) {
    await refused(t, gateway, { call: [method, `/api/slots/none${rest}`, body], status: 404, code: 'slot.not_found' })
  }
  const wrong: ReadonlyArray<readonly [string, string]> = [
    ['PUT', '/api/slots'], ['POST', '/api/slots/agent'], ['POST', '/api/slots/agent/config'], ['GET', '/api/slots/agent/load'],
    ['DELETE', '/api/slots/agent/state'], ['PUT', '/api/slots/capacity']
  ]
  for (const [method, path] of wrong) {
    const answer = await refused(t, gateway, { call: [method, path], status: 405, code: 'system.http_405' })
    t.match(answer.headers.get('allow'), /[A-Z]/)
  }
  const bodies: ReadonlyArray<readonly [string, string, unknown, string]> = [
    ['POST', '/load', { modell: 'x' }, 'validation.unknown_keys'],
    ['POST', '/load', { model: 7 }, 'validation.invalid'],
    ['POST', '/load', { model: 'a', model_id: 'b' }, 'validation.invalid'],
    ['POST', '/unload', { force: 'yes' }, 'validation.invalid'],
    ['POST', '/unload?force=perhaps', {}, 'validation.invalid'],
    ['POST', '/unload?forced=true', {}, 'validation.unknown_keys'],
    ['POST', '/swap', {}, 'swap.missing_model'],
    ['POST', '/swap', { model_id: ' ' }, 'swap.missing_model'],
    ['POST', '/swap', { model_id: null }, 'validation.invalid'],
    ['POST', '/backend', { backend: 'abacus' }, 'validation.invalid'],
    ['POST', '/backend', {}, 'validation.invalid'],
    ['PUT', '/config', '{', 'request.invalid_json'],
    ['PUT', '/config', '[]', 'request.not_an_object'],
    ['PUT', '/config', { devise: 'cpu' }, 'validation.unknown_keys'],
    ['PUT', '/config', { device: 5 }, 'validation.invalid'],
    ['PUT', '/config', { device: 'abacus' }, 'validation.invalid'],
    ['PUT', '/config', { profile: 'none-such' }, 'profiles.not_found'],
    ['PUT', '/config', { server: { extra_args: '"open' } }, 'slot.config_error'],
    ['PATCH', '/defaults', { context: 5 }, 'validation.unknown_keys'],
    ['PATCH', '/defaults', { context_size: 5 }, 'validation.invalid'],
    ['GET', '/logs?lines=0', undefined, 'validation.invalid'],
    ['GET', '/logs?lines=many', undefined, 'validation.invalid'],
    ['GET', '/logs/stream?backfill=-1', undefined, 'validation.invalid'],
    ['GET', '/logs/stream?lines=5', undefined, 'validation.unknown_keys']
  ]
  const before = await gateway.file('etc/svc/slots/agent.toml')
  for (const [method, rest, body, code] of bodies) {
    const status = code === 'profiles.not_found' ? 404 : 400
    const { json } = await refused(t, gateway, { call: [method, `/api/slots/agent${rest}`, body], status, code })
    if (code === 'validation.invalid') t.match(json.error.details.fields, [{ path: String, message: String }])
  }
  t.equal(await gateway.file('etc/svc/slots/agent.toml'), before, 'no refused change is written')
  t.equal(gateway.gateway.inference().slots.status('agent').state, 'offline', 'and none has an effect')
})

t.test('device and profile of a new slot agree, and the NPU runs one engine', async t => {
  const flags = { modes: { embedding: 'embedding' } } as const
  const gateway = await api(t, { providers: [createFakeProviderPlugin({ ...shippedFacts('imagegen'), flags })] })
  const create = (config: Record<string, unknown>): ReturnType<typeof gateway.call> => gateway.call('POST', '/api/slots', { provider: 'fake', ...config })
  t.match(await create({ name: 'a', profile: 'vulkan' }), { status: 201, json: { device: 'gpu-vulkan', profile: 'vulkan' } })
  t.match((await create({ name: 'b', profile: 'vulkan', device: 'gpu-rocm' })).json.error, { code: 'slot.config_error', param: 'profile' })
  t.match((await create({ name: 'b', profile: 'embed', device: 'gpu-rocm' })).json.error, { code: 'slot.config_error', message: /bakes in embedding/ })
  t.match((await create({ name: 'b', profile: 'nobody' })), { status: 404, json: { error: { code: 'profiles.not_found' } } })
  t.match(await create({ name: 'n', device: 'npu' }), { status: 201 })
  t.match(await create({ name: 'm', device: 'npu' }), {
    status: 409, json: { error: { code: 'slot.npu_exclusivity_violation', details: { slot: 'm', conflicting_slots: ['n'], hint: /--disable/ } } }
  })
  t.match(await create({ name: 'm', device: 'npu', enabled: false }), { status: 201 })
  t.match(await gateway.call('PUT', '/api/slots/m/config', { enabled: true }), { status: 409, json: { error: { code: 'slot.npu_exclusivity_violation' } } })
  t.match(await gateway.call('PUT', '/api/slots/n/config', { enabled: false }), { status: 200 })
  t.match(await gateway.call('PUT', '/api/slots/m/config', { enabled: true }), { status: 200 })
  t.match(gateway.gateway.inference().slots.check([...gateway.gateway.kernel().config.snapshot.slots.values()]), { length: 0 })
})

t.test('a slot is created, changed, read and deleted, with an audit row each', async t => {
  const gateway = await api(t)
  const created = await gateway.call('POST', '/api/slots', {
    name: 'chat', provider: 'fake', device: 'cpu', model: 'other-model', ctx_size: 2048, server: { env: { API_KEY: 'sk-1' } }
  }, { 'x-svc-agent': 'hermes', 'x-request-id': 'req-1' })
  t.equal(created.status, 201)
  t.match(created.json, { name: 'chat', state: 'offline', model_default: 'other-model', ctx_max: 2048, port: null, type: 'llm' })
  t.match(gateway.audit()[0], {
    category: 'slot', action: 'slot.create', target: 'chat', actor: 'mcp:hermes', outcome: 'ok', severity: 'ok', request_id: 'req-1',
    before: null, after: { name: 'chat', server: { env: { API_KEY: '***' } } }
  })
  t.same((await gateway.call('GET', '/api/slots/chat/config')).json, {
    provider: 'fake', device: 'cpu', model: { default: 'other-model', context_size: 2048 }, server: { env: { API_KEY: 'sk-1' } }
  })

  await refused(t, gateway, { call: ['POST', '/api/slots', {}], status: 400, code: 'slot.name_required' })
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: 7 }], status: 400, code: 'slot.name_required' })
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: 'metrics' }], status: 400, code: 'validation.invalid', message: /is another route/ })
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: '../up' }], status: 400, code: 'validation.invalid' })
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: 'x', colour: 'red' }], status: 400, code: 'validation.unknown_keys' })
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: 'chat', provider: 'fake' }], status: 409, code: 'slot.already_exists' })
  t.match(gateway.audit()[0], { action: 'slot.create', outcome: 'error', error: /exists/ }, 'what was refused is on record too')
  await refused(t, gateway, { call: ['POST', '/api/slots', { name: 'x', provider: 'fake', port: 8081 }], status: 400, code: 'slot.port_conflict' })

  const changed = await gateway.call('PUT', '/api/slots/chat/config', { workers: 3, server: { extra_args: ['--fast'] } })
  t.match(changed.json, { workers: 3, llamacpp_args: ['--fast'] })
  t.match(gateway.audit()[0], { action: 'slot.edit_config', target: 'chat', before: { workers: 1 }, after: { workers: 3 } })
  t.match((await gateway.call('PATCH', '/api/slots/chat/defaults', { context_size: 4096, labels: ['vision'] })).json, { ctx_max: 4096, labels: ['vision'] })
  t.match(gateway.audit()[0], { action: 'slot.edit_defaults' })
  t.match((await gateway.call('POST', '/api/slots/chat/backend', { backend: 'vulkan' })).json, { device: 'gpu-vulkan', declared_backend: 'vulkan' })
  t.match((await gateway.call('POST', '/api/slots/chat/backend', { backend: 'auto' })).json, { declared_backend: null }, 'auto leaves the choice to the probe')
  t.match((await gateway.call('PUT', '/api/slots/chat/config', { workers: null })).json, { workers: 1 }, 'null removes a key')

  t.equal((await gateway.call('PUT', '/api/slots/chat/config', { pinned: true })).status, 200)
  await refused(t, gateway, { call: ['DELETE', '/api/slots/chat'], status: 409, code: 'slot.pinned' })
  t.same((await gateway.call('DELETE', '/api/slots/chat?force')).json, { name: 'chat', deleted: true, forced: true })
  t.match(gateway.audit()[0], { action: 'slot.delete', before: { name: 'chat', pinned: true }, after: null, outcome: 'ok' })
  await t.rejects(gateway.file('etc/svc/slots/chat.toml'))
  t.same((await gateway.call('DELETE', '/api/slots/agent')).json, { name: 'agent', deleted: true, forced: false })
  t.same((await gateway.call('GET', '/api/slots')).json, [])
})

t.test('a model that is large for its device is written with a warning', async t => {
  const sizes = { small: 4, edge: 15, large: 30, giant: 900 }
  const gateway = await api(t, {
    files: {
      'etc/svc/hardware.json': JSON.stringify({ probed_at: '2026-01-01T00:00:00Z', ram_mb: 16_384 }),
      'var/lib/svc/registry/registry.toml': Object.entries(sizes)
        .map(([id, gb]) => `[models.${id}]\npath = "/dev/null"\nsize_bytes = ${gb}000000000\n`).join('')
    }
  })
  const of = async (model: string): Promise<string | undefined> => {
    const { status, json } = await gateway.call('PUT', '/api/slots/agent/config', { model: { default: model } })
    t.equal(status, 200)
    return (json as { fit_warning?: string }).fit_warning
  }
  t.equal(await of('small'), undefined)
  t.match(await of('edge'), /^cpu: the model takes 14\.0 GiB of 16\.0 GiB; a long context/)
  t.match(await of('large'), /27\.9 GiB, but there are only 16\.0 GiB in total; choose a smaller/)
  t.equal(await of('/nowhere.gguf'), undefined, 'what nobody knows is no warning')
  const created = await gateway.call('POST', '/api/slots', { name: 'new', provider: 'fake', device: 'cpu', model: 'giant' })
  t.match(created, { status: 201, json: { fit_warning: /giant|838\.2 GiB/ } })
  t.match(await gateway.call('POST', '/api/slots', { name: 'new', provider: 'fake', device: 'cpu', model: 'small' }),
    { status: 409, json: { error: { code: 'slot.already_exists' } } })
  t.match(await gateway.call('PUT', '/api/slots/agent/config', { device: 'gpu-cuda' }),
    { status: 200, json: { fit_warning: /^device gpu-cuda is missing: this host lacks/ } }, 'a device that is not here')
  t.notOk('fit_warning' in (await gateway.call('GET', '/api/slots/new')).json, 'only answers to writes tell')
})

t.test('a model that is nowhere is written, and the answer says so', async t => {
  const gateway = await api(t)
  const created = await gateway.call('POST', '/api/slots', { name: 'new', provider: 'fake', device: 'cpu', model: 'no-such-model' })
  const findings = [{ path: 'model.default', message: /'no-such-model'.* not in the registry/, severity: 'error', code: 'model.not_found' }]
  t.match(created, { status: 201, json: { name: 'new', findings } })
  t.notOk('findings' in (await gateway.call('GET', '/api/slots/new')).json, 'only answers to writes tell')
  const write = (slot: string, model: string) => gateway.call('PUT', `/api/slots/${slot}/config`, { model: { default: model } })
  t.notOk('findings' in (await write('agent', 'fake-model')).json, 'of its own file alone')
  t.notOk('findings' in (await write('new', 'fake-model')).json)
})

t.test('an engine that is nowhere is written with a word about it; MTP without a GPU is refused', async t => {
  const gateway = await api(t)
  const created = await gateway.call('POST', '/api/slots', { name: 'odd', provider: 'nobody', device: 'cpu' })
  t.match(created.json, { findings: [{ path: 'provider', message: /no such provider: 'nobody'/ }] }, created.text)
  await refused(t, gateway, {
    call: ['PUT', '/api/slots/agent/config', { mtp: true }], status: 400, code: 'slot.config_error', message: /runs on the cpu; set mtp/
  })
})

t.test('a slot is loaded, restarted, swapped and unloaded over the API', async t => {
  const gateway = await api(t)
  const loaded = await gateway.call('POST', '/api/slots/agent/load')
  t.equal(loaded.status, 200, 'without a body')
  t.match(loaded.json, { state: 'ready', container_status: 'running', container_health: true, models: ['fake-model'], model_id: 'fake-model', metadata: { health_ok: true } })
  t.match(gateway.audit()[0], { action: 'slot.load', before: { state: 'offline' }, after: { state: 'ready', model_id: 'fake-model' }, outcome: 'ok' })
  t.match((await gateway.call('POST', '/api/slots/agent/load', {})).json, { state: 'ready', metadata: { generation: 1 } }, 'a loaded slot stays')

  const restarted = await gateway.call('POST', '/api/slots/agent/restart')
  t.match(restarted.json, { state: 'ready' })
  t.equal(gateway.runtime.started.length, 2)

  await refused(t, gateway, { call: ['POST', '/api/slots/agent/swap', { model_id: 'unknown' }], status: 404, code: 'model.not_found' })
  t.match(gateway.audit()[0], { action: 'slot.swap', outcome: 'error', after: { state: 'ready', model_id: 'fake-model' } })
  t.equal(gateway.runtime.started.length, 2, 'the slot was left alone')
  t.match((await gateway.call('POST', '/api/slots/agent/swap', { model_id: 'other-model' })).json, { model_id: 'other-model', model_default: 'fake-model' })
  t.match((await gateway.call('POST', '/api/slots/agent/swap', { model: 'fake-model' })).json, { model_id: 'fake-model' }, '`model` is taken too')
  t.match((await gateway.call('POST', '/api/slots/agent/load', { model_id: 'other-model' })).json, { model_id: 'other-model', model_default: 'other-model' })
  t.match(await gateway.file('etc/svc/slots/agent.toml'), /default = "other-model"/, 'a load writes the model down')
  await refused(t, gateway, { call: ['POST', '/api/slots/agent/load', { model: 'unknown' }], status: 404, code: 'model.not_found' })

  t.match((await gateway.call('POST', '/api/slots/agent/unload', {})).json, { state: 'offline', container_status: 'stopped', models: { length: 0 }, mem_mb: 0 })
  t.match((await gateway.call('POST', '/api/slots/agent/unload')).json, { state: 'offline' }, 'again is no error')
  await gateway.call('PUT', '/api/slots/agent/config', { pinned: true })
  await gateway.call('POST', '/api/slots/agent/load')
  await refused(t, gateway, { call: ['POST', '/api/slots/agent/unload'], status: 409, code: 'slot.pinned' })
  t.match((await gateway.call('POST', '/api/slots/agent/unload?force=true')).json, { state: 'offline' })
  await gateway.call('POST', '/api/slots/agent/load')
  t.match((await gateway.call('POST', '/api/slots/agent/unload', { force: true })).json, { state: 'offline' })

  await gateway.call('POST', '/api/slots/agent/load')
  await gateway.call('PUT', '/api/slots/agent/config', { workers: 2 })
  t.equal((await gateway.call('PUT', '/api/slots/agent/config', { enabled: false })).json.enabled, false)
  await until(() => gateway.gateway.inference().slots.status('agent').state === 'offline', 'a slot that is switched off is unloaded')
  await refused(t, gateway, { call: ['POST', '/api/slots/agent/load'], status: 400, code: 'slot.config_error', message: /disabled/ })
})

t.test('a load that fails tells why, and the record keeps it', async t => {
  const gateway = await api(t, { onStart: () => { throw svcError('runtime.failed', 'no such device') } })
  await refused(t, gateway, { call: ['POST', '/api/slots/agent/load'], status: 502, code: 'slot.load_failed', message: /no such device/ })
  t.match((await gateway.call('GET', '/api/slots/agent')).json, {
    state: 'error', container_status: 'crashed', container_health: false,
    metadata: { failure: { code: 'runtime.failed', message: /no such device/, attempts: 1, retry_at: Number, log_tail: { length: 0 } } }
  })
  t.match(gateway.audit()[0], { action: 'slot.load', outcome: 'error', error: /no such device/, after: { state: 'error' } })
})

t.test('a client that leaves does not cancel the load, and the audit row tells how it ended', async t => {
  let open = (): void => {}
  const gate = new Promise<void>(resolve => { open = resolve })
  const gateway = await api(t, { onStart: () => gate })
  const { slots } = gateway.gateway.inference()
  const leaver = new AbortController()
  const left = gateway.fetch('/api/slots/agent/load', { method: 'POST', signal: leaver.signal }).then(() => 'answered', () => 'gone')
  await until(() => slots.status('agent').state === 'starting', 'the load runs')
  const other = gateway.call('POST', '/api/slots/agent/load')
  await until(() => slots.status('agent').waiting === 2, 'both wait')
  leaver.abort()
  t.equal(await left, 'gone')
  open()
  t.match((await other).json, { state: 'ready' })
  await until(() => gateway.audit().length === 2, 'both are on record')
  t.same(gateway.audit().map(row => row.outcome), ['ok', 'ok'])
  t.equal(gateway.runtime.started.length, 1, 'one engine')
  t.strictSame(gateway.logs.filter(({ level }) => level === 'error'), [], 'nothing went wrong')
  t.match(gateway.logs.map(({ message }) => message).filter(line => line.startsWith('agent ready')), [/^agent ready in \d+\.\d s \(.+\)$/])
})

t.test('what slots run with, say and use', async t => {
  let asked: AbortSignal | null = null
  let voices: () => Promise<readonly unknown[]> = async () => ['alice', { id: 'bob' }]
  const provider = createFakeProviderPlugin({
    argvSegments: ({ port }) => ({ base: ['--port', String(port), '--fast', 'no'] }),
    flags: { managed: ['port'] },
    metrics: async () => ({ requestsProcessing: 2, kvCacheUsage: 0.25 }),
    voices: async (client, signal) => {
      asked = signal
      t.equal(client.address.host, '127.0.0.1')
      return await voices()
    }
  })
  const gateway = await api(t, {
    providers: [provider],
    svc: 'max_slots = 5\n',
    files: {
      'etc/svc/slots/agent.toml': `${AGENT}[server]\nextra_args = "--fast yes"\n`,
      'etc/svc/slots/other.toml': 'provider = "fake"\ndevice = "cpu"\n[model]\ndefault = "other-model"\n',
      'etc/svc/slots/voice.toml': 'type = "tts"\nprovider = "nobody"\n',
      'etc/svc/slots/lost.toml': 'type = "llm"\nprovider = "nobody"\n'
    }
  })

  t.test('the command line is shown with the origin of each flag, and managed flags are refused', async t => {
    t.same((await gateway.call('GET', '/api/slots/agent/resolved')).json, {
      name: 'agent',
      argv: ['--port', '8081', '--fast', 'yes'],
      provenance: [{ flag: '--port', value: '8081', segment: 'base' }, { flag: '--fast', value: 'yes', segment: 'extra_args' }],
      removed: 1
    })
    t.same((await gateway.call('GET', '/api/slots/voice/resolved')).json, { name: 'voice', argv: null, provenance: [], removed: 0 },
      'no profile and no llm slot: nothing to show, whatever else is wrong')
    await refused(t, gateway, { call: ['GET', '/api/slots/lost/resolved'], status: 400, code: 'slot.config_error' })
    t.same((await gateway.call('GET', '/api/slots/agent')).json.resolved_command, ['svc-test/fake', '--port', '8081', '--fast', 'yes'])
    await refused(t, gateway, {
      call: ['PUT', '/api/slots/agent/config', { server: { extra_args: '--port 1' } }], status: 400, code: 'slot.managed_arg_denied'
    })
  })

  t.test('voices come from a live engine, or there are none', async t => {
    const offline = { name: 'agent', voices: [], source: 'offline' }
    t.same((await gateway.call('GET', '/api/slots/agent/voices')).json, offline, 'a cold slot')
    t.equal(asked, null, 'nobody was asked')
    await gateway.call('POST', '/api/slots/agent/load')
    t.same((await gateway.call('GET', '/api/slots/agent/voices')).json, { name: 'agent', voices: ['alice', { id: 'bob' }], source: 'live' })
    voices = async () => { throw new Error('404') }
    t.same((await gateway.call('GET', '/api/slots/agent/voices')).json, offline, 'an engine without the route')
    t.same((await gateway.call('GET', '/api/slots/voice/voices')).json, { ...offline, name: 'voice' }, 'no provider')
  })

  t.test('counters and capacity of a slot come from its running engine, and are zero or null without one', async t => {
    await gateway.call('POST', '/api/slots/other/load')
    const metrics = (await gateway.call('GET', '/api/slots/metrics')).json
    t.match(metrics, {
      agent: {
        tokens_per_sec: 0, requests_processing: 2, kv_cache_usage: 0.25, ctx: 8192, ttft_ms: null, request_count: 0,
        mem_rss_mb: null
      },
      lost: { requests_processing: 0, kv_cache_usage: null, ctx: null, uptime_seconds: null, mem_rss_mb: 0 }
    })
    t.ok(metrics.agent.uptime_seconds >= 0)
    t.same((await gateway.call('GET', '/api/slots/capacity')).json, {
      per_slot: {
        agent: { vram_mb: 0, ram_mb: null, mem_mb: null, state: 'ready', model_id: 'fake-model' },
        lost: { vram_mb: 0, ram_mb: 0, mem_mb: 0, state: 'offline', model_id: null },
        other: { vram_mb: 0, ram_mb: 2, mem_mb: null, state: 'ready', model_id: 'other-model' },
        voice: { vram_mb: 0, ram_mb: 0, mem_mb: 0, state: 'offline', model_id: null }
      },
      slot_budget: { used_slots: 4, max_slots: 5 }
    })
  })
})

const ENGINE = `require('node:http').createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end('{"choices":[]}')
}).listen(Number(process.argv[2]), '127.0.0.1')
`

t.test('ports that nobody asked for: two gateways with one pool both serve', async t => {
  const { start } = await reservePorts(t)
  const folder = t.testdir({ 'engine.cjs': ENGINE })
  const slot = 'provider = "tiny"\ndevice = "cpu"\n'
  const files = {
    'etc/svc/svc.toml': `[slots]\nautostart = false\nport_range_start = ${start}\nport_range_end = ${start + 3}\n[runtime]\ndriver = "process"\n`,
    'etc/svc/engines/tiny.toml': `name = "tiny"\napiVersion = 1\nneeds_model = false\nprocess = ["node", "${join(folder, 'engine.cjs')}", "{port}"]\n` +
      '[surfaces.chat]\npath = "/v1/chat/completions"\n',
    'etc/svc/slots/one.toml': slot,
    'etc/svc/slots/two.toml': slot
  }
  const gateways = await Promise.all([0, 1].map(async () => {
    const gateway = await createTestGateway({ plugins: [slotRoutes], files })
    t.teardown(() => gateway.close())
    return gateway
  }))
  const json = async (gateway: TestGateway, path: string, method = 'GET'): Promise<{ port: number | null, argv: string[] }> =>
    await (await gateway.fetch(path, { method })).json() as { port: number | null, argv: string[] }
  for (const gateway of gateways) t.equal((await json(gateway, '/api/slots/one')).port, null, 'what does not run holds no port')
  const loads = gateways.flatMap(gateway => ['one', 'two'].map(name => gateway.slots.load(name)))
  await Promise.all(loads)
  const ports = gateways.flatMap(gateway => ['one', 'two'].map(name => gateway.slots.status(name).address!.port))
  t.same([...ports].sort((a, b) => a - b), [start, start + 1, start + 2, start + 3])
  for (const port of ports) t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200)

  const [first, second] = gateways as [TestGateway, TestGateway]
  const { port } = first.slots.status('one')
  await first.slots.unload('one')
  t.equal(first.slots.status('one').port, null)
  await second.slots.create('three', { provider: 'tiny', device: 'cpu' })
  await second.slots.load('three')
  t.equal(second.slots.status('three').port, port, 'the port of an idle slot is anybody\'s')
  t.equal((await first.fetch('/api/slots/one/load', { method: 'POST' })).ok, false)
  await second.slots.unload('two')
  await first.slots.load('one')
  t.equal(first.slots.status('one').state, 'ready', 'it starts on another')
})

t.test('what a slot without a port would be launched with, and is; the pool lies anywhere but on the image engine\'s port', async t => {
  const provider = createFakeProviderPlugin({ argvSegments: ({ port }) => ({ base: ['--port', String(port)] }) })
  const gateway = await api(t, { providers: [provider], files: { 'etc/svc/slots/agent.toml': AGENT.replace('port = 8081\n', '') } })
  const resolved = async (): Promise<string> => ((await gateway.call('GET', '/api/slots/agent/resolved')).json.argv as string[]).join(' ')
  for (const [from, to] of [[8100, 8200], [8188, 8190], [8000, 8188]]) {
    const { json } = await refused(t, gateway, {
      call: ['PUT', '/api/settings', { slots: { port_range_start: from, port_range_end: to } }], status: 400, code: 'config.invalid', message: /8188/
    })
    t.match(json.error.details.fields, [{ path: 'slots.port_range_end' }], 'by its own name')
  }
  const { start, end } = await reservePorts(t)
  t.equal((await gateway.call('PUT', '/api/settings', { slots: { port_range_start: 9000, port_range_end: 9050 } })).status, 200)
  t.match(await resolved(), /--port 9000/)
  t.equal((await gateway.call('POST', '/api/slots', { name: 'above', provider: 'fake', device: 'cpu' })).status, 201)
  await gateway.call('PUT', '/api/settings', { slots: { port_range_start: start, port_range_end: end } })
  await gateway.slots.load('agent')
  const { port } = gateway.slots.status('agent')
  t.ok(port! >= start && port! <= end)
  t.match(await resolved(), new RegExp(`--port ${port}\\b`))
})

t.test('the image slot gets the port by which its engine is known, and the addresses tell the one it has', async t => {
  const gateway = await api(t, { files: { 'etc/svc/slots/img.toml': 'type = "image"\nprovider = "imagegen"\ndevice = "gpu-rocm"\n' } })
  const { ports } = gateway.gateway.inference().fleet
  t.equal(ports.expected('img'), 8188)
  t.not(ports.expected('agent'), 8188)
  const told = async (): Promise<string> => (await gateway.call('GET', '/api/config/urls')).json.comfyui as string
  t.match(await told(), /:8188$/)
  await gateway.call('PUT', '/api/slots/img/config', { port: 8150 })
  t.match(await told(), /:8150$/, 'a file that names another is believed')
})
