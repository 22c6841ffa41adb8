import type { AnyPlugin } from '../../../../kernel/contract/index.js'
import { factsOf, shippedProviders } from '../../../providers.js'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'

/** A machine with everything: an AMD GPU with 16 GiB of its own, an NPU, 64 GiB of main memory. */
export const HARDWARE = JSON.stringify({
  probed_at: '2026-01-01T00:00:00Z',
  ram_mb: 65536,
  gpus: [{ vendor: 'amd', index: 0, name: 'Big', vram_mb: 16384, compute_capable: true, vulkan_capable: true }],
  npu: { present: true, vendor: 'amd', name: 'NPU' }
})

/** Engines by the names of the built-in ones, so that what is derived from these names is seen. */
export const engines: readonly AnyPlugin[] = [
  createFakeProviderPlugin({
    ...factsOf('llm-server'), name: 'llm-server', family: 'llm-server', devices: ['gpu-rocm', 'gpu-vulkan', 'gpu-cuda', 'cpu'], slotTypes: ['llm', 'embedding', 'reranking'],
    defaultProfile: shippedProviders.get('llm-server')!.defaultProfile!
  }),
  createFakeProviderPlugin({
    ...factsOf('npu-rt'), name: 'npu-rt', family: 'npu-rt', devices: ['npu'], slotTypes: ['llm'],
    children: [
      { suffix: 'stt', type: 'transcription', model: 'npu-whisper', active: anchor => anchor.npu?.asr ?? false },
      { suffix: 'embed', type: 'embedding', model: 'npu-embed', active: anchor => anchor.npu?.embed ?? false }
    ]
  }),
  createFakeProviderPlugin({ ...factsOf('tts-cpu'), name: 'tts-cpu', family: 'tts-cpu', devices: ['cpu'], slotTypes: ['tts'] }),
  createFakeProviderPlugin({ ...factsOf('tts-gpu'), name: 'tts-gpu', family: 'tts-gpu', devices: ['gpu-rocm', 'gpu-vulkan'], slotTypes: ['tts'] }),
  createFakeProviderPlugin({ ...factsOf('stt-engine'), name: 'stt-engine', family: 'stt-engine', devices: ['cpu'], slotTypes: ['transcription'], needsModel: true }),
  createFakeProviderPlugin({ ...factsOf('imagegen'), name: 'imagegen', family: 'imagegen', devices: ['gpu-rocm'], slotTypes: ['image'], needsModel: true })
]

const model = (id: string, capability: string, more = ''): string =>
  `[models.${id}]\npath = "/dev/null"\ncapabilities = ["${capability}"]\n${more}`

export const MODELS = [
  model('nomic', 'embed', 'size_bytes = 150000000\n'),
  model('rocm-only', 'embed', 'backends = ["rocm"]\n'),
  model('npu-only', 'chat', 'backends = ["flm"]\n'),
  model('chatty', 'chat'),
  model('huge', 'embed', 'size_bytes = 900000000000\n'),
  model('big', 'embed', 'size_bytes = 30000000000\n'),
  model('judge', 'rerank', 'size_bytes = 4600000\n'),
  model('whisper', 'asr'),
  model('kokoro', 'tts', 'backends = ["kokoro"]\n'),
  '[models.silent]\npath = "/dev/null"\n'
].join('')

export const files: Readonly<Record<string, string>> = {
  'etc/svc/hardware.json': HARDWARE,
  'var/lib/svc/registry/registry.toml': MODELS,
  'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8081\n[model]\ndefault = "chatty"\n'
}

export const ANCHOR = 'type = "llm"\nprovider = "npu-rt"\ndevice = "npu"\nport = 8088\n[model]\ndefault = "npu-only"\n[npu]\nchat = true\n'
