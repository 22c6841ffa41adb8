import { definePlugin, defineProvider, type NamedSlotConfig } from 'svc-gateway/plugin'
import { argvSegments, containerSpec, imageOf, processSpec, TRANSCRIPTION_PATH } from './launch.js'
import { optionsOf, optionsSchema } from './options.js'
import { transcriptEvents } from './transcript-events.js'

export const provider = defineProvider({
  name: 'stt-engine',
  title: 'Speech to text (speaches, whisper.cpp)',
  family: 'moonshine',
  devices: ['cpu', 'gpu-vulkan', 'gpu-cuda'],
  slotTypes: ['transcription'],
  cli: true,
  needsModel: false,
  takesModel: true,
  surfaces: { transcription: { path: TRANSCRIPTION_PATH, streaming: true, body: 'multipart', events: transcriptEvents } },
  // 200 serves, 503 loads: the kernel's default verdict
  health: { path: '/health' },
  exclusivity: 'standard',
  slotOptions: optionsSchema,
  flags: {
    aliases: { m: 'model', t: 'threads', l: 'language', ng: 'no-gpu', fa: 'flash-attn', nfa: 'no-flash-attn' },
    managed: ['host', 'port', 'model', 'request-path', 'inference-path', 'uds', 'fd', 'root-path', 'ssl-keyfile', 'ssl-certfile']
  },
  image: imageOf,
  modelName,
  argvSegments,
  containerSpec,
  processSpec
})

/** speaches wants the hub's name of a model that it has; whisper.cpp's server has one model and does not look. Pure. */
function modelName (slot: NamedSlotConfig, modelId: string | null): string {
  const { engine, model } = optionsOf(slot)
  return engine === 'speaches' ? model : modelId ?? 'whisper'
}

export default definePlugin({
  name: 'stt-engine',
  kind: 'provider',
  apiVersion: 1,
  register: ctx => ctx.addProvider(provider)
})
