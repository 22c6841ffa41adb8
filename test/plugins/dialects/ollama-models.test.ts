import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chatAnswer, createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../kernel/testing/index.js'
import ollama from '../../../plugins/dialects/ollama/index.js'
import { readModelfile } from '../../../plugins/dialects/ollama/modelfile.js'
import { keepAliveMs } from '../../../plugins/dialects/ollama/keep-alive.js'
import { spellingsOf, taggedName } from '../../../plugins/dialects/ollama/names.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import v1Models from '../../../plugins/v1/models/index.js'
import vectors from '../../../plugins/v1/vectors/index.js'
import { ggufFile, number, text } from '../../kernel/models/gguf-file.js'
import { fakeUpstream, upstreamTable } from '../../wire/fake-upstream.js'
import { FakeHub, sha256Of } from '../services/hub/fake-hub.js'

type Json = Record<string, unknown>

interface Manager extends TestGateway {
  readonly runtime: FakeEngineRuntime
  readonly hub: FakeHub
  post (path: string, body: object): Promise<Response>
  get (path: string): Promise<Json>
}

const model = ggufFile({
  architecture: 'qwen3', weights: 20_000,
  keys: { 'qwen3.context_length': number(40_960), 'general.license': text('apache-2.0'), 'tokenizer.chat_template': text('{{ tools }} {{ enable_thinking }}') }
})

async function manager (t: Test, files: Readonly<Record<string, string>> = {}): Promise<Manager> {
  const fake = await FakeHub.start(t)
  fake.add('org/m-GGUF', { license: 'apache-2.0', files: { 'm-Q4_K_M.gguf': model, 'm-Q8_0.gguf': model } })
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({
    runtime,
    plugins: [createFakeProviderPlugin(), hub, library, pull, vectors, v1Models, ollama],
    pluginConfig: { pull: { retry_base_s: 0.01, stall_timeout_s: 2, max_tries: 4, reserve_mb: 0 } },
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n[dispatcher]\nlist_unloaded = true\n[aliases]\n"gpt-4.1" = "agent"\n',
      'etc/svc/api.env': `HF_ENDPOINT="${fake.url}"\nno_proxy="*"\n`,
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-embed"\n',
      'etc/svc/slots/speech.toml': 'type = "tts"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-voice"\n',
      'var/lib/svc/registry/registry.toml': [
        '[models.fake-model]\npath = "/dev/null"\nquant = "Q4_K_M"\nsize_bytes = 77\n[models.fake-model.metadata]\narchitecture = "llama"\nparameter_count = 3210000000',
        '[models.fake-embed]\npath = "/dev/null"\ncapabilities = ["embed"]', '[models.fake-voice]\npath = "/dev/null"\ncapabilities = ["tts"]',
        '[models.qwen3-4b]\npath = "/dev/null"\n'
      ].join('\n'),
      ...files
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    hub: fake,
    post: (path: string, body: object) => gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) }),
    get: async (path: string) => await (await gateway.fetch(path)).json() as Json
  })
}

const linesOf = async (response: Response): Promise<Json[]> => (await response.text()).trimEnd().split('\n').map(line => JSON.parse(line) as Json)

t.test('names have tags, and tags are the last word of an id', async t => {
  t.strictSame(spellingsOf('agent:latest'), ['agent:latest', 'agent', 'agent-latest'].slice(0, 2))
  t.strictSame(spellingsOf('qwen3:4b'), ['qwen3:4b', 'qwen3-4b'])
  t.strictSame(spellingsOf('hf.co/org/m-GGUF:Q8_0'), ['hf.co/org/m-GGUF:Q8_0', 'org/m-GGUF:Q8_0', 'org/m-GGUF-Q8_0'])
  t.strictSame(['agent', 'qwen3:4b', 'far/gpt-9', 'svc/agent', 'http:x/y'].map(taggedName), ['agent:latest', 'qwen3:4b', 'far/gpt-9:latest', 'svc/agent:latest', 'http:x/y:latest'])
})

t.test('how long a model stays is a number of seconds or a duration of Go', async t => {
  const said = [['5m', 300_000], ['1h30m', 5_400_000], ['1.5s', 1_500], ['300ms', 300], [10, 10_000], ['10', 10_000], [0, 0], ['0s', 0], [-1, Infinity], ['-1', Infinity], ['-1m', Infinity], [undefined, null], [null, null]] as const
  for (const [value, ms] of said) t.equal(keepAliveMs(value), ms, String(value))
  for (const wrong of ['soon', '5', {}, [], true, '1d', `${'1h'.repeat(100)}`].filter(value => value !== '5')) t.throws(() => keepAliveMs(wrong), { code: 'validation.invalid' })
})

t.test('a Modelfile is read line by line', async t => {
  const file = 'FROM agent\n# a comment\nPARAMETER num_ctx 4096\nparameter stop "END"\nSYSTEM """You are\nMario."""\nMESSAGE user hi\n'
  t.strictSame(readModelfile(file), { from: 'agent', parameters: [['num_ctx', '4096'], ['stop', 'END']], others: ['SYSTEM', 'MESSAGE'] })
  for (const wrong of ['', 'PARAMETER a 1', 'FROM x\nPARAMETER a', 'FROM x\nHELLO there']) t.throws(() => readModelfile(wrong), { code: 'validation.invalid' }, wrong)
})

t.test('what there is, as Ollama tells it', async t => {
  const upstream = await fakeUpstream(t, ['gpt-9'])
  const gateway = await manager(t, { 'etc/svc/upstreams.toml': upstreamTable('far', upstream.url) })
  const { models } = await gateway.get('/api/tags') as { models: Json[] }
  t.strictSame(models.map(({ name }) => name).filter(name => !String(name).startsWith('svc/')), ['agent:latest', 'embed:latest', 'gpt-4.1:latest', 'gpt-9:latest'], 'what speaks is none of it')
  t.match(models[0], {
    model: 'agent:latest', size: 77, digest: /^[0-9a-f]{64}$/, modified_at: /^\d{4}-/,
    details: { family: 'llama', families: ['llama'], parameter_size: '3.2B', quantization_level: 'Q4_K_M', parent_model: /^$/ }
  })
  t.match(await gateway.get('/api/version'), { version: /^\d+\.\d+\.\d+$/ })
  const shown = await (await gateway.post('/api/show', { model: 'agent:latest', verbose: true })).json() as Json
  t.match(shown, {
    modelfile: /^FROM fake-model\n/, details: { family: 'llama' }, capabilities: ['completion'],
    model_info: { 'general.architecture': 'llama', 'general.parameter_count': 3_210_000_000 }
  })
  t.match(await (await gateway.post('/api/show', { name: 'embed' })).json(), { capabilities: ['embedding'] })
  t.match(await (await gateway.post('/api/show', { model: 'gpt-9' })).json(), { capabilities: ['completion', 'tools'], details: { family: /^$/ } })
  t.strictSame(await gateway.get('/api/ps'), { models: [] })
  await gateway.slots.load('agent')
  t.match(await gateway.get('/api/ps'), { models: [{ name: 'agent:latest', expires_at: /^\d{4}-/, details: { family: 'llama' } }] })
})

t.test('vectors of one text and of several', async t => {
  const gateway = await manager(t)
  await gateway.slots.load('embed')
  const engine = gateway.runtime.engine('embed')
  const seen: Json[] = []
  engine.answer(({ body }) => {
    const asked = JSON.parse(body.toString()) as { input: string | string[] }
    seen.push(asked)
    const texts = [asked.input].flat()
    const data = texts.map((said, index) => ({ index, embedding: [said.length, index] })).reverse()
    return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ object: 'list', data, usage: { prompt_tokens: 5 } })] }
  })
  const several = await (await gateway.post('/api/embed', { model: 'embed:latest', input: ['a', 'bcd'], keep_alive: '1h', dimensions: 2 })).json() as Json
  t.match(several, { model: 'embed:latest', embeddings: [[1, 0], [3, 1]], prompt_eval_count: 5, total_duration: Number, load_duration: 0 })
  t.match(seen, [{ input: ['a', 'bcd'], dimensions: 2 }])
  t.equal(gateway.slots.idleTimeoutMs('embed'), 3_600_000)
  t.match(await (await gateway.post('/api/embed', { model: 'embed', input: 'xy' })).json(), { embeddings: [[2, 0]] })
  t.match((await gateway.post('/api/embed', { model: 'embed', input: 'xy', truncate: true })).headers.get('x-svc-warning'), /^truncate: left out/)
  t.match((await gateway.post('/api/embed', { model: 'embed', input: 'xy', options: { num_ctx: 4096, seed: 1 } })).headers.get('x-svc-warning'), /options/)
  t.match(await (await gateway.post('/api/embed', { model: 'embed', input: '' })).json(), { embeddings: { length: 0 } })
  t.strictSame(await (await gateway.post('/api/embeddings', { model: 'embed', prompt: 'xyz' })).json(), { embedding: [3, 0] })
  for (const [body, status, error] of [
    [{ model: 'embed', input: 3 }, 400, /'input' must be/], [{ input: 'x' }, 400, /'model' is required/], [{ model: 'agent', input: 'x' }, 404, /agent/],
    [{ model: 'nobody', input: 'x' }, 404, /nobody/], [{ model: 'nobody', input: [] }, 404, /nobody/]
  ] as const) {
    const refused = await gateway.post('/api/embed', body)
    t.equal(refused.status, status, JSON.stringify(body))
    t.match(await refused.json(), { error })
  }
  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: ['{"data":[]}'] })
  t.match(await (await gateway.post('/api/embed', { model: 'embed', input: 'x' })).json(), { error: /not a list of embeddings/ })
})

t.test('a pull is one of the gateway\'s own, told line by line', async t => {
  const gateway = await manager(t)
  const told = await linesOf(await gateway.post('/api/pull', { model: 'hf.co/org/m-GGUF:Q8_0' }))
  t.match(told[0], { status: 'pulling manifest' })
  const digest = `sha256:${sha256Of(model)}`
  t.match(told.filter(line => line.digest === digest).at(-1), { status: `pulling ${sha256Of(model).slice(0, 12)}`, total: model.length, completed: model.length })
  t.match(told.slice(-3), [{ status: 'verifying sha256 digest' }, { status: 'writing manifest' }, { status: 'success' }])
  t.match(await (await gateway.post('/api/pull', { model: 'org/m-GGUF:Q8_0', stream: false })).json(), { status: 'success' })
  const rows = gateway.gateway.kernel().models.list().map(({ id }) => id)
  t.ok(rows.includes('org/m-GGUF:Q8_0'), rows.join())
  for (const name of ['hf.co/org/m-GGUF:Q8_0', 'org/m-GGUF:Q8_0']) {
    t.match(await (await gateway.post('/api/show', { model: name })).json(), {
      modelfile: 'FROM org/m-GGUF:Q8_0\n', details: { family: 'qwen3', format: 'gguf' }, capabilities: ['completion', 'tools', 'thinking'],
      model_info: { 'general.architecture': 'qwen3', 'qwen3.context_length': 40_960 }
    }, `${name} is shown, although no slot has it`)
  }
  for (const name of ['fake-voice', 'nothing:7b']) t.equal((await gateway.post('/api/show', { model: name })).status, 404, name)
  t.match(gateway.gateway.kernel().activity.list({ action: 'model.pull' }).map(({ target, outcome }) => `${target} ${outcome ?? ''}`), ['org/m-GGUF:Q8_0 ok', 'org/m-GGUF:Q8_0 ok'])
  const unknown = await gateway.post('/api/pull', { model: 'nothing:7b' })
  t.equal(unknown.status, 422)
  t.match(await unknown.json(), { error: /no source is known for 'nothing:7b'/ })
})

t.test('a model of the catalogue is pulled by its name with a tag, and asked by an alias with a tag', async t => {
  const gateway = await manager(t, {
    'var/lib/svc/registry/registry.toml': '',
    'etc/svc/slots/small.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "qwen3-4b"\n'
  })
  gateway.hub.add('Qwen/Qwen3-4B-GGUF', { license: 'apache-2.0', files: { 'Qwen3-4B-Q4_K_M.gguf': model } })
  t.match((await linesOf(await gateway.post('/api/pull', { model: 'qwen3:4b' }))).at(-1), { status: 'success' })
  const pulled = gateway.gateway.kernel().models.get('qwen3-4b')!
  t.equal(sha256Of(await readFile(pulled.path)), sha256Of(model))
  t.equal((await gateway.post('/api/copy', { source: 'qwen3:4b', destination: 'gpt-4o:mini' })).status, 200)
  await gateway.slots.load('small')
  const engine = gateway.runtime.engine('small')
  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('hello')] })
  for (const name of ['gpt-4o:mini', 'qwen3:4b', 'small:latest']) {
    const asked = { model: name, messages: [{ role: 'user', content: 'hi' }], stream: false }
    t.match(await (await gateway.post('/api/chat', asked)).json(), { model: name, message: { content: 'hello' }, done: true })
  }
  t.equal(engine.requests.filter(({ url }) => url === '/v1/chat/completions').length, 3)
})

t.test('a client that leaves does not end the pull, and one that comes joins it', async t => {
  const gateway = await manager(t)
  gateway.hub.add('org/slow-GGUF', { files: { 'slow-Q4_K_M.gguf': model } })
  gateway.hub.fail('cdn', /slow/, { kind: 'stall', after: 100 })
  const leaving = new AbortController()
  const first = await gateway.fetch('/api/pull', { method: 'POST', body: JSON.stringify({ model: 'org/slow-GGUF' }), signal: leaving.signal })
  await first.body!.getReader().read()
  leaving.abort()
  const told = await linesOf(await gateway.post('/api/pull', { model: 'org/slow-GGUF' }))
  t.match(told.at(-1), { status: 'success' })
})

t.test('a pull that fails ends with its reason', async t => {
  const gateway = await manager(t)
  gateway.hub.fail('cdn', /m-Q4_K_M/, { kind: 'status', status: 404 }, 10)
  const told = await linesOf(await gateway.post('/api/pull', { model: 'org/m-GGUF' }))
  t.match(told.at(-1), { error: /./ })
  t.match(told.slice(0, -1), told.slice(0, -1).map(() => ({ status: /^pulling / })), 'nothing is said to be verified or written')
  t.match(told[0], { status: 'pulling manifest' })
})

t.test('copies are aliases, and what is deleted is an alias or a model that no slot has', async t => {
  const gateway = await manager(t)
  const aliases = (): unknown => gateway.gateway.kernel().config.snapshot.svc.aliases
  const remove = (name: string): Promise<Response> => gateway.fetch('/api/delete', { method: 'DELETE', body: JSON.stringify({ model: name }) })
  const copied = await gateway.post('/api/copy', { source: 'agent', destination: 'mine:latest' })
  t.equal(copied.status, 200)
  t.equal(await copied.text(), '')
  await gateway.post('/api/copy', { source: 'gpt-4.1', destination: 'gpt-4o:mini' })
  t.strictSame(aliases(), { 'gpt-4.1': 'agent', 'mine': 'agent', 'gpt-4o:mini': 'agent' }, 'one hop')
  for (const [body, status, error] of [
    [{ source: 'nobody', destination: 'x' }, 404, /model 'nobody' not found/], [{ source: 'agent', destination: 'embed' }, 409, /'embed' is already the name of a slot/],
    [{ source: 'agent' }, 400, /'destination' is required/], [{ destination: 'x' }, 400, /'source' is required/], [{ source: 'agent', destination: 'a b' }, 400, /aliases/]
  ] as const) {
    const refused = await gateway.post('/api/copy', body)
    t.equal(refused.status, status)
    t.match(await refused.json(), { error })
  }
  t.equal((await remove('mine:latest')).status, 200)
  t.equal((await remove('qwen3:4b')).status, 200)
  t.equal(gateway.gateway.kernel().models.get('qwen3-4b'), undefined)
  t.strictSame(aliases(), { 'gpt-4.1': 'agent', 'gpt-4o:mini': 'agent' })
  for (const [name, status, error] of [
    ['mine', 404, /model 'mine' not found/], ['fake-model', 409, /used by agent/], ['agent', 409, /'agent' is a slot/]
  ] as const) {
    const refused = await remove(name)
    t.equal(refused.status, status, name)
    t.match(await refused.json(), { error })
  }
  const done = gateway.gateway.kernel().activity.list({ kind: 'action', outcome: 'ok' }).map(({ action, target }) => `${action} ${target}`)
  const [deleted] = gateway.gateway.kernel().activity.list({ action: 'settings.update', outcome: 'ok' })
  t.match(deleted!.before, { aliases: { mine: 'agent' } }, 'what it led to is kept')
  t.strictSame(done, ['model.delete qwen3-4b', 'settings.update svc.toml', 'settings.update svc.toml', 'settings.update svc.toml'])
})

t.test('what is created is an alias where its model serves, else a slot', async t => {
  const gateway = await manager(t)
  const { config, models } = gateway.gateway.kernel()
  await models.put('vectors-with-template', { path: '/dev/null', capabilities: ['chat', 'embed'] })
  t.match(await linesOf(await gateway.post('/api/create', { model: 'mario', from: 'agent' })), [{ status: /mario is another name for agent/ }, { status: 'success' }])
  t.equal(config.snapshot.svc.aliases.mario, 'agent')
  t.match(await (await gateway.post('/api/create', { model: 'coder', modelfile: 'FROM qwen3:4b\nPARAMETER num_ctx 4096\n', stream: false })).json(), { status: 'success' })
  t.match(config.snapshot.slots.get('coder'), { type: 'llm', model: { default: 'qwen3-4b', context_size: 4096 } })
  t.match(await readFile(join(gateway.home, 'etc/svc/slots/coder.toml'), 'utf8'), /qwen3-4b/)
  await gateway.post('/api/create', { model: 'vectors', from: 'vectors-with-template', stream: false })
  t.equal(config.snapshot.slots.get('vectors')?.type, 'embedding', 'a file that names a pooling is made for vectors; many of them keep the template of their chat model')
  await gateway.post('/api/create', { name: 'long:latest', from: 'agent', parameters: { num_ctx: 2048 } })
  t.match(config.snapshot.slots.get('long'), { model: { default: 'fake-model', context_size: 2048 } })
  for (const [body, status, error] of [
    [{ model: 'x' }, 400, /'from' is required/], [{ model: 'x', from: 'nobody' }, 404, /'nobody' not found/],
    [{ model: 'x', from: 'agent', system: 'You are Mario.' }, 400, /'system' is not supported/], [{ model: 'x', from: 'agent', template: 't' }, 400, /'template'/],
    [{ model: 'x', from: 'agent', files: { 'a.gguf': 'sha256:aa' } }, 400, /'files'/], [{ model: 'x', from: 'agent', quantize: 'q4' }, 400, /'quantize'/],
    [{ model: 'x', modelfile: 'FROM agent\nSYSTEM hi' }, 400, /'SYSTEM'/], [{ model: 'x', modelfile: 'FROM agent\nADAPTER ./a.gguf' }, 400, /'ADAPTER'/],
    [{ model: 'x', modelfile: 'FROM agent\nLICENSE """\nmine\n"""' }, 400, /'LICENSE'/], [{ model: 'x', modelfile: 'FROM agent\nMESSAGE user hi' }, 400, /'MESSAGE'/],
    [{ model: 'x', modelfile: 'FROM agent\nPARAMETER mood good' }, 400, /'parameters\.mood'/], [{ model: 'x', modelfile: 'FROM agent\nFROM other' }, 400, /more than one FROM/],
    [{ model: 'x', from: 'other', modelfile: 'FROM agent' }, 400, /'from' names another/], [{ model: 'x', from: 'agent', info: { a: 1 } }, 400, /'info'/],
    [{ model: 'x', modelfile: 'FROM agent', parameters: { stop: 'x' } }, 400, /'parameters\.stop'/], [{ model: 'x', from: 'agent', parameters: { temperature: 1 } }, 400, /'parameters\.temperature'/],
    [{ model: 'a:b', from: 'agent', parameters: { num_ctx: 2048 } }, 400, /name of a slot/], [{ model: 'embed', from: 'agent' }, 409, /'embed' is already the name of a slot/],
    [{ model: 'x', from: 'agent', parameters: { num_ctx: -1 } }, 400, /num_ctx/]
  ] as const) {
    const refused = await gateway.post('/api/create', body)
    t.equal(refused.status, status, JSON.stringify(body))
    t.match(await refused.json(), { error })
  }
})
