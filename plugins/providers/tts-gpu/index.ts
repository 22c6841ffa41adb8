import { join } from 'node:path'
import { definePlugin, defineProvider, devices, type LaunchInput, type LaunchSpecInput, type NamedSlotConfig, type ProviderSegments } from 'svc-gateway/plugin'
import { z } from 'zod'

const GIB = 1024 ** 3
const HUB = '/root/.cache/huggingface/hub'

/** The `[options]` table of a slot. */
const optionsSchema = z.strictObject({
  model: z.string().min(1).default('Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice')
    .meta({ description: 'Model of the hub, for slots without a model of their own; CustomVoice models have the named voices' })
})

const voicesSchema = z.looseObject({ voices: z.array(z.unknown()) })

export const provider = defineProvider({
  name: 'tts-gpu',
  title: 'Qwen3-TTS (vLLM-Omni)',
  about: { license: 'Apache-2.0', homepage: 'https://github.com/vllm-project/vllm-omni' },
  family: 'qwen3tts',
  // vLLM has no Vulkan
  devices: ['gpu-rocm', 'gpu-cuda'],
  slotTypes: ['tts'],
  cli: false,
  needsModel: false,
  takesModel: true,
  surfaces: { speech: { path: '/v1/audio/speech', streaming: true, body: 'json' } },
  health: { path: '/health' },
  exclusivity: 'standard',
  slotOptions: optionsSchema,
  flags: {
    managed: ['host', 'port', 'model', 'served-model-name', 'omni', 'api-key', 'config', 'uds', 'root-path', 'ssl-keyfile', 'ssl-certfile'],
    managedEnv: ['VLLM_API_KEY'],
    abbreviates: true
  },
  images: {
    'tts-gpu': { tag: 'docker.io/vllm/vllm-omni-rocm:v0.28.0' },
    'tts-gpu-cuda': { tag: 'docker.io/vllm/vllm-omni:v0.28.0' }
  },
  profiles: {
    'tts-gpu': { image: 'tts-gpu', device_class: 'gpu', backend: 'rocm', intent: 'Multilingual speech on the GPU', quant: 'BF16' }
  },
  aliases: ['qwen3tts'],
  defaultFor: devices.filter(device => device.startsWith('gpu-')).map(device => ({ type: 'tts', device })),
  modelNames: { tts: /vibevoice/ },
  image: (_slot, device) => device === 'gpu-cuda' ? 'tts-gpu-cuda' : 'tts-gpu',
  defaultProfile: device => device === 'gpu-rocm' ? 'tts-gpu' : null,
  modelName: servedName,
  argvSegments,
  // it batches what is there by itself
  concurrency: () => null,
  containerSpec: input => ({
    entrypoint: ['vllm'],
    command: serve(input),
    mounts: [{ source: join(input.stateDir, 'hub'), target: HUB, readOnly: false }],
    shmSizeBytes: 8 * GIB
  }),
  processSpec: input => [{ command: 'vllm', args: serve(input), label: 'vllm' }],
  voices: async (client, signal) => {
    const response = await client.request({ path: '/v1/audio/voices', signal })
    return voicesSchema.parse(await response.json()).voices
  }
})

/** The server refuses every other name than the one it was started with. Pure. */
function servedName (slot: NamedSlotConfig, modelId: string | null): string {
  return modelId ?? optionsSchema.parse(slot.options).model
}

function argvSegments ({ bindHost, port, slot, model }: LaunchInput): ProviderSegments {
  const name = model?.id ?? optionsSchema.parse(slot.options).model
  return { base: ['--host', bindHost, '--port', String(port), '--served-model-name', name, '--omni', '--trust-remote-code', '--enforce-eager'] }
}

/** The model stands in front of the flags. */
function serve ({ model, slot, argv }: LaunchSpecInput): string[] {
  return ['serve', model?.path ?? optionsSchema.parse(slot.options).model, ...argv]
}

export default definePlugin({
  name: 'tts-gpu',
  kind: 'provider',
  apiVersion: 1,
  register: ctx => ctx.addProvider(provider)
})
