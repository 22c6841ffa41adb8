import { defineService, type ServiceWorld } from 'svc-gateway/plugin'

/** What it would draw in for models that it runs itself; the gateway's slots do that here. */
const ENGINES_OF_ITS_OWN = [
  'torch', 'torchvision', 'transformers', 'sentence-transformers', 'triton', 'accelerate', 'colbert-ai', 'playwright', 'unstructured',
  'nvidia-cublas-cu12', 'nvidia-cuda-runtime-cu12', 'nvidia-cudnn-cu12'
]

const VERSION = '0.12.4'

/** A chat page in the browser, with documents, speech and images, all of it from the slots of this gateway. */
export const openWebui = defineService({
  id: 'openwebui',
  name: 'Open WebUI',
  description: 'Chat with the models of this gateway in the browser',
  licence: {
    name: 'Open WebUI License',
    note: 'its branding may not be changed or removed',
    url: 'https://github.com/open-webui/open-webui/blob/main/LICENSE'
  },
  unit: 'svc-openwebui.service',
  port: 3001,
  verbs: ['start', 'stop', 'restart', 'enable', 'disable'],
  probe: '/health',
  stat: { path: '/api/version', label: 'version', value: answer => textOf(answer, 'version') },
  page: '/',
  mdns: true,
  publicUrlVariable: 'SVC_OPENWEBUI_PUBLIC_URL',
  probeUrlVariable: 'SVC_OPENWEBUI_PROBE_URL',
  hints: ['speech needs ffmpeg on PATH', 'the first person to open it creates its administrator account'],
  python: {
    package: 'open-webui',
    version: VERSION,
    leaveOut: ENGINES_OF_ITS_OWN,
    pythons: [12, 11],
    bytes: 1_600_000_000,
    command: ({ host, port }) => ({ program: 'open-webui', args: ['serve', '--host', host, '--port', String(port)] })
  },
  container: { image: `ghcr.io/open-webui/open-webui:v${VERSION}`, bytes: null, data: '/app/backend/data' },
  env: world => ({ ...wiring(world), ...documents(world), ...speech(world), ...images(world) }),
  settings: [
    { key: 'dispatcher.list_unloaded', value: true, why: 'a saved chat keeps its model when that was unloaded; a page falls back to the first one of the list' },
    { key: 'dispatcher.show_loading', value: true, why: 'a chat shows how far a cold start is, instead of a cursor for a minute' }
  ]
})

function wiring ({ gateway, host, port, dataDir, secret, slot }: ServiceWorld): Record<string, string> {
  const chat = slot('llm')
  return {
    HOST: host,
    PORT: String(port),
    DATA_DIR: dataDir,
    WEBUI_SECRET_KEY: secret,
    OPENAI_API_BASE_URL: `${gateway}/v1`,
    OPENAI_API_KEY: 'none',
    ENABLE_OLLAMA_API: 'False',
    // otherwise its database keeps what it was first started with, and none of this counts any more
    ENABLE_PERSISTENT_CONFIG: 'False',
    ...(chat === null ? {} : { DEFAULT_MODELS: chat, TASK_MODEL: chat, TASK_MODEL_EXTERNAL: chat }),
    OFFLINE_MODE: 'True',
    HF_HUB_OFFLINE: '1',
    ENABLE_VERSION_UPDATE_CHECK: 'False',
    ANONYMIZED_TELEMETRY: 'false',
    DO_NOT_TRACK: 'true',
    SCARF_NO_ANALYTICS: 'true',
    // each chat would carry some 4,900 tokens of tools, more than many a small model's window
    DEFAULT_MODEL_METADATA: JSON.stringify({ capabilities: { builtin_tools: false } }),
    ENABLE_FOLLOW_UP_GENERATION: 'False',
    ENABLE_TAGS_GENERATION: 'False',
    ENABLE_FORWARD_USER_INFO_HEADERS: 'True'
  }
}

function documents ({ gateway, slot }: ServiceWorld): Record<string, string> {
  const embedding = slot('embedding')
  if (embedding === null) return {}
  return {
    RAG_EMBEDDING_ENGINE: 'openai',
    RAG_OPENAI_API_BASE_URL: `${gateway}/v1`,
    RAG_OPENAI_API_KEY: 'none',
    RAG_EMBEDDING_MODEL: embedding,
    RAG_EMBEDDING_BATCH_SIZE: '32',
    RAG_EMBEDDING_CONCURRENT_REQUESTS: '2'
  }
}

function speech ({ gateway, slot }: ServiceWorld): Record<string, string> {
  const [hears, speaks] = [slot('transcription'), slot('tts')]
  const engine = (kind: 'STT' | 'TTS', model: string): Record<string, string> => ({
    [`AUDIO_${kind}_ENGINE`]: 'openai',
    [`AUDIO_${kind}_OPENAI_API_BASE_URL`]: `${gateway}/v1`,
    [`AUDIO_${kind}_OPENAI_API_KEY`]: 'none',
    [`AUDIO_${kind}_MODEL`]: model
  })
  return { ...(hears === null ? {} : engine('STT', hears)), ...(speaks === null ? {} : engine('TTS', speaks)) }
}

function images ({ gateway, slot }: ServiceWorld): Record<string, string> {
  const draws = slot('image')
  if (draws === null) return {}
  return {
    ENABLE_IMAGE_GENERATION: 'True',
    IMAGE_GENERATION_ENGINE: 'openai',
    IMAGES_OPENAI_API_BASE_URL: `${gateway}/v1`,
    IMAGES_OPENAI_API_KEY: 'none',
    IMAGE_GENERATION_MODEL: draws
  }
}

function textOf (answer: unknown, key: string): string | null {
  const value = (answer as Record<string, unknown> | null)?.[key]
  return typeof value === 'string' ? value : null
}
