import OpenAI from 'openai'
import t, { type Test } from 'tap'
import type { AnyPlugin, EngineProvider } from '../../../kernel/contract/index.js'
import {
  chatAnswer, createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type EngineScript, type SeenRequest,
  type TestGateway
} from '../../../kernel/testing/index.js'
import { detokenize, tokenize } from '../../../plugins/providers/llm-server/tokens.js'
import infill from '../../../plugins/v1/infill/index.js'
import moderations from '../../../plugins/v1/moderations/index.js'
import scores from '../../../plugins/v1/scores/index.js'
import text from '../../../plugins/v1/text/index.js'
import tokens from '../../../plugins/v1/tokens/index.js'
import { fakeUpstream, upstreamTable, type FakeUpstream } from '../../wire/fake-upstream.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const json = (body: unknown): EngineScript => ({ headers: JSON_TYPE, chunks: [JSON.stringify(body)] })
const seenBody = ({ body }: SeenRequest): Record<string, unknown> => JSON.parse(body.toString()) as Record<string, unknown>

interface Bench extends TestGateway {
  readonly client: OpenAI
  readonly runtime: FakeEngineRuntime
  readonly upstream: FakeUpstream
  post (path: string, body: unknown): Promise<{ status: number, type: string, text: string, json: Record<string, unknown> }>
}

const chat = { path: '/v1/chat/completions', streaming: true, body: 'json' } as const
const surfaces: EngineProvider['surfaces'] = {
  chat,
  completions: { ...chat, path: '/v1/completions' },
  infill: { ...chat, path: '/infill' },
  tokenize: { path: '/tokenize', streaming: false, body: 'json', light: true, adapt: tokenize },
  detokenize: { path: '/detokenize', streaming: false, body: 'json', light: true, adapt: detokenize },
  rerank: { path: '/v1/rerank', streaming: false, body: 'json' }
}

/** Slots `agent` and `rank` on fake engines, `plain` on one that only chats, and an upstream `up` with the model `far`. */
async function bench (t: Test, answer: (request: SeenRequest) => EngineScript): Promise<Bench> {
  const upstream = await fakeUpstream(t, ['far'])
  const runtime = new FakeEngineRuntime({ onStart: ({ engine }) => engine.answer(answer) })
  const plugins: readonly AnyPlugin[] = [
    createFakeProviderPlugin({ surfaces }), createFakeProviderPlugin({ name: 'simple', surfaces: { chat } }),
    infill, moderations, scores, text, tokens
  ]
  const gateway = await createTestGateway({
    runtime,
    plugins,
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[aliases]\n"omni-moderation-latest" = "agent"\n',
      'etc/svc/upstreams.toml': upstreamTable('up', upstream.url),
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n',
      'etc/svc/slots/plain.toml': 'type = "llm"\nprovider = "simple"\ndevice = "cpu"\n',
      'etc/svc/slots/rank.toml': 'type = "reranking"\nprovider = "fake"\ndevice = "cpu"\n'
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    upstream,
    client: new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 }),
    post: async (path: string, body: unknown) => {
      const response = await gateway.fetch(path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })
      const text = await response.text()
      const type = response.headers.get('content-type') ?? ''
      return { status: response.status, type, text, json: type.startsWith('application/json') ? JSON.parse(text) as Record<string, unknown> : {} }
    }
  })
}

const filled = { content: 'return a + b', stop: true, stop_type: 'limit', tokens_evaluated: 7, tokens_predicted: 4 }

t.test('text between two others: in the words of the engine, of a completion and of a fim completion', async t => {
  const pieces = ['return', ' a'].map(content => `data: ${JSON.stringify({ content, stop: false })}\n\n`)
  const last = `data: ${JSON.stringify({ ...filled, content: '', stop_type: 'eos' })}\n\n`
  const { client, post, runtime, upstream } = await bench(t, request => seenBody(request).stream === true
    ? { headers: { 'content-type': 'text/event-stream' }, chunks: [...pieces, last] }
    : json(filled))
  const seen = (): SeenRequest => runtime.engine('agent').requests.at(-1)!

  const completion = await client.completions.create({ model: 'agent', prompt: 'def', suffix: 'end', max_tokens: 9, temperature: 0.5, ...{ min_p: 0.1 } })
  t.match(completion, { object: 'text_completion', model: 'agent', choices: [{ index: 0, text: 'return a + b', finish_reason: 'length' }], usage: { prompt_tokens: 7, completion_tokens: 4, total_tokens: 11 } })
  t.equal(seen().url, '/infill')
  t.strictSame(seenBody(seen()), { model: 'agent', temperature: 0.5, min_p: 0.1, input_prefix: 'def', input_suffix: 'end', n_predict: 9 })
  const words: string[] = []
  const reasons: Array<string | null> = []
  for await (const { choices: [choice] } of await client.completions.create({ model: 'agent', prompt: 'def', suffix: 'end', stream: true })) {
    words.push(choice!.text)
    reasons.push(choice!.finish_reason)
  }
  t.strictSame([words.join(''), reasons], ['return a', [null, null, 'stop']])

  const fim = await post('/v1/fim/completions', { model: 'agent', prompt: 'def', suffix: 'end', random_seed: 3, stop: ['x'] })
  t.match(fim.json, { object: 'chat.completion', choices: [{ message: { role: 'assistant', content: 'return a + b' }, finish_reason: 'length' }] })
  t.strictSame(seenBody(seen()), { model: 'agent', stop: ['x'], input_prefix: 'def', input_suffix: 'end', seed: 3 })
  const streamed = await post('/v1/fim/completions', { model: 'agent', prompt: 'def', stream: true })
  t.match([streamed.status, streamed.type], [200, /event-stream/])
  t.match(streamed.text, /"object":"chat\.completion\.chunk".*"delta":\{"role":"assistant","content":"return"\}.*data: \[DONE\]\n\n$/s)

  const own = { model: 'agent', input_prefix: 'def', input_suffix: 'end', input_extra: [{ filename: 'a.py', text: 'x' }], n_predict: 2 }
  for (const path of ['/infill', '/v1/infill']) {
    t.same((await post(path, own)).json, filled, path)
    t.strictSame(seenBody(seen()), own, 'as it came')
  }

  upstream.play(json({ ...completion, model: 'far' }))
  t.equal((await post('/v1/completions', { model: 'up/far', prompt: 'a', suffix: 'b' })).status, 200)
  t.strictSame([upstream.calls.at(-1)!.url, seenBody(upstream.calls.at(-1)!)], ['/v1/completions', { model: 'far', prompt: 'a', suffix: 'b' }])
  await post('/v1/fim/completions', { model: 'up/far', prompt: 'a' })
  t.equal(upstream.calls.at(-1)!.url, '/v1/fim/completions')

  for (const [body, param] of [
    [{ prompt: ['a', 'b'], suffix: 'x' }, 'prompt'], [{ prompt: 'a', suffix: 5 }, 'suffix'], [{ prompt: 'a', suffix: 'x', echo: true }, 'echo'],
    [{ prompt: 'a', suffix: 'x', n: 2 }, 'n'], [{ prompt: 'a', suffix: 'x', logprobs: 3 }, 'logprobs']
  ] as const) {
    const refused = await post('/v1/completions', { model: 'agent', ...body })
    t.match([refused.status, refused.json], [400, { error: { code: 'validation.invalid', param } }], param)
  }
  for (const [path, body] of [['/v1/fim/completions', { prompt: 'a' }], ['/infill', own], ['/v1/completions', { prompt: 'a', suffix: 'b' }]] as const) {
    const refused = await post(path, { ...body, model: 'plain' })
    t.match([refused.status, refused.json], [404, { error: { code: 'dispatch.no_route', param: 'model' } }], `${path}: not on an engine that only chats`)
  }
})

t.test('an engine that refuses, breaks off or fails in the middle of it is told as such', async t => {
  const half = `data: ${JSON.stringify({ content: 'half', stop: false })}\n\n`
  const { fetch, post } = await bench(t, request => {
    const { input_prefix: prefix } = seenBody(request)
    if (prefix === undefined || prefix === 'busy') return { headers: { ...JSON_TYPE, 'retry-after': '7' }, chunks: ['{}'], status: 503 }
    if (prefix === 'refuse') return { ...json({ error: { code: 501, message: 'Infill is not supported by this model' } }), status: 501 }
    if (prefix === 'fail') return { headers: { 'content-type': 'text/event-stream' }, chunks: [half, 'data: {"error":{"message":"out of context"}}\n\n'] }
    return { headers: { 'content-type': 'text/event-stream' }, chunks: [half] }
  })
  const refused = await post('/v1/fim/completions', { model: 'agent', prompt: 'refuse' })
  t.match([refused.status, refused.text], [501, /Infill is not supported/])
  for (const [path, body] of [['/v1/fim/completions', { prompt: 'busy' }], ['/v1/moderations', { input: 'x' }]] as const) {
    const busy = await fetch(path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ model: 'agent', ...body }) })
    await busy.text()
    t.strictSame([busy.status, busy.headers.get('retry-after')], [503, '7'], `${path} says when to ask again`)
  }
  for (const [prompt, message] of [['fail', /out of context/], ['cut', /before its answer was complete/]] as const) {
    const broken = await post('/v1/fim/completions', { model: 'agent', prompt, stream: true })
    t.match(broken.text, message)
    t.notMatch(broken.text, /\[DONE\]/)
  }
})

t.test('texts and chats in tokens and back, in vLLM\'s shape', async t => {
  const { post, fetch: send, runtime, slots } = await bench(t, request => {
    switch (request.url) {
      case '/apply-template': return json({ prompt: `<${String(seenBody(request).messages !== undefined)}>` })
      case '/tokenize': return json({ tokens: seenBody(request).with_pieces === true ? [{ id: 1, piece: 'he' }, { id: 2, piece: [0xff] }] : [1, 2] })
      case '/props': return json({ default_generation_settings: { n_ctx: 4096 } })
      case '/detokenize': return json({ content: 'hello' })
      default: return { ...json({ error: {} }), status: 500 }
    }
  })
  const asked = (path: string): Record<string, unknown> => seenBody(runtime.engine('agent').requests.findLast(({ url }) => url === path)!)
  t.same((await post('/v1/tokenize', { model: 'agent', prompt: 'hello' })).json, { count: 2, max_model_len: 4096, tokens: [1, 2], token_strs: null })
  t.strictSame(asked('/tokenize'), { content: 'hello', add_special: true, with_pieces: false })
  const chat = await post('/tokenize', { model: 'agent', messages: [{ role: 'user', content: 'x' }], return_token_strs: true })
  t.match(chat.json, { count: 2, token_strs: ['he', '\ufffd'] })
  t.strictSame(asked('/tokenize'), { content: '<true>', add_special: false, with_pieces: true })
  t.same((await post('/v1/detokenize', { model: 'agent', tokens: [1, 2] })).json, { prompt: 'hello' })
  t.equal(slots.status('agent').inFlight, 0)
  for (const [path, body, param] of [
    ['/v1/tokenize', {}, 'prompt'], ['/v1/tokenize', { prompt: 5 }, 'prompt'], ['/v1/tokenize', { messages: [] }, 'messages'], ['/v1/detokenize', { tokens: 'x' }, 'tokens']
  ] as const) {
    const refused = await post(path, { model: 'agent', ...body })
    t.match([refused.status, refused.json], [400, { error: { code: 'validation.invalid', param } }], `${path} ${param}`)
  }
  const broken = await send('/v1/tokenize', { method: 'POST', body: '{"model":"agent","prompt":"\\x"}' })
  t.match([broken.status, await broken.json()], [400, { error: { code: 'request.invalid_json' } }], 'an escape that JSON does not have is the client\'s, and no failure of the engine')
  t.match((await post('/v1/tokenize', { model: 'plain', prompt: 'x' })).json, { error: { code: 'dispatch.no_route' } })
})

t.test('ranks in Cohere\'s shape, and scores of pairs on a reranker', async t => {
  const { post, runtime, upstream } = await bench(t, request => {
    const { query, documents } = seenBody(request) as { query: string, documents: string[] }
    return json({ model: 'r', results: documents.map((document, index) => ({ index, relevance_score: document.length - query.length })), usage: { total_tokens: 3 } })
  })
  const ranked = await post('/v2/rerank', { model: 'rank', query: 'q', documents: ['aa', 'aaaa', 'aaa'], top_n: 2 })
  t.match(ranked.json, { id: /./, results: [{ index: 1, relevance_score: 3 }, { index: 2, relevance_score: 2 }], meta: { api_version: { version: '2' } } })
  t.equal((ranked.json.results as unknown[]).length, 2)
  const one = await post('/v1/score', { model: 'rank', text_1: 'q', text_2: ['aa', 'a'] })
  t.match(one.json, { object: 'list', model: 'rank', data: [{ index: 0, object: 'score', score: 1 }, { index: 1, score: 0 }], usage: { total_tokens: 3 } })
  const pairs = await post('/score', { model: 'rank', text_1: ['q', 'qq'], text_2: ['aaa', 'aaa'] })
  t.match(pairs.json, { data: [{ score: 2 }, { score: 1 }], usage: { total_tokens: 6 } })
  t.equal(runtime.engine('rank').requests.length, 4)

  upstream.play(json({ id: 's', object: 'list', created: 1, model: 'far', data: [{ index: 0, object: 'score', score: 0.5 }] }))
  t.match((await post('/v1/score', { model: 'up/far', text_1: 'a', text_2: 'b' })).json, { id: 's' }, 'an upstream that knows it')
  t.equal(upstream.calls.at(-1)!.url, '/v1/score')
  upstream.play({ ...json({ error: { message: 'nothing here' } }), status: 404 }, json({ results: [{ index: 0, relevance_score: 0.25 }] }))
  t.match((await post('/v1/score', { model: 'up/far', text_1: 'a', text_2: 'b' })).json, { data: [{ score: 0.25 }] }, 'one that reranks alone')

  for (const [path, body, param] of [
    ['/v1/score', { text_1: ['a', 'b'], text_2: ['c'] }, 'text_1'], ['/v1/score', { text_1: 'a' }, 'text_2'], ['/v1/score', { text_1: new Array(300).fill('a'), text_2: new Array(300).fill('a') }, 'text_1'],
    ['/v2/rerank', { query: 'q' }, 'documents'], ['/v2/rerank', { query: 'q', documents: [] }, 'documents'], ['/v2/rerank', { query: 'q', documents: ['a'], top_n: 0 }, 'top_n']
  ] as const) {
    const refused = await post(path, { model: 'rank', ...body })
    const told = path === '/v2/rerank'
      ? { id: /^req-/, code: 'validation.invalid', message: new RegExp(param) }
      : { error: { code: 'validation.invalid', param } }
    t.match([refused.status, refused.json], [400, told], `${path} ${param}`)
  }
  upstream.play(json({ results: [{ index: 1, relevance_score: -3 }] }))
  t.match((await post('/v1/score', { model: 'up/far', text_1: 'a', text_2: ['b', 'c'] })).json, { error: { code: 'dispatch.upstream_failed' } }, 'one that leaves something out')
  upstream.play(json({ results: [{ index: 7, relevance_score: 1 }] }))
  t.match((await post('/v2/rerank', { model: 'up/far', query: 'q', documents: ['a'] })).json, { code: 'dispatch.upstream_failed', message: String }, 'a place that is none')
  upstream.play({ status: 422, headers: { 'content-type': 'application/json' }, chunks: ['{"error":{"message":"too long"}}'] })
  const worded = await post('/v2/rerank', { model: 'up/far', query: 'q', documents: ['a'] })
  t.match([worded.status, worded.json], [422, { message: 'too long' }], 'an upstream\'s refusal in Cohere\'s shape')
  t.match((await post('/v2/rerank', { model: 'nobody', query: 'q', documents: ['a'] })).json, { id: /^req-/, message: /nobody/, code: /^model\./ })
})

t.test('harmful texts: an upstream\'s word, a guard model\'s, and a refusal that says what to add', async t => {
  const { client, upstream, runtime } = await bench(t, request => {
    const { messages: [{ content }] } = seenBody(request) as unknown as { messages: [{ content: string }] }
    return json(JSON.parse(chatAnswer(content === 'bad' ? '\n\nunsafe\nS1,S4' : content === 'odd' ? 'Sure! Here is' : 'safe')))
  })
  const result = await client.moderations.create({ model: 'agent', input: ['good', 'bad'] })
  t.match(result, { id: /^modr-/, model: 'agent', results: [{ flagged: false }, { flagged: true, categories: { 'violence': true, 'sexual/minors': true, 'hate': false }, category_scores: { violence: 1, hate: 0 }, hazards: ['S1', 'S4'] }] })
  t.match(await client.moderations.create({ input: [{ type: 'text', text: 'bad' }] }), { model: 'omni-moderation-latest', results: [{ flagged: true }] }, 'a slot that is called so')
  const failure = (work: Promise<unknown>): Promise<unknown> => work.then(() => null, (error: unknown) => error)
  t.match(await failure(client.moderations.create({ model: 'agent', input: 'odd' })), { status: 422, code: 'moderations.not_a_guard' })
  t.match(await failure(client.moderations.create({ model: 'agent', input: [{ type: 'image_url', image_url: { url: 'x' } }] })), { status: 400, param: 'input' })
  t.ok(runtime.engine('agent').requests.length >= 4)
  upstream.play(json({ id: 'm', model: 'far', results: [{ flagged: true, categories: {}, category_scores: {} }] }))
  t.match(await client.moderations.create({ model: 'up/far', input: 'x', ...{ extra: 1 } }), { id: 'm' })
  t.match([upstream.calls.at(-1)!.url, seenBody(upstream.calls.at(-1)!)], ['/v1/moderations', { model: 'far', input: 'x', extra: 1 }])

  const bare = await createTestGateway({ plugins: [moderations] })
  t.teardown(() => bare.close())
  const none = new OpenAI({ baseURL: `${bare.baseUrl}/v1`, apiKey: 'x', maxRetries: 0 })
  t.match(await failure(none.moderations.create({ input: 'x' })), { status: 400, code: 'moderations.unavailable', message: /svc upstream add openai.*svc alias set/ })
})
