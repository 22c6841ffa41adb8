import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI, { BadRequestError } from 'openai'
import t, { type Test } from 'tap'
import { definePlugin, defineProvider, type LaunchSpecInput } from '../../../../kernel/contract/index.js'
import { providerConformance } from '../../../../kernel/testing/index.js'
import { provider } from '../../../../plugins/providers/tts-gpu/index.js'
import { audioGateway, type AudioGateway, type AudioOptions } from '../../v1/audio/support.js'
import { mp3Seconds, spokenSeconds, wavSeconds } from '../audio/sound.js'
import { VOICES, vllmOmni } from './fake-vllm-omni.js'

const HUB_MODEL = 'Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice'
const SLOT = 'type = "tts"\nprovider = "tts-gpu"\ndevice = "cpu"\n'
/** There may be no GPU here, and a slot without its device does not start. */
const anywhere = definePlugin({
  name: 'tts-gpu',
  kind: 'provider',
  apiVersion: 1,
  register: ctx => ctx.addProvider(defineProvider({ ...provider, devices: ['cpu', ...provider.devices] }))
})

function gatewayWith (t: Test, slot = SLOT, options: AudioOptions = {}): Promise<AudioGateway> {
  return audioGateway(t, {
    plugins: [anywhere],
    slots: { tts: slot },
    onStart: ({ engine, spec }) => {
      const words = 'command' in spec.form ? spec.form.command : []
      engine.answer(vllmOmni(words[words.indexOf('--served-model-name') + 1]!))
    },
    ...options
  })
}

t.test('the provider keeps to the contract', async t => {
  for (const device of ['gpu-rocm', 'gpu-cuda'] as const) {
    for (const { name, run } of providerConformance(provider, { slot: { device } })) await t.test(`${device}: ${name}`, async () => run())
  }
})

t.test('the openai client speaks through it', async t => {
  const gateway = await gatewayWith(t, `${SLOT}default_voice = "ryan"\ndefault_response_format = "mp3"\n`)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none', maxRetries: 0 })
  const text = 'A sentence of some length.'
  const speak = (more: object = {}) => client.audio.speech.create({ model: 'tts', input: text, voice: 'vivian', ...more })
  const wav = await speak({ response_format: 'wav', speed: 2 })
  t.ok(Math.abs(wavSeconds(Buffer.from(await wav.arrayBuffer()))! - spokenSeconds(text, 2)) < 0.01)
  const mp3 = await speak()
  t.equal(mp3.headers.get('content-type'), 'audio/mpeg', 'the slot\'s format')
  t.ok(mp3Seconds(Buffer.from(await mp3.arrayBuffer()))! > 0)
  t.match(JSON.parse(gateway.runtime.engine('tts').requests[0]!.body.toString()), { model: HUB_MODEL, voice: 'vivian' })

  const raw = await gateway.speak({ model: 'tts', input: text, response_format: 'pcm', stream_format: 'audio', language: 'English' })
  t.match([raw.status, raw.headers.get('content-type')], [200, 'audio/pcm'])
  t.ok(Math.abs((await raw.arrayBuffer()).byteLength / 48_000 - spokenSeconds(text, 1)) < 0.01)
  const events = await (await gateway.speak({ model: 'tts', input: text, response_format: 'pcm', stream: true })).text()
  t.match(events, /^event: speech\.audio\.delta\n[^]*event: speech\.audio\.done\ndata: \{.*\}\n\n$/)
  for (const more of [{ voice: 'alloy' }, { input: ' ' }, { response_format: 'aac' }, { speed: 3, stream: true, response_format: 'pcm' }]) {
    t.ok(await speak(more).catch((error: unknown) => error) instanceof BadRequestError, JSON.stringify(more))
  }
  t.match(await (await gateway.fetch('/v1/audio/voices')).json(), { voices: VOICES.map(id => ({ id })), sources: { tts: 'live' } })
})

t.test('what it is started with: a hub model in a folder of its own, or a model of the registry', async t => {
  const gateway = await gatewayWith(t, `${SLOT}[options]\nmodel = "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"\n`)
  await gateway.slots.load('tts')
  const { form, port } = gateway.runtime.started[0]!.spec
  const folder = join(gateway.home, 'var/lib/svc/slots/tts')
  t.match(form, {
    image: 'docker.io/vllm/vllm-omni-rocm:v0.28.0',
    entrypoint: ['vllm'],
    command: ['serve', 'Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice', '--host', '0.0.0.0', '--port', String(port), '--served-model-name', 'Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice', '--omni'],
    mounts: [{ source: join(folder, 'hub'), readOnly: false }]
  })
  t.match([await stat(folder), await stat(join(folder, 'hub'))].map(({ mode }) => (mode & 0o777).toString(8)), ['700', '777'], 'the container may write, nobody else gets there')

  const registered = await gatewayWith(t, `${SLOT}[model]\ndefault = "my-voice"\n`, {
    files: { 'var/lib/svc/registry/registry.toml': '[models.my-voice]\npath = "/tmp"\n' }
  })
  await (await registered.speak({ model: 'tts', input: 'x' })).arrayBuffer()
  t.match(registered.runtime.started[0]!.spec.form, { command: ['serve', '/tmp', /host/, /./, /port/, /./, '--served-model-name', 'my-voice'] })
  t.match(JSON.parse(registered.runtime.engine('tts').requests[0]!.body.toString()), { model: 'my-voice' })
})

t.test('each make of GPU has its image; Vulkan is refused; without containers it is the same command', async t => {
  const image = provider.image as (slot: unknown, device: string) => string
  t.strictSame([image({}, 'gpu-rocm'), image({}, 'gpu-cuda')], ['tts-gpu', 'tts-gpu-cuda'])
  t.strictSame([provider.defaultProfile!('gpu-rocm', 'tts'), provider.defaultProfile!('gpu-cuda', 'tts')], ['tts-gpu', null])
  const input = { slot: { options: {} }, model: null, argv: ['--port', '1'], stateDir: '/s' } as unknown as LaunchSpecInput
  t.match(provider.processSpec!(input), [{ command: 'vllm', args: ['serve', HUB_MODEL, '--port', '1'] }])
  const gateway = await gatewayWith(t)
  await t.rejects(gateway.slots.update('tts', { device: 'gpu-vulkan' }), { code: /slot\.config_error/ })
})
