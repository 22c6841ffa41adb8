import { chmod, stat } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI, { APIError, BadRequestError, toFile } from 'openai'
import t, { type Test } from 'tap'
import type { LaunchSpecInput } from '../../../../kernel/contract/index.js'
import { createTestGateway, providerConformance, type TestGateway } from '../../../../kernel/testing/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import sttEngine, { provider } from '../../../../plugins/providers/stt-engine/index.js'
import { audioGateway, type AudioGateway } from '../../v1/audio/support.js'
import { wavOf } from '../audio/sound.js'
import { speaches } from './fake-speaches.js'
import { whisperServer } from './fake-whisper-server.js'

const SLOT = 'type = "transcription"\nprovider = "stt-engine"\ndevice = "cpu"\n'
const WHISPER = `${SLOT}[model]\ndefault = "ggml-base"\n[options]\nengine = "whisper-cpp"\n`
const HUB_MODEL = 'Systran/faster-whisper-small'
const TEXT = 'Segment 1. Segment 2. Segment 3.'
const SPEECH = wavOf(5, 16_000)

function gatewayWith (t: Test, slot: string): Promise<AudioGateway> {
  return audioGateway(t, {
    plugins: [sttEngine],
    slots: { stt: slot },
    files: { 'var/lib/svc/registry/registry.toml': '[models.ggml-base]\npath = "/dev/null"\n' },
    onStart: ({ engine, spec }) => {
      const preloaded = (JSON.parse(spec.env.PRELOAD_MODELS ?? '[]') as string[])[0]
      engine.answer(({ body, headers }) => {
        const type = headers['content-type']!
        return preloaded === undefined ? whisperServer(body, type) : speaches(body, type, preloaded)
      })
    }
  })
}

function clientOf (gateway: AudioGateway): OpenAI {
  return new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none', maxRetries: 0 })
}

t.test('the provider keeps to the contract', async t => {
  for (const options of [{}, { engine: 'whisper-cpp' }]) {
    for (const { name, run } of providerConformance(provider, { slot: { options } })) await t.test(`${JSON.stringify(options)}: ${name}`, async () => run())
  }
})

t.test('the openai client transcribes: speaches', async t => {
  const gateway = await gatewayWith(t, SLOT)
  const client = clientOf(gateway)
  const file = await toFile(SPEECH, 'speech.wav')
  t.equal((await client.audio.transcriptions.create({ file, model: 'stt' })).text, TEXT)
  t.equal(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'text' }), TEXT)
  const verbose = await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'verbose_json', language: 'de' })
  t.match(verbose, { duration: 5, language: 'de', segments: [{ start: 0, end: 2 }, { start: 2, end: 4, text: ' Segment 2.' }, { start: 4, end: 5 }] })
  t.match(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'srt' }), /^1\n00:00:00,000 --> 00:00:02,000\n Segment 1\./)
  t.match(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'vtt' }), /^WEBVTT\n\n00:00:00\.000/)

  const events: Array<{ type: string }> = []
  for await (const event of await client.audio.transcriptions.create({ file, model: 'stt', stream: true })) events.push(event)
  t.match(events, [
    { type: 'transcript.text.delta', delta: ' Segment 1.' }, { type: 'transcript.text.delta' }, { type: 'transcript.text.delta' },
    { type: 'transcript.text.done', text: TEXT }
  ], 'the last text, which speaches leaves empty, is what was heard')

  const failure = (body: object): Promise<unknown> => client.audio.transcriptions.create({ file, model: 'stt', ...body }).catch((error: unknown) => error)
  const noise = await toFile(Buffer.from('this is no audio'), 'speech.wav')
  t.match(await failure({ file: noise }), { status: 415 }, 'the engine\'s own refusal')
  t.match(await failure({ response_format: 'diarized' }), { status: 422 })
  t.ok(await failure({ file: await toFile(Buffer.alloc(0), 'a.wav') }) instanceof BadRequestError)
  t.match(await failure({ model: 'nobody' }), { status: 404, code: 'model.not_found' })
  t.ok(await failure({ model: ' ' }) instanceof APIError)
})

t.test('a client that leaves a stream of events frees the engine', async t => {
  const gateway = await gatewayWith(t, SLOT)
  const long = await toFile(wavOf(600, 8_000), 'long.wav')
  const stream = await clientOf(gateway).audio.transcriptions.create({ file: long, model: 'stt', stream: true })
  let seen = 0
  for await (const _ of stream) if (++seen === 3) stream.controller.abort()
  const engine = gateway.runtime.engine('stt')
  t.equal(await engine.requests[0]!.closed, 'aborted')
})

t.test('the openai client transcribes: whisper.cpp', async t => {
  const gateway = await gatewayWith(t, WHISPER)
  const client = clientOf(gateway)
  const file = await toFile(SPEECH, 'speech.wav')
  for (const model of ['stt', 'ggml-base']) t.equal((await client.audio.transcriptions.create({ file, model })).text.trim(), TEXT)
  t.match(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'verbose_json' }), { duration: 5, segments: { length: 3 } })
  t.match(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'text' }), TEXT)
  for (const format of ['json', 'verbose_json', 'text'] as const) {
    const events: Array<{ type: string, delta?: string, text?: string }> = []
    const order = { model: 'stt', file, stream: true, response_format: format } as const
    for await (const event of await client.audio.transcriptions.create(order)) events.push(event)
    t.equal(events.slice(0, -1).map(event => event.type === 'transcript.text.delta' ? event.delta : '').join('').trim(), TEXT, format)
    t.strictSame(events.at(-1), { type: 'transcript.text.done', text: TEXT })
    t.equal(events.length, format === 'verbose_json' ? 4 : 2)
  }
  const refusal = await client.audio.transcriptions.create({ file: await toFile(Buffer.from('noise'), 'a.wav'), model: 'stt' }).catch((error: unknown) => error)
  t.ok(refusal instanceof BadRequestError)
})

t.test('what they are started with', async t => {
  const hub = await gatewayWith(t, SLOT)
  await hub.slots.load('stt')
  const { form, env, port } = hub.runtime.started[0]!.spec
  const folder = join(hub.home, 'var/lib/svc/slots/stt/hub')
  t.match(form, { image: 'ghcr.io/speaches-ai/speaches:latest-cpu', command: ['uvicorn', '--factory', 'speaches.main:create_app'], mounts: [{ source: folder, readOnly: false }] })
  t.match(env, { UVICORN_HOST: '0.0.0.0', UVICORN_PORT: String(port), PRELOAD_MODELS: `["${HUB_MODEL}"]`, WHISPER__INFERENCE_DEVICE: 'cpu' })
  t.ok((await stat(folder)).isDirectory())

  const whisper = await gatewayWith(t, `${WHISPER}[server]\nextra_args = "-t 8 --language de"\n`)
  await whisper.slots.load('stt')
  const spec = whisper.runtime.started[0]!.spec
  t.match(spec.form, {
    image: 'ghcr.io/ggml-org/whisper.cpp:main',
    entrypoint: ['whisper-server'],
    command: ['--host', '0.0.0.0', '--port', String(spec.port), '--model', '/dev/null', '--inference-path', '/v1/audio/transcriptions', '--no-gpu', '--convert', '-t', '8', '--language', 'de']
  })
  await t.rejects(whisper.slots.update('stt', { server: { extra_args: '-m other.bin' } }), { code: 'slot.managed_arg_denied' })
  await t.rejects(whisper.slots.update('stt', { options: { engine: 'moonshine' } }), { code: 'validation.invalid' })
})

t.test('without containers, and what cannot be', async t => {
  const input = (options: object, more: object = {}): LaunchSpecInput => ({
    slot: { name: 'stt', options, workers: 1, model: { default: null } }, device: 'cpu', form: 'process', bindHost: '127.0.0.1', port: 7000, model: null, argv: ['--port', '7000'], stateDir: '/state/slots/stt', ...more
  }) as never
  t.match(provider.processSpec!(input({ engine: 'whisper-cpp' })), [{ command: 'whisper-server', args: ['--port', '7000'] }])
  t.throws(() => provider.processSpec!(input({})), { code: 'slot.config_error', message: /\[plugins\.config\.stt-engine\] python/ })
  t.throws(() => provider.containerSpec(input({}, { device: 'gpu-vulkan' })), { code: 'slot.config_error', message: /does not support Vulkan/ })
  t.throws(() => provider.argvSegments!(input({ engine: 'whisper-cpp' })), { code: 'slot.config_error', message: /--model/ })
  const image = provider.image as (slot: unknown, device: string, model?: unknown) => string
  t.strictSame(['cpu', 'gpu-vulkan', 'gpu-cuda'].map(device => image({ options: { engine: 'whisper-cpp' } }, device, null)), ['whisper', 'whisper-vulkan', 'whisper-cuda'])
  t.equal(image({ options: {} }, 'gpu-cuda', null), 'speaches-cuda')

  t.equal(provider.vulkanVariable, 'GGML_VK_VISIBLE_DEVICES')

  const bare = await gatewayWith(t, `${SLOT}[options]\nengine = "whisper-cpp"\n`)
  await t.rejects(bare.slots.load('stt'), { code: 'slot.load_failed', message: /runs whisper.cpp but has no model/ })
})

t.test('speaches without containers is a module of the Python that the operator names', async t => {
  const home = t.testdir({
    'realtime-console': { dist: {} },
    // what Python says of a module that it does not have, what speaches says outside of its sources, and a server that
    // only answers health
    '.venv': { bin: { python: `#!/bin/sh
[ "$1 $2 $3 $4" = "-m uvicorn --factory speaches.main:create_app" ] || { echo "No module named $2" >&2; exit 1; }
[ -d realtime-console/dist ] || { echo "RuntimeError: Directory 'realtime-console/dist' does not exist" >&2; exit 1; }
exec "${process.execPath}" -e 'require("http").createServer((q, a) => a.end("OK")).listen(process.env.UVICORN_PORT, process.env.UVICORN_HOST)'
` } }
  })
  const python = join(home, '.venv/bin/python')
  await chmod(python, 0o755)
  const files = { 'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n', 'etc/svc/slots/stt.toml': SLOT }
  const start = async (config: Record<string, unknown>): Promise<TestGateway> => {
    const gateway = await createTestGateway({ plugins: [sttEngine, slotRoutes], files, pluginConfig: { 'stt-engine': config } })
    t.teardown(() => gateway.close())
    return gateway
  }
  const load = (gateway: TestGateway): Promise<Response> => gateway.fetch('/api/slots/stt/load', { method: 'POST' })
  const gateway = await start({ python })
  t.equal((await load(gateway)).status, 200, 'in the folder that .venv is in')
  t.match(await (await gateway.fetch('/api/slots/stt')).json(), { state: 'ready', metadata: { engine: 'speaches' } })
  await gateway.slots.unload('stt')

  const astray = await start({ python, folder: join(home, '.venv') })
  t.match(await (await load(astray)).json(), { error: { message: /Directory 'realtime-console\/dist' does not exist/ } })

  const bare = await start({})
  t.match(await (await load(bare)).json(), { error: { message: /set \[plugins\.config\.stt-engine\] python to the Python that has it/ } })
})
