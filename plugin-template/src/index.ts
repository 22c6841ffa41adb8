import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { definePlugin, defineProvider } from 'svc-gateway/plugin'
import { z } from 'zod'

/** Absolute: the folder that the gateway is started in may be any. */
const engine = fileURLToPath(new URL('./engine.js', import.meta.url))

/** The image has the version of the package: `npm version` makes both new. */
const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

/** The `[options]` table of a slot. Everything needs a default: most slots have no such table. */
const optionsSchema = z.strictObject({
  language: z.string().regex(/^[a-z]{2,3}(-[a-z0-9]+)*$/i).default('en-us')
    .meta({ description: 'Default voice of requests; `espeak-ng --voices` lists them' })
})

const voicesSchema = z.object({ voices: z.array(z.unknown()) })

export const provider = defineProvider({
  name: 'espeak',
  title: 'eSpeak NG',
  // shown before the image is pulled; the image holds more than espeak-ng
  about: { license: 'GPL-3.0-or-later', homepage: 'https://github.com/espeak-ng/espeak-ng' },
  family: 'espeak',
  devices: ['cpu'],
  slotTypes: ['tts'],
  cli: true,
  needsModel: false,
  surfaces: { speech: { path: '/v1/audio/speech', streaming: true, body: 'json' } },
  health: { path: '/health' },
  exclusivity: 'unmetered',
  // `localhost/` names no registry: an image that was never built here is not pulled from a stranger
  image: `localhost/svc-plugin-espeak:${version}`,
  slotOptions: optionsSchema,
  // the gateway chose host and port and publishes them: `extra_args` of a slot must not move them
  flags: { managed: ['host', 'port'] },
  argvSegments: ({ bindHost, port, slot }) => ({
    base: ['--host', bindHost, '--port', String(port)],
    slot_overrides: ['--language', optionsSchema.parse(slot.options).language]
  }),
  // `argv` is the segments above with the profile's and the slot's own flags merged in
  containerSpec: ({ argv }) => ({ command: argv }),
  processSpec: ({ argv }) => [{ command: 'node', args: [engine, ...argv], label: 'espeak' }],
  voices: async (client, signal) => {
    const response = await client.request({ path: '/v1/audio/voices', signal })
    return voicesSchema.parse(await response.json()).voices
  }
})

export default definePlugin({
  name: 'espeak',
  kind: 'provider',
  apiVersion: 1,
  // only declares; what needs I/O belongs in ctx.onStart
  register: ctx => ctx.addProvider(provider)
})
