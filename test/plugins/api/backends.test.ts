import { join } from 'node:path'
import t from 'tap'
import npuRt from '../../../plugins/providers/npu-rt/index.js'
import { deviceMemory } from '../../../plugins/api/backends/device-memory.js'
import { hardwareSchema } from '../../../kernel/contract/index.js'
import { ANCHOR, engines, files } from './capabilities/host.js'
import { apiOf } from './support.js'

const api = apiOf('api-backends', 'api-capabilities', 'api-slots', 'capabilities', 'library')

t.test('what there is and what runs there', async t => {
  const gateway = await api(t, { providers: engines, files })
  await gateway.call('POST', '/api/slots/agent/load')
  await gateway.call('POST', '/api/capabilities/embed/embed', { model: 'nomic', device: 'cpu', enabled: true })
  const { json } = await gateway.call('GET', '/api/backends')
  t.match(json, [
    { id: 'npu', hardware: 'NPU', provider: 'npu-rt', multiplex: true, state: 'ready', loaded: { length: 0 } },
    { id: 'gpu-vulkan', hardware: 'Big', memTotalMb: 16384, memUsedMb: null, loaded: { length: 0 } },
    { id: 'gpu-rocm', hardware: 'Big' },
    {
      id: 'cpu',
      state: 'ready',
      totalReqPerSec: 0,
      loaded: [
        { slotName: 'agent', modelId: 'chatty', sizeMb: null, slot: null, child: null, source: 'slot' },
        { slotName: 'embed', modelId: 'nomic', sizeMb: 144, slot: 'embed', child: 'embed', source: 'capability' }
      ]
    }
  ])
  t.ok(json[3].memUsedMb > 0 && json[3].memTotalMb > json[3].memUsedMb)
  t.match((await gateway.call('GET', '/api/backends/cpu')).json, { id: 'cpu', loaded: [{}, {}] })
  t.match(await gateway.call('GET', '/api/backends/gpu-cuda'), { status: 404, json: { error: { code: 'backend.not_found', message: /npu, gpu-vulkan/ } } })
})

t.test('the memory of a GPU is read from the driver, null if unknown', async t => {
  const sys = t.testdir({ class: { drm: { renderD128: { device: { mem_info_vram_used: '1073741824\n', mem_info_gtt_used: '2147483648\n' } } } } })
  const gpu = { vendor: 'amd', vram_mb: 4096, drm_path: '/dev/dri/renderD128', vulkan_capable: true }
  const own = hardwareSchema.parse({ gpus: [gpu] })
  t.same(await deviceMemory('gpu-rocm', own, sys), { used: 1024, total: 4096 })
  t.same(await deviceMemory('gpu-vulkan', hardwareSchema.parse({ gpus: [{ ...gpu, integrated: true, gtt_mb: 98304 }] }), sys), { used: 3072, total: 98304 })
  t.same(await deviceMemory('gpu-rocm', own, join(sys, 'nowhere')), { used: null, total: 4096 })
  t.same(await deviceMemory('gpu-cuda', own, sys), { used: null, total: null })
})

t.test('the NPU is given a model and freed again', async t => {
  const gateway = await api(t, { providers: engines, files })
  const post = (path: string, body: object) => gateway.call('POST', `/api/backends/npu/${path}`, body)
  t.match(await post('load', {}), { status: 400, json: { error: { code: 'backend.model_id_required' } } })
  t.match(await post('load', { model_id: 'none' }), { status: 404, json: { error: { code: 'model.not_found' } } })
  t.match(await post('unload', {}), { status: 400, json: { error: { code: 'backend.slot_name_required' } } })
  t.match(await post('unload', { slot_name: 'none' }), { status: 404, json: { error: { code: 'slot.not_found' } } })
  t.match(await post('unload', { slot_name: 'agent' }), { status: 400, json: { error: { code: 'backend.not_npu_slot' } } })
  // there is no such device here: the slot is made, its engine fails
  t.match(await post('load', { model_id: 'npu-only' }), { status: 502, json: { error: { code: 'slot.load_failed' } } })
  t.match(gateway.slots.config('npu-npu-only'), { device: 'npu', provider: 'npu-rt', port: undefined, model: { default: 'npu-only' } })
  t.match(await post('unload', { slot_name: 'npu-npu-only' }), { status: 200, json: { ok: true, slot: 'npu-npu-only' } })
  t.same(gateway.audit().filter(row => row.category === 'backend').map(({ action, outcome }) => [action, outcome])[0], ['backend.npu_unload', 'ok'])
})

t.test('an engine with models of its own', async t => {
  const gateway = await api(t, { providers: [...engines.filter(({ name }) => name !== 'provider-npu-rt'), npuRt], files })
  const load = (model_id: string) => gateway.call('POST', '/api/backends/npu/load', { model_id })
  t.match(await load('npu-only'), { status: 404, json: { error: { code: 'model.not_found', param: 'model_id', message: /'npu-only' is not a model of FastFlowLM/ } } })
  t.match(await load('llama3.2-1b-FLM'), { status: 502, json: { error: { code: 'slot.load_failed' } } })
  t.match(gateway.slots.config('npu-llama3-2-1b'), {
    provider: 'npu-rt', port: undefined, model: { default: 'llama3.2:1b', context_size: null }
  })
})

t.test('one anchor has the NPU; no port is left for another', async t => {
  const gateway = await api(t, { providers: engines, files: { ...files, 'etc/svc/slots/anchor.toml': ANCHOR } })
  await gateway.call('POST', '/api/backends/npu/load', { model_id: 'npu-only' })
  t.same(gateway.slots.names(), ['agent', 'anchor', 'anchorstt', 'anchorembed'], 'the slot that has it is used, with what it serves besides')
  const ports = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [
    `etc/svc/slots/s${i}.toml`, `provider = "llm-server"\ndevice = "cpu"\nport = ${8088 + i}\n`
  ]))
  const full = await api(t, { providers: engines, files: { ...files, ...ports }, svc: 'port_range_start = 8088\nport_range_end = 8099\n' })
  t.match(await full.call('POST', '/api/backends/npu/load', { model_id: 'npu-only' }), { status: 409, json: { error: { code: 'backend.no_slot_port' } } })
})
