import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { z } from 'zod'
import { definePlugin } from '../../../../kernel/contract/index.js'
import { createFakeProvider } from '../../../../kernel/testing/index.js'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { HARDWARE } from '../capabilities/host.js'
import { FakeHub } from '../../services/hub/fake-hub.js'
import { installGateway, manifest, tinyAgent, type InstallGateway } from './support.js'

const CPU_HOST = JSON.stringify({ probed_at: '2026-01-01T00:00:00Z', ram_mb: 16_000, ram_available_mb: 12_000 })

async function hubWith (t: Parameters<typeof FakeHub.start>[0], ...ids: readonly string[]): Promise<FakeHub> {
  const hub = await FakeHub.start(t)
  for (const id of ids) hub.add(`org/${id}`, { files: { [`${id}.gguf`]: ggufFile({ weights: 300_000 }) } })
  return hub
}

function slotFile (gateway: InstallGateway, name: string): Promise<string> {
  return readFile(join(gateway.home, `etc/svc/slots/${name}.toml`), 'utf8')
}

t.test('a bare machine, a tier, and slots that serve', async t => {
  const hub = await hubWith(t, 'small')
  const gateway = await installGateway(t, {
    hub,
    files: {
      'etc/svc/hardware.json': CPU_HOST,
      'bundles/lite.json': manifest('Lite', [['chat.primary', 'small'], ['chat.coder', 'small'], ['tts', ''], ['img', 'sdxl-turbo']])
    }
  })
  const state = async (): Promise<unknown> => (await gateway.call('GET', '/api/install/state')).json
  const sentinel = join(gateway.home, 'var/lib/svc/.first_run_done')
  const fresh = {
    first_run: true, has_models: false, has_default_slot: false, openwebui_running: false, sentinel_path: sentinel,
    extensions: [], offers: []
  }
  t.same(await state(), fresh)

  hub.pace = { chunk: 16 * 1024, ms: 5 }
  const { status, json } = await gateway.call('POST', '/api/install/apply', { tier: 'svc-omni-lite', npu_opt_in: true })
  t.equal(status, 200)
  t.match(json, {
    tier: 'Lite',
    model_ids: ['small'],
    slots: [
      { slot: 'agent', model_id: 'small', created: true, device: 'cpu', pull_job_id: /^[0-9a-f]{16}$/, skipped: null, error: null },
      { slot: 'coder', created: true },
      { slot: 'tts', model_id: /^$/, created: true, pull_job_id: null },
      { slot: 'img', created: false, skipped: 'not_applicable_on_this_hardware' },
      { slot: 'npu', skipped: 'not_applicable_on_this_hardware' }
    ],
    extensions: { length: 0 },
    next: 'pull'
  })
  t.equal(json.slots[0].pull_job_id, json.slots[1].pull_job_id, 'two slots share a pull')
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { state: 'offline', enabled: false, metadata: { pending_model: 'small' } }, 'not before it is there')
  t.equal(await readFile(sentinel, 'utf8'), 'first_run_done\n')

  hub.pace = { chunk: 1024 * 1024, ms: 0 }
  for (const name of ['agent', 'coder']) await gateway.slot(name, ({ state }) => state === 'ready')
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { enabled: true, model_id: 'small', port: Number, ctx_max: 4096, metadata: { pending_model: undefined } })
  t.notMatch(await slotFile(gateway, 'agent'), /pending|pull/, 'nothing of it is left in the file')
  t.equal(hub.requests('hub', '/org/small/resolve/', 'GET').length, 1)
  t.match(await state(), { first_run: false, has_models: true, has_default_slot: true })
  t.match(gateway.gateway.kernel().activity.list({ category: 'install' }).map(({ action, target, outcome }) => ({ action, target, outcome })), [
    { action: 'install.activate', target: 'coder', outcome: 'ok' }, { action: 'install.activate', target: 'agent', outcome: 'ok' },
    { action: 'install.apply', target: 'svc-omni-lite', outcome: 'ok' }
  ])

  const again = await gateway.call('POST', '/api/install/apply', { tier: 'Lite' })
  t.match(again.json.slots.slice(0, 3), [{ slot: 'agent', created: false, pull_job_id: null, skipped: null, error: null }, { created: false }, { created: false }])
  t.equal(again.json.next, 'done')
})

t.test('a pull that fails parks the slots, and a later one takes them up', async t => {
  const hub = await hubWith(t, 'good')
  const gateway = await installGateway(t, {
    hub,
    files: { 'etc/svc/hardware.json': CPU_HOST, 'bundles/lite.json': manifest('Lite', [['chat.primary', 'bad'], ['embed', 'good'], ['rerank', 'unheard-of']]) }
  })
  hub.fail('cdn', 'good', { kind: 'corrupt' }, 100)
  const { json } = await gateway.call('POST', '/api/install/apply', { tier: 'lite', overrides: { rerank: { model_id: 'nobody' } } })
  t.match(json.slots, [
    { slot: 'agent', created: true, pull_job_id: null, error: /hf\.repo_not_found/ }, { slot: 'embed', created: true, error: null },
    { slot: 'rerank', skipped: 'needs_upstream_routing', created: false }
  ], 'what can be refused at once is told at once, and stops none of the others')
  await gateway.slot('embed', ({ metadata }) => metadata.pull_failed !== undefined)
  const rows = (await gateway.call('GET', '/api/slots')).json
  t.match(rows, [
    { name: 'agent', state: 'offline', enabled: false, metadata: { pending_model: 'bad', pull_failed: /repo_not_found/ } },
    { name: 'embed', metadata: { pull_failed: /pull\.checksum_mismatch/ } }
  ])
  t.match(await slotFile(gateway, 'embed'), /\[meta\][^]*pull_failed = ".*checksum_mismatch/)

  hub.add('org/bad', { files: { 'bad.gguf': ggufFile({ weights: 200_000 }) } })
  t.match((await gateway.call('POST', '/api/install/apply', { tier: 'lite', overrides: { rerank: { model_id: '' }, embed: { model_id: '' } } })).json.slots[0],
    { slot: 'agent', created: false, error: null, pull_job_id: /./ }, 'once more')
  await gateway.slot('agent', ({ state }) => state === 'ready')
})

t.test('without pulling; whoever pulls the model brings the slot up', async t => {
  const hub = await hubWith(t, 'small')
  const gateway = await installGateway(t, {
    hub, files: { 'etc/svc/hardware.json': CPU_HOST, 'bundles/lite.json': manifest('Lite', [['chat.primary', 'small']]) }
  })
  const { json } = await gateway.call('POST', '/api/install/apply', { tier: 'lite', pull: false })
  t.match(json, { slots: [{ created: true, pull_job_id: null, error: null }], next: 'done' })
  t.match(await slotFile(gateway, 'agent'), /pending_model = "small"\npull_wanted = false/)
  t.equal(hub.seen.length, 0)
  await gateway.call('POST', '/api/models/small/pull', { hf_repo: 'org/small', hf_filename: 'small.gguf' })
  await gateway.slot('agent', ({ state }) => state === 'ready')
})

t.test('auto takes what chats of the largest tier that fits, and seeds the capabilities', async t => {
  const hub = await hubWith(t, 'small', 'large', 'vectors')
  const tiers = {
    'bundles/lite.json': manifest('Lite', [['chat.primary', 'large']]),
    'bundles/default.json': manifest('Default', [['chat.primary', 'small'], ['chat.coder', 'small'], ['embed', 'vectors'], ['tts', '']], 5),
    'bundles/pro.json': manifest('Pro', [['chat.primary', 'large']], 20)
  }
  const gateway = await installGateway(t, { hub, files: { 'etc/svc/hardware.json': CPU_HOST, ...tiers } })
  const { json } = await gateway.call('POST', '/api/install/apply', { tier: 'auto', extensions: {} })
  t.match(json, { tier: 'Default', slots: [{ slot: 'agent', model_id: 'small' }] })
  t.equal(json.slots.length, 1)
  await gateway.slot('agent', ({ state }) => state === 'ready')
  t.match((await gateway.call('GET', '/api/capabilities')).json.selections, {
    embed: { embed: { device: 'cpu', provider: 'llm-server', model: 'vectors', enabled: false } },
    voice: { tts: { device: 'cpu', provider: 'tts-cpu', model: null, enabled: false } }
  })
  const second = await gateway.call('POST', '/api/install/apply', { tier: 'auto' })
  t.match(second.json, { slots: [{ slot: 'coder', created: true }], extensions: [{ ext_id: 'openwebui', skipped: 'not_asked_for' }, { ext_id: 'comfyui', skipped: 'not_asked_for' }, { ext_id: 'hermes', skipped: 'not_asked_for' }] },
    'there is one to chat with, and an agent wants one for code')
})

/** An engine that keeps its models below the store, unless `[models] keeper_store` says otherwise. */
const keeper = definePlugin({
  name: 'keeper',
  kind: 'provider',
  apiVersion: 1,
  settings: { name: 'models', schema: z.strictObject({ keeper_store: z.string().default('') }) },
  register: ctx => ctx.addProvider(createFakeProvider({
    name: 'keeper',
    models: {
      source: 'keeper', store: { folder: 'keeper/models', setting: 'keeper_store' },
      canonical: id => id, aliases: () => [], contextSize: () => null, list: async () => []
    }
  }))
})

t.test('one by one, on a machine with a GPU and an NPU, into another folder', async t => {
  const gateway = await installGateway(t, { files: { 'etc/svc/hardware.json': HARDWARE }, plugins: [keeper] })
  const folder = join(gateway.home, 'elsewhere', 'models')
  const { status, json } = await gateway.call('POST', '/api/install/apply-selections', {
    storage_dir: `${folder}/`,
    slots: [
      { capability: 'chat.primary', slot_name: 'mine', port: 8090, model_id: '' },
      { capability: 'stt', model_id: '', device: 'gpu-cuda' },
      { capability: 'embed', model_id: '', profile: 'nonsense' }
    ],
    extensions: { pi: true, openwebui: true },
    npu_opt_in: true
  })
  t.equal(status, 200)
  t.match(json, {
    model_ids: { length: 0 },
    slots: [
      { slot: 'mine', created: true, device: 'gpu-rocm', error: null }, { slot: 'stt', skipped: 'not_applicable_on_this_hardware' },
      { slot: 'embed', created: false, error: /nonsense/ }, { slot: 'npu', created: true, device: 'npu' }
    ],
    extensions: [
      { ext_id: 'pi', installed: false, skipped: null, error: /downloads from registries are disabled/, job: null },
      { ext_id: 'openwebui', installed: false, skipped: null, error: /downloads from registries are disabled/ }
    ]
  })
  t.match(gateway.slots.config('mine'), { port: 8090, device: 'gpu-rocm', provider: 'llm-server' })
  t.equal(gateway.gateway.kernel().models.store, folder)
  t.match(await readFile(join(gateway.home, 'etc/svc/svc.toml'), 'utf8'), new RegExp(`store = "${folder}"\\nkeeper_store = "${folder}/keeper/models"`))
  t.ok(existsSync(folder))
  const { dispatcher } = gateway.gateway.kernel().config.snapshot.svc
  t.match(dispatcher, { list_unloaded: true, list_virtual: false }, 'a first run makes the list of models stable')
  await gateway.gateway.kernel().config.patchSvc({ dispatcher: { list_unloaded: false } })
  await gateway.call('POST', '/api/install/apply-selections', { slots: [] })
  t.equal(gateway.gateway.kernel().config.snapshot.svc.dispatcher.list_unloaded, false, 'a later run does not')
})

t.test('a store that cannot be is a warning', async t => {
  const gateway = await installGateway(t)
  const { store } = gateway.gateway.kernel().models
  for (const path of ['/proc/nothing/here', join(gateway.home, 'etc/svc/svc.toml/models')]) {
    const { status, json } = await gateway.call('POST', '/api/install/apply-selections', { storage_dir: path, slots: [] })
    t.equal(status, 200)
    t.match(json.warnings, [/^the model store stays /], path)
    t.equal(gateway.gateway.kernel().models.store, store)
  }
})

t.test('an installation that cannot work is refused, and nothing is made', async t => {
  const gateway = await installGateway(t, { files: { 'bundles/pro.json': '{ "name": "Pro", "slots": 1 }', 'bundles/max.json': manifest('Lite', []) } })
  const cases: ReadonlyArray<readonly [string, string, unknown, number, string, RegExp]> = [
    ['POST', 'apply', { tier: 'ultra' }, 404, 'install.curated_not_found', /Lite, Default, Pro, Max/],
    ['POST', 'apply', {}, 400, 'validation.invalid', /tier/],
    ['POST', 'apply', { tier: 'pro' }, 400, 'install.pick_default_failed', /bundles\/pro\.json is broken/],
    ['POST', 'apply', { tier: 'max' }, 400, 'install.pick_default_failed', /manifest of Lite/],
    ['POST', 'apply', { tier: 'lite', storage_dir: 'models' }, 400, 'install.pick_default_failed', /absolute/],
    ['POST', 'apply', { tier: 'lite', overrides: { img: {} } }, 400, 'install.pick_default_failed', /no slot 'img'/],
    ['POST', 'apply-selections', { slots: [{ capability: 'smell', model_id: '' }] }, 400, 'validation.invalid', /capability/],
    ['POST', 'apply-selections', { slots: [{ capability: 'tts', model_id: '', slot_name: '../x' }] }, 400, 'validation.invalid', /slot_name/],
    ['PUT', 'slots/none/model', { model_id: 'm' }, 404, 'install.slot_toml_not_found', /none\.toml/],
    ['PUT', 'slots/none/model', {}, 400, 'install.model_id_required', /model_id/],
    ['PUT', 'slots/none/model', { model_id: 7 }, 400, 'install.model_id_required', /model_id/],
    ['PUT', 'slots/none/model', [], 400, 'request.not_an_object', /object/]
  ]
  for (const [method, path, body, status, code, message] of cases) {
    const answer = await gateway.call(method, `/api/install/${path}`, body)
    t.match(answer, { status, json: { error: { code, message } } }, `${path} ${JSON.stringify(body)}`)
  }
  t.same(gateway.slots.names(), [], 'nothing was made')
  t.equal((await gateway.call('GET', '/api/install/state')).json.first_run, true)
})

t.test('the model of a slot, and nothing else', async t => {
  const gateway = await installGateway(t, {
    files: { 'etc/svc/slots/agent.toml': '# mine\nprovider = "llm-server"\ndevice = "cpu"\nport = 8081\n[model]\ndefault = "old"\ncontext_size = 2048 # enough\nlabels = ["x"]\n' }
  })
  const { status, json } = await gateway.call('PUT', '/api/install/slots/agent/model', { model_id: 'new' })
  t.same([status, json], [200, { slot: 'agent', model_id: 'new', path: join(gateway.home, 'etc/svc/slots/agent.toml') }])
  t.equal(await slotFile(gateway, 'agent'),
    '# mine\nprovider = "llm-server"\ndevice = "cpu"\nport = 8081\n[model]\ndefault = "new"\ncontext_size = 2048 # enough\nlabels = ["x"]\n')
})

t.test('the machine is probed, the first run is completed, curated models are listed', async t => {
  const gateway = await installGateway(t)
  const probe = await gateway.call('POST', '/api/install/probe')
  t.match(probe, { status: 200, json: { hardware: { cpu_threads: Number }, path: join(gateway.home, 'etc/svc/hardware.json') } })
  for (let i = 0; i < 2; i++) t.match(await gateway.call('POST', '/api/install/complete'), { status: 200, json: { first_run: false } })
  t.equal((await gateway.call('GET', '/api/install/state')).json.first_run, false)
  const { json } = await gateway.call('GET', '/api/install/curated-models')
  t.equal(json.custom_allowed, true)
  t.ok(json.models.some(({ id }: { id: string }) => id === 'qwen3-4b'))
  t.notOk(json.models.some(({ capability }: { capability: string }) => capability !== 'chat'))
})

t.test('an agent among the extensions is installed by a job of its own, for the reasons of its lifecycle or not at all', async t => {
  const { settled, ...options } = await tinyAgent(t)
  const gateway = await installGateway(t, { files: { 'etc/svc/hardware.json': CPU_HOST }, ...options })
  const offers = async (): Promise<readonly { id: string }[]> => (await gateway.call('GET', '/api/install/state')).json.offers
  t.match((await offers()).find(({ id }) => id === 'tiny'), {
    kind: 'agent', name: 'Tiny', bytes: 214_000_000, licence: { name: 'MIT', note: null }, installed: false
  })
  t.notOk((await offers()).some(({ id }) => id === 'codex'), 'what only its makers bring is not offered')
  const apply = async (extensions: object): Promise<Record<string, unknown>[]> =>
    (await gateway.call('POST', '/api/install/apply-selections', { slots: [], extensions })).json.extensions
  const [codex, winamp] = await apply({ codex: true, winamp: true })
  t.match(codex, { skipped: null, installed: false, error: /codex is not installed by the gateway/i, job: null })
  t.match(winamp, { skipped: 'unknown_extension' })

  const [tiny, second] = await apply({ tiny: true, liar: true })
  t.match(tiny, { ext_id: 'tiny', installed: false, skipped: null, error: null, job: String })
  t.match(second, { ext_id: 'liar', installed: false, error: /tiny/, job: null }, 'one agent is at a time')
  await settled()
  t.match((await gateway.call('GET', '/api/agents/tiny')).json, { status: 'installed', version: '1.0.0' })
  t.match(await apply({ tiny: true }), [{ ext_id: 'tiny', installed: true, job: null }])
  t.match((await offers()).find(({ id }) => id === 'tiny'), { installed: true })
})
