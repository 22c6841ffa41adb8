import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import audioRoutes from '../../plugins/v1/audio/index.js'
import { chatAnswer, chatStream, createFakeProviderPlugin } from '../../kernel/testing/index.js'
import { post, rawClient } from './connection/raw-client.js'
import { until, wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(Array.from({ length: 40 }, (_, i) => ` w${i}`))
const slotFile = (more: string, model = 'fake-model'): string => `provider = "fake"\ndevice = "cpu"\n${more}\n[model]\ndefault = "${model}"\n`
const registry = '[models.fake-model]\nname = "Fake"\npath = "/dev/null"\n[models.other]\npath = "/dev/null"\n[models.third]\npath = "/dev/null"\n'

interface Streaming extends WireGateway {
  /** The stream that runs, once it is over. */
  readonly text: Promise<string>
}

async function streaming (t: Test, options: WireOptions = {},
  script: { everyMs?: number, hangAfter?: number } = { everyMs: 3 }): Promise<Streaming> {
  const gateway = await wireGateway(t, options)
  await (await gateway.chat({})).text()
  gateway.runtime.engine('agent').answer(({ body }) => body.includes('"stream":true')
    ? { headers: SSE, chunks: words, ...script }
    : { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('plain')] })
  const response = await gateway.chat({ stream: true })
  return Object.assign(gateway, { text: response.text().catch((error: Error) => `broken: ${error.message}`) })
}

async function edit (gateway: WireGateway, path: string, content: string): Promise<void> {
  await writeFile(join(gateway.home, path), content)
  await gateway.gateway.kernel().config.reload()
}

async function outcome (gateway: WireGateway, model: string): Promise<string> {
  const response = await gateway.chat({ model })
  const body = await response.json() as { error?: { code: string } }
  return body.error === undefined ? `answered ${(JSON.parse(gateway.runtime.engine('agent').requests.at(-1)!.body.toString()) as { model: string }).model}` : body.error.code
}

t.test('a reload of the configuration leaves a stream alone; a slot that is edited runs on as it is until it is restarted', async t => {
  const gateway = await streaming(t, { files: { 'var/lib/svc/registry/registry.toml': registry } })
  const { slots } = gateway.gateway.inference()
  await edit(gateway, 'etc/svc/slots/agent.toml', slotFile('server.env = { NEW = "1" }', 'other'))
  await edit(gateway, 'etc/svc/svc.toml', '[slots]\nautostart = false\nidle_timeout_s = 77\n[server]\nallowed_hosts = ["new.name"]\n')
  t.match(slots.status('agent'), { state: 'serving', modelId: 'fake-model', configDrift: true })
  t.equal(await outcome(gateway, 'fake-model'), 'answered fake-model')
  t.equal(await outcome(gateway, 'agent'), 'answered fake-model', 'the name of the slot means what it runs')
  t.equal(await outcome(gateway, 'other'), 'model.not_loaded', 'never another model than the one asked for')
  t.equal(await gateway.text, words.join(''))
  await slots.restart('agent')
  t.match(slots.status('agent'), { modelId: 'other', configDrift: false })
  t.equal(await outcome(gateway, 'other'), 'answered other')
  t.equal(await outcome(gateway, 'fake-model'), 'model.not_loaded')
  await edit(gateway, 'etc/svc/slots/agent.toml', 'device = "toaster"\n')
  t.equal(await outcome(gateway, 'agent'), 'answered other', 'a broken file changes nothing')
})

t.test('a slot that is deleted while it streams', async t => {
  t.test('lets the stream end', async t => {
    const gateway = await streaming(t)
    const { slots, dispatcher } = gateway.gateway.inference()
    const deleting = slots.delete('agent')
    await until(() => !slots.names().includes('agent'), 'the name is free')
    t.equal(await outcome(gateway, 'agent'), 'model.not_found')
    t.equal(await gateway.text, words.join(''))
    await deleting
    t.equal(gateway.runtime.running, 0)
    t.equal(dispatcher.active.size, 0)
  })
  t.test('and created anew at once: the new one has its own engine, after the old one', async t => {
    const gateway = await streaming(t)
    const { slots } = gateway.gateway.inference()
    const deleting = slots.delete('agent')
    await until(() => !slots.names().includes('agent'), 'the name is free')
    await slots.create('agent', { provider: 'fake', device: 'cpu', model: 'fake-model' })
    const next = gateway.chat({ n: 2 })
    t.equal(await gateway.text, words.join(''))
    t.equal((await next).status, 200)
    await deleting
    t.equal(gateway.runtime.started.length, 2)
    t.equal(gateway.runtime.running, 1)
    t.match(slots.status('agent'), { state: 'ready' })
  })
  t.test('by force ends the stream with an error event', async t => {
    const gateway = await streaming(t, {}, { hangAfter: 4 })
    await gateway.gateway.inference().slots.delete('agent', { force: true })
    const text = await gateway.text
    t.match(text, /\n\ndata: \{"error":\{"code":"slot\.stopped".*was unloaded while the request ran.*\n\n$/)
    t.notMatch(text, /\[DONE\]/)
    t.equal(gateway.runtime.running, 0)
  })
})

t.test('a slot that is disabled while it streams lets the stream end and takes nothing new', async t => {
  const gateway = await streaming(t)
  await edit(gateway, 'etc/svc/slots/agent.toml', slotFile('enabled = false'))
  t.equal(await outcome(gateway, 'agent'), 'model.not_loaded')
  t.equal(await gateway.text, words.join(''))
  await until(() => gateway.runtime.running === 0, 'then it goes')
  await edit(gateway, 'etc/svc/slots/agent.toml', slotFile('enabled = true'))
  t.equal(await outcome(gateway, 'agent'), 'answered fake-model')
})

t.test('an unload that waits for a stream ends it when the time is over', async t => {
  const gateway = await streaming(t, { svc: 'drain_timeout_s = 0.05\n' }, { hangAfter: 4 })
  await gateway.gateway.inference().slots.unload('agent')
  t.match(await gateway.text, /"code":"slot\.stopped"/)
  t.equal(await outcome(gateway, 'agent'), 'answered fake-model', 'and the next request brings the slot back')
})

t.test('an unload by force tells every request in flight that its slot was stopped, and waits for no client', async t => {
  const gateway = await streaming(t, { plugins: [audioRoutes], svc: 'stop_timeout_s = 600\n' }, { hangAfter: 4 })
  const engine = gateway.runtime.engine('agent')
  const flood = Buffer.alloc(1024 * 1024, ': nothing\n\n')
  engine.answer(({ body }) => body.includes('"n":1') ? { headers: SSE, chunks: Array<Buffer>(64).fill(flood) } : { headAfterMs: Infinity })
  const deaf = await rawClient(t, gateway.baseUrl)
  deaf.socket.pause()
  deaf.send(post('/v1/chat/completions', '{"model":"agent","stream":true,"n":1,"messages":[]}'))
  const plain = gateway.chat({ n: 2 })
  await until(() => gateway.slots.status('agent').inFlight === 3, 'all are on their way')
  await engine.request(3)
  await gateway.slots.unload('agent', { force: true })
  t.equal(gateway.slots.status('agent').state, 'offline')
  t.match(await gateway.text, /"code":"slot\.stopped"/)
  const refused = await plain
  t.match([refused.status, refused.headers.get('retry-after')], [503, '1'])
  t.match(await refused.json(), { error: { code: 'slot.stopped', details: { slot: 'agent', reason: 'unloaded' } } })
  deaf.socket.resume()
  await deaf.seen(/"code":"slot\.stopped"/)
})

t.test('a restart in the middle of a stream says that it was one', async t => {
  const gateway = await streaming(t, { svc: 'drain_timeout_s = 0.05\n' }, { hangAfter: 4 })
  await gateway.slots.restart('agent')
  t.match(await gateway.text, /"code":"slot\.stopped".*was restarted while the request ran/)
  t.equal(gateway.slots.status('agent').state, 'ready')
})

t.test('an upload in flight hears that its slot was stopped', async t => {
  const gateway = await wireGateway(t, {
    plugins: [audioRoutes], files: { 'etc/svc/slots/ear.toml': 'type = "transcription"\nprovider = "fake"\ndevice = "cpu"\n' }
  })
  await gateway.slots.load('ear')
  gateway.runtime.engine('ear').answer({ headAfterMs: Infinity })
  const form = new FormData()
  form.set('model', 'ear')
  form.set('file', new Blob(['sound']), 'a.wav')
  const answer = fetch(`${gateway.baseUrl}/v1/audio/transcriptions`, { method: 'POST', body: form })
  await gateway.runtime.engine('ear').request(0)
  await gateway.slots.unload('ear', { force: true })
  t.match([(await answer).status, await (await answer).json()], [503, { error: { code: 'slot.stopped' } }])
})

t.test('a swap that fails leaves the slot on its model, and a later one takes over', async t => {
  let release = (): void => {}
  const open = (): Promise<void> => new Promise(resolve => { release = resolve })
  let gate = Promise.resolve()
  let fails = false
  const more = '[models.lost]\npath = "/nowhere/lost.gguf"\n[models.judge]\npath = "/dev/null"\ncapabilities = ["rerank"]\n' +
    '[models.giant]\npath = "/dev/null"\nsize_bytes = 9000000000000\n' +
    '[models.far]\npath = "/dev/null"\ndefaults = { profile = "far" }\n'
  const gateway = await wireGateway(t, {
    onStart: () => {
      if (fails && slots.status('agent').modelId === 'other') throw new Error('no memory for it')
      return gate
    },
    plugins: [createFakeProviderPlugin({ name: 'filed', takesModel: true })],
    files: {
      'etc/svc/profiles.toml': '[profile.far]\nimage = "example.org/far:1"\ndevice_class = "cpu"\n',
      'etc/svc/slots/agent.toml': slotFile('').replace('"fake"', '"filed"'),
      'var/lib/svc/registry/registry.toml': registry + more
    }
  })
  const { slots, plans } = gateway.gateway.inference()
  const code = (work: Promise<void>): Promise<string> => work.then(() => 'done', (error: { code: string }) => error.code)

  t.test('one that comes while a load runs takes over, and whoever waits gets the new model', async t => {
    gate = open()
    const waiting = gateway.chat({})
    await until(() => slots.status('agent').waiting === 1, 'a request waits')
    const swapped = code(slots.swap('agent', 'other'))
    await until(() => plans.modelId('agent') === 'other', 'the swap is in force')
    gate = Promise.resolve()
    release()
    t.equal(await swapped, 'done')
    t.equal((await waiting).status, 200)
    t.equal(slots.status('agent').modelId, 'other')
    t.equal(gateway.runtime.running, 1)
  })
  t.test('one that is answered is on the disk, and so is the way back', async t => {
    const recorded = async (): Promise<unknown> =>
      (JSON.parse(await readFile(join(gateway.home, 'var/lib/svc/slots/agent/state.json'), 'utf8')) as { extra: unknown }).extra
    await slots.swap('agent', 'third')
    t.match(await recorded(), { override: 'third', override_of: 'fake-model' })
    await slots.swap('agent', 'fake-model')
    t.match(await recorded(), { override: null })
    fails = true
    t.equal(await code(slots.swap('agent', 'other')), 'slot.load_failed')
    fails = false
    t.match(await recorded(), { override: null })
    await slots.swap('agent', 'other')
  })
  t.test('of two at once the later one counts, and the earlier one hears of it', async t => {
    gate = open()
    const first = code(slots.swap('agent', 'third'))
    await until(() => slots.status('agent').state !== 'ready' && slots.status('agent').state !== 'unloading', 'it is on its way')
    const second = code(slots.swap('agent', 'fake-model'))
    await until(() => plans.modelId('agent') === 'fake-model', 'the second is in force')
    gate = Promise.resolve()
    release()
    t.strictSame(await Promise.all([first, second]), ['slot.stopped', 'done'])
    t.equal(slots.status('agent').modelId, 'fake-model')
  })
  t.test('to a model that is not there leaves the slot alone', async t => {
    const before = slots.status('agent').generation
    t.equal(await code(slots.swap('agent', 'nobody')), 'model.not_found')
    t.equal(slots.status('agent').generation, before)
  })
  t.test('nothing stops for a model that could not be loaded: its file, its type, its size, its image', async t => {
    const { runtime } = gateway
    runtime.imagePresent = () => Promise.resolve(slots.status('agent').modelId === 'far')
    runtime.pull = () => Promise.reject(new Error('manifest unknown'))
    const before = slots.status('agent')
    t.equal(before.state, 'ready')
    for (const [model, message] of [
      ['lost', /cannot switch to 'lost'.*cannot be read at \/nowhere\/lost\.gguf; it keeps running 'fake-model'/],
      ['judge', /'judge' is a model for rerank, but the slot is of type llm/],
      ['giant', /does not fit cpu/],
      ['far', /cannot switch to 'far': .*manifest unknown; it keeps running 'fake-model'/]
    ] as const) {
      await t.rejects(slots.swap('agent', model), { code: 'slot.config_error', param: 'model', message }, model)
      t.match(slots.status('agent'), { state: 'ready', generation: before.generation, modelId: 'fake-model' }, model)
    }
    runtime.imagePresent = () => Promise.resolve(true)
  })
  t.test('one that fails goes back to what ran, and says so', async t => {
    fails = true
    await t.rejects(slots.swap('agent', 'other'), {
      code: 'slot.load_failed', message: /could not switch to 'other'.*no memory for it; it is back on 'fake-model'/, details: { restored: 'fake-model' }
    })
    fails = false
    t.match(slots.status('agent'), { state: 'ready', modelId: 'fake-model', configDrift: false })
    t.equal(await outcome(gateway, 'agent'), 'answered fake-model')
    await slots.unload('agent')
    fails = true
    await t.rejects(slots.swap('agent', 'other'), { code: 'slot.load_failed', message: /the slot keeps its previous model/ })
    fails = false
    t.match(slots.status('agent'), { state: 'offline', modelId: 'fake-model' })
    t.equal(await outcome(gateway, 'agent'), 'answered fake-model', 'the next request loads what the file says')
  })
  t.test('a load of another model is written down once it serves', async t => {
    t.equal(await code(slots.load('agent', { model: 'third' })), 'done')
    t.equal(slots.config('agent').model.default, 'third')
    t.match(slots.status('agent'), { modelId: 'third', configDrift: false })
    await edit(gateway, 'etc/svc/slots/agent.toml', slotFile('', 'other'))
    t.equal(await code(slots.load('agent', { model: 'other' })), 'done')
    t.match(slots.status('agent'), { modelId: 'other' }, 'also when the file has it already and the engine has not')
  })
})

t.test('a model brings the profile it prefers, when the slot is given that model for good', async t => {
  const gateway = await wireGateway(t, {
    files: {
      'etc/svc/profiles.toml': '[profile.tuned]\nimage = "example.org/x:1"\ndevice_class = "cpu"\n[profile.wrong]\nimage = "example.org/x:1"\nbackend = "rocm"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n' +
        '[models.likes-tuned]\npath = "/dev/null"\ndefaults = { profile = "tuned" }\n[models.likes-wrong]\npath = "/dev/null"\ndefaults = { profile = "wrong" }\n'
    }
  })
  const { slots } = gateway.gateway.inference()
  await slots.load('agent', { model: 'likes-tuned' })
  t.match(slots.config('agent'), { profile: 'tuned', model: { default: 'likes-tuned' } })
  t.match(slots.status('agent'), { modelId: 'likes-tuned', configDrift: false })
  await slots.update('agent', { model: { default: 'likes-wrong' } })
  t.match(slots.config('agent'), { profile: 'tuned', model: { default: 'likes-wrong' } }, 'one that does not fit is skipped')
  const skipped = gateway.gateway.kernel().events.list({ type: 'slot.preferred_profile_skipped' }).events
  t.match(skipped.at(-1), { data: { model: 'likes-wrong', profile: 'wrong' } })
  await slots.update('agent', { model: { default: 'fake-model' }, profile: null })
  t.equal(slots.config('agent').profile, null)
  await slots.update('agent', { model: { default: 'likes-tuned' }, profile: null })
  t.equal(slots.config('agent').profile, null, 'who says what he wants gets it')
})

t.test('every call about an unknown slot fails with slot.not_found', async t => {
  const { slots } = (await wireGateway(t)).gateway.inference()
  for (const [what, call] of Object.entries({
    status: () => slots.status('nobody'), metrics: () => slots.metrics('nobody'), config: () => slots.config('nobody'), resolved: () => slots.resolved('nobody'),
    acquire: () => slots.tryAcquire('nobody'), client: () => slots.client('nobody')
  })) t.throws(call, { code: 'slot.not_found', status: 404 }, what)
  await t.rejects(async () => await slots.load('nobody'), { code: 'slot.not_found' })
  await t.rejects(async () => await slots.restart('nobody'), { code: 'slot.not_found' })
})
