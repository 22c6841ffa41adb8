import { definePlugin, defineProvider, type EngineProvider, type NamedSlotConfig } from 'svc-gateway/plugin'
import { z } from 'zod'
import { choiceProblem, hubModelOf, isHubId } from './engine-choice.js'
import { argvSegments, containerSpec, imageOf, processSpec, TRANSCRIPTION_PATH } from './launch.js'
import { optionsOf, optionsSchema } from './options.js'
import { transcriptEvents } from './transcript-events.js'

const configSchema = z.strictObject({
  python: z.string().startsWith('/', { error: 'must be an absolute path' }).optional()
    .meta({ description: 'Python of the environment that speaches is installed in, for speaches as a process; unset runs containers only' }),
  folder: z.string().startsWith('/', { error: 'must be an absolute path' }).optional()
    .meta({ description: 'Folder of speaches\' sources, in which it is started as a process; unset is the one that .venv is in' })
})

const contract: EngineProvider = {
  name: 'stt-engine',
  title: 'Speech to text (speaches, whisper.cpp)',
  // both of them
  about: { license: 'MIT', homepage: 'https://github.com/speaches-ai/speaches' },
  family: 'moonshine',
  devices: ['cpu', 'gpu-vulkan', 'gpu-cuda'],
  slotTypes: ['transcription'],
  cli: true,
  needsModel: false,
  takesModel: true,
  fetches: isHubId,
  surfaces: {
    transcription: { path: TRANSCRIPTION_PATH, streaming: true, body: 'multipart', events: transcriptEvents },
    // whisper.cpp's server has one path, and a field that says that it is to translate
    translation: {
      path: '/v1/audio/translations',
      streaming: false,
      body: 'multipart',
      form: (slot, modelId) => isWhisper(slot, modelId) ? { path: TRANSCRIPTION_PATH, fields: { translate: 'true' } } : {}
    }
  },
  // 200 serves, 503 loads: the kernel's default verdict
  health: { path: '/health' },
  exclusivity: 'standard',
  slotOptions: optionsSchema,
  flags: {
    aliases: { m: 'model', t: 'threads', l: 'language', ng: 'no-gpu', fa: 'flash-attn', nfa: 'no-flash-attn' },
    managed: ['host', 'port', 'model', 'request-path', 'inference-path', 'uds', 'fd', 'root-path', 'ssl-keyfile', 'ssl-certfile'],
    // speaches takes its settings from the environment; a key of its own would lock the gateway out
    managedEnv: [
      'API_KEY', 'PRELOAD_MODELS', 'UVICORN_HOST', 'UVICORN_PORT', 'UVICORN_UDS', 'UVICORN_FD', 'UVICORN_ROOT_PATH',
      'UVICORN_SSL_KEYFILE', 'UVICORN_SSL_CERTFILE'
    ]
  },
  slotProblem: (slot, _profile, place) => choiceProblem(slot, place),
  images: {
    'speaches': { tag: 'ghcr.io/speaches-ai/speaches:latest-cpu' },
    'speaches-cuda': { tag: 'ghcr.io/speaches-ai/speaches:latest-cuda' },
    'whisper': { tag: 'ghcr.io/ggml-org/whisper.cpp:main' },
    'whisper-vulkan': { tag: 'ghcr.io/ggml-org/whisper.cpp:main-vulkan' },
    'whisper-cuda': {
      tag: 'ghcr.io/ggml-org/whisper.cpp:main-cuda-233fe1fc9b48a09e361d3594520838ca266537fe',
      digest: 'sha256:22df236658b55d333be05872149076a39d7b2551a900ac4027eb5d4787f10f68'
    }
  },
  aliases: ['moonshine'],
  modelFolders: [
    { folder: 'whispercpp/stt', for: ['asr'], backends: ['whispercpp'], usual: true },
    { folder: 'whispercpp/moonshine', for: ['asr'], backends: ['moonshine'], collections: ['moonshine_voice'] }
  ],
  deviceWords: { moonshine: 'cpu' },
  // whisper.cpp's: speaches has no build for Vulkan
  vulkanVariable: 'GGML_VK_VISIBLE_DEVICES',
  defaultFor: [{ type: 'transcription' }],
  modelNames: { asr: /whisper|moonshine/ },
  image: imageOf,
  modelName,
  argvSegments,
  containerSpec,
  processSpec: input => processSpec(input, {})
}

export const provider = defineProvider(contract)

/** speaches wants the hub's name of a model that it has; whisper.cpp's server has one model and does not look. Pure. */
function modelName (slot: NamedSlotConfig, modelId: string | null): string {
  return isWhisper(slot, modelId) ? modelId ?? 'whisper' : hubModelOf(slot, modelId)
}

/** What `engineOf` says, of a slot whose model was found to fit it. Pure. */
function isWhisper (slot: NamedSlotConfig, modelId: string | null): boolean {
  const { engine } = optionsOf(slot)
  return engine === null ? modelId !== null && !isHubId(modelId) : engine === 'whisper-cpp'
}

export default definePlugin({
  name: 'stt-engine',
  kind: 'provider',
  apiVersion: 1,
  configSchema,
  register: ctx => {
    ctx.addProvider(defineProvider({ ...contract, processSpec: input => processSpec(input, ctx.config) }))
  }
})
