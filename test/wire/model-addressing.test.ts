import OpenAI from 'openai'
import t, { type Test } from 'tap'
import settingsRoutes from '../../plugins/api/settings/index.js'
import messageRoutes from '../../plugins/v1/messages/index.js'
import responseRoutes from '../../plugins/v1/responses/index.js'
import vectorRoutes from '../../plugins/v1/vectors/index.js'
import { createFakeEngine } from '../../kernel/testing/index.js'
import { wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }

function slot (type: string, model: string, more = ''): string {
  return `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\n${more}[model]\ndefault = "${model}"\n`
}

/** Engines answer with their slot's name, the upstream with its own. */
async function setup (t: Test, { files = {}, ...rest }: WireOptions = {}): Promise<WireGateway> {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  const list = JSON.stringify({ data: ['gpt-9', 'big-model', 'agent', 'e-model'].map(id => ({
    id, object: 'model', owned_by: 'them', name: 'The ninth', created: 1_650_000_000, max_model_len: 131_072, pricing: { prompt: '0.1' }
  })) })
  upstream.answer(({ url }) => ({ headers: JSON_TYPE, chunks: [url === '/v1/models' ? list : '{"from":"far"}'] }))
  return wireGateway(t, {
    plugins: [messageRoutes, responseRoutes, vectorRoutes, settingsRoutes],
    onStart: ({ slot, engine }) => {
      engine.answer(({ body }) => {
        const { model } = JSON.parse(body.toString()) as { model: string }
        return { headers: JSON_TYPE, chunks: [JSON.stringify({ from: slot, model })] }
      })
    },
    files: {
      'etc/svc/slots/agent.toml': slot('llm', 'big-model'),
      'etc/svc/slots/coder.toml': slot('llm', 'code/model.gguf'),
      'etc/svc/slots/embed.toml': slot('embedding', 'e-model'),
      'etc/svc/slots/embed-rerank.toml': slot('reranking', 'r-model'),
      'etc/svc/slots/off.toml': slot('llm', 'off-model', 'enabled = false\n'),
      'etc/svc/slots/bare.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n',
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "none"\n`,
      'var/lib/svc/registry/registry.toml': ['big-model', 'code/model.gguf', 'e-model', 'r-model', 'off-model', 'unused-model']
        .map(id => `[models."${id}"]\nname = "The ${id}"\npath = "/dev/null"\n[models."${id}".metadata]\ncontext_length = 2048\n`).join(''),
      ...files
    },
    ...rest
  })
}

t.test('each way to name a model leads to its slot or upstream, or is refused with the reason', async t => {
  const gateway = await setup(t)
  await gateway.fetch('/v1/models')
  const paths = {
    chat: '/v1/chat/completions', completions: '/v1/completions', responses: '/v1/responses', messages: '/v1/messages',
    count: '/v1/messages/count_tokens', embeddings: '/v1/embeddings', rerank: '/v1/rerank', rerankings: '/v1/rerankings'
  }
  const ask = async (path: string, model: unknown): Promise<string> => {
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify({ model }) })
    const answer = await response.json() as { from?: string, model?: string, error?: { code: string } }
    return answer.from === undefined ? `${response.status} ${answer.error?.code}` : `${answer.from} ${answer.model ?? ''}`.trim()
  }
  const llm = ['chat', 'completions', 'responses', 'messages', 'count'] as const
  const vectors = ['embeddings', 'rerank', 'rerankings'] as const
  const rows: Array<[row: string, model: unknown, on: ReadonlyArray<keyof typeof paths>, expected: string]> = [
    ['a slot name', 'agent', llm, 'agent big-model'],
    ['a slot name', 'coder', llm, 'coder code/model.gguf'],
    ['a slot name', 'embed', ['embeddings'], 'embed e-model'],
    ['a slot name', 'embed-rerank', ['rerank', 'rerankings'], 'embed-rerank r-model'],
    ['another name of a slot', 'primary', llm, 'agent big-model'],
    ['another name of a slot', 'rerank', ['rerank'], 'embed-rerank r-model'],
    ['a slot that serves something else', 'agent', vectors, '404 dispatch.no_route'],
    ['a slot that serves something else', 'embed', ['chat', 'rerank', 'messages'], '404 dispatch.no_route'],
    ['a role', 'svc/agent', llm, 'agent big-model'],
    ['a role, by its chain', 'svc/utility', llm, 'agent big-model'],
    ['a role, by its chain', 'svc/npu', llm, 'agent big-model'],
    ['a slot by virtual name', 'svc/coder', llm, 'coder code/model.gguf'],
    ['a slot by virtual name', 'svc/embed', ['embeddings'], 'embed e-model'],
    ['a role nobody plays there', 'svc/agent', vectors, '404 dispatch.no_route'],
    ['a virtual name of nobody', 'svc/nobody', ['chat', 'embeddings'], '404 model.not_found'],
    ['a registry ref, to its owner', 'big-model', llm, 'agent big-model'],
    ['a registry ref, to its owner', 'code/model.gguf', ['chat'], 'coder code/model.gguf'],
    ['a registry ref, to its owner', 'e-model', ['embeddings'], 'embed e-model'],
    ['a registry ref that no slot has', 'unused-model', llm, '404 model.not_loaded'],
    ['a registry ref of a disabled slot', 'off-model', ['chat'], '404 model.not_loaded'],
    ['a disabled slot', 'off', ['chat'], '404 model.not_loaded'],
    ['an upstream ref', 'gpt-9', [...llm, ...vectors], 'far'],
    ['an upstream ref with its upstream', 'far/gpt-9', ['chat', 'embeddings'], 'far'],
    ['an upstream ref with its upstream, past a slot of the same model', 'far/big-model', ['chat'], 'far'],
    ['anything else', 'gpt-10', [...llm, ...vectors], '404 model.not_found'],
    ['anything else', 'far/gpt-10', ['chat'], '404 model.not_found'],
    ['anything else', 'AGENT', ['chat'], '404 model.not_found'],
    ['nothing', '', llm, '400 request.missing_model'],
    ['nothing', undefined, ['chat', 'embeddings'], '400 request.missing_model'],
    ['no name', { a: 1 }, ['chat'], '400 request.missing_model']
  ]
  for (const [row, model, on, expected] of rows) {
    for (const name of on) t.equal(await ask(paths[name], model), expected, `${row}: ${JSON.stringify(model)} on ${name}`)
  }
})

t.test('the list of models follows slots, upstreams and virtual names', async t => {
  const gateway = await setup(t)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const rows = async (query = '', headers: Record<string, string> = {}): Promise<Array<Record<string, unknown>>> =>
    (await (await gateway.fetch(`/v1/models${query}`, { headers })).json() as { data: Array<Record<string, unknown>> }).data
  const ids = async (query = '', headers: Record<string, string> = {}): Promise<unknown[]> => (await rows(query, headers)).map(({ id }) => id)
  const virtual = ['svc/agent', 'svc/bare', 'svc/coder']

  t.strictSame(await ids(), ['gpt-9', 'e-model', ...virtual], 'cold: what upstreams have, then virtual names; raw ids of llm slots are hidden')
  await Promise.all(['coder', 'agent', 'embed'].map(name => gateway.slots.ensureReady(name, new AbortController().signal)))
  t.strictSame(await ids(), ['agent', 'coder', 'e-model', 'gpt-9', ...virtual], 'live aliases in the order of configuration come first')
  await gateway.slots.unload('coder')
  t.strictSame(await ids(), ['agent', 'e-model', 'gpt-9', ...virtual], 'an alias goes with its engine, the virtual name stays')

  const all = new Map((await rows()).map(row => [row.id, row]))
  const { created, created_at: date, ...agent } = all.get('agent')!
  const own = { object: 'model', type: 'model', owned_by: 'svc', status: 'loaded', context_length: 2048, max_model_len: 2048, capabilities: ['chat'] }
  t.match(agent, { ...own, id: 'agent', name: 'agent · The big-model', display_name: 'agent · The big-model' })
  t.equal(Date.parse(date as string), created as number * 1000)
  t.strictSame(all.get('gpt-9'), {
    id: 'gpt-9', object: 'model', type: 'model', owned_by: 'far', name: 'The ninth', display_name: 'The ninth', created: 1_650_000_000, created_at: '2022-04-15T05:20:00Z',
    max_model_len: 131_072, pricing: { prompt: '0.1' }
  }, 'everything that the upstream tells, but for its word on who owns it')
  t.match(all.get('svc/coder'), {
    id: 'svc/coder', status: 'unloaded', context_length: 2048, _svc: { virtual: true, kind: 'live-resolve', resolves_to: 'code/model.gguf', slot: 'coder', device: 'cpu' }
  })

  t.strictSame(await ids('?owned_by=far'), ['gpt-9'])
  t.strictSame(await ids('', { 'x-svc-model-filter': 'svc' }), ['agent', ...virtual])
  t.strictSame(await ids('?owned_by=embed', { 'x-svc-model-filter': 'svc' }), ['e-model'], 'the query wins')
  t.strictSame(await ids('?owned_by=nobody'), [])
  for (const id of ['agent', 'e-model', 'svc/coder', 'gpt-9']) t.equal((await client.models.retrieve(id)).id, id)
  t.strictSame((await client.models.list()).data.map(({ id }) => id), await ids())
})

t.test('what a request would load is told apart from what nothing knows', async t => {
  const gateway = await setup(t)
  const problem = async (id: string): Promise<unknown> => {
    const response = await gateway.fetch(`/v1/models/${id}`)
    return [response.status, (await response.json() as { error: { code: string, message: string } }).error]
  }
  t.match(await problem('agent'), [404, { code: 'model.not_loaded', message: /go to slot 'agent'.*list_unloaded/, details: { model: 'agent', slot: 'agent' } }])
  t.match(await problem('big-model'), [404, { code: 'model.not_loaded', details: { slot: 'agent' } }])
  for (const id of ['off', 'unused-model', 'nobody', 'svc/nobody']) t.match(await problem(id), [404, { code: 'model.not_found' }], id)
  t.match(await problem('x'.repeat(1000)), [404, { code: 'model.not_found', message: new RegExp(`'x{200}…'`) }], 'a name is not echoed whole')

  t.equal((await gateway.fetch('/api/settings', { method: 'PATCH', body: JSON.stringify({ dispatcher: { list_unloaded: true, list_virtual: false } }) })).status, 200)
  const { data } = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string, status?: string }> }
  t.strictSame(data.map(({ id, status }) => [id, status]), [
    ['agent', 'unloaded'], ['bare', 'unloaded'], ['coder', 'unloaded'], ['embed', 'unloaded'], ['embed-rerank', 'unloaded'], ['gpt-9', undefined], ['e-model', undefined]
  ], 'every slot that can be asked for, once; live, without a restart')
  t.match(await (await gateway.fetch('/v1/models/agent')).json(), { id: 'agent', status: 'unloaded' })
  const virtual = await problem('svc/coder')
  t.match(virtual, [404, { code: 'model.not_loaded', message: /go to slot 'coder'.*list_virtual/, details: { slot: 'coder' } }])
  t.notMatch(virtual, [404, { message: /list_unloaded/ }], 'what is on already is not what would list it')
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  t.match(await (await gateway.fetch('/v1/models/agent')).json(), { id: 'agent', status: 'loaded' })
})

t.test('aliases let clients keep the names they know', async t => {
  const gateway = await setup(t, { svc: '[aliases]\n"gpt-4.1" = "agent"\n"qwen3:4b" = "code/model.gguf"\nsmall = "svc/utility"\nremote = "far/gpt-10"\nembedder = "embed"\n' })
  const ask = async (model: string, path = '/v1/chat/completions'): Promise<string> => {
    const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify({ model }) })
    const answer = await response.json() as { from?: string, model?: string, error?: { code: string, message: string } }
    return answer.from === undefined ? `${answer.error?.code}: ${answer.error?.message}` : `${answer.from} ${answer.model ?? ''}`.trim()
  }
  t.equal(await ask('gpt-4.1'), 'agent big-model')
  t.equal(await ask('qwen3:4b'), 'coder code/model.gguf')
  t.equal(await ask('small'), 'agent big-model')
  t.equal(await ask('embedder', '/v1/embeddings'), 'embed e-model')
  t.match(await ask('embedder'), /^dispatch\.no_route: model 'embedder' \(an alias of 'embed'\) cannot be used here: slot 'embed' is of type embedding/)
  t.match(await ask('remote'), /^model.not_found: model 'remote' \(an alias of 'far\/gpt-10'\) is not a slot/)
  const ids = async (): Promise<string[]> => (await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string }> }).data.map(({ id }) => id)
  t.strictSame((await ids()).filter(id => !/^(svc\/|agent|coder|embed$|gpt-9|e-model)/.test(id)), ['gpt-4.1', 'qwen3:4b', 'small', 'embedder'])

  const patch = async (aliases: object): Promise<unknown> => {
    const response = await gateway.fetch('/api/settings', { method: 'PATCH', body: JSON.stringify({ aliases }) })
    return await response.json()
  }
  t.match(await patch({ 'remote': 'far/gpt-9', 'a.b': 'coder', 'small': null }), { aliases: { 'remote': 'far/gpt-9', 'a.b': 'coder', 'gpt-4.1': 'agent' }, _svc: { apply_plan: { live: ['aliases.a.b', 'aliases.remote', 'aliases.small'] } } })
  t.equal(await ask('remote'), 'far')
  t.equal(await ask('a.b'), 'coder code/model.gguf', 'in force at once')
  t.match(await ask('small'), /^model.not_found/)
  for (const [aliases, message] of [
    [{ x: 'x' }, /must not point to itself/], [{ x: 'y', y: 'x' }, /must not point to another alias/], [{ x: 'gpt-4.1' }, /must not point to another alias/],
    [{ 'svc/agent': 'coder' }, /svc\//], [{ 'a b': 'coder' }, /without spaces/], [{ x: '' }, /without spaces/]
  ] as const) t.match(await patch(aliases), { error: { code: 'config.invalid', message } }, JSON.stringify(aliases))
})

t.test('a cold gateway with one enabled llm slot never lists nothing', async t => {
  const gateway = await wireGateway(t, { files: { 'etc/svc/slots/agent.toml': slot('llm', 'fake-model', 'enabled = false\n'), 'etc/svc/slots/mine.toml': slot('llm', 'fake-model') } })
  const { data } = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string, context_length: number }> }
  t.match(data, [{ id: 'svc/mine', context_length: 8192 }])
  t.equal((await gateway.chat({ model: data[0]!.id })).status, 200, 'and what it lists can be asked for')
})
