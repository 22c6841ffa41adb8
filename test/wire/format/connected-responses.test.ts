import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import t, { type Test } from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { MadeResponses, type MadeResponse } from '../../../plugins/v1/responses/socket/made-responses.js'
import { createFakeProviderPlugin, type EngineScript } from '../../../kernel/testing/index.js'
import { chatOnlyGateway, type ChatOnly, type Said } from './chat-only.js'
import * as speaks from './dialect-engines.js'
import { refusal, upstreamTable, fakeUpstream } from '../fake-upstream.js'
import { socketClient, type Event, type SocketClient } from '../socket-client.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const saying = (content: string): Said => ({ deltas: [{ content }] })
const create = (input: unknown, more: object = {}): object => ({ type: 'response.create', model: 'agent', input, ...more })

interface Answer {
  readonly id: string
  readonly output: ReadonlyArray<{ readonly type: string, readonly content?: ReadonlyArray<{ readonly text: string }> }>
}

const open = (t: Test, { baseUrl }: { readonly baseUrl: string }, headers = {}): Promise<SocketClient> =>
  socketClient(t, `${baseUrl.replace('http', 'ws')}/v1/responses`, headers)

async function answered (client: SocketClient, event: object): Promise<Answer> {
  client.send(event)
  return (await client.next('response.completed')).response as Answer
}

/** The messages of a chat request, in short. */
function talk ({ asked }: ChatOnly): unknown {
  return (asked().messages as Array<{ role: string, content: unknown }>).map(({ role, content }) => `${role}: ${String(content)}`)
}

/** A gateway whose slot `agent` speaks responses itself. */
async function speakingGateway (t: Test, script: EngineScript | ((body: string) => EngineScript)): Promise<WireGateway> {
  const surface = { path: '/v1/responses', streaming: true, body: 'json' } as const
  const gateway = await wireGateway(t, {
    plugins: [createFakeProviderPlugin({ name: 'fluent', surfaces: { responses: surface } }), responseRoutes],
    files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fluent"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  gateway.runtime.engine('agent').answer(typeof script === 'function' ? ({ body }) => script(body.toString()) : script)
  return gateway
}

t.test('an engine that speaks chat alone answers requests of a connection', async t => {
  const chat = await chatOnlyGateway(t, [responseRoutes])
  const { gateway, says } = chat

  t.test('one after the other, of the client of the API as it comes', async t => {
    const connection = new ResponsesWS(new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything' }))
    t.teardown(() => connection.close())
    const events: Event[] = []
    let wake = (): void => {}
    connection.on('event', event => { events.push(event as unknown as Event); wake() })
    connection.on('error', ({ message }) => t.fail(message))
    const last = async (count: number): Promise<Answer> => {
      const ends = (): Event[] => events.filter(({ type }) => type === 'response.completed')
      while (ends().length < count) await new Promise<void>(resolve => { wake = resolve })
      return ends()[count - 1]!.response as Answer
    }
    says(saying('Hello.'))
    connection.send({ type: 'response.create', model: 'agent', input: 'My name is Ada.', store: false })
    const first = await last(1)
    t.match(first, { status: 'completed', store: false, output: [{ content: [{ text: 'Hello.' }] }] })
    says({ deltas: [{ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{}' } }] }], finish: 'tool_calls' })
    const tools = [{ type: 'function' as const, name: 'weather', parameters: { type: 'object', properties: {} }, strict: false }]
    connection.send({ type: 'response.create', model: 'agent', input: 'The weather?', previous_response_id: first.id, store: false, tools })
    const second = await last(2)
    t.match(second.output, [{ type: 'function_call', call_id: 'call_a' }])
    says(saying('Sunny, Ada.'))
    const result = { type: 'function_call_output' as const, call_id: 'call_a', output: 'sun' }
    connection.send({ type: 'response.create', model: 'agent', input: [result], previous_response_id: second.id, store: false, tools })
    t.match(await last(3), { previous_response_id: second.id, output: [{ content: [{ text: 'Sunny, Ada.' }] }] })
    t.match(chat.asked(), {
      stream: true,
      messages: [{ content: 'My name is Ada.' }, { content: 'Hello.' }, { content: 'The weather?' }, { tool_calls: [{ id: 'call_a' }] }, { role: 'tool', content: 'sun' }]
    })
    t.equal((await gateway.fetch(`/v1/responses/${second.id}`)).status, 404, 'nothing of it is kept')
  })

  t.test('with the events of a stream that is asked for by POST', async t => {
    says({ deltas: [{ reasoning_content: 'hm' }, { content: 'one ' }, { content: 'two' }] })
    const client = await open(t, gateway)
    await answered(client, create('hi', { stream: false }))
    const posted = await (await gateway.fetch('/v1/responses', { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ model: 'agent', input: 'hi', stream: true }) })).text()
    const events = posted.split('\n').filter(line => line.startsWith('data: {')).map(line => JSON.parse(line.slice(6)) as Event)
    const shape = (all: readonly Event[]): unknown => all.map(({ type, sequence_number: number, delta }) => [type, number, delta])
    t.strictSame(shape(client.events), shape(events))
  })

  t.test('which are kept as those of a POST are, for any connection and for none', async t => {
    says(saying('Hello.'))
    const first = await answered(await open(t, gateway), create('My name is Ada.'))
    t.match(await (await gateway.fetch(`/v1/responses/${first.id}`)).json(), first)
    const client = await open(t, gateway)
    const unkept = await answered(client, create('And I am 36.', { previous_response_id: first.id, store: false }))
    t.strictSame(talk(chat), ['user: My name is Ada.', 'assistant: Hello.', 'user: And I am 36.'])
    const kept = await answered(client, create('Who am I?', { previous_response_id: unkept.id }))
    const { data } = await (await gateway.fetch(`/v1/responses/${kept.id}/input_items?order=asc`)).json() as { data: unknown[] }
    t.equal(data.length, 5, 'what it builds on that is not kept is kept with it')
    await answered(await open(t, gateway), create('Go on.', { previous_response_id: kept.id }))
    t.strictSame(talk(chat), [
      'user: My name is Ada.', 'assistant: Hello.', 'user: And I am 36.', 'assistant: Hello.', 'user: Who am I?', 'assistant: Hello.', 'user: Go on.'
    ])
  })

  t.test('what one connection made without keeping it is nothing to another', async t => {
    says(saying('Hello.'))
    const first = await open(t, gateway)
    const { id } = await answered(first, create('hi', { store: false }))
    const hidden = await answered(await open(t, gateway, { 'x-svc-private': '1' }), create('hi'))
    const other = await open(t, gateway)
    for (const previous of [id, hidden.id]) {
      other.send(create('Go on.', { previous_response_id: previous }))
      t.match(await other.next('error'), { status: 400, code: 'previous_response_not_found', error: { code: 'previous_response_not_found', param: 'previous_response_id', message: /send the whole conversation/ } })
    }
    t.match(await answered(first, create('Go on.', { previous_response_id: id })), { status: 'completed' })
  })

  t.test('a request with generate: false is remembered and not answered', async t => {
    says(saying('Ready.'))
    const client = await open(t, gateway)
    const ready = await answered(client, create([{ role: 'user', content: 'Be brief.' }], { generate: false, instructions: 'x' }))
    t.match(ready, { status: 'completed', output: { length: 0 }, store: false, usage: { total_tokens: 0 } })
    t.strictSame(client.types(), ['response.created', 'response.in_progress', 'response.completed'])
    await answered(client, create('hi', { previous_response_id: ready.id }))
    t.strictSame(talk(chat), ['user: Be brief.', 'user: hi'])
    client.send({ type: 'response.create', model: 'nothing', input: 'hi', generate: false })
    t.match(await client.next('error'), { status: 404, code: 'model.not_found' })
  })

  t.test('lanes have their requests answered in order, and side by side with others', async t => {
    const gates = new Map<string, () => void>()
    gateway.runtime.engine('agent').answer(async ({ body }) => {
      const text = /"(lane [\w ]+)"/.exec(body.toString())![1]!
      await new Promise<void>(resolve => { gates.set(text, resolve) })
      return { headers: SSE, chunks: [`data: {"choices":[{"index":0,"delta":{"content":"to ${text}"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`] }
    })
    const client = await open(t, gateway)
    for (const [lane, text] of [['a', 'lane a 1'], ['a', 'lane a 2'], ['b', 'lane b 1']]) client.send(create(text, { stream_id: lane }))
    await until(() => gates.has('lane a 1') && gates.has('lane b 1'), 'the first of both lanes')
    t.notOk(gates.has('lane a 2'))
    gates.get('lane b 1')!()
    t.match(await client.next('response.completed'), { stream_id: 'b', response: { output: [{ content: [{ text: 'to lane b 1' }] }] } })
    gates.get('lane a 1')!()
    t.match(await client.next('response.completed'), { stream_id: 'a', response: { output: [{ content: [{ text: 'to lane a 1' }] }] } })
    await until(() => gates.has('lane a 2'), 'the second one')
    gates.get('lane a 2')!()
    t.match(await client.next('response.completed'), { stream_id: 'a' })
    t.ok(client.events.every(({ stream_id: lane }) => lane === 'a' || lane === 'b'))
  })

  t.test('what is wrong with a request is an event, and the connection goes on', async t => {
    says(saying('Fine.'))
    const client = await open(t, gateway)
    const failure = async (event: object | string): Promise<Event> => { client.send(event); return await client.next('error') }
    t.match(await failure('{'), { status: 400, error: { code: 'request.invalid_json' } })
    t.match(await failure('[]'), { status: 400, error: { code: 'request.not_an_object' } })
    t.match(await failure('['.repeat(100_000)), { error: { code: 'request.too_complex' } })
    t.match(await failure({ type: 'response.cancel' }), { error: { code: 'validation.invalid', param: 'type' } })
    t.match(await failure(create('x', { background: true })), { error: { code: 'validation.invalid', param: 'background' } })
    t.match(await failure(create('x', { stream_id: 7 })), { error: { param: 'stream_id' } })
    t.match(await failure(create('x', { generate: 'no', stream_id: 'a' })), { stream_id: 'a', error: { param: 'generate' } })
    t.match(await failure(create('x', { model: 'nothing' })), { status: 404, type: 'error', code: 'model.not_found', error: { type: 'not_found_error', code: 'model.not_found', param: 'model' } })
    t.match(await failure({ type: 'response.create', input: 'x' }), { status: 400, error: { code: 'request.missing_model' } })
    t.match(await failure(create('x', { prompt: { id: 'p' } })), { status: 400, error: { param: 'prompt' } })
    t.match(await failure(create('x', { previous_response_id: 7 })), { error: { code: 'validation.invalid', param: 'previous_response_id' } })
    t.match(await failure(create('x', { conversation: 'conv_0' })), { error: { code: 'validation.invalid', param: 'conversation' } })
    client.socket.send(Buffer.from('{}'))
    t.match(await client.next('error'), { error: { param: 'type', message: /text messages/ } })
    client.send({ type: 'response.steer', previous_response_id: 'resp_1', input: 'Faster.' })
    t.match(await client.next('response.steer.failed'), { steer: { previous_response_id: 'resp_1', input: 'Faster.' }, error: { code: 'steering_not_supported' } })
    t.match(await answered(client, create('hi')), { status: 'completed' })
  })

  t.test('an engine that refuses, breaks off or ends too soon is an event, and the connection goes on', async t => {
    const client = await open(t, gateway)
    const engine = gateway.runtime.engine('agent')
    const failure = async (script: EngineScript): Promise<Event> => { engine.answer(script); client.send(create('hi')); return await client.next('error') }
    t.match(await failure({ status: 400, headers: JSON_TYPE, chunks: ['{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}'] }), {
      status: 400, error: { message: 'too long', type: 'exceed_context_size_error' }
    })
    t.match(await failure({ status: 418, headers: { 'content-type': 'text/html' }, chunks: ['<p>no'] }), { error: { message: /no/ } })
    const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"Hal"},"finish_reason":null}]}\n\n'
    engine.answer({ headers: SSE, chunks: [chunk, chunk], dieAfter: 1 })
    client.send(create('hi'))
    t.match(await client.next('response.failed'), { response: { status: 'failed', error: { code: 'server_error' } } })
    says(saying('Fine.'))
    t.match(await answered(client, create('hi')), { status: 'completed' })
  })
})

t.test('an engine that speaks responses is asked over HTTP, and its events pass as they are', async t => {
  const asked: string[] = []
  const gateway = await speakingGateway(t, body => { asked.push(body); return speaks.responses(body) })
  const client = await open(t, gateway)
  await answered(client, create('hi', { store: false }))
  t.match(JSON.parse(asked[0]!), { input: 'hi', stream: true, store: false })
  const { chunks } = speaks.responses(asked[0]!)
  const sent = chunks!.join('').split('\n').filter(line => line.startsWith('data: {')).map(line => line.slice(6))
  t.strictSame(client.events.map(event => JSON.stringify(event)), sent.map(text => JSON.stringify(JSON.parse(text))))

  t.test('a stream that is cut anywhere ends with its last event or an error', async t => {
    const whole = Buffer.from(chunks!.join(''))
    for (let at = 0; at < whole.length; at += Math.ceil(whole.length / 40)) {
      gateway.runtime.engine('agent').answer({ headers: SSE, chunks: [whole.subarray(0, at)] })
      const before = client.events.length
      client.send(create('hi', { store: false }))
      await client.next('error')
      t.equal(client.events.slice(before).filter(({ type }) => type === 'error' || type === 'response.completed').length, 1)
    }
  })

  t.test('a whole answer is told as events', async t => {
    const response = { id: 'resp_0123456789abcdef01234567', object: 'response', status: 'completed', output: [{ id: 'msg_1', type: 'message', content: [{ type: 'output_text', text: 'Whole.' }] }] }
    gateway.runtime.engine('agent').answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response)] })
    const whole = await open(t, gateway)
    t.match(await answered(whole, create('hi')), response)
    t.match(whole.types(), ['response.created', 'response.in_progress', 'response.output_item.added'])
    gateway.runtime.engine('agent').answer({ headers: JSON_TYPE, chunks: ['{"x":1}'] })
    whole.send(create('hi'))
    t.match(await whole.next('error'), { error: { code: 'dispatch.upstream_failed' } })
  })
})

t.test('an upstream that was told to keep nothing gets the whole conversation, with its own thoughts', async t => {
  const upstream = await fakeUpstream(t)
  const gateway = await wireGateway(t, { plugins: [responseRoutes], files: { 'etc/svc/upstreams.toml': upstreamTable('far', upstream.url) } })
  const thought = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'sealed' }
  const response = { id: 'resp_far', object: 'response', status: 'completed', output: [thought, { id: 'msg_1', type: 'message', role: 'assistant', content: [] }] }
  upstream.play({ headers: SSE, chunks: [`data: ${JSON.stringify({ type: 'response.completed', sequence_number: 0, response })}\n\n`] })
  const client = await open(t, gateway)
  await answered(client, create('hi', { model: 'gpt-9', store: false }))
  await answered(client, create('Go on.', { model: 'gpt-9', store: false, previous_response_id: 'resp_far' }))
  const second = JSON.parse((await upstream.call(1)).body.toString()) as { input: Array<Record<string, unknown>> }
  t.match(second.input, [{ role: 'user' }, { type: 'reasoning', encrypted_content: 'sealed' }, { role: 'assistant' }, { role: 'user' }])
  t.notOk('previous_response_id' in second)
  await answered(client, create('hi', { model: 'gpt-9' }))
  await answered(client, create('Go on.', { model: 'gpt-9', previous_response_id: 'resp_other' }))
  t.match(JSON.parse((await upstream.call(3)).body.toString()), { previous_response_id: 'resp_other', input: 'Go on.' }, 'what it keeps is its to know')
  upstream.play(refusal(429, {}, 'too many'))
  client.send(create('hi', { model: 'gpt-9' }))
  t.match(await client.next('error'), { status: 429, error: { message: 'too many', type: 'upstream' } })
})

t.test('a connection is bounded, and ends with its client', async t => {
  const gateway = await speakingGateway(t, {})
  const engine = gateway.runtime.engine('agent')
  const event = (type: string, more: object): string => `data: ${JSON.stringify({ type, ...more })}\n\n`
  const end = event('response.completed', { response: { id: 'resp_0', object: 'response', status: 'completed', output: [] } })

  t.test('a client that leaves ends the work of the engine, and what waits behind it is not asked for', async t => {
    let asked = 0
    let begun = (): void => {}
    const begins = new Promise<void>(resolve => { begun = resolve })
    const gone = new Promise<void>(resolve => {
      engine.take((request, answer) => {
        request.resume()
        asked++
        answer.writeHead(200, SSE).write(event('response.created', {}))
        answer.once('close', resolve)
        begun()
      })
    })
    const client = await open(t, gateway)
    client.send(create('hi'))
    client.send(create('and this'))
    await begins
    client.socket.terminate()
    await gone
    await until(() => engine.active === 0, 'nothing of it goes on')
    t.equal(asked, 1)
    t.strictSame(gateway.logs.filter(({ level }) => level === 'error' || level === 'warn'), [])
  })

  t.test('a client that reads nothing holds up its engine, and gets all of it when it reads', async t => {
    const piece = event('response.output_text.delta', { delta: 'x'.repeat(64 * 1024) })
    let sent = 0
    engine.take((request, response) => {
      request.resume()
      response.writeHead(200, SSE)
      const write = (): void => {
        while (sent < 1_000) {
          sent++
          if (!response.write(piece)) return void response.once('drain', write)
        }
        response.end(end)
      }
      write()
    })
    const client = await open(t, gateway)
    client.socket.pause()
    client.send(create('hi', { stream_id: 'a' }))
    let last = -1
    await until(() => {
      const isStill = sent === last && sent > 0
      last = sent
      return isStill
    }, 'the engine is made to wait')
    t.ok(sent < 900, `${sent} of 1,000 pieces were taken from it`)
    client.socket.resume()
    await client.next('response.completed')
    t.equal(client.events.length, 1_001)
  })

  t.test('in its messages, in its requests at a time, and in number', async t => {
    engine.take(null)
    engine.answer({ headers: SSE, headAfterMs: Infinity })
    const busy = await open(t, gateway)
    for (let i = 0; i < 40; i++) busy.send(create('hi', { stream_id: `lane ${i}` }))
    await until(() => engine.active === 16, 'as many as may be are asked for')
    busy.send('{')
    busy.socket.send('x'.repeat(17 * 1024 * 1024))
    t.equal(await busy.closed, 1009)
    t.notOk(busy.events.some(({ type }) => type === 'error'), 'it is not read while it has as many')
    await until(() => engine.active === 0, 'they end with it')
    const clients = []
    for (let i = 0; i < 32; i++) clients.push(await open(t, gateway))
    await t.rejects(open(t, gateway), /503/)
    clients[0]!.socket.close()
    await clients[0]!.closed
    await until(() => engine.active === 0, 'nothing goes on')
    for (const { socket } of clients) socket.terminate()
  })

  t.test('a page of another origin, and a request without an upgrade, open none', async t => {
    await t.rejects(open(t, gateway, { origin: 'http://evil.example' }), /403/)
    t.match(await (await gateway.fetch('/v1/responses')).json(), { error: { code: 'request.upgrade_required' } })
  })

  t.test('one that is being answered is answered to its end when the gateway stops', async t => {
    let finish = (): void => {}
    engine.take((request, response) => {
      request.resume()
      response.writeHead(200, SSE).write(event('response.created', {}))
      finish = () => { response.end(end) }
    })
    const client = await open(t, gateway)
    client.send(create('hi'))
    await client.next('response.created')
    const stopped = gateway.gateway.stop()
    let isUp = true
    while (isUp) isUp = await gateway.fetch('/v1/responses').then(({ status }) => status !== 503, () => false)
    finish()
    await client.next('response.completed')
    t.equal(await client.closed, 1001)
    await stopped
  })
})

t.test('where nothing is kept, a connection goes on from what it made all the same', async t => {
  const chat = await chatOnlyGateway(t, [responseRoutes], '[plugins.config.v1-responses]\nstore = false\n')
  chat.says(saying('Hello.'))
  const client = await open(t, chat.gateway)
  const { id } = await answered(client, create('hi'))
  await answered(client, create('Go on.', { previous_response_id: id }))
  t.strictSame(talk(chat), ['user: hi', 'assistant: Hello.', 'user: Go on.'])
})

t.test('what connections remember is bounded: each forgets its oldest, and all together that of the one that made none for longest', t => {
  const made = new MadeResponses()
  const MIB = 1024 * 1024
  const entry = (mib: number): MadeResponse => ({ items: [], bytes: mib * MIB, thinker: null })
  const one = made.open()
  for (const id of ['a', 'b', 'c']) one.add(id, entry(7))
  t.strictSame(['a', 'b', 'c'].map(id => one.get(id) !== undefined), [false, true, true])
  one.add('d', entry(17))
  t.equal(one.get('d'), undefined, 'one that is too large by itself')
  for (let i = 0; i < 40; i++) one.add(`small ${i}`, entry(0))
  t.equal(one.get('small 7'), undefined)
  t.ok(one.get('small 8'))
  const others = Array.from({ length: 17 }, () => made.open())
  for (const other of others) other.add('x', entry(16))
  t.strictSame(others.map(other => other.get('x') !== undefined), [false, ...Array.from({ length: 16 }, () => true)])
  t.equal(one.get('small 8'), undefined)
  for (const other of others) other.close()
  t.equal(others.reduce((sum, { bytes }) => sum + bytes, 0), 0)
  t.end()
})
