import fc from 'fast-check'
import OpenAI, { BadRequestError } from 'openai'
import t from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { chatOnlyGateway, chunksOf, type Said } from './chat-only.js'
import { until } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const question = { model: 'agent', input: 'hi' }
const parameters = { type: 'object', properties: { place: { type: 'string' } } }
const tools = [
  { type: 'function' as const, name: 'weather', description: 'of a place', parameters, strict: false },
  { type: 'namespace', name: 'mcp__maps', description: 'maps', tools: [{ type: 'function', name: 'find', parameters }] },
  { type: 'custom' as const, name: 'patch', description: 'Changes files.', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
  { type: 'web_search' as const }
] as OpenAI.Responses.Tool[]

const call = (index: number, id: string, name: string, args: string): Said['deltas'][number] => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }]
})

/** Thinks, talks, and calls three tools; the pieces of the first two come in turns. */
const busy: Said = {
  deltas: [
    { reasoning_content: 'hm' }, { reasoning_content: ', so' }, { content: 'Let me ' }, { content: 'look é🎈.' },
    call(0, 'call_a', 'weather', '{"pl'), call(1, 'call_b', 'mcp__maps__find', '{"place":'),
    { tool_calls: [{ index: 0, function: { arguments: 'ace":"Rome"}' } }] }, { tool_calls: [{ index: 1, function: { arguments: '"Oslo"}' } }] },
    call(2, 'call_c', 'patch', '{"input":"*** Begin\\n"}')
  ],
  finish: 'tool_calls'
}
const busyResponse = {
  object: 'response', status: 'completed', model: 'scripted', error: null, incomplete_details: null,
  output: [
    { type: 'reasoning', status: 'completed', summary: [], content: [{ type: 'reasoning_text', text: 'hm, so' }] },
    { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Let me look é🎈.', annotations: [] }] },
    { type: 'function_call', status: 'completed', call_id: 'call_a', name: 'weather', arguments: '{"place":"Rome"}' },
    { type: 'function_call', status: 'completed', call_id: 'call_b', name: 'find', namespace: 'mcp__maps', arguments: '{"place":"Oslo"}' },
    { type: 'custom_tool_call', status: 'completed', call_id: 'call_c', name: 'patch', input: '*** Begin\n' }
  ],
  usage: {
    input_tokens: 20, input_tokens_details: { cached_tokens: 12 },
    output_tokens: 7, output_tokens_details: { reasoning_tokens: 3 }, total_tokens: 27
  }
}

t.test('the Responses API over an engine and an upstream that speak chat alone', async t => {
  const { gateway, says, asked, upstream } = await chatOnlyGateway(t, [responseRoutes])
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything' })
  const engine = gateway.runtime.engine('agent')
  const post = (body: object): Promise<Response> => gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body) })

  for (const model of ['agent', 'gpt-9']) {
    await t.test(`thoughts, text and calls of ${model} come whole and as events`, async t => {
      says(busy)
      const whole = await client.responses.create({ ...question, model, tools })
      t.match(whole, busyResponse)
      t.equal(whole.output_text, 'Let me look é🎈.')
      const events: OpenAI.Responses.ResponseStreamEvent[] = []
      const stream = client.responses.stream({ ...question, model, tools })
      for await (const event of stream) events.push(event)
      t.match(await stream.finalResponse(), busyResponse)
      t.strictSame(events.map(({ type }) => type.replace('response.', '')), [
        'created', 'in_progress',
        'output_item.added', 'content_part.added', 'reasoning_text.delta', 'reasoning_text.delta', 'reasoning_text.done', 'content_part.done', 'output_item.done',
        'output_item.added', 'content_part.added', 'output_text.delta', 'output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done',
        'output_item.added', 'function_call_arguments.delta', 'output_item.added', 'function_call_arguments.delta',
        'function_call_arguments.delta', 'function_call_arguments.delta', 'output_item.added',
        'function_call_arguments.done', 'output_item.done', 'function_call_arguments.done', 'output_item.done',
        'custom_tool_call_input.delta', 'custom_tool_call_input.done', 'output_item.done',
        'completed'
      ])
      t.strictSame(events.map(({ sequence_number: n }) => n), events.map((_, i) => i))
      t.match(asked(), { stream: true, stream_options: { include_usage: true } })
    })
  }

  t.test('an upstream that lacks the path is asked for it once', t => {
    t.equal(upstream.calls.filter(({ url }) => url === '/v1/responses').length, 1)
    t.end()
  })

  t.test('a conversation with everything in it reaches the model', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const body = {
      model: 'agent', instructions: 'Be brief.', temperature: 0.5, max_output_tokens: 50, min_p: 0.1, user: 'u1', store: false, truncation: 'auto',
      include: ['reasoning.encrypted_content'], prompt_cache_key: 'k', client_metadata: { a: 'b' }, parallel_tool_calls: false,
      reasoning: { effort: 'low', summary: 'auto' }, tools, tool_choice: { type: 'custom', name: 'patch' },
      text: { format: { type: 'json_schema', name: 'shape', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      input: [
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be kind.' }] },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'what is it?' }, { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
            { type: 'input_file', filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from('words').toString('base64')}` }
          ]
        },
        { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'well' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I ask.', annotations: [] }] },
        { type: 'function_call', call_id: 'a', name: 'find', namespace: 'mcp__maps', arguments: '{"place":"Rome"}' },
        { type: 'custom_tool_call', call_id: 'b', name: 'patch', input: 'x\n' },
        { type: 'function_call_output', call_id: 'a', output: 'here' },
        { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'done' }, { type: 'input_image', image_url: 'https://x/y.png' }] },
        { type: 'web_search_call', id: 'ws_1', status: 'completed' },
        { role: 'user', content: 'go on' }
      ]
    }
    const answer = await post(body)
    t.equal(answer.status, 200, await answer.clone().text())
    t.match(answer.headers.get('x-svc-warning'), /truncation: left out.*tools\.3: 'web_search' was left out.*'web_search_call' was left out/)
    t.match(await answer.json(), { instructions: 'Be brief.', max_output_tokens: 50, reasoning: { effort: 'low', summary: 'auto' }, tools, text: { verbosity: 'low' }, truncation: 'disabled' })
    const input = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'], additionalProperties: false }
    t.strictSame(asked(), {
      temperature: 0.5,
      min_p: 0.1,
      user: 'u1',
      model: 'fake-model',
      messages: [
        { role: 'system', content: 'Be brief.\n\nOf the tools whose names begin with `mcp__maps__`: maps\n\nBe kind.' },
        { role: 'user', content: [{ type: 'text', text: 'what is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } }, { type: 'text', text: 'a.txt\n\nwords' }] },
        {
          role: 'assistant', content: 'I ask.', reasoning_content: 'well',
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'mcp__maps__find', arguments: '{"place":"Rome"}' } },
            { id: 'b', type: 'function', function: { name: 'patch', arguments: '{"input":"x\\n"}' } }
          ]
        },
        { role: 'tool', tool_call_id: 'a', content: 'here' },
        { role: 'tool', tool_call_id: 'b', content: 'done\n[what else it answered follows]' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }, { type: 'text', text: 'go on' }] }
      ],
      max_tokens: 50,
      tools: [
        { type: 'function', function: { name: 'weather', description: 'of a place', parameters, strict: false } },
        { type: 'function', function: { name: 'mcp__maps__find', parameters } },
        { type: 'function', function: { name: 'patch', description: 'Changes files.\n\nThe input must follow this lark grammar:\nstart: "x"', parameters: input } }
      ],
      parallel_tool_calls: false,
      tool_choice: { type: 'function', function: { name: 'patch' } },
      response_format: { type: 'json_schema', json_schema: { name: 'shape', schema: { type: 'object' }, strict: true } },
      reasoning_effort: 'low',
      chat_template_kwargs: { enable_thinking: true }
    })
    await post({ ...body, model: 'gpt-9', tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'weather' }] } })
    t.match(asked(), { verbosity: 'low', chat_template_kwargs: undefined, tool_choice: 'required', tools: { length: 1 }, messages: { 2: { reasoning_content: undefined } } })
    await post({ ...question, reasoning: { effort: 'none' }, text: { format: { type: 'json_object' } } })
    t.match(asked(), { chat_template_kwargs: { enable_thinking: false }, reasoning_effort: undefined, response_format: { type: 'json_object' } })
  })

  await t.test('thoughts are the summary for a client that asks for one, whole and as events, and come back from it', async t => {
    says(busy)
    const asking = { ...question, tools, reasoning: { summary: 'auto' as const } }
    const { output: [thought] } = await client.responses.create(asking)
    const summarized = { type: 'reasoning', status: 'completed', summary: [{ type: 'summary_text', text: 'hm, so' }], content: [] }
    t.match(thought, summarized)
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    const stream = client.responses.stream(asking)
    for await (const event of stream) events.push(event)
    t.match((await stream.finalResponse()).output[0], summarized)
    t.strictSame(events.slice(2, 9).map(({ type }) => type.replace('response.', '')), [
      'output_item.added', 'reasoning_summary_part.added', 'reasoning_summary_text.delta', 'reasoning_summary_text.delta',
      'reasoning_summary_text.done', 'reasoning_summary_part.done', 'output_item.done'
    ])
    t.match(events.slice(3, 5), [{ summary_index: 0, part: { type: 'summary_text', text: /^$/ } }, { summary_index: 0, delta: 'hm' }])
    t.strictSame(events.map(({ sequence_number: n }) => n), events.map((_, i) => i))
    says({ deltas: [{ content: 'ok' }] })
    const { id, summary } = thought as OpenAI.Responses.ResponseReasoningItem
    await post({ ...question, input: [{ type: 'reasoning', id, summary }, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'on' }] })
    t.match(asked(), { messages: [{ role: 'assistant', content: 'ok', reasoning_content: 'hm, so' }, { role: 'user' }] })
  })

  t.test('reasoning that a client keeps sealed comes back to the model', async t => {
    says(busy)
    const { output } = await client.responses.create({ ...question, include: ['reasoning.encrypted_content'] })
    const [thought] = output as unknown as Array<{ id: string, encrypted_content: string }>
    await post({ ...question, input: [{ type: 'reasoning', id: thought!.id, summary: [], encrypted_content: thought!.encrypted_content }, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'on' }] })
    t.match(asked(), { messages: [{ role: 'assistant', content: 'ok', reasoning_content: 'hm, so' }, { role: 'user' }] })
  })

  t.test('an answer that was cut short is incomplete, and says why', async t => {
    for (const [finish, reason] of [['length', 'max_output_tokens'], ['content_filter', 'content_filter']] as const) {
      says({ deltas: [{ content: 'x' }], finish })
      const expected = { status: 'incomplete', incomplete_details: { reason }, output: [{ status: 'incomplete' }] }
      t.match(await client.responses.create(question), expected)
      t.match(await client.responses.stream(question).finalResponse(), expected)
      t.match(await (await post({ ...question, stream: true })).text(), /event: response\.incomplete\n[^\n]+\n\n$/)
    }
  })

  t.test('the probabilities of tokens is told where it is asked for', async t => {
    const row = { token: 'x', logprob: -0.1, bytes: [120], top_logprobs: [] }
    says({ deltas: [], finish: 'stop' }, { headers: JSON_TYPE, chunks: [JSON.stringify({ choices: [{ index: 0, message: { content: 'x' }, logprobs: { content: [row] }, finish_reason: 'stop' }] })] })
    t.match(await client.responses.create({ ...question, include: ['message.output_text.logprobs'], top_logprobs: 2 }), { output: [{ content: [{ text: 'x', logprobs: [row] }] }] })
    t.match(asked(), { logprobs: true, top_logprobs: 2 })
    const piece = (token: string, delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta, logprobs: { content: [{ ...row, token }] } }] })}\n\n`
    says(busy, { chunks: [piece('hm', { reasoning_content: 'hm' }), piece('x', { content: 'x' }), ...chunksOf({ deltas: [] }).slice(1)] })
    const stream = client.responses.stream({ ...question, include: ['message.output_text.logprobs'] })
    t.match((await stream.finalResponse()).output[1], { content: [{ text: 'x', logprobs: [{ token: 'x' }] }] }, 'the tokens of a thought are none of the text')
  })

  t.test('what is left out of a request is told by its name', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const rows: ReadonlyArray<readonly [object, RegExp | null]> = [
      [{ max_tool_calls: 3 }, /^max_tool_calls: left out, it counts calls of tools/],
      [{ context_management: [{ type: 'compaction' }] }, /^context_management: left out/],
      [{ service_tier: 'flex' }, /^service_tier: left out/],
      [{ service_tier: 'auto', max_tool_calls: null, context_management: null, include: null }, null],
      [
        { include: ['reasoning.encrypted_content', 'web_search_call.action.sources', 'web_search_call.action.sources', 7] },
        /^include: 'web_search_call\.action\.sources' was left out[^;]*; include: 'number' was left out[^;]*$/
      ]
    ]
    for (const [body, expected] of rows) {
      const answer = await post({ ...question, ...body })
      t.match({ status: answer.status, warning: answer.headers.get('x-svc-warning') }, { status: 200, warning: expected }, JSON.stringify(body))
      await answer.body?.cancel()
    }
  })

  t.test('a refusal is a part of its own, whole and as events', async t => {
    says({ deltas: [{ content: 'Well. ' }, { refusal: 'I cannot ' }, { refusal: 'say "that".' }] })
    const output = [
      { type: 'message', content: [{ type: 'output_text', text: 'Well. ' }] },
      { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'refusal', refusal: 'I cannot say "that".' }] }
    ]
    t.match(await client.responses.create(question), { status: 'completed', output })
    const stream = client.responses.stream(question)
    let refusal = ''
    stream.on('response.refusal.delta', ({ delta }) => { refusal += delta })
    t.match(await stream.finalResponse(), { status: 'completed', output })
    t.equal(refusal, 'I cannot say "that".')
  })

  t.test('what chat has no words for is refused by its name', async t => {
    const seen = engine.requests.length
    const bodies: ReadonlyArray<readonly [object, RegExp]> = [
      [{ tools: [{ type: 'file_search', vector_store_ids: [] }] }, /'tools\.0': a tool of type 'file_search'/],
      [{ conversation: 'conv_1' }, /'conversation'/],
      [{ prompt: { id: 'p' } }, /'prompt'/],
      [{ background: true, store: false }, /'background' needs a response that is kept/],
      [{ previous_response_id: 'resp_1' }, /'previous_response_id'/],
      [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, /'input\.0'/],
      [{ truncation: 'most' }, /'truncation'/],
      [{ text: { format: { type: 'grammar' } } }, /'text\.format'/],
      [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, /'input\.0\.content\.0': an image that is not in the request/],
      [{ input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }, /'input\.0\.content\.0': a file that is not in the request/],
      [{ input: [{ type: 'computer_call' }] }, /'input\.0': an item of type 'computer_call'/],
      [{ input: [{ type: 'x'.repeat(100_000) }] }, /'input\.0': an item of type 'x{64}' cannot/],
      [{ input: [{ type: { toString: 1 } }] }, /'input\.0': an item of type 'object'/],
      [{ input: [{ role: 'nobody', content: '' }] }, /'input\.0\.role'/],
      [{ input: 7 }, /'input' must be a list/]
    ]
    for (const [body, message] of bodies) {
      const answer = await post({ ...question, ...body })
      t.match({ status: answer.status, body: await answer.json() }, { status: 400, body: { error: { code: 'validation.invalid', message } } })
    }
    t.equal(engine.requests.length, seen, 'no engine is asked')
  })

  t.test('refusals keep their status, and a stream that fails says so in its last event', async t => {
    says(busy, { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"too long","type":"exceed_context_size_error"}}'] })
    const refused = await client.responses.create(question).then(() => null, (error: unknown) => error)
    t.ok(refused instanceof BadRequestError)
    t.match(refused, { status: 400, message: /too long/ })
    for (const [script, message] of [[{ dieAfter: 4 }, /./], [{ chunks: [...chunksOf(busy).slice(0, 4), 'data: {"error":{"message":"out of memory"}}\n\n'] }, /out of memory/]] as const) {
      says(busy, script)
      const last = (await (await post({ ...question, stream: true })).text()).split('\n\n').at(-2)!
      t.match(last, /^event: response\.failed\n/)
      t.match(JSON.parse(last.slice(last.indexOf('data: ') + 6)), { response: { status: 'failed', error: { code: 'server_error', message } } })
    }
  })

  t.test('an answer that does not end is cut off, and frees the engine', async t => {
    const piece = chunksOf({ deltas: [call(0, 'call_a', 'weather', 'x'.repeat(4 * 1024 * 1024))], finish: null })
    says(busy, { chunks: Array.from({ length: 12 }, () => piece).flat() })
    const text = await (await post({ ...question, stream: true, tools })).text()
    t.match(text.slice(text.lastIndexOf('event: ')).slice(0, 1000), /^event: response\.failed\n.*"message":"the answer of the engine is longer than \d+ characters"/)
    await until(() => engine.active === 0, 'the engine is free')
  })

  t.test('a client that leaves frees the engine', async t => {
    says({ deltas: Array.from({ length: 500 }, (_, i) => ({ content: `w${i} ` })) }, { everyMs: 2 })
    const stream = await client.responses.create({ ...question, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 6) stream.controller.abort()
    await until(() => engine.active === 0, 'the engine is free')
    t.equal(gateway.slots.status('agent').inFlight, 0)
  })

  t.test('a stream that is cut anywhere on its way is the same stream; one that ends early ends with a failure', async t => {
    const bytes = Buffer.from(chunksOf(busy).join(''))
    const read = async (chunks: readonly Buffer[], dieAfter = Infinity): Promise<string> => {
      says(busy, { chunks, dieAfter })
      const text = await (await post({ ...question, tools, stream: true })).text()
      return text.replaceAll(/\b(resp|rs|msg|fc|ctc)_\w{32}/g, '$1').replaceAll(/"created_at":\d+/g, '"created_at":0')
    }
    const whole = await read([bytes])
    const places = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 })
    await fc.assert(fc.asyncProperty(places, async cuts => {
      const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      t.equal(await read(marks.slice(1).map((mark, i) => bytes.subarray(marks[i]!, mark))), whole)
    }), { numRuns: 20 })
    const end = bytes.indexOf('"finish_reason":"tool_calls"')
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: end }), fc.boolean(), async (cut, dies) => {
      const text = await read([bytes.subarray(0, cut), Buffer.from(' ')], dies ? 1 : Infinity)
      const events = text.split('\n\n')
      events.pop()
      // nothing was told yet: then the failure has a status, or is all there is
      if (events.length > 1) t.match(events.pop(), /^event: response\.failed\n/, `cut at ${cut}`)
      else t.match(text, /dispatch\.upstream_failed/, `cut at ${cut}`)
      if (events.length > 0 && !text.startsWith('{')) for (const event of events.slice(0, -1)) t.ok(whole.includes(event), event)
    }), { numRuns: 30 })
  })
})
