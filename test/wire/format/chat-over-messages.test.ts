import assert from 'node:assert/strict'
import fc from 'fast-check'
import OpenAI, { BadRequestError, RateLimitError } from 'openai'
import t from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeEngine, type EngineScript, type SeenRequest } from '../../../kernel/testing/index.js'
import { chatMessages } from '../../../plugins/v1/messages/chat-messages.js'
import { conversationOf } from '../../../plugins/v1/over-messages/conversation.js'
import { ChatMessages } from '../../../plugins/v1/responses/chat-messages.js'
import { until, wireGateway } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream' }
const weather = { type: 'function' as const, function: { name: 'weather', description: 'of a place', parameters: { type: 'object', properties: {} } } }
const question = { model: 'claude-9', messages: [{ role: 'user' as const, content: 'hi' }] }

const head = { id: 'msg_01', type: 'message', role: 'assistant', model: 'claude-9-20260101' }
const content = [
  { type: 'thinking', thinking: 'hm, so', signature: 'EqQB' }, { type: 'text', text: 'Let me look é🎈.' },
  { type: 'tool_use', id: 'toolu_a', name: 'weather', input: { place: 'Rome' } }, { type: 'tool_use', id: 'toolu_b', name: 'weather', input: {} }
]
const whole = {
  ...head, content, stop_reason: 'tool_use', stop_sequence: null,
  usage: { input_tokens: 5, cache_creation_input_tokens: 3, cache_read_input_tokens: 12, output_tokens: 9 }
}

/** As the maker of the API words a stream. */
function events (): string[] {
  const event = (data: { readonly type: string } & Record<string, unknown>): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const block = (index: number, start: object, deltas: readonly object[]): string[] => [
    event({ type: 'content_block_start', index, content_block: start }),
    ...deltas.map(delta => event({ type: 'content_block_delta', index, delta })),
    event({ type: 'content_block_stop', index })
  ]
  return [
    event({ type: 'message_start', message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...whole.usage, output_tokens: 1 } } }),
    event({ type: 'ping' }),
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: 'hm' }, { type: 'thinking_delta', thinking: ', so' }, { type: 'signature_delta', signature: 'EqQB' }
    ]),
    ...block(1, { type: 'text', text: '' }, [{ type: 'text_delta', text: 'Let me ' }, { type: 'text_delta', text: 'look é🎈.' }]),
    ...block(2, { type: 'tool_use', id: 'toolu_a', name: 'weather', input: {} }, [
      { type: 'input_json_delta', partial_json: '' }, { type: 'input_json_delta', partial_json: '{"place":' }, { type: 'input_json_delta', partial_json: '"Rome"}' }
    ]),
    ...block(3, { type: 'tool_use', id: 'toolu_b', name: 'weather', input: {} }, [{ type: 'input_json_delta', partial_json: '{}' }]),
    event({ type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } }),
    event({ type: 'message_stop' })
  ]
}

const message = {
  role: 'assistant', content: 'Let me look é🎈.', reasoning_content: 'hm, so',
  tool_calls: [
    { id: 'toolu_a', type: 'function', function: { name: 'weather', arguments: '{"place":"Rome"}' } },
    { id: 'toolu_b', type: 'function', function: { name: 'weather', arguments: '{}' } }
  ]
}
const usage = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29, prompt_tokens_details: { cached_tokens: 12 } }

const refusal = (type: string): string => JSON.stringify({ type: 'error', error: { type, message: 'no more' }, request_id: 'req_1' })

t.test('chat completions over an upstream that speaks the Messages API alone', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  let script: EngineScript = {}
  let last: SeenRequest | null = null
  upstream.answer(request => {
    if (request.method === 'GET') return { headers: JSON_TYPE, chunks: ['{"data":[{"id":"claude-9"}]}'] }
    if (request.url !== '/v1/messages') return { status: 404, headers: JSON_TYPE, chunks: [refusal('not_found_error')] }
    last = request
    const isStream = (JSON.parse(request.body.toString()) as { stream?: boolean }).stream === true
    const usual = isStream ? { headers: SSE, chunks: events() } : { headers: JSON_TYPE, chunks: [JSON.stringify(whole)] }
    return { ...usual, ...script }
  })
  const gateway = await wireGateway(t, {
    plugins: [responseRoutes],
    files: {
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "anthropic"\nauth_value_env = "FAR_KEY"\n` +
        `[[upstream]]\nname = "near"\nurl = "${upstream.origin}/v1"\nauth_style = "none"\n`,
      'etc/svc/api.env': 'FAR_KEY=sk-far\n'
    }
  })
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const asked = (): Record<string, unknown> => JSON.parse(last!.body.toString()) as Record<string, unknown>
  const post = (body: object): Promise<Response> => gateway.chat({ ...question, ...body })

  await t.test('an answer comes whole, and as chunks', async t => {
    const answer = await client.chat.completions.create({ ...question, tools: [weather] })
    t.match(answer, { object: 'chat.completion', model: 'claude-9-20260101', choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage })
    t.match(last!.headers, { 'x-api-key': 'sk-far', 'anthropic-version': /^\d{4}-/ })
    const stream = client.chat.completions.stream({ ...question, tools: [weather], stream_options: { include_usage: true } })
    let reasoning = ''
    stream.on('chunk', ({ choices: [choice] }) => { reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '' })
    const { reasoning_content: thought, ...said } = message
    t.match(await stream.finalChatCompletion(), { choices: [{ message: said, finish_reason: 'tool_calls' }], usage })
    t.equal(reasoning, thought)
    t.equal(upstream.requests.filter(({ url }) => url === '/v1/chat/completions').length, 1, 'what it lacks it is asked for once')
  })

  t.test('a client of the Responses API gets there too', async t => {
    const expected = {
      status: 'completed',
      output: [{ type: 'reasoning' }, { type: 'message', content: [{ text: 'Let me look é🎈.' }] }, { type: 'function_call', call_id: 'toolu_a', arguments: '{"place":"Rome"}' }, { type: 'function_call' }],
      usage: { input_tokens: 20, input_tokens_details: { cached_tokens: 12 }, output_tokens: 9 }
    }
    t.match(await client.responses.create({ model: 'claude-9', input: 'hi' }), expected)
    t.match(await client.responses.stream({ model: 'claude-9', input: 'hi' }).finalResponse(), expected)
  })

  t.test('a conversation with everything in it reaches the model', async t => {
    const image = 'data:image/png;base64,AAAA'
    const answer = await post({
      temperature: 0.5, max_completion_tokens: 50, stop: 'END', user: 'u1', top_k: 5, seed: 7, reasoning_effort: 'low', parallel_tool_calls: false,
      frequency_penalty: 0, n: 1, logprobs: false,
      tools: [weather], tool_choice: { type: 'function', function: { name: 'weather' } },
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
      messages: [
        { role: 'system', content: 'Be brief.' }, { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
        { role: 'user', content: [{ type: 'text', text: 'what?' }, { type: 'image_url', image_url: { url: image } }, { type: 'image_url', image_url: { url: 'https://x/y.png' } }, { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBE' } }] },
        { ...message, content: 'I ask.' },
        { role: 'tool', tool_call_id: 'toolu_a', content: 'sun' }, { role: 'tool', tool_call_id: 'toolu_b', content: [{ type: 'text', text: 'rain' }] },
        { role: 'user', content: 'go on' }
      ]
    })
    t.equal(answer.status, 200, await answer.clone().text())
    t.equal(answer.headers.get('x-svc-warning'), 'seed: left out, the model\'s API has no such option; ' +
    'messages.*.reasoning_content: left out, a model takes back only what its provider signed')
    t.strictSame(asked(), {
      temperature: 0.5,
      top_k: 5,
      model: 'claude-9',
      max_tokens: 50,
      system: 'Be brief.\n\nBe kind.',
      messages: [
        { role: 'user', content: [
          { type: 'text', text: 'what?' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, title: 'a.pdf' }
        ] },
        { role: 'assistant', content: [{ type: 'text', text: 'I ask.' }, content[2], content[3]] },
        { role: 'user', content: [
          { type: 'tool_result', tool_use_id: 'toolu_a', content: [{ type: 'text', text: 'sun' }] },
          { type: 'tool_result', tool_use_id: 'toolu_b', content: [{ type: 'text', text: 'rain' }] }, { type: 'text', text: 'go on' }
        ] }
      ],
      stop_sequences: ['END'],
      metadata: { user_id: 'u1' },
      tools: [{ name: 'weather', description: 'of a place', input_schema: weather.function.parameters }],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } }
    })
    await post({})
    t.strictSame(asked(), { model: 'claude-9', max_tokens: 4096, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] })
  })

  t.test('thinking is left out between calls and their results, for what is signed does not go through chat', async t => {
    const thinking = { type: 'enabled', budget_tokens: 2000 }
    const calls = [{ role: 'user', content: 'hi' }, { ...message, reasoning_content: undefined }]
    const results = [{ role: 'tool', tool_call_id: 'toolu_a', content: 'sun' }, { role: 'tool', tool_call_id: 'toolu_b', content: 'rain' }]
    const answer = await post({ thinking, messages: [...calls, ...results] })
    t.match(answer.headers.get('x-svc-warning'), /^thinking: left out/)
    t.notOk('thinking' in asked())
    await post({ thinking, messages: [...calls, ...results, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'on' }] })
    t.match(asked(), { thinking })
    await post({ thinking: { type: 'adaptive' }, messages: [...calls, ...results] })
    t.match(asked(), { thinking: { type: 'adaptive' } })
  })

  t.test('what the way to the upstream leaves out of a request of the Responses API is told to its client', async t => {
    const body = JSON.stringify({ model: 'claude-9', input: 'hi', include: ['x'], seed: 7, safety_identifier: 'u7', store: false })
    const answer = await gateway.fetch('/v1/responses', { method: 'POST', body })
    t.match(answer.headers.get('x-svc-warning'), /^include: 'x' was left out.*; seed: left out/)
    t.match(asked(), { metadata: { user_id: 'u7' } })
    await answer.body?.cancel()
  })

  t.test('a 404 of an upstream of another kind passes as it is', async t => {
    const seen = upstream.requests.length
    const answer = await post({ model: 'near/claude-9' })
    t.equal(answer.status, 404)
    t.equal(await answer.text(), refusal('not_found_error'))
    t.strictSame(upstream.requests.slice(seen).map(({ url }) => url), ['/v1/chat/completions'])
  })

  t.test('what is left out of a request is told by its name', async t => {
    const warned = async (body: object): Promise<string | null> => {
      const answer = await post(body)
      await answer.body?.cancel()
      return answer.headers.get('x-svc-warning')
    }
    t.match(await warned({ service_tier: 'flex' }), /^service_tier: left out/)
    t.match(await warned({ store: true, metadata: { a: 'b' } }), /^store: left out[^;]*; metadata: left out[^;]*$/)
    t.equal(await warned({ service_tier: 'auto', store: false, metadata: {}, modalities: ['text'] }), null)
  })

  t.test('what the API has no words for is refused by its name', async t => {
    const seen = upstream.requests.length
    const bodies: ReadonlyArray<readonly [object, RegExp]> = [
      [{ n: 2 }, /'n'/], [{ logprobs: true }, /'logprobs'/], [{ logit_bias: { 5: 1 } }, /'logit_bias'/], [{ presence_penalty: 1 }, /'presence_penalty'/],
      [{ modalities: ['text', 'audio'] }, /'modalities': an answer other than text/],
      [{ response_format: { type: 'json_object' } }, /'response_format'/], [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, /'tools\.0': a tool of type 'custom'/],
      [{ messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }, /'messages\.0\.content\.0': a part of type 'input_audio'/],
      [{ messages: [{ role: 'user', content: [{ type: 'x'.repeat(100_000) }] }] }, /'messages\.0\.content\.0': a part of type 'x{64}' cannot/],
      [{ messages: [{ role: 'user', content: [{ type: { toString: 1 } }] }] }, /'messages\.0\.content\.0': a part of type 'object'/],
      [{ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] }, /'messages\.0\.content\.0': a file that is not in the request/]
    ]
    for (const [body, expected] of bodies) {
      const answer = await post(body)
      t.match({ status: answer.status, body: await answer.json() }, { status: 400, body: { error: { code: 'validation.invalid', message: expected } } })
    }
    t.equal(upstream.requests.length, seen, 'the upstream is not asked')
  })

  t.test('refusals and failures come in the shape of chat completions, inside a stream too', async t => {
    for (const [status, type, kind] of [[400, 'invalid_request_error', BadRequestError], [429, 'rate_limit_error', RateLimitError]] as const) {
      script = { status, headers: { ...JSON_TYPE, 'retry-after': '7', 'x-should-retry': 'false' }, chunks: [refusal(type)] }
      const error: unknown = await client.chat.completions.create(question).catch((problem: unknown) => problem)
      t.ok(error instanceof kind)
      t.match(error, { status, type, error: { message: 'no more' } })
      for (const refused of [error, await client.responses.create({ model: 'claude-9', input: 'hi' }).catch((problem: unknown) => problem)] as BadRequestError[]) {
        t.equal(refused.headers.get('retry-after'), '7')
        t.equal(refused.headers.get('x-should-retry'), 'false')
      }
    }
    for (const broken of [{ dieAfter: 4 }, { chunks: [...events().slice(0, 4), `event: error\ndata: ${refusal('overloaded_error')}\n\n`] }]) {
      script = broken
      const text = await (await post({ stream: true })).text()
      t.match(text.split('\n\n').at(-2), /^data: \{"error":\{"code":"dispatch\.upstream_failed"/)
      t.notMatch(text, /\[DONE\]/)
    }
    script = {}
  })

  t.test('whatever an upstream streams, each chunk for the client is JSON and the answer ends once', async t => {
    const all = events()
    const delta = (text: object): string => `data: ${JSON.stringify({ type: 'content_block_delta', index: 2, delta: text })}\n\n`
    for (const chunks of [
      all.slice(1), all.slice(-1), [...all, ...all], [all[0]!, ...all],
      ...[{ type: 'input_json_delta' }, { type: 'input_json_delta', partial_json: { a: 1 } }, { type: 'text_delta', text: 5 }, { type: 'thinking_delta' }]
        .map(text => [...all.slice(0, -4), delta(text), ...all.slice(-4)])
    ]) {
      script = { chunks }
      const answer = await (await post({ stream: true })).text()
      const said = answer.split('\n\n').filter(event => event.startsWith('data: ')).map(event => event.slice(6))
      t.ok(said.filter(data => data === '[DONE]').length <= 1)
      for (const data of said) if (data !== '[DONE]') t.doesNotThrow(() => { JSON.parse(data) }, data)
      if (chunks[0] === all[0]) t.ok(said.includes('[DONE]'))
      else t.match(answer, /"code":"dispatch\.upstream_failed"/)
    }
    script = {}
  })

  t.test('a client that leaves frees the upstream', async t => {
    script = { everyMs: 20 }
    const stream = await client.chat.completions.create({ ...question, stream: true })
    for await (const _ of stream) stream.controller.abort()
    await until(() => upstream.active === 0, 'the upstream is free')
    t.equal(upstream.active, 0)
    script = {}
  })

  t.test('a stream that is cut anywhere on its way is the same stream; one that ends early ends with an error', async t => {
    const bytes = Buffer.from(events().join(''))
    const read = async (chunks: readonly Buffer[], dieAfter = Infinity): Promise<string> => {
      script = { chunks, dieAfter }
      const text = await (await post({ stream: true })).text()
      return text.replaceAll(/chatcmpl-\w{32}/g, 'chatcmpl').replaceAll(/"created":\d+/g, '"created":0')
    }
    const all = await read([bytes])
    t.match(all, /data: \[DONE\]\n\n$/)
    const places = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 })
    await fc.assert(fc.asyncProperty(places, async cuts => {
      const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      t.equal(await read(marks.slice(1).map((mark, i) => bytes.subarray(marks[i]!, mark))), all)
    }), { numRuns: 20 })
    const end = bytes.indexOf('event: message_stop')
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: end }), fc.boolean(), async (cut, dies) => {
      const text = await read([bytes.subarray(0, cut), Buffer.from(' ')], dies ? 1 : Infinity)
      t.match(text, /\{"error":\{"code":"dispatch\.upstream_failed"/, `cut at ${cut}`)
      t.notMatch(text, /\[DONE\]/)
    }), { numRuns: 30 })
  })
})

t.test('a conversation that goes into chat and back is the same', t => {
  const text = fc.string({ minLength: 1 }).map(value => ({ type: 'text', text: value }))
  const image = fc.constant({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } })
  const ask = fc.oneof(fc.tuple(text), fc.tuple(text, image), fc.tuple(image))
  const key = fc.string({ minLength: 1 }).filter(name => name !== '__proto__')
  const inputs = fc.array(fc.dictionary(key, fc.oneof(fc.string(), fc.integer(), fc.boolean())), { maxLength: 3 })
  const round = fc.record({ said: fc.option(text), inputs, results: fc.array(text, { minLength: 3, maxLength: 3 }), next: ask })
    .filter(({ said, inputs: calls }) => said !== null || calls.length > 0)
  fc.assert(fc.property(ask, fc.array(round, { maxLength: 4 }), (first, rounds) => {
    const messages: Array<{ role: string, content: object[] }> = [{ role: 'user', content: [...first] }]
    for (const [i, { said, inputs: given, results, next }] of rounds.entries()) {
      const calls = given.map((value, n) => ({ type: 'tool_use', id: `${i}-${n}`, name: 'go', input: { ...value } }))
      messages.push({ role: 'assistant', content: [...said === null ? [] : [said], ...calls] })
      const answers = given.map((_, n) => ({ type: 'tool_result', tool_use_id: `${i}-${n}`, content: [results[n]] }))
      messages.push({ role: 'user', content: [...answers, ...next] })
    }
    const chat = chatMessages({ messages, system: 'S' }, false, [])
    assert.deepEqual(conversationOf(chat, []), { system: 'S', messages })
  }), { numRuns: 200 })
  // more than a call of a function takes as its arguments
  const many = Array.from({ length: 200_000 }, () => ({ type: 'image', source: { type: 'url', url: 'x:' } }))
  const long = { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: '0', content: many }] }] }
  const turns = conversationOf(chatMessages(long, false, []), []).messages
  assert.equal(turns[0]?.content.length, many.length + 1)
  const called = fc.record({ name: fc.string({ minLength: 1 }), args: fc.json(), output: fc.string() })
  fc.assert(fc.property(fc.array(called, { maxLength: 5 }), calls => {
    const items = new ChatMessages(true, [])
    items.input(calls.flatMap(({ name, args, output }, i) => [
      { type: 'function_call', call_id: `c${i}`, name, arguments: args }, { type: 'function_call_output', call_id: `c${i}`, output }
    ]))
    assert.deepEqual(items.list, calls.flatMap(({ name, args, output }, i) => [
      { role: 'assistant', content: null, tool_calls: [{ id: `c${i}`, type: 'function', function: { name, arguments: args } }] },
      { role: 'tool', tool_call_id: `c${i}`, content: output }
    ]))
  }))
  t.end()
})
