import t from 'tap'
import { devices, hardwareSchema, slotTypes, type Device, type SlotType } from '../../../../kernel/contract/index.js'
import { createFakeProvider } from '../../../../kernel/testing/index.js'
import { candidatesFor, legalPairs } from '../../../../plugins/api/capabilities/candidates.js'
import { chatUse, childKinds } from '../../../../plugins/api/capabilities/children.js'
import { hostBackends, providerFor } from '../../../../plugins/api/capabilities/host-backends.js'
import { provider as npuRt } from '../../../../plugins/providers/npu-rt/index.js'
import { provider as sttEngine } from '../../../../plugins/providers/stt-engine/index.js'
import { provider as ttsCpu } from '../../../../plugins/providers/tts-cpu/index.js'
import { provider as ttsGpu } from '../../../../plugins/providers/tts-gpu/index.js'
import { laid } from '../../../providers.js'
import { registeredProvider } from '../../providers/llm-server/support.js'

const shipped = laid(registeredProvider(), npuRt, sttEngine, ttsCpu, ttsGpu)
const gpu = (vendor: string, compute: boolean, vulkan: boolean): object =>
  ({ vendor, index: 0, name: vendor, compute_capable: compute, vulkan_capable: vulkan })
const npu = { present: true, vendor: 'amd', name: 'NPU' }

t.test('a host has the backends that its hardware supports', async t => {
  const cases: ReadonlyArray<readonly [string, object, readonly Device[]]> = [
    ['nothing but a CPU', {}, ['cpu']],
    ['AMD, all of it', { gpus: [gpu('amd', true, true)], npu }, ['npu', 'gpu-vulkan', 'gpu-rocm', 'cpu']],
    ['AMD without ROCm', { gpus: [gpu('amd', false, true)] }, ['gpu-vulkan', 'cpu']],
    ['AMD without Vulkan', { gpus: [gpu('amd', true, false)] }, ['gpu-rocm', 'cpu']],
    ['NVIDIA', { gpus: [gpu('nvidia', true, true)] }, ['gpu-vulkan', 'gpu-cuda', 'cpu']],
    ['Intel', { gpus: [gpu('intel', true, true)] }, ['gpu-vulkan', 'cpu']],
    ['one of each', { gpus: [gpu('amd', true, true), gpu('nvidia', true, true)] }, ['gpu-vulkan', 'gpu-rocm', 'gpu-cuda', 'cpu']],
    ['an NPU alone', { npu }, ['npu', 'cpu']]
  ]
  for (const [name, hardware, expected] of cases) {
    t.strictSame(hostBackends(hardwareSchema.parse(hardware), shipped).map(({ id }) => id), expected, name)
  }
  const [first] = hostBackends(hardwareSchema.parse({ npu }), shipped)
  t.match(first, { id: 'npu', provider: 'npu-rt', multiplex: true })
  const without = hostBackends(hardwareSchema.parse({ npu }), laid(...shipped.list().filter(provider => provider !== npuRt)))
  t.strictSame(without.map(({ id }) => id), ['cpu'], 'an NPU that no engine uses is none')
})

t.test('which engine runs what where', async t => {
  const expected: Readonly<Record<SlotType, Readonly<Partial<Record<Device, string>>>>> = {
    llm: { 'gpu-rocm': 'llm-server', 'gpu-vulkan': 'llm-server', 'gpu-cuda': 'llm-server', 'cpu': 'llm-server', 'npu': 'npu-rt' },
    embedding: { 'gpu-rocm': 'llm-server', 'gpu-vulkan': 'llm-server', 'gpu-cuda': 'llm-server', 'cpu': 'llm-server', 'npu': 'npu-rt' },
    reranking: { 'gpu-rocm': 'llm-server', 'gpu-vulkan': 'llm-server', 'gpu-cuda': 'llm-server', 'cpu': 'llm-server' },
    transcription: { 'gpu-vulkan': 'stt-engine', 'gpu-cuda': 'stt-engine', 'cpu': 'stt-engine', 'npu': 'npu-rt' },
    tts: { 'gpu-rocm': 'tts-gpu', 'gpu-cuda': 'tts-gpu', 'cpu': 'tts-cpu' },
    image: {}
  }
  for (const type of slotTypes) {
    for (const device of devices) t.equal(providerFor(type, device, shipped)?.name, expected[type][device], `${type} on ${device}`)
  }
})

t.test('models of an engine\'s own', async t => {
  const hardware = hardwareSchema.parse({ ram_mb: 65_536, npu })
  const source = {
    models: [],
    curated: [],
    providers: shipped.list(),
    catalog: shipped,
    hosts: hostBackends(hardware, shipped),
    hardware,
    misfit: () => null,
    engineModels: new Map([['npu-rt', await npuRt.models!.list('/nowhere')]])
  }
  const chat = candidatesFor(chatUse, source)
  const small = chat.find(({ id }) => id === 'llama3.2:1b')!
  t.match(small, { sizeBytes: 1_000_000_000, downloaded: false, pullable: true, builtIn: 'npu-rt' })
  t.match(legalPairs(chatUse, small, source), [{ device: 'npu', provider: { name: 'npu-rt' }, fit: { status: 'fits' } }])
  t.notOk(chat.some(({ id }) => id === 'whisper-v3:turbo'))
  t.strictSame(candidatesFor(childKinds.stt, source).map(({ id, sizeBytes }) => [id, sizeBytes]), [['whisper-v3:turbo', 1_000_000_000]])
  t.strictSame(candidatesFor(childKinds.vision, source), [], 'a second chat model has no place on the NPU')

  const row = { id: 'npu-gguf', capabilities: ['chat'], backends: ['flm'] }
  const candidate = { ...small, ...row, builtIn: null } as never
  t.strictSame(legalPairs(chatUse, candidate, source), [], 'what the registry has is none of them')
  const other = createFakeProvider({ name: 'other-npu', family: 'npu-rt', devices: ['npu'], slotTypes: ['llm'] })
  t.match(legalPairs(chatUse, candidate, { ...source, providers: [other] }), [{ device: 'npu', provider: { name: 'other-npu' } }])
})
