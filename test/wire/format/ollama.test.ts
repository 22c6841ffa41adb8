import t, { type Test } from 'tap'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import ollama from '../../../plugins/dialects/ollama/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import { readUntil, until, wireGateway } from '../wire-gateway.js'
import { chatOnlyGateway, type ChatOnly, type Said } from './chat-only.js'

type Json = Record<string, unknown>

const question = { model: 'agent', messages: [{ role: 'user', content: 'hi' }] }
const weather = { type: 'function', function: { name: 'weather', description: 'of a place', parameters: { type: 'object', properties: { place: { type: 'string' } } } } }
const PNG = 'iVBORw0KGgoAAAANSUhEUg'

/** Thinks, talks, and calls two tools, whose arguments come in pieces. */
const busy: Said = {
  deltas: [
    { reasoning_content: 'hm' }, { reasoning_content: ', so' }, { content: 'Let me ' }, { content: 'look é🎈.' },
    { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"place":' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    { tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } }] }
  ],
  finish: 'tool_calls'
}
const calls = [
  { id: 'call_a', function: { index: 0, name: 'weather', arguments: { place: 'Rome' } } },
  { id: 'call_b', function: { index: 1, name: 'weather', arguments: { place: 'Oslo' } } }
]

interface Asking extends ChatOnly {
  post (path: string, body: object): Promise<Response>
  json (path: string, body: object): Promise<Json>
  lines (path: string, body: object): Promise<Json[]>
}

async function asking (t: Test, svc = ''): Promise<Asking> {
  const chat = await chatOnlyGateway(t, [hub, library, pull, ollama], svc)
  const post = (path: string, body: object): Promise<Response> => chat.gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) })
  return {
    ...chat,
    post,
    json: async (path, body) => await (await post(path, { stream: false, ...body })).json() as Json,
    lines: async (path, body) => (await (await post(path, body)).text()).trimEnd().split('\n').map(line => JSON.parse(line) as Json)
  }
}

t.test('Ollama\'s words over an engine and an upstream that speak chat completions', async t => {
  const { gateway, says, asked, post, json, lines } = await asking(t)

  for (const model of ['agent', 'gpt-9', 'agent:latest', 'svc/agent']) {
    await t.test(`thoughts, text and calls of ${model} come whole and as lines`, async t => {
      says(busy)
      const whole = await json('/api/chat', { ...question, model, tools: [weather] })
      t.match(whole, {
        model,
        created_at: /^\d{4}-\d\d-\d\dT/,
        message: { role: 'assistant', content: 'Let me look é🎈.', thinking: 'hm, so' },
        done: true,
        done_reason: 'stop',
        prompt_eval_count: 20,
        eval_count: 7,
        load_duration: 0
      })
      t.strictSame((whole.message as Json).tool_calls, calls)
      t.ok(['total_duration', 'prompt_eval_duration', 'eval_duration'].every(key => Number.isInteger(whole[key])), 'nanoseconds are whole numbers')
      const told = await lines('/api/chat', { ...question, model, tools: [weather] })
      t.strictSame(told.map(({ message, done }) => ({ ...message as Json, done })), [
        { role: 'assistant', content: '', thinking: 'hm', done: false },
        { role: 'assistant', content: '', thinking: ', so', done: false },
        { role: 'assistant', content: 'Let me ', done: false },
        { role: 'assistant', content: 'look é🎈.', done: false },
        { role: 'assistant', content: '', tool_calls: calls, done: false },
        { role: 'assistant', content: '', done: true }
      ])
      t.match(told.at(-1), { model, done_reason: 'stop', prompt_eval_count: 20, eval_count: 7 })
      t.match(asked(), { stream: true, stream_options: { include_usage: true }, tools: [weather] })
    })
  }

  t.test('a conversation with everything in it reaches the model', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const body = {
      ...question,
      stream: false,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'what is it?', images: [PNG] },
        { role: 'assistant', content: '', thinking: 'well', tool_calls: [{ function: { name: 'weather', arguments: { place: 'Rome' } } }, { function: { name: 'time', arguments: {} } }] },
        { role: 'tool', tool_name: 'time', content: 'noon' },
        { role: 'tool', content: 'sun' },
        { role: 'user', content: 'go on' }
      ],
      tools: [weather],
      format: { type: 'object' },
      think: 'low',
      logprobs: true,
      top_logprobs: 2,
      options: {
        num_predict: 50, temperature: 0.5, top_p: 0.9, top_k: 20, min_p: 0.1, seed: 7, stop: ['END'], presence_penalty: 0.2, frequency_penalty: 0.3,
        repeat_penalty: 1.1, repeat_last_n: 32, num_ctx: 1234, num_gpu: 9
      },
      keep_alive: '5m',
      vendor: 1
    }
    const answer = await post('/api/chat', body)
    t.equal(answer.status, 200, await answer.clone().text())
    t.match(answer.headers.get('x-svc-warning'), /vendor: not known here.*options\.num_gpu: left out.*options\.num_ctx: left out, the slot has \d+ tokens/)
    const call = (id: string, name: string, args: string): object => ({ id, type: 'function', function: { name, arguments: args } })
    t.strictSame(asked(), {
      model: 'fake-model',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'what is it?' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }] },
        { role: 'assistant', content: null, reasoning_content: 'well', tool_calls: [call('call_0', 'weather', '{"place":"Rome"}'), call('call_1', 'time', '{}')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
        { role: 'tool', tool_call_id: 'call_0', content: 'sun' },
        { role: 'user', content: 'go on' }
      ],
      tools: [weather],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } },
      chat_template_kwargs: { enable_thinking: true },
      reasoning_effort: 'low',
      temperature: 0.5, top_p: 0.9, top_k: 20, min_p: 0.1, seed: 7, stop: ['END'], presence_penalty: 0.2, frequency_penalty: 0.3,
      repeat_penalty: 1.1, repeat_last_n: 32,
      max_tokens: 50,
      logprobs: true,
      top_logprobs: 2
    })
    const remote = await post('/api/chat', { ...body, model: 'gpt-9', think: false, format: 'json' })
    t.match(remote.headers.get('x-svc-warning'), /think: left out.*options\.repeat_penalty: left out/)
    t.match(asked(), { response_format: { type: 'json_object' }, repeat_penalty: undefined, chat_template_kwargs: undefined, messages: { 2: { reasoning_content: undefined } } })
    const uncut = await post('/api/chat', { model: 'agent', messages: [{ role: 'user', content: 'hi' }], truncate: true, shift: true })
    t.match(uncut.headers.get('x-svc-warning'), /^truncate: left out[^;]*; shift: left out[^;]*$/)
    const unsaid = await post('/api/chat', { model: 'agent', messages: [{ role: 'user', content: 'hi' }], truncate: false, shift: false })
    t.equal(unsaid.headers.get('x-svc-warning'), null, 'that is what happens')
    await Promise.all([uncut, unsaid].map(answer => answer.body?.cancel()))
  })

  t.test('a prompt is a message of the user, a raw one a plain completion', async t => {
    says(busy)
    t.match(await json('/api/generate', { model: 'agent', prompt: 'hi', system: 'Be kind.', think: false }), {
      model: 'agent', response: 'Let me look é🎈.', thinking: 'hm, so', done: true, done_reason: 'stop', eval_count: 7
    })
    t.match(asked(), { messages: [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'hi' }], chat_template_kwargs: { enable_thinking: false } })
    const told = await lines('/api/generate', { model: 'agent', prompt: 'hi' })
    t.equal(told.map(({ response }) => response).join(''), 'Let me look é🎈.')
    t.match(told.at(-1), { response: /^$/, done: true })
    const schema = { type: 'object', properties: { colour: { type: 'string' } } }
    for (const [format, expected] of [['json', { type: 'json_object' }], [schema, { type: 'json_schema', json_schema: { schema } }]] as const) {
      await json('/api/generate', { model: 'agent', prompt: 'What is it?', images: ['iVBORw0KGgoAAAAA', '/9j/4AAA'], format })
      t.match(asked(), {
        messages: [{ role: 'user', content: [
          { type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgoAAAAA' } },
          { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,/9j/4AAA' } }
        ] }],
        response_format: expected
      })
    }
    gateway.runtime.engine('agent').answer({ status: 500 })
    t.match(await json('/api/generate', { model: 'agent', prompt: '<s>hi', raw: true }), { error: /does not serve completions/ }, 'which this engine does not have')
    for (const [body, problem] of [
      [{ template: '{{ .Prompt }}' }, /'template'/], [{ context: [1, 2] }, /'context'/], [{ suffix: 'x' }, /'suffix' cannot be used: agent does not support insert/],
      [{ prompt: 3 }, /'prompt' must be a string/], [{ images: ['nothing'] }, /'images\.0' must be a JPEG/], [{ format: 'xml' }, /'format' must be/],
      [{ think: 'much' }, /'think' must be/], [{ keep_alive: 'soon' }, /'keep_alive' must be/], [{ options: 3 }, /'options' must be an object/]
    ] as const) {
      const refused = await post('/api/generate', { model: 'agent', prompt: 'hi', ...body })
      t.equal(refused.status, 400)
      t.match(await refused.json(), { error: problem })
    }
  })

  t.test('how likely tokens are is told beside their text', async t => {
    const row = { token: 'a', logprob: -0.1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2, bytes: [98] }] }
    says({ deltas: [{ content: 'a' }], choice: { logprobs: { content: [row] } } })
    t.match(await json('/api/chat', { ...question, logprobs: true }), { logprobs: [row] })
  })

  t.test('a failure is a text with a status, before the stream, and the last line within it', async t => {
    for (const [path, body, status, error] of [
      ['/api/chat', { messages: [] }, 400, /'model' is required/],
      ['/api/chat', { ...question, model: 'nobody:7b' }, 404, /nobody:7b/],
      ['/api/chat', { ...question, messages: [{ role: 'wizard', content: '' }] }, 400, /'messages\.0\.role'/],
      ['/api/show', { model: 'nobody' }, 404, /nobody/],
      ['/api/push', { model: 'agent' }, 501, /cannot push models/],
      ['/api/blobs/sha256:aa', {}, 501, /does not accept model files/]
    ] as const) {
      const refused = await post(path, body)
      t.equal(refused.status, status, path)
      t.match(await refused.json(), { error })
    }
    const wrong = await gateway.fetch('/api/chat', { method: 'POST', body: '{' })
    t.equal(wrong.status, 400)
    t.strictSame(Object.keys(await wrong.json() as object), ['error'])
    t.match(await (await gateway.fetch('/api/chat')).json(), { error: /takes POST/ }, 'also where no route matched')
    const large = await gateway.fetch('/api/chat', { method: 'POST', body: Buffer.alloc(65 * 1024 * 1024, 0x20) })
    t.equal(large.status, 413)
    t.type((await large.json() as Json).error, 'string')
    says({ deltas: [{ content: 'a' }, { content: 'b' }] }, { dieAfter: 3 })
    const told = await lines('/api/chat', question)
    t.match(told.at(-1), { error: /./ })
    t.strictSame(told.filter(({ done }) => done === true), [], 'what broke off is not done')
    says({ deltas: [] }, { status: 400, headers: { 'content-type': 'application/json' }, chunks: ['{"error":{"message":"too long"}}'] })
    const refused = await post('/api/chat', question)
    t.equal(refused.status, 400)
    t.match(await refused.json(), { error: 'too long' })
  })

  t.test('a client that leaves ends the work of the engine, and a slow one is waited for', async t => {
    says({ deltas: [{ content: 'a' }] }, { hangAfter: 2 })
    const engine = gateway.runtime.engine('agent')
    await readUntil(await post('/api/chat', question), text => text.includes('"content":"a"'))
    await until(() => engine.active === 0, 'the engine is left')
    const many = 20_000
    says({ deltas: Array.from({ length: many }, () => ({ content: 'x'.repeat(400) })) })
    const slow = await post('/api/chat', question)
    const reader = slow.body!.getReader()
    await reader.read()
    let size = 0
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) size += Buffer.from(chunk.value).toString().split('\n').length - 1
    t.ok(size > many / 2, 'all of it comes')
  })
})

t.test('while a cold slot loads, a stream is kept alive with spaces, which break no line', async t => {
  const { gateway, says, post } = await asking(t, '[dispatcher]\nhold_headers_s = 0\nping_interval_s = 0.02\n')
  await gateway.slots.unload('agent')
  let go = (): void => {}
  const loads = new Promise<void>(resolve => { go = resolve })
  const { start } = gateway.runtime
  gateway.runtime.start = async (...given) => {
    await loads
    await start.apply(gateway.runtime, given)
    says({ deltas: [{ content: 'ok' }] })
  }
  const response = await post('/api/chat', question)
  t.equal(response.headers.get('content-type'), 'application/x-ndjson')
  const reader = response.body!.getReader()
  let text = ''
  const more = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    if (value !== undefined) text += Buffer.from(value).toString()
    return !done
  }
  while (text.length < 3) await more()
  t.equal(text.trim(), '')
  go()
  while (await more());
  t.notMatch(text, '\n\n')
  const told = text.trimEnd().split('\n').map(line => JSON.parse(line) as Json)
  t.match(told.at(-1), { done: true, load_duration: Number })
  t.ok(told.at(-1)!.load_duration as number > 0, 'how long it loaded is told')
})

t.test('a failure behind the first sign of life is one line of JSON', async t => {
  const { gateway, post } = await asking(t, '[dispatcher]\nhold_headers_s = 0\nping_interval_s = 0.02\n')
  await gateway.slots.unload('agent')
  let fail = (): void => {}
  gateway.runtime.start = () => new Promise((_resolve, reject) => { fail = () => reject(new Error('no such image')) })
  const reader = (await post('/api/chat', question)).body!.getReader()
  let text = ''
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    text += Buffer.from(chunk.value).toString()
    fail()
  }
  t.match(JSON.parse(text), { error: /./ })
})

t.test('keep_alive and requests that ask nothing', async t => {
  const { gateway, says, json, lines } = await asking(t)
  says({ deltas: [{ content: 'ok' }] })
  const { slots } = gateway
  const ps = async (): Promise<Json[]> => (await (await gateway.fetch('/api/ps')).json() as { models: Json[] }).models
  t.equal(slots.idleTimeoutMs('agent'), null, 'an anchor stays as it is')
  t.match(await ps(), [{ name: 'agent:latest', model: 'agent:latest', size_vram: 0, expires_at: /^23\d\d-/ }])
  await json('/api/chat', { ...question, keep_alive: '1m' })
  t.equal(slots.idleTimeoutMs('agent'), null, 'also where a client would have it go')
  t.match(await lines('/api/generate', { model: 'agent', keep_alive: 0 }), [{ model: 'agent', response: /^$/, done: true, done_reason: 'unload' }])
  t.equal(slots.status('agent').state, 'offline')
  t.strictSame(await ps(), [])
  t.match(await json('/api/chat', { model: 'agent', messages: [] }), { message: { role: 'assistant', content: /^$/ }, done: true, done_reason: 'load' })
  t.equal(slots.status('agent').state, 'ready')
  await slots.create('other', { type: 'llm', provider: 'chatty', device: 'cpu', model: { default: 'fake-model' } })
  t.match(await json('/api/chat', { model: 'other', keep_alive: '1h' }), { done_reason: 'load' })
  t.equal(slots.idleTimeoutMs('other'), 3_600_000)
  await json('/api/generate', { model: 'other', keep_alive: -1 })
  t.equal(slots.idleTimeoutMs('other'), null)
  await json('/api/generate', { model: 'other', keep_alive: '99999999999999999999h' })
  t.match((await ps()).find(({ name }) => name === 'other:latest'), { expires_at: /^23\d\d-/ }, 'longer than dates go is for ever')
  says({ deltas: [{ content: 'ok' }] })
  gateway.runtime.engine('other').answer({ headers: { 'content-type': 'application/json' }, chunks: ['{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'] })
  await json('/api/chat', { ...question, model: 'other', keep_alive: 0 })
  await until(() => slots.status('other').state === 'offline', 'it goes when its answer is out')
  t.equal(slots.idleTimeoutMs('other'), 300_000, 'and the next one stays as long as the settings say')
  t.match(await json('/api/generate', { model: 'gpt-9' }), { done_reason: 'load' }, 'there is nothing to load of an upstream')
  t.match(await json('/api/generate', { model: 'nobody' }), { error: /nobody/ })
})

t.test('a suffix goes to slots whose engine puts text between two others', async t => {
  const surface = { path: '/infill', streaming: true, body: 'json' } as const
  const provider = createFakeProviderPlugin({ name: 'filling', surfaces: { chat: { ...surface, path: '/v1/chat/completions' }, infill: surface } })
  const gateway = await wireGateway(t, {
    plugins: [provider, hub, library, pull, ollama],
    files: { 'etc/svc/slots/coder.toml': 'type = "llm"\nprovider = "filling"\ndevice = "cpu"\n' }
  })
  await gateway.slots.ensureReady('coder', new AbortController().signal)
  const engine = gateway.runtime.engine('coder')
  const end = { stop: true, stop_type: 'eos', tokens_evaluated: 7, tokens_predicted: 4 }
  engine.answer(({ body }) => (JSON.parse(body.toString()) as Json).stream === true
    ? {
        headers: { 'content-type': 'text/event-stream' },
        chunks: [{ content: 'return', stop: false }, { content: ' a', stop: false }, { content: '', ...end }].map(event => `data: ${JSON.stringify(event)}\n\n`)
      }
    : { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ content: 'return a', ...end })] })
  const body = { model: 'coder', prompt: 'def f(a):', suffix: 'print(f(1))', options: { num_predict: 9 } }
  const answered = await gateway.fetch('/api/generate', { method: 'POST', body: JSON.stringify({ ...body, stream: false }) })
  t.match(await answered.json(), { response: 'return a', done: true, eval_count: 4, prompt_eval_count: 7 })
  t.match(engine.requests.at(-1)!.url, '/infill')
  t.match(JSON.parse(engine.requests.at(-1)!.body.toString()), { input_prefix: 'def f(a):', input_suffix: 'print(f(1))', n_predict: 9 })
  const streamed = await (await gateway.fetch('/api/generate', { method: 'POST', body: JSON.stringify(body) })).text()
  const lines = streamed.trimEnd().split('\n').map(line => JSON.parse(line) as Json)
  t.equal(lines.map(({ response }) => response).join(''), 'return a')
  t.match(lines.at(-1), { done: true, done_reason: 'stop' })
})
