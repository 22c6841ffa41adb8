import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeProvider } from '../../../kernel/testing/index.js'
import { definePlugin } from '../../../kernel/contract/index.js'
import { ggufFile, number, text } from '../../kernel/models/gguf-file.js'
import { watchedOps } from '../../kernel/config/change.js'
import { FakeHub, patternBytes } from '../services/hub/fake-hub.js'
import { AGENT, apiOf, until, type Api, type ApiOptions } from './support.js'

const api = apiOf('api-models', 'api-hf', 'hub', 'library', 'pull', 'api-slots')

/** A gateway with some model files in its store, and nothing scanned yet. */
async function withFiles (t: Test, options: ApiOptions = {}): Promise<Api & { readonly store: string }> {
  const gateway = await api(t, { ...options, svc: `${options.svc ?? ''}[models]\nauto_scan_on_start = false\n` })
  const store = join(gateway.home, 'var/lib/svc/models')
  const put = (path: string, bytes: Buffer | string): void => {
    mkdirSync(join(store, path, '..'), { recursive: true })
    writeFileSync(join(store, path), bytes)
  }
  put('Qwen-4B-Q4_K_M.gguf', ggufFile({
    architecture: 'qwen3',
    keys: {
      'general.name': text('Qwen 4B'),
      'general.license': text('apache-2.0'),
      'qwen3.context_length': number(40_960),
      'tokenizer.chat_template': text('{% for t in tools %}{% endfor %}')
    }
  }))
  put('split/big-00001-of-00002.gguf', ggufFile())
  put('split/big-00002-of-00002.gguf', ggufFile())
  put('torn/half-00001-of-00002.gguf', ggufFile())
  put('see/Sight-4B-Q8_0.gguf', ggufFile({ architecture: 'gemma3' }))
  put('see/mmproj-model-f16.gguf', ggufFile({ architecture: 'clip' }))
  put('chat/own-name/model.gguf', ggufFile())
  put('chat/own-name/meta.json', JSON.stringify({ model_id: 'org/own', license: 'mit', hf_repo: 'org/own-GGUF', hf_file: 'own.gguf' }))
  put('broken.gguf', ggufFile().subarray(0, 100))
  put('comfyui/models/checkpoints/paint.safetensors', 'weights')
  put('comfyui/models/vae/vae.safetensors', 'weights')
  put('who-knows.safetensors', 'weights')
  put('.tmp/half.gguf', ggufFile())
  put('notes.txt', 'x')
  symlinkSync(store, join(store, 'circle'))
  return Object.assign(gateway, { store })
}

t.test('files: preview, scan, and rows that were chosen', async t => {
  const gateway = await withFiles(t)
  const { store } = gateway
  const { json: { preview, count } } = await gateway.call('POST', '/api/models/scan/preview', { paths: [store] })
  t.equal(count, 9)
  const of = (name: string) => preview.find((row: { path: string }) => row.path.endsWith(name))
  t.match(of('Qwen-4B-Q4_K_M.gguf'), {
    suggested_id: 'Qwen-4B-Q4_K_M', suggested_name: 'Qwen 4B', suggested_capabilities: ['chat'], suggested_backends: ['vulkan', 'rocm', 'cuda', 'cpu'],
    context_length: 40_960, kind: 'model', problem: null, confidence: 0.95, raw_hints: { architecture: 'qwen3', quant: 'Q4_K_M' }
  })
  t.match(of('big-00001-of-00002.gguf'), { suggested_id: 'big', size_bytes: 2 * ggufFile().length, problem: null })
  t.match(of('half-00001-of-00002.gguf'), { problem: /part half-00002-of-00002\.gguf is missing/ })
  t.match(of('Sight-4B-Q8_0.gguf'), { suggested_capabilities: ['chat', 'vision'] }, 'a projector lies beside it')
  t.match(of('model.gguf'), { suggested_id: 'org/own' }, 'what a pull left beside it')
  t.match(of('broken.gguf'), { kind: 'unknown', confidence: 0, problem: /truncated|header/ })
  t.match(of('paint.safetensors'), { suggested_capabilities: ['image'], kind: 'model', problem: null })
  t.match(of('vae.safetensors'), { problem: /belongs to an image model/ })
  t.match(of('who-knows.safetensors'), { kind: 'unknown', problem: /its use is unknown/ })
  t.match((await gateway.call('POST', '/api/models/scan/preview', { paths: [store], recursive: false })).json, { count: 3 })
  t.match((await gateway.call('POST', '/api/models/scan/preview', { paths: ['/nowhere'] })).json, { count: 0 })
  for (const body of [{}, { paths: [] }, { paths: ['relative'] }]) t.equal((await gateway.call('POST', '/api/models/scan/preview', body)).status, 400)

  const chosen = await gateway.call('POST', '/api/models/scan', {
    rows: [
      { path: join(store, 'who-knows.safetensors'), id: 'mystery', capabilities: ['stt'] },
      { path: join(store, 'see/Sight-4B-Q8_0.gguf'), name: 'Eyes', defaults: { context_size: 8192, profile: 'vulkan' } },
      { path: join(store, 'broken.gguf') }, { path: join(store, 'who-knows.safetensors') }, { path: '/nowhere.gguf' }, { id: 'x' }, 7,
      { path: join(store, 'x.gguf'), defaults: { context_size: 1 } }, { path: join(store, 'x.gguf'), colour: 'red' }, { path: 'relative.gguf' }
    ]
  })
  t.same(chosen.json.added, ['mystery', 'Sight-4B-Q8_0'])
  t.match(chosen.json.skipped.map(({ reason }: { reason: string }) => reason), [
    /invalid_model: .*(truncated|header)/, 'already_registered', /invalid_model: .*does not exist/, 'missing_path', 'row_not_an_object', 'invalid_defaults',
    /invalid_model: .*colour/i, /invalid_model: .*absolute/
  ])
  t.match((await gateway.call('GET', '/api/models/Sight-4B-Q8_0')).json, {
    name: 'Eyes', defaults: { context_size: 8192, profile: 'vulkan' }, mmproj: join(store, 'see/mmproj-model-f16.gguf'), metadata: { source: 'scan' }
  })
  t.match((await gateway.call('GET', '/api/models/mystery')).json, { type: 'stt', capabilities: ['asr'] })

  const { json: scanned } = await gateway.call('POST', '/api/models/scan')
  t.same([...scanned.added].sort(), ['Qwen-4B-Q4_K_M', 'big', 'org/own', 'paint'])
  t.same(scanned.scanned_roots, [store])
  t.match((await gateway.call('GET', '/api/models/org%2Fown')).json, {
    license: 'mit', hf_repo: 'org/own-GGUF', hf_filename: 'own.gguf', metadata: { architecture: 'llama', source: 'scan', added_at: Number }
  })
  t.match((await gateway.call('GET', '/api/models/Qwen-4B-Q4_K_M')).json, {
    license: 'apache-2.0', tags: ['tool-calling'], metadata: { context_length: 40_960, has_chat_template: true }, size_bytes: Number
  })
  t.same((await gateway.call('POST', '/api/models/scan')).json.added, [], 'a second scan finds nothing new')
  const { events } = gateway.gateway.kernel().events.list({ type: 'model.*' })
  t.equal(events.filter(({ type }) => type === 'model.registered').length, 6)
  t.match(events.at(-1), { source: /^model:/, data: { id: String, backends: Array, capabilities: Array, source: 'scan' } })
  t.match(gateway.audit().find(row => row.action === 'model.scan'), { category: 'model', outcome: 'ok', actor: 'dashboard' })
})

t.test('models that lie in the store are found when the gateway starts', async t => {
  const home = t.testdir({ var: { lib: { svc: { models: {} } } } })
  writeFileSync(join(home, 'var/lib/svc/models/found-me.gguf'), ggufFile())
  const { createTestGateway, FakeEngineRuntime } = await import('../../../kernel/testing/index.js')
  const { default: library } = await import('../../../plugins/services/library/index.js')
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ home, runtime, plugins: [library] })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  await until(() => gateway.gateway.kernel().models.get('found-me') !== undefined, 'the file is registered')
  await until(() => gateway.logs.some(({ message }) => /found models/.test(message)), 'it is told')
})

t.test('the registry: register, change, forget', async t => {
  const gateway = await withFiles(t)
  const { store } = gateway
  const created = await gateway.call('POST', '/api/models', { id: 'a/b', path: join(store, 'split'), license: 'mit', capabilities: ['embed'], source: 'test-kit' })
  t.equal(created.status, 201)
  t.match(created.json, {
    id: 'a/b', path: join(store, 'split'), object: 'model', owned_by: 'local', installed: true, ns: 'pulled', type: 'embed', metadata: { source: 'test-kit' }
  })
  t.ok(created.json.created > 1_600_000_000)
  t.match(await gateway.call('POST', '/api/models', { id: 'a/b', path: store }), { status: 409, json: { error: { code: 'model.already_exists' } } })
  t.match(await gateway.call('POST', '/api/models', { id: 'x', path: 'm.gguf' }), { status: 400, json: { error: { code: 'validation.invalid' } } })
  t.match(await gateway.call('POST', '/api/models', { id: 'two words', path: store }), { status: 400, json: { error: { param: 'id' } } })
  t.match(await gateway.call('POST', '/api/models', { id: 'x', path: store, colour: 1 }), { status: 400, json: { error: { code: 'validation.unknown_keys' } } })

  t.match((await gateway.call('POST', '/api/models', { id: 'told', path: join(store, 'Qwen-4B-Q4_K_M.gguf'), license: 'mine', metadata: { note: 1 } })).json, {
    license: 'mine', quant: 'Q4_K_M', name: 'Qwen 4B', capabilities: ['chat'], size_bytes: Number, metadata: { note: 1, context_length: 40_960 }
  }, 'what is left open comes from the header')
  const added = await gateway.call('POST', '/api/models/add-from-path', { path: join(store, 'Qwen-4B-Q4_K_M.gguf'), id: 'mine', labels: ['llm', 'vision'] })
  t.equal(added.status, 201)
  t.match(added.json, { id: 'mine', name: 'Qwen 4B', quant: 'Q4_K_M', capabilities: ['chat', 'vision'], metadata: { source: 'add-from-path' } })
  const again = { path: join(store, 'Qwen-4B-Q4_K_M.gguf'), id: 'mine', name: 'Other' }
  t.equal((await gateway.call('POST', '/api/models/add-from-path', again)).json.error.code, 'model.already_exists')
  t.match((await gateway.call('POST', '/api/models/add-from-path', { ...again, overwrite: true })).json, { name: 'Other', capabilities: ['chat'] })
  for (const [path, code] of [
    ['m.gguf', 'model.path_relative'], ['/nowhere/m.gguf', 'model.path_missing'], [join(store, 'notes.txt'), 'model.unsupported_format'],
    [store, 'model.unsupported_format'], [join(store, 'broken.gguf'), 'model.file_invalid'], [join(store, 'see/mmproj-model-f16.gguf'), 'model.file_invalid']
  ] as const) t.match(await gateway.call('POST', '/api/models/add-from-path', { path }), { status: 400, json: { error: { code } } }, code)

  const changed = await gateway.call('PUT', '/api/models/mine', {
    name: 'New', defaults: { context_size: 4096, extra_args: '--x' }, tags: ['mtp'], license: null, metadata: { context_length: 8192, note: null }
  })
  t.match(changed.json, { name: 'New', defaults: { context_size: 4096, extra_args: '--x' }, tags: ['mtp'], license: 'unknown', metadata: { context_length: 8192 } })
  const merged = await gateway.call('PUT', '/api/models/mine', { defaults: { extra_args: null, profile: 'vulkan' } })
  t.same(merged.json.defaults, { context_size: 4096, profile: 'vulkan' })
  t.match(await gateway.call('PUT', '/api/models/mine', { defaults: { profile: 'nobody' } }), { status: 404, json: { error: { code: 'profiles.not_found' } } })
  t.match(await gateway.call('PUT', '/api/models/mine', { defaults: { context_size: 1 } }), { status: 400, json: { error: { code: 'validation.invalid' } } })
  t.match(await gateway.call('PUT', '/api/models/mine', { id: 'other' }), { status: 400, json: { error: { param: 'id' } } })
  t.match(await gateway.call('PUT', '/api/models/nobody', {}), { status: 404, json: { error: { code: 'model.not_found' } } })
  const { events } = gateway.gateway.kernel().events.list({ type: 'model.updated' })
  t.same(events.map(({ data }) => data.changed_fields), [['name', 'license', 'tags', 'defaults', 'metadata'], ['defaults']], 'only what changed')
  t.match(gateway.audit().find(row => row.action === 'model.update' && row.outcome === 'ok'), { target: 'mine', before: {}, after: {} })
  t.match(await gateway.file('var/lib/svc/registry/registry.toml'), /\[models\.mine\.defaults\]\ncontext_size = 4_?096\nprofile = "vulkan"/)
})

t.test('a model whose file is not there is not registered, and a row whose file has gone says so', async t => {
  const gateway = await withFiles(t)
  const path = join(gateway.store, 'Qwen-4B-Q4_K_M.gguf')
  t.match(await gateway.call('POST', '/api/models', { id: 'mm', path: '/does/not/exist.gguf' }), {
    status: 400, json: { error: { code: 'model.path_missing', param: 'path', message: /\/does\/not\/exist\.gguf does not exist/ } }
  })
  t.equal((await gateway.call('POST', '/api/models', { id: 'mm', path })).status, 201)
  t.match(await gateway.call('PUT', '/api/models/mm', { path: '/does/not/exist.gguf' }), { status: 400, json: { error: { code: 'model.path_missing' } } })
  const shown = async (): Promise<boolean[]> => [
    (await gateway.call('GET', '/api/models/mm')).json.installed,
    (await gateway.call('GET', '/api/models')).json.models.find(({ id }: { id: string }) => id === 'mm').installed
  ]
  t.same(await shown(), [true, true])
  renameSync(path, `${path}.away`)
  // a change of the registry is looked at at once, the disk alone every other second
  t.equal((await gateway.call('PUT', '/api/models/mm', { name: 'Renamed' })).json.installed, false, 'the row can be changed all the same')
  t.same(await shown(), [false, false])
})

t.test('forgetting a model that slots use', async t => {
  const gateway = await api(t, { files: { 'etc/svc/slots/second.toml': AGENT.replace('8081', '8082') } })
  const { slots } = gateway
  await slots.load('agent')
  t.match(await gateway.call('DELETE', '/api/models/fake-model?force_cascade=false'), {
    status: 409, json: { error: { code: 'model.in_use', message: /agent, second/, details: { affected_slots: ['agent', 'second'] } } }
  })
  t.equal(slots.status('agent').state, 'ready', 'refused, and nothing was touched')
  await slots.swap('second', 'other-model')
  const before = gateway.gateway.kernel().events.list().next_since
  t.match(await gateway.call('DELETE', '/api/models/fake-model'), { status: 200, json: { id: 'fake-model', deleted: true, affected_slots: ['agent', 'second'] } })
  t.equal(slots.status('agent').state, 'offline')
  t.equal(slots.config('agent').model.default, null)
  t.equal(slots.config('second').model.default, null)
  t.equal(slots.status('second').modelId, 'other-model', 'what it runs stays')
  t.notMatch(await gateway.file('etc/svc/slots/agent.toml'), /fake-model/)
  t.equal((await gateway.call('GET', '/api/models/fake-model')).status, 404)
  t.match(gateway.gateway.kernel().events.list({ since: before }).events.filter(({ type }) => type.startsWith('model.')), [
    { type: 'model.deleted', data: { id: 'fake-model', affected_slots: ['agent', 'second'] } }
  ])
  t.match(gateway.audit().find(row => row.action === 'model.delete' && row.outcome === 'ok'), { target: 'fake-model', before: { path: '/dev/null' } })
  t.equal((await gateway.call('DELETE', '/api/models/fake-model')).status, 404)
})

t.test('forgetting a model is one change: wherever a file operation fails, all is as it was', async t => {
  let [armed, left] = [false, 0]
  const gateway = await api(t, {
    files: { 'etc/svc/slots/second.toml': AGENT.replace('8081', '8082') },
    fileOps: watchedOps(() => {
      if (armed && left-- === 0) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
    })
  })
  const files = ['var/lib/svc/registry/registry.toml', 'etc/svc/slots/agent.toml', 'etc/svc/slots/second.toml']
  const texts = (): Promise<string[]> => Promise.all(files.map(file => gateway.file(file)))
  const before = await texts()
  let refused = 0
  for (let operation = 0; ; operation++) {
    [armed, left] = [true, operation]
    const { status } = await gateway.call('DELETE', '/api/models/fake-model')
    armed = false
    if (status !== 200) {
      refused++
      t.equal(status, 500)
      t.strictSame(await texts(), before, `operation ${operation}`)
      t.equal(gateway.slots.config('agent').model.default, 'fake-model')
      continue
    }
    // what is swept up at the end may fail without a word
    for (const text of await texts()) t.notMatch(text, /fake-model/, `operation ${operation}`)
    if (left >= 0) break
    await Promise.all(files.map((file, i) => writeFile(join(gateway.home, file), before[i]!)))
    await gateway.gateway.kernel().config.reload()
    await gateway.gateway.kernel().models.change(() => new Map())
  }
  t.ok(refused > 15, `${refused} operations whose failure is told`)
  t.equal((await gateway.call('GET', '/api/models/fake-model')).status, 404)
})

const npuPlugin = definePlugin({
  name: 'npu-fake', kind: 'provider', apiVersion: 1, register: ctx => ctx.addProvider(createFakeProvider({
    name: 'npu-fake', devices: ['npu'], slotTypes: ['llm'], children: [
      { suffix: 'stt', type: 'transcription', model: 'whisper-npu', active: anchor => anchor.npu?.asr === true }
    ]
  }))
})

t.test('the list: registry, NPU, upstreams; aliases left out', async t => {
  const gateway = await api(t, {
    providers: [npuPlugin],
    files: {
      'etc/svc/slots/agent.toml': AGENT.replace('provider = "fake"', 'provider = "npu-fake"').replace('"cpu"', '"npu"').replace('fake-model', 'gemma:1b') +
        '[npu]\nasr = true\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n[models.tts-1]\npath = "/dev/null"\n[models."svcai:x"]\npath = "/dev/null"\n',
      'var/lib/svc/models/x': ''
    }
  })
  const { json } = await gateway.call('GET', '/api/models')
  t.match(json, { count: 3, filtered_aliases: 2 })
  t.match(json.models, [
    { id: 'fake-model', owned_by: 'local', type: 'chat', created: 0 },
    { id: 'gemma:1b', upstream: 'npu', backend: 'npu-rt', owned_by: 'npu-fake', type: 'llm', device: 'npu' },
    { id: 'whisper-npu', type: 'transcription', capability: 'asr' }
  ])
  t.match((await gateway.call('GET', '/api/models/whisper-npu')).json, { device: 'npu' })
  t.match(await gateway.call('PUT', '/api/models/whisper-npu', { name: 'x' }), { status: 404, json: { error: { message: /belongs to npu-fake/ } } })
  const { json: catalogue } = await gateway.call('GET', '/api/models/catalogue')
  t.equal(catalogue.counts.pullable, catalogue.pullable.length)
  t.equal(new Set(catalogue.pullable.map(({ id }: { id: string }) => id)).size, catalogue.pullable.length)
  t.match(catalogue.pullable.find(({ id }: { id: string }) => id === 'qwen3-4b'), { hf_repo: 'Qwen/Qwen3-4B-GGUF', installed: false, capability: 'chat' })
  t.equal(catalogue.pullable.filter(({ capability }: { capability: string }) => capability === 'image').length, 3)
})

t.test('the hub: inspect and search', async t => {
  const hub = await FakeHub.start(t)
  hub.add('org/many', {
    license: 'apache-2.0',
    tags: ['gguf', 'chat'],
    files: {
      'README.md': `---\nlicense: apache-2.0\n---\n${'words '.repeat(200)}`,
      'm-Q8_0.gguf': patternBytes(9000),
      'm-Q4_K_M.gguf': patternBytes(5000),
      'BF16/m-BF16-00001-of-00002.gguf': patternBytes(8000),
      'BF16/m-BF16-00002-of-00002.gguf': patternBytes(8000),
      'mmproj-F16.gguf': patternBytes(2000),
      'config.json': '{}'
    }
  })
  hub.add('org/gated', { gated: 'auto', files: { 'g.gguf': patternBytes(3000) } })
  const gateway = await api(t, { files: { 'etc/svc/api.env': `HF_ENDPOINT="${hub.url}"\n` } })
  const inspect = (body: object) => gateway.call('POST', '/api/models/inspect', body)
  const first = await inspect({ hf_repo: 'org/many' })
  t.match(first.json, {
    repo: 'org/many', cached: false, gated: false, tags: ['gguf', 'chat', 'license:apache-2.0'], metadata: { license: 'apache-2.0', readme_excerpt: /^words/ },
    variants: [
      { id: 'mmproj-F16.gguf', info: 'projector, F16', size_bytes: 2000, size: '2.0 KB' },
      { id: 'm-Q4_K_M.gguf', info: 'Q4_K_M' },
      { id: 'm-Q8_0.gguf', info: 'Q8_0' },
      { id: 'BF16/m-BF16-00001-of-00002.gguf', info: 'BF16, 2 parts', size_bytes: 16_000 }
    ]
  })
  t.equal(first.json.metadata.readme_excerpt.length, 400)
  const asked = hub.seen.length
  t.match((await inspect({ hf_url: `${hub.url}/org/many/blob/main/m-Q8_0.gguf` })).json, { repo: 'org/many', cached: true })
  t.equal(hub.seen.length, asked)
  t.match((await inspect({ hf_repo: 'org/gated' })).json, { gated: true, variants: [{ id: 'g.gguf' }] })
  for (const [body, status, code] of [
    [{}, 400, 'hf.bad_request'], [{ hf_repo: '../x' }, 400, 'hf.bad_request'], [{ hf_url: 'https://evil.example/a/b' }, 400, 'hf.bad_request'],
    [{ hf_repo: 'org/nobody' }, 404, 'hf.repo_not_found']
  ] as const) t.match(await inspect(body), { status, json: { error: { code } } }, JSON.stringify(body))
  hub.fail('hub', 'revision', { kind: 'status', status: 500 })
  t.match(await inspect({ hf_repo: 'org/nobody' }), { status: 502, json: { error: { code: 'hf.upstream_error' } } })

  const search = async (query: string) => (await gateway.call('GET', `/api/hf/search?${query}`)).json
  t.match(await search('q=many&limit=5'), { cached: false, results: [{ id: 'org/many', gated: false, library: 'gguf' }] })
  t.match(await search('q=many&limit=5'), { cached: true, results: [{}] })
  t.same(await search('q='), { results: [], cached: false, problem: null })
  t.same(await search('q=none'), { results: [], cached: false, problem: null })
  hub.fail('hub', '/api/models', { kind: 'status', status: 503 })
  t.match(await search('q=gated'), { results: { length: 0 }, cached: false, problem: /overloaded \(503\)/ }, 'a hub in trouble finds nothing, and says why')
  t.match(await search('q=gated'), { results: [{ id: 'org/gated', gated: true }] })
  t.equal((await gateway.call('GET', '/api/hf/search?q=x&limit=21')).status, 400)
  const { report } = gateway.gateway
  t.match(report().find(({ name }) => name === 'hub')?.health, { endpoint: hub.url, token: false })
})
