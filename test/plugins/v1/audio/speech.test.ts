import t from 'tap'
import { audioGateway, fakeSlot } from './support.js'

const DEFAULTS = 'default_voice = "af_bella"\ndefault_speed = 1.25\ndefault_response_format = "wav"\n'

/** What reached the engine, as text. */
async function sent (gateway: Awaited<ReturnType<typeof audioGateway>>, body: unknown): Promise<string> {
  await (await gateway.speak(body)).arrayBuffer()
  return gateway.runtime.engine('tts').requests.at(-1)!.body.toString()
}

t.test('what a request leaves open comes from the slot, and what it says is kept byte for byte', async t => {
  const gateway = await audioGateway(t, { slots: { tts: fakeSlot('tts', DEFAULTS) } })
  const cases: ReadonlyArray<readonly [sent: string, arrives: string]> = [
    ['{ "model":"tts", "input":"h\\u00e9" }', '{ "voice":"af_bella","speed":1.25,"response_format":"wav","model":"tts", "input":"h\\u00e9" }'],
    ['{"model":"tts","input":"x","voice":"am_adam","speed":0.50,"response_format":"opus"}', '{"model":"tts","input":"x","voice":"am_adam","speed":0.50,"response_format":"opus"}'],
    ['{"model":"tts","input":"x","voice":"","speed":null,"response_format":""}', '{"model":"tts","input":"x","voice":"af_bella","speed":1.25,"response_format":"wav"}'],
    ['{"model":"tts","input":"x","voice":null,"speed":0,"response_format":null}', '{"model":"tts","input":"x","voice":"af_bella","speed":0,"response_format":"wav"}'],
    ['{"model":"tts","input":"x","voice":{"id":"v"},"speed":2,"response_format":"pcm"}', '{"model":"tts","input":"x","voice":{"id":"v"},"speed":2,"response_format":"pcm"}']
  ]
  for (const [body, expected] of cases) t.equal(await sent(gateway, body), expected)
})

t.test('a slot without defaults adds nothing; a provider names the model its engine knows', async t => {
  const gateway = await audioGateway(t, { slots: { tts: fakeSlot('tts', 'default_speed = 2.0\n') }, provider: { modelName: (slot, id) => `${slot.name}:${id}` } })
  t.equal(await sent(gateway, '{"model":"tts","input":"x"}'), '{"speed":2,"model":"tts:null","input":"x"}')
  const bare = await audioGateway(t, { slots: { tts: fakeSlot('tts') } })
  t.equal(await sent(bare, '{"model":"tts","input":"x"}'), '{"model":"tts","input":"x"}')
})

t.test('speech requests that cannot work start nothing', async t => {
  const gateway = await audioGateway(t, { slots: { tts: fakeSlot('tts'), agent: fakeSlot('llm') } })
  const cases: ReadonlyArray<readonly [body: unknown, status: number, code: string]> = [
    [{ input: 'x' }, 400, 'request.missing_model'],
    [{ model: '  ', input: 'x' }, 400, 'request.missing_model'],
    [{ model: 3, input: 'x' }, 400, 'request.missing_model'],
    ['{', 400, 'request.invalid_json'],
    [{ model: 'nobody', input: 'x' }, 404, 'model.not_found'],
    [{ model: 'agent', input: 'x' }, 404, 'dispatch.no_route']
  ]
  for (const [body, status, code] of cases) {
    const response = await gateway.speak(body)
    t.equal(response.status, status)
    t.match(await response.json(), { error: { code, request_id: /./ } })
  }
  t.match(await (await gateway.speak({ input: 'x' })).json(), { error: { details: { field: 'model', path: '/audio/speech' } } })
  t.equal(gateway.runtime.started.length, 0, 'nothing was started for them')
})

t.test('audio flows as it is made, with the engine\'s content type; leaving stops the engine', async t => {
  const gateway = await audioGateway(t, { slots: { tts: fakeSlot('tts') } })
  await (await gateway.speak({ model: 'tts', input: 'warm' })).arrayBuffer()
  const engine = gateway.runtime.engine('tts')
  const pieces = Array.from({ length: 5 }, (_, i) => Buffer.alloc(3000, i))
  engine.answer({ headers: { 'content-type': 'audio/mpeg' }, chunks: pieces, everyMs: 5 })
  const whole = await gateway.speak({ model: 'tts', input: 'x' })
  t.equal(whole.headers.get('content-type'), 'audio/mpeg')
  t.ok(Buffer.from(await whole.arrayBuffer()).equals(Buffer.concat(pieces)))

  engine.answer({ headers: { 'content-type': 'audio/mpeg' }, chunks: pieces, hangAfter: 2 })
  const client = new AbortController()
  const n = engine.requests.length
  const part = await gateway.speak({ model: 'tts', input: 'x' }, client.signal)
  const { value } = await part.body!.getReader().read()
  t.equal(value?.[0], 0, 'the first piece is here while the engine still works')
  client.abort()
  t.equal(await (await engine.request(n)).closed, 'aborted')
})

t.test('the usual names of speech models reach the only slot of their type', async t => {
  const gateway = await audioGateway(t, { slots: { tts: fakeSlot('tts'), agent: fakeSlot('llm'), stt: fakeSlot('transcription') } })
  const models = async (): Promise<unknown> => await (await gateway.fetch('/v1/audio/models')).json()
  const rows = [{ id: 'stt', type: 'transcription', status: 'unloaded' }, { id: 'tts', type: 'tts', status: 'unloaded' }]
  const listed = await models() as { data: Array<{ id: string }>, models: unknown }
  t.match([...listed.data].sort((a, b) => a.id.localeCompare(b.id)), rows)
  t.same(listed.models, listed.data)
  t.equal(gateway.runtime.started.length, 0, 'asking starts nothing')
  for (const model of ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']) t.equal((await gateway.speak({ model, input: 'x' })).status, 200, model)
  t.match((await models() as { data: unknown }).data, [{ status: String }, { status: String }])
  t.equal((await gateway.speak({ model: 'whisper-1', input: 'x' })).status, 404, 'another kind of work')
  const form = new FormData()
  form.set('model', 'whisper-1')
  form.set('file', new Blob(['sound']), 'a.wav')
  t.equal((await gateway.fetch('/v1/audio/transcriptions', { method: 'POST', body: form })).status, 200, 'what it is for')
  await gateway.slots.create('second', { type: 'tts', provider: 'fake', device: 'cpu', model: { default: 'fake-model' } })
  t.equal((await gateway.speak({ model: 'tts-1', input: 'x' })).status, 404, 'with two of them the name says too little')
})

t.test('voices of all speech slots, or of one', async t => {
  const voices = async (): Promise<readonly unknown[]> => ['alice', { id: 'bob', lang: 'en' }, { name: 'Carol', voice_id: 'c' }, { name: 'dave' }, 3, null, {}]
  const gateway = await audioGateway(t, {
    provider: { voices },
    slots: { tts: fakeSlot('tts'), other: fakeSlot('tts', '[model]\ndefault = "voice-model"\n'), agent: fakeSlot('llm') }
  })
  const get = async (query = ''): Promise<unknown> => await (await gateway.fetch(`/v1/audio/voices${query}`)).json()
  t.same(await get(), { voices: [], sources: { tts: 'offline', other: 'offline' } })
  t.equal(gateway.runtime.started.length, 0, 'asking starts nothing')
  await gateway.slots.load('tts')
  const listed = [
    { id: 'alice', name: 'alice', model: 'tts' }, { id: 'bob', lang: 'en', name: 'bob', model: 'tts' },
    { name: 'Carol', voice_id: 'c', id: 'c', model: 'tts' }, { name: 'dave', id: 'dave', model: 'tts' }
  ]
  t.same(await get(), { voices: listed, sources: { tts: 'live', other: 'offline' } })
  for (const query of ['?model=tts', '?model=svc/tts', '?model=']) t.match(await get(query), { voices: listed, sources: { tts: 'live' } }, query)
  t.same(await get('?model=voice-model'), { voices: [], sources: { other: 'offline' } })
  t.match(await get('?model=nobody'), { error: { code: 'model.not_found' } })
  t.match(await get('?model=agent'), { error: { code: 'dispatch.no_route' } })
  await gateway.slots.unload('tts')
  t.same(await get(), { voices: listed, sources: { tts: 'offline', other: 'offline' } }, 'one that is not up has the voices it last told')
})
