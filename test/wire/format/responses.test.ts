import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai'
import t, { type Test } from 'tap'
import { responseEvents } from '../../../plugins/providers/llm-server/response-events.js'
import { responseRequest } from '../../../plugins/providers/llm-server/response-request.js'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeEngine, createFakeProviderPlugin, type EngineScript } from '../../../kernel/testing/index.js'
import { wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }

const event = (data: { readonly type: string } & Record<string, unknown>): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

const item = (text: string): object => ({
  id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', annotations: [], logprobs: [], text }]
})

const response = (text: string): object => ({
  id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [item(text)],
  usage: { input_tokens: 4, output_tokens: 2, total_tokens: 6, input_tokens_details: { cached_tokens: 0 } }
})

/** A streamed response, event by event, as llama-server words it: no `[DONE]`. */
function responseStream (words: readonly string[]): string[] {
  return [
    event({ type: 'response.created', response: { id: 'resp_1', object: 'response', status: 'in_progress', output: [] } }),
    event({ type: 'response.output_item.added', output_index: 0, item: { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] } }),
    event({ type: 'response.content_part.added', output_index: 0, content_index: 0, item_id: 'msg_1', part: { type: 'output_text', text: '', annotations: [] } }),
    ...words.map(delta => event({ type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'msg_1', delta })),
    event({ type: 'response.output_text.done', output_index: 0, content_index: 0, item_id: 'msg_1', text: words.join('') }),
    event({ type: 'response.completed', response: response(words.join('')) })
  ]
}

function streamed (words: readonly string[], script: EngineScript = {}): EngineScript {
  return { headers: SSE, chunks: responseStream(words), ...script }
}

/** As a version of llama-server that numbers nothing and leaves out what the response is. */
function bareStream (words: readonly string[]): string[] {
  return [
    event({ type: 'response.created', response: { id: 'resp_1', object: 'response', status: 'in_progress' } }),
    event({ type: 'response.output_item.added', item: { id: 'rs_1', type: 'reasoning', summary: [], content: [], encrypted_content: '' } }),
    event({ type: 'response.reasoning_text.delta', item_id: 'rs_1', delta: 'hm' }),
    event({ type: 'response.output_item.done', item: { id: 'rs_1', type: 'reasoning', summary: [], content: [], encrypted_content: '' } }),
    event({ type: 'response.output_item.added', item: { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] } }),
    event({ type: 'response.content_part.added', item_id: 'msg_1', part: { type: 'output_text', text: '' } }),
    ...words.map(delta => event({ type: 'response.output_text.delta', item_id: 'msg_1', delta })),
    event({ type: 'response.output_text.done', item_id: 'msg_1', text: words.join('') }),
    event({ type: 'response.output_item.done', item: item(words.join('')) }),
    event({ type: 'response.output_item.added', item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'go', arguments: '' } }),
    event({ type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{}' }),
    event({ type: 'response.output_item.done', item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'go', arguments: '{}' } }),
    event({ type: 'response.completed', response: response(words.join('')) })
  ]
}

/** An engine whose events llama-server's provider completes. */
const lean = createFakeProviderPlugin({
  name: 'lean', surfaces: { responses: { path: '/v1/responses', streaming: true, body: 'json', edit: responseRequest, events: responseEvents } }
})
const LEAN_SLOT = 'type = "llm"\nprovider = "lean"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n'

async function setup (t: Test, options: WireOptions = {}): Promise<{ gateway: WireGateway, client: OpenAI }> {
  const gateway = await wireGateway(t, { ...options, plugins: [responseRoutes, lean], files: { 'etc/svc/slots/lean.toml': LEAN_SLOT, ...options.files } })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  return { gateway, client: new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 }) }
}

function failure (work: Promise<unknown>): Promise<unknown> {
  return work.then(() => null, (error: unknown) => error)
}

t.test('the openai client gets responses, whole and streamed', async t => {
  const { gateway, client } = await setup(t)
  const engine = gateway.runtime.engine('agent')

  t.test('a whole response passes as the engine made it', async t => {
    engine.answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response('Hello'))] })
    const answer = await client.responses.create({ model: 'svc/agent', input: 'hi', instructions: 'be brief' })
    t.equal(answer.output_text, 'Hello')
    t.equal(engine.requests.at(-1)!.url, '/v1/responses')
    t.strictSame(JSON.parse(engine.requests.at(-1)!.body.toString()), { model: 'fake-model', input: 'hi', instructions: 'be brief' })
  })

  t.test('streamed, as events and with the helper', async t => {
    engine.answer(streamed(['Hel', 'lo']))
    let text = ''
    for await (const event of await client.responses.create({ model: 'agent', input: 'hi', stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    t.equal(text, 'Hello')
    t.equal((await client.responses.stream({ model: 'agent', input: 'hi' }).finalResponse()).output_text, 'Hello')
    const raw = await gateway.fetch('/v1/responses', { method: 'POST', body: '{"model":"agent","input":"x","stream":true}' })
    t.equal(await raw.text(), responseStream(['Hel', 'lo']).join(''), 'byte for byte, and no [DONE] is added')
  })

  t.test('a stream that lacks what the format demands is completed, event by event', async t => {
    await gateway.slots.ensureReady('lean', new AbortController().signal)
    const bare = gateway.runtime.engine('lean')
    bare.answer({ headers: SSE, chunks: bareStream(['Hel', 'lo']) })
    const stream = client.responses.stream({ model: 'lean', input: 'hi' })
    const events: Array<{ type: string, sequence_number: number, output_index?: number, content_index?: number }> = []
    stream.on('event', one => { events.push(one) })
    t.equal((await stream.finalResponse()).output_text, 'Hello')
    t.same(events.map(one => one.sequence_number), events.map((_, i) => i))
    t.match(events[0], { response: { output: { length: 0 }, model: 'fake-model', created_at: Number } })
    t.same(events.map(one => one.output_index), [undefined, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, undefined])
    t.match(events.filter(one => one.type === 'response.output_text.delta'), [{ content_index: 0 }, { content_index: 0 }])
    t.match(events.at(-3), { type: 'response.function_call_arguments.done', item_id: 'fc_1', name: 'go', arguments: '{}' })

    t.match(events.at(-1), { response: { usage: { output_tokens_details: { reasoning_tokens: 0 } } } })

    const post = { method: 'POST', body: '{"model":"lean","input":"x","stream":true}' }
    const complete = await (await gateway.fetch('/v1/responses', post)).text()
    // cut into single bytes, and with lines that end in another way
    bare.answer({ headers: SSE, chunks: [...complete] })
    t.equal(await (await gateway.fetch('/v1/responses', post)).text(), complete, 'what is complete passes byte for byte')
    const odd = `: hello\r\n\r\n${complete.replaceAll('\n', '\r\n')}data: [DONE]\r\n\r\ndata: {"unfinished"`
    bare.answer({ headers: SSE, chunks: [odd] })
    t.equal(await (await gateway.fetch('/v1/responses', post)).text(), odd)
    const long = event({ type: 'response.output_text.delta', item_id: 'msg_1', delta: 'x'.repeat(3_000_000) })
    bare.answer({ headers: SSE, chunks: [long, ...bareStream(['a']).slice(-1)] })
    const [passed, last] = (await (await gateway.fetch('/v1/responses', post)).text()).split('\n\n')
    t.equal(`${passed}\n\n`, long, 'what is too long to be held passes as it is')
    t.match(last, /"sequence_number":0/)
    bare.answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response('{}'))] })
    const schema = { type: 'object', properties: {} }
    const format = { type: 'json_schema' as const, name: 'nothing', strict: true, schema }
    await client.responses.create({ model: 'lean', input: 'x', text: { format } })
    t.strictSame(JSON.parse(bare.requests.at(-1)!.body.toString()), {
      response_format: { type: 'json_schema', json_schema: { name: 'nothing', strict: true, schema } }, model: 'fake-model', input: 'x', text: { format }
    }, 'a schema reaches the engine under the name that it reads')
    await client.responses.create({ model: 'lean', input: 'x', text: { format: { type: 'text' } } })
    t.notOk('response_format' in JSON.parse(bare.requests.at(-1)!.body.toString()))
    await client.responses.create({ model: 'lean', input: [{ role: 'user', content: 'x' }, { role: 'assistant', content: 'y' }] })
    t.strictSame(JSON.parse(bare.requests.at(-1)!.body.toString()).input, [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'y', annotations: [] }], type: 'message', status: 'completed' }
    ], 'an answer that a client tells in short is told in full')
    bare.answer({ headers: SSE, chunks: bareStream(['a', 'b']), dieAfter: 8 })
    t.match(await (await gateway.fetch('/v1/responses', post)).text(), /"sequence_number":8}\n\nevent: error\n/)
  })

  t.test('a refusal of the Responses API keeps its shape', async t => {
    t.ok(await failure(client.responses.create({ model: 'nobody', input: 'hi' })) instanceof NotFoundError)
    const body = '{"error":{"code":400,"message":"\'input\' is required","type":"invalid_request_error"}}'
    engine.answer({ status: 400, headers: JSON_TYPE, chunks: [body] })
    t.ok(await failure(client.responses.create({ model: 'agent' })) instanceof BadRequestError)
    const raw = await gateway.fetch('/v1/responses', { method: 'POST', body: '{"model":"agent"}' })
    t.equal(await raw.text(), body, 'the engine\'s own passes byte for byte')
    engine.answer(streamed(['a', 'b'], { dieAfter: 4 }))
    const broken = await failure((async () => { for await (const _ of await client.responses.create({ model: 'agent', input: 'x', stream: true })); })())
    t.ok(broken instanceof APIError)
    t.match(broken, { code: 'dispatch.upstream_failed' })
    const text = await (await gateway.fetch('/v1/responses', { method: 'POST', body: '{"model":"agent","input":"x","stream":true}' })).text()
    const last = text.split('\n\n').at(-2)!
    t.match(last, /^event: error\n/)
    t.match(JSON.parse(last.slice(last.indexOf('{'))), {
      type: 'error', code: 'dispatch.upstream_failed', message: /failed in the middle of its answer/, param: null, error: { type: 'server_error', request_id: /./ }
    })
  })
})

t.test('an upstream that speaks responses', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(({ url }) => url === '/v1/models' ? { headers: JSON_TYPE, chunks: ['{"data":[{"id":"gpt-9"}]}'] } : streamed(['far', ' away']))
  const { client } = await setup(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "none"\n` } })
  t.equal((await client.responses.stream({ model: 'far/gpt-9', input: 'hi' }).finalResponse()).output_text, 'far away')
  t.equal(upstream.requests.at(-1)!.url, '/v1/responses')
})
