import Anthropic, { APIError, APIUserAbortError, BadRequestError, NotFoundError } from '@anthropic-ai/sdk'
import t, { type Test } from 'tap'
import messageRoutes from '../../../plugins/v1/messages/index.js'
import { createFakeEngine, type EngineScript } from '../../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const question = { model: 'agent', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }

const message = (content: readonly object[], stop: string | null): object => ({
  id: 'msg-1', type: 'message', role: 'assistant', content, model: 'm', stop_reason: stop, stop_sequence: null, usage: { input_tokens: 4, output_tokens: 0 }
})

const event = (data: { readonly type: string } & Record<string, unknown>): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** A streamed message, event by event, as llama-server words it. */
function messageStream (words: readonly string[]): string[] {
  return [
    event({ type: 'message_start', message: message([], null) }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...words.map(text => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: words.length } }),
    event({ type: 'message_stop' })
  ]
}

const plain: EngineScript = { headers: JSON_TYPE, chunks: [JSON.stringify(message([{ type: 'text', text: 'Hello' }], 'end_turn'))] }
function streamed (words: readonly string[], script: EngineScript = {}): EngineScript {
  return { headers: SSE, chunks: messageStream(words), ...script }
}

async function setup (t: Test, options: WireOptions = {}): Promise<{ gateway: WireGateway, client: Anthropic }> {
  const gateway = await wireGateway(t, { ...options, plugins: [messageRoutes] })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  return { gateway, client: new Anthropic({ baseURL: gateway.baseUrl, apiKey: 'anything', maxRetries: 0 }) }
}

function failure (work: PromiseLike<unknown>): Promise<unknown> {
  return Promise.resolve(work).then(() => null, (error: unknown) => error)
}

t.test('the Anthropic client works unmodified', async t => {
  const { gateway, client } = await setup(t)
  const engine = gateway.runtime.engine('agent')

  t.test('a message of the Messages API is answered without the client\'s key', async t => {
    engine.answer(plain)
    const answer = await client.messages.create(question)
    t.match(answer, { role: 'assistant', content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' })
    t.match(answer._request_id, /./)
    const seen = engine.requests.at(-1)!
    t.equal(seen.url, '/v1/messages')
    t.match(JSON.parse(seen.body.toString()), { ...question, model: 'fake-model' })
    t.equal(seen.headers['x-api-key'], undefined, 'the client\'s key stays here')
    t.match(seen.headers['anthropic-version'], /^\d{4}-\d{2}-\d{2}$/)
  })

  t.test('a stream, with the helper that puts it together', async t => {
    engine.answer(streamed(['Hel', 'lo', ' there']))
    const stream = client.messages.stream(question)
    const pieces: string[] = []
    stream.on('text', text => { pieces.push(text) })
    const final = await stream.finalMessage()
    t.strictSame(pieces, ['Hel', 'lo', ' there'])
    t.match(final, { content: [{ type: 'text', text: 'Hello there' }], stop_reason: 'end_turn', usage: { output_tokens: 3 } })
    const raw = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify({ ...question, stream: true }) })
    t.equal(await raw.text(), messageStream(['Hel', 'lo', ' there']).join(''), 'byte for byte')
  })

  t.test('tokens of a message are counted by the engine', async t => {
    engine.answer({ headers: JSON_TYPE, chunks: ['{"input_tokens":7}'] })
    t.equal((await client.messages.countTokens({ model: 'svc/agent', messages: question.messages })).input_tokens, 7)
    t.equal(engine.requests.at(-1)!.url, '/v1/messages/count_tokens')
  })

  t.test('abort frees the engine', async t => {
    engine.answer(streamed(Array.from({ length: 500 }, (_, i) => `w${i} `), { everyMs: 2 }))
    const stream = await client.messages.create({ ...question, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 3) stream.controller.abort()
    await until(() => engine.active === 0, 'the engine is free')
    engine.answer({ headAfterMs: Infinity })
    const controller = new AbortController()
    const pending = client.messages.create(question, { signal: controller.signal })
    await until(() => engine.active === 1, 'the request has arrived')
    controller.abort()
    t.ok(await failure(pending) instanceof APIUserAbortError)
    await until(() => engine.active === 0, 'the engine is free again')
  })

  t.test('refusals of the gateway, in the format\'s own shape', async t => {
    const unknown = await failure(client.messages.create({ ...question, model: 'nobody' }))
    t.ok(unknown instanceof NotFoundError)
    t.match(unknown, {
      status: 404, type: 'not_found_error', requestID: /./,
      error: { type: 'error', error: { type: 'not_found_error', code: 'model.not_found', message: /nobody/ }, request_id: /./ }
    })
    t.equal((unknown as NotFoundError).headers.get('x-should-retry'), 'false')
    t.match(await failure(client.messages.countTokens({ ...question, model: '' })), { status: 400, type: 'invalid_request_error' })
    const broken = await gateway.fetch('/v1/messages', { method: 'POST', body: '{"model":' })
    t.match(await broken.json(), { type: 'error', error: { type: 'invalid_request_error', code: 'request.invalid_json' } })
    const foreign = await gateway.fetch('/v1/messages', { method: 'POST', body: '{}', headers: { origin: 'https://evil.example' } })
    t.match(await foreign.json(), { type: 'error', error: { type: 'permission_error', code: 'request.origin_not_allowed' } }, 'also before the route')
    t.equal(foreign.headers.get('request-id'), foreign.headers.get('x-request-id'))
  })

  t.test('refusals of the engine', async t => {
    engine.answer({ status: 400, headers: JSON_TYPE, chunks: ['{"error":{"code":400,"message":"the prompt ', 'is too long","type":"exceed_context_size_error"}}'] })
    const error = await failure(client.messages.create(question))
    t.ok(error instanceof BadRequestError)
    t.strictSame((error as BadRequestError).error, {
      type: 'error', error: { type: 'invalid_request_error', message: 'the prompt is too long' }, request_id: (error as BadRequestError).requestID
    })
    for (const [status, type] of [[401, 'authentication_error'], [429, 'rate_limit_error'], [500, 'api_error'], [503, 'overloaded_error']] as const) {
      engine.answer({ status, headers: { 'content-type': 'text/html', 'retry-after': '7' }, chunks: ['<html>'] })
      const response = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(question) })
      t.equal(response.headers.get('retry-after'), '7')
      t.match({ status: response.status, body: await response.json() }, { status, body: { type: 'error', error: { type, message: `the engine answered ${status}` } } })
    }
    const own = '{ "type":"error", "error":{"type":"overloaded_error","message":"Overloaded"} }'
    engine.answer({ status: 529, headers: JSON_TYPE, chunks: [own] })
    const passed = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(question) })
    t.equal(passed.status, 529)
    t.equal(await passed.text(), own, 'what has the shape already passes byte for byte')
    const long = 'x'.repeat(200_000)
    engine.answer({ status: 500, headers: { 'content-type': 'text/plain' }, chunks: [long, long] })
    const whole = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(question) })
    t.equal(await whole.text(), long + long, 'what is too long for an error is not touched')
    engine.answer({ status: 500, headers: JSON_TYPE, chunks: ['{"half', 'and half'], dieAfter: 1 })
    t.match(await failure(client.messages.create(question)), { status: 502, error: { error: { code: 'dispatch.upstream_failed' } } })
  })

  t.test('a stream that breaks off ends with an error event', async t => {
    engine.answer(streamed(['a', 'b', 'c'], { dieAfter: 3 }))
    const error = await failure(client.messages.stream(question).finalMessage())
    t.ok(error instanceof APIError)
    t.match(error, { type: 'api_error', error: { type: 'error', error: { code: 'dispatch.upstream_failed' }, request_id: /./ } })
  })
})

t.test('the body limit speaks the format too', async t => {
  const { gateway } = await setup(t, { svc: '[server]\nv1_body_limit_bytes = 1024\n' })
  const response = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify({ ...question, system: 'x'.repeat(2048) }) })
  t.equal(response.status, 413)
  t.match(await response.json(), { type: 'error', error: { type: 'request_too_large', code: 'request.too_large' } })
})

t.test('while an engine is silent the client gets pings of the format', async t => {
  const { gateway, client } = await setup(t, { svc: '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.01\n' })
  const engine = gateway.runtime.engine('agent')
  engine.answer(streamed(['late'], { headAfterMs: 100 }))
  const response = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify({ ...question, stream: true }) })
  t.ok(response.headers.get('request-id'))
  const text = await response.text()
  t.match(text, /^(event: ping\ndata: \{"type": "ping"\}\n\n)+event: message_start/)
  t.equal((await client.messages.stream(question).finalText()), 'late', 'which the client does not mind')
  engine.answer({ headAfterMs: 100, status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"no"}}'] })
  const refused = await failure(client.messages.stream(question).finalMessage())
  t.match(refused, { type: 'invalid_request_error', error: { type: 'error', error: { message: 'no' } } }, 'an engine that refuses after the stream was opened')
})

t.test('an upstream that speaks the Messages API', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(({ url }) => url === '/v1/models?limit=1000' ? { headers: JSON_TYPE, chunks: ['{"data":[{"id":"claude-9"}]}'] } : streamed(['far', ' away']))
  const { client } = await setup(t, {
    files: {
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "anthropic"\nauth_value_env = "FAR_KEY"\n`,
      'etc/svc/api.env': 'FAR_KEY=sk-far\n'
    }
  })
  t.equal(await client.messages.stream({ ...question, model: 'claude-9' }).finalText(), 'far away')
  const seen = upstream.requests.at(-1)!
  t.match({ url: seen.url, headers: seen.headers }, { url: '/v1/messages', headers: { 'x-api-key': 'sk-far', 'anthropic-version': /^\d{4}-/ } })
})
