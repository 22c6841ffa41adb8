import { definePlugin, defineProvider, type LaunchInput, type ProviderSegments } from 'svc-gateway/plugin'
import { z } from 'zod'
import { refuseEmpty } from './refusals.js'

/** The one name under which every version of the engine knows its model. */
const MODEL = 'kokoro'

const voicesSchema = z.looseObject({ voices: z.array(z.unknown()) })

export const provider = defineProvider({
  name: 'tts-cpu',
  title: 'Kokoro',
  about: { license: 'Apache-2.0', homepage: 'https://github.com/remsky/Kokoro-FastAPI' },
  family: 'kokoro',
  devices: ['cpu'],
  slotTypes: ['tts'],
  cli: true,
  needsModel: false,
  surfaces: { speech: { path: '/v1/audio/speech', streaming: true, body: 'json', edit: refuseEmpty } },
  health: {
    path: '/health',
    // older builds answer before their model is there
    verdict: ({ status, json }) => {
      if (status !== 200) return status === 503 ? 'loading' : 'failed'
      return (json as { model_loaded?: unknown } | null)?.model_loaded === false ? 'loading' : 'ok'
    }
  },
  exclusivity: 'standard',
  flags: {
    managed: ['host', 'port', 'uds', 'fd', 'root-path', 'ssl-keyfile', 'ssl-certfile'],
    managedEnv: [
      'UVICORN_HOST', 'UVICORN_PORT', 'UVICORN_UDS', 'UVICORN_FD', 'UVICORN_ROOT_PATH', 'UVICORN_SSL_KEYFILE', 'UVICORN_SSL_CERTFILE'
    ]
  },
  images: { 'tts-cpu': { tag: 'ghcr.io/remsky/kokoro-fastapi-cpu:v0.6.0' } },
  profiles: { 'tts-cpu': { image: 'tts-cpu', device_class: 'cpu', intent: 'Speech on the CPU' } },
  aliases: ['kokoro'],
  modelFolders: [{ folder: 'kokoro/tts', for: ['tts'], usual: true, collections: ['voices'] }],
  deviceWords: { kokoro: 'cpu' },
  defaultFor: [{ type: 'tts' }],
  modelNames: { tts: /kokoro/ },
  image: 'tts-cpu',
  defaultProfile: () => 'tts-cpu',
  modelName: () => MODEL,
  argvSegments,
  // the image's own start script has a fixed port; this is what it starts
  containerSpec: ({ argv }) => ({ command: ['python', '-m', 'uvicorn', 'api.src.main:app', ...argv] }),
  voices: async (client, signal) => {
    const response = await client.request({ path: '/v1/audio/voices', signal })
    return voicesSchema.parse(await response.json()).voices
  }
})

/** Pure. Every further worker is a process with a model of its own. */
function argvSegments ({ bindHost, port, slot }: LaunchInput): ProviderSegments {
  return {
    base: ['--host', bindHost, '--port', String(port)],
    slot_overrides: slot.workers > 1 ? ['--workers', String(slot.workers)] : []
  }
}

export default definePlugin({
  name: 'tts-cpu',
  kind: 'provider',
  apiVersion: 1,
  register: ctx => ctx.addProvider(provider)
})
