import t, { type Test } from 'tap'
import { apiOf, type Answer, type Api } from '../support.js'
import { ANCHOR, engines, files } from './host.js'

const api = apiOf('api-capabilities', 'capabilities', 'library')

function start (t: Test, more: Record<string, string> = {}): Promise<Api> {
  return api(t, { providers: engines, files: { ...files, ...more } })
}

async function select (gateway: Api, place: string, body: object): Promise<Answer> {
  return await gateway.call('POST', `/api/capabilities/${place}`, body)
}

t.test('what there is and what could be', async t => {
  const gateway = await start(t)
  const { json } = await gateway.call('GET', '/api/capabilities')
  t.match(json.backends, [
    { id: 'npu', provider: 'npu-rt', multiplex: true }, { id: 'gpu-vulkan', provider: 'llm-server', multiplex: false },
    { id: 'gpu-rocm', provider: 'llm-server' }, { id: 'cpu', provider: 'llm-server' }
  ])
  t.same(Object.keys(json.catalogs), ['chat', 'embed', 'voice', 'img', 'vision'])
  t.same(json.selections.voice.tts, { device: null, backend: null, provider: null, model: null, enabled: false, slot: 'tts', status: 'offline' })
  const row = (group: string, child: string, id: string): { backends: Array<Record<string, unknown>> } =>
    json.catalogs[group][child].find((candidate: { id: string }) => candidate.id === id)
  t.same(row('embed', 'embed', 'nomic').backends.map(({ id }) => id), ['gpu-vulkan', 'gpu-rocm', 'cpu'], 'not on the NPU unless it says so')
  t.match(row('embed', 'embed', 'nomic').backends[1], { provider: 'llm-server', profile: 'embed', runtime_family: 'llm-server', downloaded: true, fit_status: 'fits' })
  t.same(row('embed', 'embed', 'rocm-only').backends.map(({ id }) => id), ['gpu-rocm'])
  t.match(row('embed', 'embed', 'big').backends, [{ fit_status: 'spills' }, { fit_status: 'spills' }, { fit_status: 'fits' }])
  t.match(row('embed', 'embed', 'npu-embed').backends, [{ id: 'npu', provider: 'npu-rt' }], 'what the NPU engine brings along')
  t.match(row('chat', 'chat', 'npu-only').backends, [{ id: 'npu', provider: 'npu-rt' }])
  t.match(row('voice', 'tts', 'kokoro').backends, [{ id: 'cpu', provider: 'tts-cpu' }])
})

t.test('a capability is switched on, moved to another model, and switched off', async t => {
  const gateway = await start(t)
  const on = await select(gateway, 'embed/embed', { model: 'nomic', enabled: true, backend: 'cpu' })
  t.equal(on.status, 200)
  t.same(on.json, {
    ok: true,
    selection: { device: 'cpu', provider: 'llm-server', model: 'nomic', enabled: true, slot: 'embed', status: 'ready', pending_reload: false }
  })
  t.match(gateway.slots.config('embed'), { type: 'embedding', device: 'cpu', provider: 'llm-server', port: undefined, model: { default: 'nomic' } }, 'the slot is made')
  t.match(await gateway.file('etc/svc/capabilities.toml'), /schema_version = 2[^]*\[selections\.embed\.embed\]\ndevice = "cpu"/)
  const { generation } = gateway.slots.status('embed')

  await select(gateway, 'embed/embed', { enabled: true })
  t.equal(gateway.slots.status('embed').generation, generation, 'nothing changed, nothing restarts')
  const swapped = await select(gateway, 'embed/embed', { model: 'big' })
  t.match(swapped.json.selection, { device: 'cpu', model: 'big', status: 'ready' })
  t.equal(gateway.slots.status('embed').modelId, 'big')
  t.ok(gateway.slots.status('embed').generation > generation, 'the engine follows')

  const off = await select(gateway, 'embed/embed', { enabled: false })
  t.match(off.json.selection, { enabled: false, model: 'big', status: 'offline' })
  t.equal(gateway.slots.config('embed').enabled, false, 'and it stays off at the next start')
  t.match((await select(gateway, 'embed/embed', { enabled: true })).json.selection, { model: 'big', device: 'cpu', status: 'ready' })
  t.match(gateway.audit().filter(row => row.category === 'capability').at(-1), {
    action: 'capability.apply', target: 'embed/embed', outcome: 'ok', before: { enabled: false }, after: { model: 'nomic', enabled: true }
  })
})

t.test('a device that is gone: what was chosen stays and says so', async t => {
  const gateway = await start(t)
  const answer = await select(gateway, 'embed/embed', { model: 'nomic', device: 'gpu-rocm', enabled: true })
  // this machine has no such device node, whatever the probe said
  t.match(answer, { status: 503, json: { error: { code: 'capability.apply_failed', details: { slot: 'embed', reason: 'slot.load_failed' } } } })
  t.match(gateway.slots.config('embed'), { device: 'gpu-rocm', model: { default: 'nomic' } })
  t.equal(gateway.slots.outlook('embed').profile, 'embed')
})

t.test('what follows from what is given', async t => {
  const gateway = await start(t)
  t.match((await select(gateway, 'voice/stt', { model: 'whisper', enabled: true })).json.selection, { device: 'cpu', provider: 'stt-engine', slot: 'stt' })
  await select(gateway, 'voice/tts', { enabled: true })
  t.match(gateway.slots.config('tts'), { device: 'gpu-vulkan', provider: 'tts-gpu', model: { default: null } }, 'an engine without models')
  t.match((await select(gateway, 'voice/tts', { device: 'cpu' })).json.selection, { device: 'cpu', provider: 'tts-cpu', status: 'ready' }, 'the device switches the engine')
  const { catalogs } = (await gateway.call('GET', '/api/capabilities')).json
  t.match(catalogs.embed.rerank, [{ id: 'judge', size_gb: 0.0046 }], 'a small model has a size')
  t.match((await select(gateway, 'embed/rerank', { model: 'judge', enabled: true, device: 'cpu' })).json.selection, { slot: 'rerank' })
  t.match((await select(gateway, 'embed/embed', { model: 'silent' })).json.selection, { model: 'silent', enabled: false }, 'a model that tells nothing of itself is trusted')
  t.notOk(gateway.slots.names().includes('embed'), 'what is off makes no slot')
})

t.test('a slot with the older name', async t => {
  const gateway = await start(t, { 'etc/svc/slots/embed-rerank.toml': 'type = "reranking"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8090\n' })
  t.match((await select(gateway, 'embed/rerank', { model: 'judge', enabled: true, device: 'cpu' })).json.selection, { slot: 'embed-rerank' })
  t.notOk(gateway.slots.names().includes('rerank'))
})

t.test('a selection that cannot work is refused, and nothing is written', async t => {
  const gateway = await start(t, { 'etc/svc/slots/tts.toml': 'type = "llm"\nprovider = "llm-server"\ndevice = "cpu"\nport = 8090\n' })
  const cases: ReadonlyArray<readonly [string, object, number, string, RegExp?]> = [
    ['ears/stt', {}, 400, 'capability.unknown_slot', /embed, voice, img, vision/],
    ['voice/embed', {}, 400, 'capability.unknown_child', /stt, tts/],
    ['embed/embed', { modle: 'x' }, 400, 'capability.unknown_fields', /modle/],
    ['embed/embed', { backend: 'steam' }, 400, 'capability.invalid_selection'],
    ['embed/embed', { backend: 'rocm', device: 'cpu' }, 400, 'capability.invalid_selection', /contradicts/],
    ['embed/embed', { provider: 'nobody' }, 400, 'capability.invalid_selection', /llm-server/],
    ['embed/embed', { device: 'abacus' }, 400, 'validation.invalid'],
    ['embed/embed', { model: 'none', enabled: true }, 404, 'capability.unknown_model'],
    ['embed/embed', { model: 'judge', enabled: true }, 404, 'capability.unknown_model'],
    ['embed/embed', { model: 'rocm-only', device: 'cpu' }, 400, 'capability.illegal_backend_model_pair', /runs on gpu-rocm/],
    ['embed/embed', { model: 'rocm-only', device: 'npu' }, 400, 'capability.illegal_backend_model_pair'],
    ['embed/embed', { model: 'huge' }, 400, 'capability.illegal_model_fit', /too large/],
    ['voice/stt', { enabled: true, device: 'cpu' }, 400, 'capability.invalid_selection', /needs a model/],
    ['voice/stt', { enabled: true, device: 'npu' }, 400, 'capability.invalid_selection', /no llm slot is on the NPU/],
    ['voice/tts', { enabled: true }, 400, 'capability.invalid_selection', /an llm slot; rename or delete/]
  ]
  for (const [place, body, status, code, message = /./] of cases) {
    const answer = await select(gateway, place, body)
    t.match(answer, { status, json: { error: { code, message } } }, `${place} ${JSON.stringify(body)}: ${answer.text}`)
  }
  const pair = await select(gateway, 'embed/embed', { model: 'rocm-only', device: 'cpu' })
  t.same(pair.json.error.details.legal_backends, ['gpu-rocm'])
  await t.rejects(gateway.file('etc/svc/capabilities.toml'), 'nothing was written')
  t.same(gateway.slots.names(), ['agent', 'tts'])
})

t.test('an engine that does not follow: the selection is kept', async t => {
  const gateway = await api(t, {
    providers: engines, files, onStart: ({ slot }) => { if (slot === 'embed') throw new Error('no luck') }
  })
  const answer = await select(gateway, 'embed/embed', { model: 'nomic', enabled: true })
  t.match(answer, { status: 503, json: { error: { code: 'capability.apply_failed', message: /is saved, but slot 'embed' failed to apply it/, details: { slot: 'embed' } } } })
  t.match((await gateway.call('GET', '/api/capabilities')).json.selections.embed.embed, { model: 'nomic', enabled: true, status: 'error' })
  t.match(gateway.audit().find(row => row.category === 'capability'), { outcome: 'error' })
})

t.test('the NPU anchor serves speech and embeddings beside its chat model', async t => {
  const gateway = await start(t, { 'etc/svc/slots/npu.toml': ANCHOR })
  const on = await select(gateway, 'voice/stt', { device: 'npu', enabled: true })
  t.match(on.json.selection, { device: 'npu', provider: 'npu-rt', model: 'npu-whisper', pending_reload: true })
  t.match(gateway.slots.config('npu').npu, { chat: true, asr: true, embed: false })
  t.notOk(gateway.slots.names().includes('stt'), 'no engine of its own')
  t.equal(gateway.slots.status('npu').state, 'offline', 'when the anchor is loaded is for its operator to say')
  await select(gateway, 'embed/embed', { device: 'npu', enabled: true })
  t.match(gateway.slots.config('npu').npu, { chat: true, asr: true, embed: true })
  t.match((await gateway.call('GET', '/api/capabilities')).json.selections.embed.embed, { device: 'npu', status: 'offline' })

  const left = await select(gateway, 'embed/embed', { device: 'cpu', model: 'nomic' })
  t.match(left.json.selection, { device: 'cpu', model: 'nomic', slot: 'embed', status: 'ready' })
  t.match(gateway.slots.config('npu').npu, { chat: true, asr: true, embed: false }, 'leaving takes the toggle back')
  const back = await select(gateway, 'embed/embed', { device: 'npu' })
  t.match(back.json.selection, { device: 'npu', model: 'npu-embed', pending_reload: true })
  t.equal(gateway.slots.config('embed').enabled, false, 'the engine it had goes')
  await select(gateway, 'voice/stt', { enabled: false })
  t.match(gateway.slots.config('npu').npu, { asr: false })
})

t.test('a selection that is no longer possible is replaced by one that is', async t => {
  const gateway = await start(t, {
    'etc/svc/capabilities.toml': `schema_version = 1
[selections.embed.embed] # mine
backend = "cpu"
provider = "llama-server"
model = "rocm-only"
enabled = true
[selections.embed.rerank]
backend = "vulkan"
provider = "llama-server"
model = "judge"
enabled = true
[selections.voice.stt]
backend = "cpu"
provider = "moonshine"
model = "gone"
enabled = true
[selections.voice.tts]
backend = ""
provider = ""
model = ""
`
  })
  const migrate = (dryRun: boolean): Promise<Answer> => gateway.call('POST', '/api/capabilities/migrate', { dry_run: dryRun })
  const before = await gateway.file('etc/svc/capabilities.toml')
  const dry = await migrate(true)
  t.match(dry.json, {
    dry_run: true,
    changed: 2,
    rows: [
      { slot: 'embed', child: 'embed', model: 'rocm-only', verdict: 'illegal_backend', before: 'cpu/llm-server', after: 'gpu-rocm/llm-server' },
      { child: 'rerank', verdict: 'ok', before: 'gpu-vulkan/llm-server', after: 'gpu-vulkan/llm-server' },
      { child: 'stt', model: 'gone', verdict: 'unknown_model', before: 'cpu/stt-engine', after: 'cpu/stt-engine (off)' },
      { child: 'tts', verdict: 'empty' }
    ]
  })
  t.equal(await gateway.file('etc/svc/capabilities.toml'), before)
  const done = await migrate(false)
  t.same(done.json.rows, dry.json.rows, 'it does what the dry run said')
  t.match(await gateway.file('etc/svc/capabilities.toml'), /schema_version = 2[^]*# mine[^]*device = "gpu-rocm"/)
  t.equal(await gateway.file('etc/svc/capabilities.toml.v1.bak'), before)
  t.match((await migrate(false)).json, { changed: 0 }, 'once is enough')
})
