import t from 'tap'
import { hardwareSchema, type GatewayEvent, type SlotState, type SlotStatus } from '../../../../kernel/contract/index.js'
import { occupancy } from '../../../../plugins/api/npu/occupancy.js'
import { swapStatus } from '../../../../plugins/api/npu/swap-status.js'
import { NPU, npuGateway, type Answer, type NpuGateway } from '../../providers/npu-rt/npu-gateway.js'
import activity from '../../../../plugins/api/activity/index.js'
import backends from '../../../../plugins/api/backends/index.js'
import capabilities from '../../../../plugins/api/capabilities/index.js'
import npu from '../../../../plugins/api/npu/index.js'
import slots from '../../../../plugins/api/slots/index.js'
import capabilityFile from '../../../../plugins/services/capabilities/index.js'
import hub from '../../../../plugins/services/hub/index.js'
import library from '../../../../plugins/services/library/index.js'
import { until } from '../support.js'

t.setTimeout(300_000)

const plugins = [activity, backends, capabilities, capabilityFile, hub, library, npu, slots]

function status (name: string, state: SlotState, modelId: string | null): SlotStatus {
  return { name, state, modelId } as SlotStatus
}

let ids = 0
function event (slot: string, to: SlotState, model_id: string, more: object = {}): GatewayEvent {
  return { id: ++ids, type: 'slot.state', data: { slot, to, model_id, ...more } } as unknown as GatewayEvent
}

t.test('a swap, step by step', async t => {
  const swap = [event('npu', 'ready', 'a'), event('npu', 'unloading', 'a'), event('npu', 'offline', 'b', { restarting: true })]
  const idle = { in_progress: false, from_model: null, to_model: null }
  const cases: ReadonlyArray<readonly [string, readonly SlotStatus[], readonly GatewayEvent[], object]> = [
    ['no slot', [], [], idle],
    ['at rest', [status('npu', 'offline', 'a')], swap, idle],
    ['serving', [status('npu', 'serving', 'a')], swap.slice(0, 1), idle],
    ['failed', [status('npu', 'error', 'a')], [], idle],
    ['the old one goes', [status('npu', 'unloading', 'a')], swap.slice(0, 2), { in_progress: true, from_model: 'a', to_model: null }],
    ['the new one starts', [status('npu', 'starting', 'b')], [...swap, event('npu', 'starting', 'b')], { in_progress: true, from_model: 'a', to_model: 'b' }],
    ['and loads', [status('npu', 'warming', 'b')], [...swap, event('npu', 'starting', 'b'), event('npu', 'warming', 'b')], { in_progress: true, from_model: 'a', to_model: 'b' }],
    ['a load, long after an unload', [status('npu', 'warming', 'b')],
      [event('npu', 'unloading', 'a'), event('npu', 'offline', 'a'), event('npu', 'starting', 'b')], { in_progress: true, from_model: null, to_model: 'b' }],
    ['a load after a failure', [status('npu', 'starting', 'b')], [event('npu', 'error', 'a'), event('npu', 'starting', 'b')], { in_progress: true, from_model: null, to_model: 'b' }],
    ['what other slots do', [status('npu', 'starting', 'b')], [...swap.map(({ data }) => event('chat', data.to as SlotState, 'x', { restarting: true }))], { in_progress: true, from_model: null, to_model: 'b' }],
    ['one of two', [status('one', 'ready', 'a'), status('two', 'pulling', 'b')], [], { in_progress: true, from_model: null, to_model: 'b' }]
  ]
  for (const [name, anchors, events, expected] of cases) t.strictSame(swapStatus(anchors, events), expected, name)
})

t.test('the columns of the NPU are counted once for all slots of an engine', async t => {
  const xdna2 = hardwareSchema.parse(JSON.parse(NPU))
  const trio = (state: SlotState): Parameters<typeof occupancy>[1] => [
    { status: status('npu', state, 'big'), anchor: null }, { status: status('npu-stt', state, 'ear'), anchor: 'npu' },
    { status: status('npu-embed', 'offline', 'small'), anchor: 'npu' }
  ]
  const sizes = new Map([['big', 4_500_000_000]])
  t.match(occupancy(xdna2, trio('serving'), sizes), {
    present: true, rows: 4, cols: 8, tiles: 32, tops_peak: 50, cols_total: 8, cols_used: 8, columns_available: 0, serving: true,
    single_tenant: true,
    slots: [
      { name: 'npu', model: 'big', state: 'serving', cols: 8, gb: 4.5 }, { name: 'npu-stt', state: 'serving', cols: 8, gb: 0 },
      { name: 'npu-embed', state: 'offline', cols: 0, gb: 0 }
    ]
  })
  const states: ReadonlyArray<readonly [SlotState, string, number]> = [
    ['offline', 'offline', 0], ['starting', 'offline', 0], ['warming', 'loaded', 8], ['ready', 'ready', 8], ['idle', 'idle', 8], ['error', 'offline', 0]
  ]
  for (const [state, shown, used] of states) {
    const gb = used === 0 ? 0 : 4.5
    t.match(occupancy(xdna2, trio(state), sizes), { cols_used: used, serving: false, slots: [{ state: shown, gb }] }, state)
  }
  const none = { present: false, cols: 8, cols_total: 0, cols_used: 0, columns_available: 0, slots: [] }
  t.match(occupancy(hardwareSchema.parse({}), [], sizes), none)
  const other = hardwareSchema.parse({ npu: { present: true, aie_columns: 5 } })
  t.match(occupancy(other, [], sizes), { cols: 5, tiles: 20, tops_peak: null, cols_total: 5 })
})

async function get ({ call }: NpuGateway, path: string): Promise<Answer['json']> {
  return (await call('GET', path)).json
}

t.test('a swap as it happens', async t => {
  const gateway = await npuGateway(t, { plugins })
  t.strictSame(await get(gateway, '/api/npu/swap-status'), { in_progress: false, from_model: null, to_model: null })
  await gateway.slots.load('npu')
  t.match(await get(gateway, '/api/npu/occupancy'), {
    present: true, cols_used: 8, serving: false,
    slots: [{ name: 'npu', model: 'llama3.2:1b', state: 'ready', gb: 1 }, { name: 'npu-stt', state: 'ready', gb: 1 }, { name: 'npu-embed', gb: 0.3 }]
  })
  gateway.order('hold-load')
  const swapped = gateway.call('POST', '/api/slots/npu/swap', { model_id: 'gemma3-4b-FLM' })
  await until(() => gateway.slots.status('npu').state === 'warming', 'the new engine loads')
  t.strictSame(await get(gateway, '/api/npu/swap-status'), { in_progress: true, from_model: 'llama3.2:1b', to_model: 'gemma3:4b' })
  gateway.order('')
  t.match(await swapped, { status: 200, json: { model_id: 'gemma3:4b', models: ['gemma3:4b', 'whisper-v3:turbo', 'embed-gemma:300m'], coresident_group: 'npu-rt-trio' } })
  t.match(await get(gateway, '/api/npu/swap-status'), { in_progress: false })
  t.match((await gateway.engine()).loads, ['gemma3:4b'])
})

t.test('what the engine of the NPU has fetched is listed as installed', async t => {
  const gateway = await npuGateway(t, { plugins })
  const before = await get(gateway, '/api/slots/flm/models')
  t.match(before.models.find(({ model }: { model: string }) => model === 'llama3.2:1b'), { installed: false, capabilities: ['chat'], family: 'llama3.2', size_gb: 1 })
  await gateway.slots.load('npu')
  const { models } = await get(gateway, '/api/slots/flm/models')
  t.strictSame(models.filter(({ installed }: { installed: boolean }) => installed).map(({ model }: { model: string }) => model),
    ['llama3.2:1b', 'embed-gemma:300m', 'whisper-v3:turbo'], 'the engine has fetched what it serves, into our store')
  const { catalogs } = await get(gateway, '/api/capabilities')
  const row = (rows: ReadonlyArray<{ id: string }>, id: string): object => rows.find(entry => entry.id === id)!
  t.match(row(catalogs.chat.chat, 'llama3.2:1b'), { size_gb: 1, backends: [{ id: 'npu', provider: 'npu-rt', downloaded: true, pullable: false }] })
  t.match(row(catalogs.chat.chat, 'gemma3:1b'), { backends: [{ id: 'npu', downloaded: false, pullable: true }] })
  t.match(row(catalogs.voice.stt, 'whisper-v3:turbo'), { backends: [{ id: 'npu', provider: 'npu-rt', downloaded: true }] })
})

t.test('loading by hand: in the engine\'s spelling, or not at all', async t => {
  const gateway = await npuGateway(t, { plugins, anchor: 'device = "npu"\nenabled = false\n' })
  const load = (model_id: string): ReturnType<NpuGateway['call']> => gateway.call('POST', '/api/backends/npu/load', { model_id })
  t.match(await load('Qwen2.5-7B-Instruct-Q4_K_M'), { status: 404, json: { error: { code: 'model.not_found', message: /is not a model of FastFlowLM; see GET \/api\/slots\/flm\/models/ } } })
  t.match(await load('llama3.2-1b-FLM'), { status: 200, json: { slot: 'npu', state: 'ready', model_id: 'llama3.2:1b', created: false } })
  t.match(gateway.slots.config('npu'), { enabled: true, model: { default: 'llama3.2:1b' } })
  t.match(await load('gemma3'), { status: 200, json: { slot: 'npu', model_id: 'gemma3:1b', created: false } })
  t.match(await load('no-such-thing'), { status: 404, json: { error: { code: 'model.not_found' } } })
  t.equal(gateway.slots.status('npu').modelId, 'gemma3:1b', 'what ran goes on')
})

t.test('switches of the trio, and one engine on the NPU', async t => {
  const gateway = await npuGateway(t, { plugins, anchor: 'device = "npu"\n[model]\ndefault = "llama3.2:1b"\n' })
  const { call, client, slots: service } = gateway
  await service.load('npu')
  const embed = (): Promise<unknown> => client.embeddings.create({ model: 'npu-embed', input: 'x' }).catch((error: unknown) => error)
  t.match(await embed(), { status: 503, code: 'npu.trio_unavailable' })
  const { pid } = await gateway.engine()

  t.match(await call('POST', '/api/capabilities/embed/embed', { device: 'npu', enabled: true }), {
    status: 200, json: { selection: { device: 'npu', provider: 'npu-rt', model: 'embed-gemma:300m', slot: 'npu', pending_reload: true } }
  })
  t.match(await embed(), { status: 503, code: 'npu.trio_unavailable' }, 'the operator says when the anchor is reloaded')
  t.equal((await gateway.engine()).pid, pid)
  t.match((await call('GET', '/api/slots/npu-embed')).json, { state: 'offline', npu_modality_active: true, served_by: 'npu' })
  await call('POST', '/api/slots/npu/restart')
  t.match(await embed(), { data: [{ embedding: { length: 768 } }] })

  const second = { name: 'second', type: 'llm', device: 'npu', port: 8150, model: { default: 'gemma3:1b' } }
  t.match(await call('POST', '/api/slots', second), { status: 409, json: { error: { code: 'slot.npu_exclusivity_violation' } } })
  t.match(await call('POST', '/api/slots', { ...second, enabled: false }), { status: 201 })
  t.match(await call('PUT', '/api/slots/second/config', { enabled: true }), { status: 409, json: { error: { code: 'slot.npu_exclusivity_violation' } } })
  t.match(await call('PUT', '/api/slots/npu/config', { model: { default: 'qwen2.5-7b-q4_k_m' } }), { status: 400, json: { error: { code: 'slot.config_error', param: 'model.default' } } })

  t.match(await call('POST', '/api/capabilities/embed/embed', { enabled: false }), { status: 200 })
  t.match(await embed(), { status: 503, code: 'npu.trio_unavailable' }, 'what is switched off is refused at once')
})

t.test('an anchor goes with what it serves, and not by accident', async t => {
  const child = 'type = "transcription"\nserved_by = "npu"\n'
  const gateway = await npuGateway(t, { plugins, files: { 'etc/svc/slots/ear.toml': child } })
  const { call, slots: service } = gateway
  await service.load('npu')
  await call('POST', '/api/capabilities/embed/embed', { device: 'npu', enabled: true })
  const refused = await call('DELETE', '/api/slots/npu')
  t.match(refused, {
    status: 409,
    json: { error: { code: 'slot.in_use', message: /slot 'ear', capability 'embed'.*--force/, details: { slots: ['ear'], capabilities: ['embed'] } } }
  })
  t.equal(service.status('npu').state, 'ready')
  t.match(await call('DELETE', '/api/slots/npu-embed'), { status: 400, json: { error: { code: 'slot.config_error', message: /part of slot 'npu'/ } } })

  t.match(await call('DELETE', '/api/slots/npu?force'), { status: 200, json: { name: 'npu', deleted: true, forced: true } })
  t.strictSame(service.names(), [])
  t.match((await get(gateway, '/api/capabilities')).selections.embed.embed, { enabled: false, device: 'npu' })

  await service.create('npu', { type: 'llm', device: 'npu', port: 8151, model: { default: 'llama3.2:1b' }, npu: { asr: true } })
  t.match(await call('DELETE', '/api/slots/npu'), { status: 200 }, 'children without a file are part of it')
  const gone = await gateway.client.audio.transcriptions.create({ file: new File(['x'], 'x.wav'), model: 'npu-stt' }).catch((error: unknown) => error)
  t.match(gone, { status: 404, code: 'model.not_found' })
})
