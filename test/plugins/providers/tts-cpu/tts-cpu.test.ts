import OpenAI, { BadRequestError, UnprocessableEntityError } from 'openai'
import t, { type Test } from 'tap'
import { providerConformance } from '../../../../kernel/testing/index.js'
import ttsCpu, { provider } from '../../../../plugins/providers/tts-cpu/index.js'
import metaRoutes from '../../../../plugins/api/meta/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import pluginRoutes from '../../../../plugins/api/plugins/index.js'
import { run } from '../../../cli/support.js'
import { audioGateway, type AudioGateway } from '../../v1/audio/support.js'
import { mp3Seconds, spokenSeconds, wavSeconds } from '../audio/sound.js'
import { kokoro, VOICES } from './fake-kokoro.js'

const SLOT = 'type = "tts"\nprovider = "tts-cpu"\ndevice = "cpu"\n'
const TEXT = 'One sentence is here. Another one comes after it.'

function gatewayWith (t: Test, slot = SLOT): Promise<AudioGateway> {
  return audioGateway(t, { plugins: [ttsCpu], slots: { tts: slot }, onStart: ({ engine }) => engine.answer(kokoro) })
}

t.test('the provider keeps to the contract', async t => {
  const loading = { status: 200, json: { status: 'healthy', model_loaded: false } }
  for (const { name, run } of providerConformance(provider, { healthy: { status: 200, json: { status: 'healthy' } }, loading })) await t.test(name, async () => run())
})

t.test('the openai client speaks through it', async t => {
  const gateway = await gatewayWith(t, `${SLOT}default_voice = "af_bella"\n`)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none', maxRetries: 0 })
  const speak = (more: object = {}) => client.audio.speech.create({ model: 'tts', input: TEXT, voice: 'af_heart', ...more })

  const plain = await speak({ response_format: 'wav', stream: false })
  t.equal(plain.headers.get('content-type'), 'audio/wav')
  t.ok(Math.abs(wavSeconds(Buffer.from(await plain.arrayBuffer()))! - spokenSeconds(TEXT, 1)) < 0.01)
  const fast = Buffer.from(await (await speak({ response_format: 'wav', stream: false, speed: 2 })).arrayBuffer())
  t.ok(Math.abs(wavSeconds(fast)! - spokenSeconds(TEXT, 2)) < 0.01)
  const mp3 = await speak({ voice: 'alloy' })
  t.equal(mp3.headers.get('content-type'), 'audio/mpeg', 'the engine\'s own default')
  t.ok(Math.abs(mp3Seconds(Buffer.from(await mp3.arrayBuffer()))! - spokenSeconds(TEXT, 1)) < 0.1)
  const streamed = Buffer.from(await (await speak({ response_format: 'wav', voice: 'af_bella(2)+af_sky(1)' })).arrayBuffer())
  t.equal(streamed.readUInt32LE(40), 0xffffffff, 'a streamed file passes as the engine heads it')
  t.ok(Math.abs(wavSeconds(streamed)! - spokenSeconds(TEXT, 1)) < 0.2)

  const requests = gateway.runtime.engine('tts').requests
  t.match(JSON.parse(requests[0]!.body.toString()), { model: 'kokoro', voice: 'af_heart' })
  await (await gateway.speak({ model: 'tts', input: 'x' })).arrayBuffer()
  t.match(JSON.parse(requests.at(-1)!.body.toString()), { model: 'kokoro', voice: 'af_bella' }, 'the slot\'s voice')

  const failures = await Promise.all([speak({ voice: 'nobody' }), speak({ input: ' ' }), speak({ voice: '+af_bella' })].map(call => call.catch((error: unknown) => error)))
  for (const failure of failures) t.ok(failure instanceof BadRequestError)
  for (const more of [{ response_format: 'ogg' }, { speed: 9 }, { speed: 0.1 }]) {
    t.ok(await speak(more).catch((error: unknown) => error) instanceof UnprocessableEntityError, JSON.stringify(more))
  }
  t.match(failures[0], { error: undefined, message: /400/ })
  t.match(await (await gateway.speak({ model: 'tts', input: 'x', voice: 'nobody' })).json(), { detail: { error: 'validation_error', message: /Voice 'nobody' not found/ } }, 'its own words')
})

t.test('what Kokoro would fail on is refused before it gets there', async t => {
  const gateway = await gatewayWith(t)
  const refused = (param: string): object => ({ error: { code: 'validation.invalid', param, details: { fields: [{ path: param }] } } })
  for (const stream of [true, false]) {
    for (const input of ['', ' \n']) {
      const answer = await gateway.speak({ model: 'tts', input, stream })
      t.match([answer.status, await answer.json()], [400, refused('input')])
    }
    const answer = await gateway.speak({ model: 'tts', input: 'x', voice: '', stream })
    t.match([answer.status, await answer.json()], [400, refused('voice')])
  }
  t.equal(gateway.runtime.started.length, 0, 'nothing is started for it')
  const asked = await gateway.speak({ model: 'tts', input: 'x', voice: 'nova' })
  t.match([asked.status, asked.headers.get('x-accel-buffering')], [200, 'no'])
  await asked.arrayBuffer()

  const own = await gatewayWith(t, `${SLOT}default_voice = "af_bella"\n`)
  await (await own.speak({ model: 'tts', input: 'x', voice: '' })).arrayBuffer()
  t.match(JSON.parse(own.runtime.engine('tts').requests[0]!.body.toString()), { voice: 'af_bella' }, 'an empty voice is the slot\'s where it has one')
})

t.test('voices are listed for the slot and for clients', async t => {
  const gateway = await gatewayWith(t)
  await gateway.slots.load('tts')
  t.same(await gateway.slots.voices('tts', new AbortController().signal), { name: 'tts', voices: VOICES.map(id => ({ id, name: id })), source: 'live' })
  t.match(await (await gateway.fetch('/v1/audio/voices')).json(), { voices: [{ id: 'af_bella', name: 'af_bella', model: 'tts' }], sources: { tts: 'live' } })
})

t.test('what it is started with', async t => {
  const gateway = await gatewayWith(t, `${SLOT}workers = 3\n[server]\nextra_args = "--log-level warning"\n`)
  await gateway.slots.load('tts')
  const { form, port } = gateway.runtime.started[0]!.spec
  t.match(form, {
    kind: 'container',
    image: 'ghcr.io/remsky/kokoro-fastapi-cpu:v0.6.0',
    command: [
      'python', '-m', 'uvicorn', 'api.src.main:app', '--host', '0.0.0.0', '--port', String(port), '--workers', '3', '--log-level', 'warning'
    ]
  })
  t.match(gateway.slots.outlook('tts'), { profile: 'tts-cpu', contextSize: null })
  await t.rejects(gateway.slots.update('tts', { server: { extra_args: '--port 1' } }), { code: 'slot.managed_arg_denied' })
})

t.test('`svc slot create` asks for no model, and the slot speaks', async t => {
  const plugins = [ttsCpu, metaRoutes, slotRoutes, pluginRoutes]
  const gateway = await audioGateway(t, { plugins, onStart: ({ engine }) => engine.answer(kokoro) })
  const created = await run(['slot', 'create', 'tts', '--type', 'tts', '--provider', 'tts-cpu', '--url', gateway.baseUrl])
  t.match(created, { code: 0, stdout: /Slot tts is created: tts, on cpu, by tts-cpu/ }, created.stderr)
  t.match(await run(['slot', 'create', 'coder', '--url', gateway.baseUrl]), { code: 2, stderr: /required option '-m, --model <model>'/ })
  const response = await gateway.speak({ model: 'tts', input: 'x', response_format: 'wav', stream: false })
  t.ok(wavSeconds(Buffer.from(await response.arrayBuffer()))! > 0)
})
