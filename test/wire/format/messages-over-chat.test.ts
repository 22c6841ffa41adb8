import Anthropic, { APIError, BadRequestError } from '@anthropic-ai/sdk'
import fc from 'fast-check'
import t from 'tap'
import messageRoutes from '../../../plugins/v1/messages/index.js'
import { chatOnlyGateway, chunksOf, type Said } from './chat-only.js'
import { until } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const question = { model: 'agent', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }
const weather = { name: 'weather', description: 'of a place', input_schema: { type: 'object' as const, properties: { place: { type: 'string' } } } }

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
const busyMessage = {
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: 'hm, so' }, { type: 'text', text: 'Let me look é🎈.' },
    { type: 'tool_use', id: 'call_a', name: 'weather', input: { place: 'Rome' } },
    { type: 'tool_use', id: 'call_b', name: 'weather', input: { place: 'Oslo' } }
  ],
  stop_reason: 'tool_use',
  usage: { input_tokens: 8, cache_read_input_tokens: 12, output_tokens: 7 }
}

/** Two calls whose pieces come in turns, with a word between them. */
const inTurns: Said = {
  deltas: [
    { content: 'So: ' },
    { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"pl' } }] },
    { tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"place":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: 'ace":' } }] }, { content: 'and then ' },
    { tool_calls: [{ index: 1, function: { arguments: '"}{"' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    { tool_calls: [{ index: 1, function: { arguments: '}' } }] }, { content: 'done' }
  ],
  finish: 'tool_calls'
}

function failure (work: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(work).then(() => null, (error: unknown) => error)
}

t.test('the Messages API over an engine and an upstream that speak chat alone', async t => {
  const { gateway, says, asked, upstream } = await chatOnlyGateway(t, [messageRoutes])
  const client = new Anthropic({ baseURL: gateway.baseUrl, apiKey: 'anything' })
  const engine = gateway.runtime.engine('agent')
  const post = (body: object): Promise<Response> => gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(body) })

  for (const model of ['agent', 'gpt-9']) {
    await t.test(`thoughts, text and parallel calls of ${model} come whole and as events`, async t => {
      says(busy)
      t.match(await client.messages.create({ ...question, model, tools: [weather] }), busyMessage)
      const stream = client.messages.stream({ ...question, model, tools: [weather] })
      const types: string[] = []
      stream.on('streamEvent', ({ type }) => types.push(type))
      t.match(await stream.finalMessage(), busyMessage)
      t.strictSame(types, [
        'message_start',
        'content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_delta', 'content_block_stop',
        'content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop',
        'content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop',
        'content_block_start', 'content_block_delta', 'content_block_stop',
        'message_delta', 'message_stop'
      ])
      t.match(asked(), { stream: true, stream_options: { include_usage: true }, max_tokens: 50, tools: [{ type: 'function', function: { name: 'weather', parameters: weather.input_schema } }] })
    })
  }

  await t.test('calls whose pieces come in turns are blocks one after the other, and nothing of them is lost', async t => {
    says(inTurns)
    const stream = client.messages.stream({ ...question, tools: [weather] })
    let open = -1
    stream.on('streamEvent', event => {
      if (event.type === 'content_block_start') t.equal(event.index, ++open)
      else if ('index' in event) t.equal(event.index, open, `${event.type} of the block that is open`)
    })
    t.match(await stream.finalMessage(), {
      content: [
        { type: 'text', text: 'So: ' },
        { type: 'tool_use', id: 'call_a', name: 'weather', input: { place: 'Rome' } },
        { type: 'tool_use', id: 'call_b', name: 'weather', input: { place: '}{' } },
        { type: 'text', text: 'and then done' }
      ],
      stop_reason: 'tool_use'
    })
  })

  t.test('an upstream that lacks the path is asked for it once', t => {
    t.equal(upstream.calls.filter(({ url }) => url === '/v1/messages').length, 1)
    t.equal(upstream.calls.filter(({ url }) => url === '/v1/chat/completions').length, 2)
    t.end()
  })

  t.test('the chain of gateways goes on, and ends where it comes back', async t => {
    const passed = (via: string): Promise<Response> => gateway.fetch('/v1/messages', {
      method: 'POST', body: JSON.stringify({ ...question, model: 'gpt-9' }), headers: { 'x-svc-via': via }
    })
    await (await passed('elsewhere')).body?.cancel()
    const via = upstream.calls.at(-1)!.headers['x-svc-via'] as string
    t.match(via, /^elsewhere, [0-9a-f]{12}$/)
    const { length } = upstream.calls
    const again = await passed(via)
    t.match(await again.json(), { type: 'error', error: { type: /./, message: /looped back to this gateway/ } })
    t.equal(upstream.calls.length, length)
  })

  t.test('a conversation with everything in it reaches the model', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const body = {
      ...question,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'Be kind.' }],
      temperature: 0.5, stop_sequences: ['END'], metadata: { user_id: 'u1' }, min_p: 0.1,
      thinking: { type: 'adaptive' }, output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      tools: [weather, { type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'what is it?' }, picture, { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'D' } }] },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'well', signature: 's' }, { type: 'text', text: 'I ask.' }, { type: 'tool_use', id: 'a', name: 'weather', input: { place: 'Rome' } }, { type: 'tool_use', id: 'b', name: 'weather', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'sun' }, { type: 'tool_result', tool_use_id: 'b', is_error: true, content: [{ type: 'text', text: 'no place' }, picture] }, { type: 'text', text: 'go on' }] },
        { role: 'system', content: 'A reminder.' }
      ]
    }
    const answer = await post(body)
    t.equal(answer.status, 200, await answer.clone().text())
    t.match(answer.headers.get('x-svc-warning'), /context_management.*tools\.1: 'web_search_20250305' was left out/)
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
    const call = (id: string, args: string): object => ({ id, type: 'function', function: { name: 'weather', arguments: args } })
    t.strictSame(asked(), {
      min_p: 0.1,
      temperature: 0.5,
      model: 'fake-model',
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: [{ type: 'text', text: 'what is it?' }, image, { type: 'text', text: 'T\n\nD' }] },
        { role: 'assistant', content: 'I ask.', reasoning_content: 'well', tool_calls: [call('a', '{"place":"Rome"}'), call('b', '{}')] },
        { role: 'tool', tool_call_id: 'a', content: 'sun' },
        { role: 'tool', tool_call_id: 'b', content: 'Error: no place\n[what else it answered follows]' },
        { role: 'user', content: [image, { type: 'text', text: 'go on' }] },
        { role: 'system', content: 'A reminder.' }
      ],
      max_tokens: 50,
      stop: ['END'],
      user: 'u1',
      tools: [{ type: 'function', function: { name: 'weather', description: 'of a place', parameters: weather.input_schema } }],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      parallel_tool_calls: false,
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } },
      reasoning_effort: 'low',
      chat_template_kwargs: { enable_thinking: true }
    })
    await post({ ...body, model: 'gpt-9', thinking: { type: 'enabled', budget_tokens: 20_000 }, output_config: {} })
    t.match(asked(), { reasoning_effort: 'high', chat_template_kwargs: undefined, messages: { 2: { reasoning_content: undefined } } }, 'upstreams have words of their own')
    await post({ ...question, thinking: { type: 'disabled' }, tools: [] })
    t.match(asked(), { chat_template_kwargs: { enable_thinking: false }, tools: undefined })
  })

  t.test('tokens are counted by the tokenizer of the engine where it has one, else estimated, which a header says', async t => {
    const body = { system: 'Be brief.', messages: question.messages, tools: [weather] }
    const count = (model: string): Promise<Response> => gateway.fetch('/v1/messages/count_tokens', { method: 'POST', body: JSON.stringify({ ...body, model }) })
    says(busy)
    for (const model of ['agent', 'gpt-9']) {
      const answer = await count(model)
      t.equal(answer.headers.get('x-svc-estimate'), 'input_tokens')
      const { input_tokens: tokens } = await answer.json() as { input_tokens: number }
      t.ok(tokens > 30 && tokens < 80, `${tokens} of a short question with a tool`)
    }
    engine.answer(({ url, body: said }) => {
      const asked = JSON.parse(said.toString()) as { messages?: unknown[], content?: string }
      if (url === '/apply-template') return { headers: JSON_TYPE, chunks: [JSON.stringify({ prompt: `<s>${asked.messages!.length}` })] }
      return url === '/tokenize' && asked.content === '<s>2' ? { headers: JSON_TYPE, chunks: ['{"tokens":[1,2,3,4,5]}'] } : { status: 404 }
    })
    const exact = await count('agent')
    t.equal(exact.headers.get('x-svc-estimate'), null)
    t.strictSame(await exact.json(), { input_tokens: 5 })
    t.equal((await client.messages.countTokens({ ...body, model: 'agent' })).input_tokens, 5)
    const searching = { ...body, model: 'agent', tools: [weather, { type: 'web_search_20250305', name: 'web_search' }] }
    const warned = await gateway.fetch('/v1/messages/count_tokens', { method: 'POST', body: JSON.stringify(searching) })
    t.match([warned.status, warned.headers.get('x-svc-warning')], [200, /web_search/], 'what its request is warned of')
    await client.messages.countTokens({ ...body, model: 'agent', thinking: { type: 'disabled' } })
    const template = engine.requests.findLast(({ url }) => url === '/apply-template')!
    t.match(JSON.parse(template.body.toString()), { chat_template_kwargs: { enable_thinking: false } }, 'as the answer would be asked for')
  })

  t.test('the reason of the end is told in the words of the API', async t => {
    const ends = [
      ['stop', {}, { stop_reason: 'end_turn', stop_sequence: null }], ['length', {}, { stop_reason: 'max_tokens' }],
      ['content_filter', {}, { stop_reason: 'refusal' }], ['stop', { stop_reason: 'END' }, { stop_reason: 'stop_sequence', stop_sequence: 'END' }]
    ] as const
    for (const [finish, choice, expected] of ends) {
      says({ deltas: [{ content: 'x' }], finish, choice })
      t.match(await client.messages.create(question), expected)
      t.match(await client.messages.stream(question).finalMessage(), expected)
    }
  })

  t.test('what is left out of a request is told by its name', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const rows: ReadonlyArray<readonly [object, RegExp | null]> = [
      [{ service_tier: 'standard_only' }, /^service_tier: left out/],
      [{ output_config: { effort: 'max' } }, /^output_config\.effort: 'max' is sent as 'high'/],
      [{ service_tier: 'auto', output_config: { effort: 'high' }, inference_geo: 'global', fallbacks: [] }, null]
    ]
    for (const [body, expected] of rows) {
      const answer = await post({ ...question, ...body })
      t.match({ status: answer.status, warning: answer.headers.get('x-svc-warning') }, { status: 200, warning: expected }, JSON.stringify(body))
      await answer.body?.cancel()
    }
    t.match(asked(), { reasoning_effort: 'high' })
  })

  t.test('what chat has no words for is refused by its name', async t => {
    const seen = engine.requests.length
    const bodies: ReadonlyArray<readonly [object, RegExp]> = [
      [{ tools: [{ type: 'computer_20250124', name: 'computer' }] }, /'tools\.0': a tool of type 'computer_20250124'/],
      [{ mcp_servers: [{ url: 'https://x' }] }, /'mcp_servers'/],
      [{ inference_geo: 'us' }, /'inference_geo': a region for the model to run in/],
      [{ fallbacks: [{ model: 'other' }] }, /'fallbacks': a fallback model/],
      [{ messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] }, /'messages\.0\.content\.0': a block of type 'container_upload'/],
      [{ messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] }, /'messages\.0\.content\.0\.source': an image that is not in the request/],
      [{ messages: [{ role: 'user', content: [{ type: 'x'.repeat(100_000) }] }] }, /'messages\.0\.content\.0': a block of type 'x{64}' cannot/],
      [{ messages: [{ role: 'user', content: [{ type: { toString: 1 } }] }] }, /'messages\.0\.content\.0': a block of type 'object'/],
      [{ messages: [{ role: 'user', content: [7] }] }, /'messages\.0\.content\.0' must be an object/],
      [{ messages: 'hi' }, /'messages' must be a list/],
      [{ messages: [{ role: 'nobody', content: '' }] }, /'messages\.0\.role'/],
      [{ tool_choice: { type: 'best' }, tools: [weather] }, /'tool_choice\.type'/]
    ]
    for (const [body, message] of bodies) {
      const answer = await post({ ...question, ...body })
      t.match({ status: answer.status, body: await answer.json() }, {
        status: 400, body: { type: 'error', error: { type: 'invalid_request_error', code: 'validation.invalid', message } }
      })
    }
    t.equal(engine.requests.length, seen, 'no engine is asked')
    t.ok(await failure(client.messages.create({ ...question, model: 'gpt-9', messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] })) instanceof BadRequestError)
  })

  t.test('refusals and failures keep the shape of the API, inside a stream too', async t => {
    says(busy, { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"too long","type":"exceed_context_size_error"}}'] })
    for (const stream of [false, true]) {
      const answer = await post({ ...question, stream })
      t.match({ status: answer.status, body: await answer.json() }, { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'too long' } } })
    }
    says(busy, { dieAfter: 4 })
    const broken = await failure(client.messages.stream(question).finalMessage())
    t.ok(broken instanceof APIError)
    t.match(broken, { error: { type: 'error', error: { type: 'api_error', code: 'dispatch.upstream_failed' } } })
    says(busy, { chunks: [...chunksOf(busy).slice(0, 4), 'data: {"error":{"message":"out of memory"}}\n\n'] })
    t.match(await failure(client.messages.stream(question).finalMessage()), { error: { error: { message: 'out of memory' } } })
    says(busy, { chunks: ['data: <html>\n\n'] })
    t.match(await failure(client.messages.stream(question).finalMessage()), { error: { error: { message: /not a chat completion/ } } })
    says(busy, { chunks: ['data: [DONE]\n\n'] })
    t.match(await failure(client.messages.stream(question).finalMessage()), { error: { error: { message: /ended early/ } } })
  })

  t.test('a client that leaves frees the engine', async t => {
    says({ deltas: Array.from({ length: 500 }, (_, i) => ({ content: `w${i} ` })) }, { everyMs: 2 })
    const stream = await client.messages.create({ ...question, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 4) stream.controller.abort()
    await until(() => engine.active === 0, 'the engine is free')
    t.equal(gateway.slots.status('agent').inFlight, 0)
  })

  t.test('a stream that is cut anywhere on its way is the same stream; one that ends early ends with an error', async t => {
    const bytes = Buffer.from(chunksOf(busy).join(''))
    const read = async (chunks: readonly Buffer[], dieAfter = Infinity): Promise<string> => {
      says(busy, { chunks, dieAfter })
      return (await (await post({ ...question, stream: true })).text()).replaceAll(/msg_\w+/g, 'msg')
    }
    const whole = await read([bytes])
    t.match(whole, /event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/)
    const end = bytes.indexOf('"finish_reason":"tool_calls"')
    const places = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 })
    await fc.assert(fc.asyncProperty(places, async cuts => {
      const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      t.equal(await read(marks.slice(1).map((mark, i) => bytes.subarray(marks[i]!, mark))), whole)
    }), { numRuns: 25 })
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: end }), fc.boolean(), async (cut, dies) => {
      const text = await read([bytes.subarray(0, cut), Buffer.from(' ')], dies ? 1 : Infinity)
      const events = text.split('\n\n')
      t.equal(events.pop(), '')
      // nothing was told yet: then the failure has a status
      if (events.length > 0) t.match(events.pop(), /^event: error\ndata: \{"type":"error",/, `cut at ${cut}`)
      else t.match(text, /"code":"dispatch\.upstream_failed"/, `cut at ${cut}`)
      for (const event of events) t.ok(whole.includes(event), event)
    }), { numRuns: 40 })
  })
})

t.test('pings of the format keep a silent stream alive', async t => {
  const { gateway, says } = await chatOnlyGateway(t, [messageRoutes], '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.01\n')
  says({ deltas: [{ content: 'late' }] }, { headAfterMs: 100 })
  const answer = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify({ ...question, stream: true }) })
  t.match(await answer.text(), /^(event: ping\ndata: \{"type": "ping"\}\n\n)+event: message_start/)
})
