import { definePlugin, defineProvider, slotTypes, type ChildSlot, type Surface } from 'svc-gateway/plugin'
import { adaptEmbeddings } from './embeddings.js'
import { refusal } from './engine-failure.js'
import { healthVerdict, npuMetrics } from './engine-status.js'
import { npuError } from './errors.js'
import { argvSegments, containerSpec, processSpec } from './launch.js'
import { ASR_MODEL, EMBED_MODEL } from './model-table.js'
import { models, takesImages } from './models.js'
import { storeSettings } from './settings.js'
import { warmUp } from './warm-up.js'

const text = (path: string): Surface => ({ path, streaming: true, body: 'json', refusal })

const children: readonly ChildSlot[] = [
  { suffix: '-stt', type: 'transcription', model: ASR_MODEL, aliases: ['stt-npu'], active: anchor => anchor.npu?.asr === true },
  { suffix: '-embed', type: 'embedding', model: EMBED_MODEL, aliases: ['embed-npu'], active: anchor => anchor.npu?.embed === true }
]

/** FastFlowLM on an NPU: one process for chat, speech recognition and embeddings. See README.md. */
export const provider = defineProvider({
  name: 'npu-rt',
  title: 'FastFlowLM',
  about: { license: 'MIT AND LicenseRef-FastFlowLM-kernels', homepage: 'https://github.com/ROCm/FastFlowLM' },
  family: 'npu-rt',
  devices: ['npu'],
  slotTypes: ['llm', 'embedding', 'transcription'],
  cli: true,
  needsModel: true,
  models,
  carriesOnly: slot => slot.npu?.chat === false,
  surfaces: {
    chat: text('/v1/chat/completions'),
    completions: text('/v1/completions'),
    embeddings: { path: '/v1/embeddings', streaming: false, body: 'json', adapt: adaptEmbeddings },
    transcription: { path: '/v1/audio/transcriptions', streaming: false, body: 'multipart', refusal }
  },
  // the engine reads a schema as any other option that it does not know: it answers without
  abilities: ({ slot: { type }, modelId }) => {
    if (type !== 'llm') return {}
    const vision = modelId === null ? undefined : takesImages(modelId)
    return { json_schema: false, ...vision === undefined ? {} : { vision } }
  },
  health: { path: '/v1/models', verdict: healthVerdict, listensLate: true },
  keepsConnections: false,
  children,
  unserved: { ...npuError.kind('npu.trio_unavailable'), switchOn: 'set asr or embed in its [npu] table' },
  exclusivity: 'exclusive',
  flags: {
    aliases: { a: 'asr', e: 'embed', p: 'port', c: 'ctx-len', pcl: 'prefill-chunk-len', r: 'img-pre-resize', s: 'socket', q: 'q-len' },
    managed: ['host', 'port', 'asr', 'embed', 'ctx-len', 'hf', 'hf-branch'],
    managedEnv: ['FLM_MODEL_PATH', 'FLM_SERVE_PORT'],
    abbreviates: true
  },
  slotProblem: ({ npu, model, served_by: anchor }) => {
    if (anchor !== null) return null
    if (npu?.chat === false && npu.asr !== true && npu.embed !== true) return 'every switch of [npu] is off: set chat, asr or embed'
    const child = children.find(({ model: own }) => model.default !== null && models.canonical(model.default) === own)
    return child === undefined ? null : `'${child.model}' is not a chat model; the engine serves it beside a chat model, as set in [npu]`
  },
  // the makers publish packages and archives and no image; others build this one from their sources
  images: { 'npu-rt': { tag: 'ghcr.io/fonix232/fastflowlm:v0.9.39' } },
  profiles: {
    'npu-rt': { image: 'npu-rt', device_class: 'npu', intent: 'Chat, speech recognition and embeddings on the NPU', quant: 'W4ABF16' }
  },
  aliases: ['flm'],
  modelFolders: [
    { folder: 'flm/chat', for: ['chat', 'vision'], backends: ['flm', 'npu', 'npu-rt'], collections: ['flm-ubuntu'] },
    { folder: 'flm/embed', for: ['embed'], backends: ['flm', 'npu', 'npu-rt'] }
  ],
  deviceWords: { flm: 'npu' },
  // nothing else runs there
  defaultFor: slotTypes.map(type => ({ type, device: 'npu' })),
  image: 'npu-rt',
  defaultProfile: () => 'npu-rt',
  argvSegments,
  // two at once would share one context
  concurrency: () => 1,
  containerSpec,
  processSpec,
  warmUp,
  metrics: npuMetrics
})

export default definePlugin({
  name: 'npu-rt',
  kind: 'provider',
  apiVersion: 1,
  errors: npuError,
  settings: storeSettings,
  register: ctx => ctx.addProvider(provider)
})
