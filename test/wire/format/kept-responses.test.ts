import { randomUUID } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'libsql'
import OpenAI, { BadRequestError, NotFoundError } from 'openai'
import t, { type Test } from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { chatOnlyGateway, sayingOnlyChat, type ChatOnly, type Said } from './chat-only.js'
import { fakeUpstream, upstreamTable } from '../fake-upstream.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream' }
const parameters = { type: 'object', properties: {} }
const tools = [{ type: 'function' as const, name: 'weather', parameters, strict: false }]

const saying = (content: string): Said => ({ deltas: [{ reasoning_content: 'hm' }, { content }] })
const calling: Said = {
  deltas: [{ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{}' } }] }], finish: 'tool_calls'
}

function clientOf (gateway: { readonly baseUrl: string }, headers: Record<string, string> = {}): OpenAI {
  return new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0, defaultHeaders: headers })
}

function failure (work: Promise<unknown>): Promise<unknown> {
  return work.then(() => null, (error: unknown) => error)
}

/** The messages of a chat request, in short. */
function talk ({ messages }: { readonly messages?: unknown }): unknown {
  return (messages as Array<{ role: string, content: unknown }>).map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`)
}

async function chatGateway (t: Test, svc = ''): Promise<ChatOnly & { client: OpenAI }> {
  const made = await chatOnlyGateway(t, [responseRoutes], svc)
  return { ...made, client: clientOf(made.gateway) }
}

t.test('responses are kept for those that go on from them', async t => {
  const { gateway, says, asked, client, upstream } = await chatGateway(t)
  const model = 'agent'

  t.test('a conversation goes on, whole and streamed, with a tool in it', async t => {
    says(saying('Hello.'))
    const first = await client.responses.create({ model, input: 'My name is Ada.', instructions: 'Be brief.' })
    t.match(first, { store: true, previous_response_id: null, id: /^resp_[0-9a-f]{32}$/ })
    says(calling)
    const second = await client.responses.stream({ model, input: [{ role: 'user', content: 'And the weather?' }], previous_response_id: first.id, tools }).finalResponse()
    t.match(second, { store: true, previous_response_id: first.id })
    t.strictSame(talk(asked()), ['user: My name is Ada.', 'assistant: Hello.', 'user: And the weather?'], 'instructions are those of each request')
    says(saying('Sunny.'))
    const result = { type: 'function_call_output' as const, call_id: 'call_a', output: 'sun' }
    const third = await client.responses.create({ model, input: [result], previous_response_id: second.id, tools })
    t.equal(third.output_text, 'Sunny.')
    t.match(asked(), {
      messages: [
        { role: 'user' }, { role: 'assistant', content: 'Hello.', reasoning_content: 'hm' }, { role: 'user' },
        { role: 'assistant', tool_calls: [{ id: 'call_a', function: { name: 'weather' } }] }, { role: 'tool', tool_call_id: 'call_a', content: 'sun' }
      ]
    })
    const branch = await client.responses.create({ model, input: 'Who am I?', previous_response_id: first.id })
    t.strictSame(talk(asked()), ['user: My name is Ada.', 'assistant: Hello.', 'user: Who am I?'], 'one response has as many that follow as are asked for')
    for (const made of [first, third, branch]) t.strictSame(await client.responses.retrieve(made.id), made)
    const { id, usage, created_at: createdAt, tools: offered } = second
    t.match(await client.responses.retrieve(id), { id, usage, created_at: createdAt, tools: offered, status: 'completed', output: [{ type: 'function_call', call_id: 'call_a' }] })

    const listed: Array<{ type: string }> = []
    for await (const item of client.responses.inputItems.list(third.id, { order: 'asc', limit: 2 })) listed.push(item as { type: string })
    t.strictSame(listed.map(({ type }) => type), ['message', 'reasoning', 'message', 'message', 'function_call', 'function_call_output'])
    t.match(listed[0], { role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'My name is Ada.' }], id: /^msg_/ })
    const newest = await client.responses.inputItems.list(third.id, { limit: 1 })
    t.match(newest.data, [{ type: 'function_call_output', call_id: 'call_a' }], 'the newest first where nothing is said')
    t.equal(newest.has_more, true)
    t.match(await failure(client.responses.inputItems.list(third.id, { after: 'msg_0' })), { status: 400, message: /after/ })
  })

  t.test('a reference to a kept item is that item', async t => {
    says(saying('Hello.'))
    const { output } = await client.responses.create({ model, input: 'hi' })
    const refer = output.map(({ id }) => ({ type: 'item_reference' as const, id: id! }))
    await client.responses.create({ model, input: [{ role: 'user', content: 'hi' }, ...refer, { role: 'user', content: 'more' }] })
    t.match(asked(), { messages: [{ content: 'hi' }, { role: 'assistant', content: 'Hello.', reasoning_content: 'hm' }, { content: 'more' }] })
  })

  t.test('references to more than a request may have are refused before they are put together', async t => {
    says(saying('x'.repeat(1024 * 1024)))
    const { output } = await client.responses.create({ model, input: 'hi' })
    const { id } = output.find(({ type }) => type === 'message')!
    const input = Array.from({ length: 1000 }, () => ({ type: 'item_reference' as const, id: id! }))
    t.match(await failure(client.responses.create({ model, input })), { status: 413, code: 'request.too_large' })
  })

  t.test('another model goes on where one left off, without what is its own', async t => {
    says(saying('Hello.'))
    const first = await client.responses.create({ model, input: 'hi' })
    await client.responses.create({ model: 'gpt-9', input: 'more', previous_response_id: first.id })
    t.match(asked(), { model: 'gpt-9', messages: [{ content: 'hi' }, { role: 'assistant', content: 'Hello.' }, { content: 'more' }] })
    t.notMatch(JSON.stringify(asked()), /hm/, 'thoughts of one model are none of an upstream\'s')
    t.ok(upstream.calls.length > 0)
  })

  t.test('what is not to be kept is not', async t => {
    says(saying('Hello.'))
    const bare = await client.responses.create({ model, input: 'hi', store: false })
    t.equal((bare as { store?: boolean }).store, false)
    t.match(await failure(client.responses.retrieve(bare.id)), { status: 404, code: 'responses.not_found' })
    t.ok(await failure(client.responses.create({ model, input: 'x', previous_response_id: bare.id })) instanceof BadRequestError)
    const secret = await clientOf(gateway, { 'x-svc-private': '1' }).responses.create({ model, input: 'hi' })
    t.equal((secret as { store?: boolean }).store, false)
    t.ok(await failure(client.responses.retrieve(secret.id)) instanceof NotFoundError)
    const large = await client.responses.create({ model, input: 'x'.repeat(17 * 1024 * 1024) })
    t.equal((large as { store?: boolean }).store, false, 'nor what is too large to be written while others wait')
    t.match(await failure(client.responses.cancel((await client.responses.create({ model, input: 'x' })).id)), { status: 400, code: 'responses.not_background' })
  })

  t.test('one that is deleted is gone, and what builds on it cannot go on', async t => {
    says(saying('Hello.'))
    const first = await client.responses.create({ model, input: 'a secret of mine' })
    const second = await client.responses.create({ model, input: 'more', previous_response_id: first.id })
    await client.responses.delete(first.id)
    t.match(await failure(client.responses.retrieve(first.id)), { status: 404 })
    t.match(await failure(client.responses.delete(first.id)), { status: 404 })
    t.equal((await client.responses.retrieve(second.id)).output_text ?? 'Hello.', 'Hello.')
    t.match(await failure(client.responses.create({ model, input: 'x', previous_response_id: second.id })), { status: 400, code: 'responses.context_lost' })
    t.match(await failure(client.responses.inputItems.list(second.id)), { status: 400, code: 'responses.context_lost' })
    const file = join(gateway.home, 'var/lib/svc/plugin-state/v1-responses/responses.db')
    t.equal((await stat(file)).mode & 0o077, 0, 'for the gateway\'s user alone')
  })

  t.test('an answer that broke off, or whose client left, is not kept', async t => {
    says(saying('Hello.'), { dieAfter: 2 })
    const text = await (await gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify({ model, input: 'x', stream: true }) })).text()
    const { id } = JSON.parse(/data: (.*)/.exec(text)![1]!).response as { id: string }
    t.match(await client.responses.retrieve(id), { status: 'failed' }, 'but for one that the client was told has failed')
    says({ deltas: Array.from({ length: 500 }, (_, i) => ({ content: `w${i} ` })) }, { everyMs: 2 })
    const stream = await client.responses.create({ model, input: 'x', stream: true })
    let left = ''
    for await (const event of stream) {
      if (event.type === 'response.created') left = event.response.id
      if (event.type === 'response.output_text.delta') stream.controller.abort()
    }
    await until(() => gateway.runtime.engine('agent').active === 0, 'the engine is free')
    t.ok(await failure(client.responses.retrieve(left)) instanceof NotFoundError)
  })
})

t.test('an engine that speaks the API', async t => {
  const response = (id: string, text: string): object => ({
    id, object: 'response', created_at: 1, model: 'm', status: 'completed',
    output: [{ id: `msg_${randomUUID().replaceAll('-', '')}`, type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }],
    usage: { input_tokens: 4, output_tokens: 2, total_tokens: 6 }
  })
  const newId = (): string => `resp_${randomUUID().replaceAll('-', '')}`
  const upstream = await fakeUpstream(t)
  const gateway = await wireGateway(t, { plugins: [responseRoutes], files: { 'etc/svc/upstreams.toml': upstreamTable('far', upstream.url) } })
  const client = clientOf(gateway)
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  await gateway.fetch('/v1/models')
  const engine = gateway.runtime.engine('agent')
  const post = (body: object): Promise<Response> => gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body) })

  t.test('its bytes pass and are kept, and what came before is told to it', async t => {
    const id = newId()
    const body = JSON.stringify(response(id, 'Hello'))
    engine.answer({ headers: JSON_TYPE, chunks: [body.slice(0, 20), body.slice(20)] })
    t.equal(await (await post({ model: 'agent', input: 'hi' })).text(), body)
    t.strictSame(JSON.parse(engine.requests.at(-1)!.body.toString()), { model: 'fake-model', input: 'hi' })
    t.match(await client.responses.retrieve(id), { id, store: true, output: [{ type: 'message' }] })
    const next = newId()
    const events = [
      `event: response.created\ndata: ${JSON.stringify({ type: 'response.created', response: { id: next, object: 'response' } })}\n\n`,
      ': a comment\n\n', `event: response.completed\r\n: another\r\ndata: ${JSON.stringify({ response: response(next, 'Again'), type: 'response.completed' })}\r\n\r\n`
    ].join('')
    engine.answer({ headers: SSE, chunks: [...events] })
    t.equal(await (await post({ model: 'agent', input: [{ role: 'user', content: 'more' }], previous_response_id: id, stream: true })).text(), events)
    t.match(JSON.parse(engine.requests.at(-1)!.body.toString()), {
      input: [{ type: 'message', role: 'user', content: [{ text: 'hi' }] }, { type: 'message', role: 'assistant' }, { role: 'user', content: 'more' }]
    })
    t.notMatch(engine.requests.at(-1)!.body.toString(), /previous_response_id/)
    t.match(await client.responses.retrieve(next), { previous_response_id: id })
  })

  t.test('an id that could be guessed, or is taken, is not kept', async t => {
    engine.answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response('resp_1', 'Hello'))] })
    await client.responses.create({ model: 'agent', input: 'hi' })
    t.ok(await failure(client.responses.retrieve('resp_1')) instanceof NotFoundError)
    const id = newId()
    for (const text of ['first', 'second']) {
      engine.answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response(id, text))] })
      await client.responses.create({ model: 'agent', input: text })
    }
    t.match((await client.responses.retrieve(id)).output, [{ content: [{ text: 'first' }] }])
    t.match(await failure(client.responses.create({ model: 'agent', input: 'x', previous_response_id: newId() })), { status: 400, param: 'previous_response_id' })
    t.match(await failure(client.responses.create({ model: 'agent', input: [{ type: 'item_reference', id: 'msg_1' }] })), { status: 400, param: 'input.0.id' })
  })

  t.test('what an upstream keeps is the upstream\'s', async t => {
    const id = newId()
    upstream.play({ headers: JSON_TYPE, chunks: [JSON.stringify(response(id, 'far'))] })
    await client.responses.create({ model: 'gpt-9', input: 'hi' })
    t.match(await failure(client.responses.retrieve(id)), { status: 404, message: /kept by the upstream/ })
    await client.responses.create({ model: 'gpt-9', input: 'more', previous_response_id: id })
    t.match(JSON.parse(upstream.calls.at(-1)!.body.toString()), { previous_response_id: id, input: 'more' }, 'its ids pass')
  })
})

t.test('a background response is polled, cancelled and deleted while its engine works', async t => {
  const { gateway, says, client } = await chatGateway(t)
  const engine = gateway.runtime.engine('agent')
  const order = { model: 'agent', input: 'hi', background: true }

  t.test('one is asked for until it is complete, and goes on', async t => {
    let go = (): void => {}
    const after = new Promise<void>(resolve => { go = resolve })
    says(saying('Done.'), { after })
    const queued = await client.responses.create(order)
    t.match(queued, { status: 'queued', background: true, output: { length: 0 }, id: /^resp_/ })
    await until(() => engine.active > 0, 'the engine works')
    t.equal((await client.responses.retrieve(queued.id)).status, 'in_progress')
    go()
    let now = queued
    while (now.status === 'queued' || now.status === 'in_progress') now = await client.responses.retrieve(queued.id)
    t.match(now, { id: queued.id, status: 'completed', background: true, usage: { total_tokens: 27 }, output: [{ type: 'reasoning' }, { type: 'message' }] })
    t.match(await client.responses.cancel(queued.id), { status: 'completed', output: [{}, {}] }, 'what is over stays as it is')
    t.equal((await client.responses.create({ model: 'agent', input: 'more', previous_response_id: queued.id })).output_text, 'Done.')
    t.match((await client.responses.inputItems.list(queued.id)).data, [{ content: [{ text: 'hi' }] }])
  })

  t.test('one is cancelled, or deleted, and its engine is free', async t => {
    says(saying('x'), { headAfterMs: Infinity })
    for (const end of ['cancel', 'delete'] as const) {
      const { id } = await client.responses.create(order)
      await until(() => engine.active > 0, 'the engine works')
      const ended = await client.responses[end](id)
      if (end === 'cancel') t.match(ended, { status: 'cancelled' })
      await until(() => engine.active === 0, 'the engine is free')
      if (end === 'cancel') t.equal((await client.responses.retrieve(id)).status, 'cancelled')
      else t.ok(await failure(client.responses.retrieve(id)) instanceof NotFoundError)
    }
  })

  t.test('what its engine refuses has failed', async t => {
    says(saying('x'), { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"too long"}}'] })
    const { id } = await client.responses.create(order)
    let now = await client.responses.retrieve(id)
    while (now.status === 'in_progress') now = await client.responses.retrieve(id)
    t.match(now, { status: 'failed', error: { code: 'server_error', message: /too long/ } })
  })

  t.test('there is an end to how many are made at a time', async t => {
    says(saying('x'), { headAfterMs: Infinity })
    const ids: string[] = []
    for (let i = 0; i < 64; i++) ids.push((await client.responses.create(order)).id)
    const refused = await failure(client.responses.create(order))
    t.match(refused, { status: 503, code: 'responses.busy' })
    for (const id of ids) await client.responses.delete(id)
    await until(() => engine.active === 0, 'the engine is free')
  })
})

/** Gateways on one home, one after the other. */
function successive (t: Test, said: Said): (svc?: string) => Promise<WireGateway> {
  const home = t.testdir()
  const chat = { path: '/v1/chat/completions', streaming: true, body: 'json' } as const
  return async (svc = '') => {
    const gateway = await wireGateway(t, {
      home,
      svc,
      plugins: [createFakeProviderPlugin({ name: 'chatty', surfaces: { chat } }), responseRoutes],
      files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "chatty"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
    })
    await gateway.slots.ensureReady('agent', new AbortController().signal)
    gateway.runtime.engine('agent').answer(sayingOnlyChat(said))
    return gateway
  }
}

t.test('kept responses survive a restart, and running ones fail', async t => {
  const next = successive(t, saying('Hello.'))
  const first = await next()
  const client = clientOf(first)
  const kept = await client.responses.create({ model: 'agent', input: 'hi' })
  first.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const working = await client.responses.create({ model: 'agent', input: 'hi', background: true })
  await until(() => first.runtime.engine('agent').active > 0, 'the engine works')
  await first.close()

  const second = await next()
  const again = clientOf(second)
  t.match(await again.responses.retrieve(kept.id), { status: 'completed', output: kept.output.map(({ id }) => ({ id })) })
  t.match(await again.responses.retrieve(working.id), { status: 'failed', error: { message: /the gateway/ } })
  t.equal((await again.responses.create({ model: 'agent', input: 'more', previous_response_id: kept.id })).output_text, 'Hello.')
  await second.close()

  const third = await next('[plugins.config.v1-responses]\nstore = false\n')
  const without = clientOf(third)
  const plain = await without.responses.create({ model: 'agent', input: 'x' })
  t.equal((plain as { store?: boolean }).store, false)
  for (const id of [plain.id, kept.id]) t.match(await failure(without.responses.retrieve(id)), { status: 404, message: /store is off/ })
  t.match(await failure(without.responses.create({ model: 'agent', input: 'x', previous_response_id: kept.id })), { status: 400, param: 'previous_response_id' })
  t.match(await failure(without.responses.create({ model: 'agent', input: 'x', background: true })), { status: 400, param: 'background' })
  t.match(await failure(readFile(join(third.home, 'var/lib/svc/plugin-state/v1-responses/responses.db'))), { code: 'ENOENT' }, 'what was kept is gone')
})

const fileOf = ({ home }: WireGateway): string => join(home, 'var/lib/svc/plugin-state/v1-responses/responses.db')

t.test('where the disk takes nothing more', async t => {
  const next = successive(t, saying('Hello.'))
  const first = await next()
  const client = clientOf(first)
  const kept = await client.responses.create({ model: 'agent', input: 'hi' })
  const disk = new Database(fileOf(first))
  disk.exec('CREATE TRIGGER full BEFORE UPDATE ON responses BEGIN SELECT RAISE(FAIL, \'the disk is full\'); END')
  disk.close()
  let now = await client.responses.create({ model: 'agent', input: 'hi', background: true })
  while (now.status === 'queued' || now.status === 'in_progress') now = await client.responses.retrieve(now.id)
  t.match(now, { status: 'failed', error: { message: /could not be kept/ } }, 'what came of a response is not waited for without end')
  t.match(await client.responses.cancel(now.id), { status: 'failed' })
  await first.close()

  const second = await next()
  const again = clientOf(second)
  t.match(await again.responses.retrieve(kept.id), { status: 'completed' }, 'what is kept can still be read')
  t.match(await again.responses.retrieve(now.id), { status: 'failed' })
})

t.test('a database that cannot be used holds up only what stands on it', async t => {
  const next = successive(t, saying('Hello.'))
  const first = await next()
  const { id } = await clientOf(first).responses.create({ model: 'agent', input: 'hi' })
  await first.close()
  await writeFile(fileOf(first), 'no database')
  const client = clientOf(await next())
  const background = { type: 'string' }
  const asked = { model: 'agent', input: 'hi', previous_response_id: null, background: false, tools: [{ ...tools[0]!, parameters: { ...parameters, properties: { background } } }] }
  t.match(await client.responses.create(asked), { output_text: 'Hello.', store: false })
  t.match(await failure(client.responses.create({ ...asked, previous_response_id: id })), { status: 500, code: 'responses.store_failed' })
})
