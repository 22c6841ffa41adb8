import { cp, mkdir } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import Database from 'libsql'
import OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import t, { type Test } from 'tap'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { fakeUpstream, upstreamTable } from '../fake-upstream.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'
import { chunksOf, sayingOnlyChat, type Said } from './chat-only.js'

const SSE = { 'content-type': 'text/event-stream' }
const order = { model: 'agent', input: 'hi', background: true as const, stream: true as const }
const saying: Said = {
  deltas: [
    { reasoning_content: 'hm' }, ...Array.from({ length: 40 }, (_, i) => ({ content: `word ${i} ` })),
    { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"at":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '1}' } }] }
  ],
  finish: 'tool_calls'
}
const chunks = chunksOf(saying)

function clientOf ({ baseUrl }: { readonly baseUrl: string }): OpenAI {
  return new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
}

async function home (t: Test, options: { home?: string, svc?: string } = {}): Promise<WireGateway> {
  const chat = { path: '/v1/chat/completions', streaming: true, body: 'json' } as const
  const gateway = await wireGateway(t, {
    ...options,
    plugins: [createFakeProviderPlugin({ name: 'chatty', surfaces: { chat } }), responseRoutes],
    files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "chatty"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  return gateway
}

/** An engine that writes when it is told to. */
function written (gateway: WireGateway): { begun: () => boolean, write: (from: number, to?: number) => void, end: () => void } {
  let response: ServerResponse | null = null
  gateway.runtime.engine('agent').take((request, answer) => {
    request.resume()
    response = answer.writeHead(200, SSE)
  })
  return {
    begun: () => response !== null,
    write: (from, to = chunks.length) => { for (const chunk of chunks.slice(from, to)) response!.write(chunk) },
    end: () => response!.end()
  }
}

async function all (stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

type Events = AsyncIterator<ResponseStreamEvent>

/** Reads up to an event that is one of those looked for, and stays. */
async function readTo (events: Events, is: (event: ResponseStreamEvent) => boolean): Promise<ResponseStreamEvent[]> {
  const read: ResponseStreamEvent[] = []
  for (let next = await events.next(); next.done !== true; next = await events.next()) {
    read.push(next.value)
    if (is(next.value)) return read
  }
  return read
}

const rest = (events: Events): Promise<ResponseStreamEvent[]> => readTo(events, () => false)
const numbers = (events: readonly ResponseStreamEvent[]): number[] => events.map(({ sequence_number: number }) => number)
const says = (text: string) => (event: ResponseStreamEvent): boolean => event.type === 'response.output_text.delta' && event.delta === text
const idOf = ([first]: readonly ResponseStreamEvent[]): string => first!.type === 'response.created' ? first!.response.id : ''

t.test('a response in the background is streamed', async t => {
  const gateway = await home(t)
  const client = clientOf(gateway)

  t.test('while it is made, however long its instructions are, which its first events repeat', async t => {
    const model = written(gateway)
    const stream = await client.responses.create({ ...order, instructions: 'x'.repeat(300_000) })
    const events = stream[Symbol.asyncIterator]()
    const begun = await readTo(events, ({ type }) => type === 'response.in_progress')
    await until(model.begun, 'the engine is asked')
    model.write(0, 12)
    const first = await readTo(events, says('word 8 '))
    t.strictSame(numbers([...begun, ...first]), [...begun, ...first].map((_, i) => i), 'before the engine has ended')
    model.write(12)
    model.end()
    const read = [...begun, ...first, ...await rest(events)]
    t.strictSame(await all(await client.responses.retrieve(idOf(begun), { stream: true })), read)
  })

  t.test('to its client while it is made, which may leave and come back to the same events', async t => {
    const model = written(gateway)
    const stream = await client.responses.create(order)
    const events = stream[Symbol.asyncIterator]()
    const begun = await readTo(events, ({ type }) => type === 'response.in_progress')
    t.match(begun, [
      { type: 'response.created', sequence_number: 0, response: { status: 'queued', background: true } },
      { type: 'response.queued', sequence_number: 1 }, { type: 'response.in_progress', sequence_number: 2 }
    ], 'at once')
    const id = idOf(begun)
    await until(model.begun, 'the engine is asked')
    model.write(0, 12)
    const first = await readTo(events, says('word 8 '))
    stream.controller.abort()

    const seen = [...begun, ...first]
    const back = await client.responses.retrieve(id, { stream: true, starting_after: seen.at(-1)!.sequence_number })
    const later = back[Symbol.asyncIterator]()
    model.write(12, 22)
    const second = await readTo(later, says('word 18 '))
    t.equal((await client.responses.retrieve(id)).status, 'in_progress', 'it goes on without the client that began it')
    const whole = all(await client.responses.retrieve(id, { stream: true }))
    model.write(22)
    model.end()
    const read = [...seen, ...second, ...await rest(later)]
    t.strictSame(numbers(read), read.map((_, i) => i), 'each number once')
    t.strictSame(await whole, read, 'one who began in the middle gets all of it')
    t.match(read.at(-1), { type: 'response.completed', response: { id, status: 'completed', background: true, store: true, usage: { total_tokens: 27 } } })
    const { output_text: _, ...kept } = await client.responses.retrieve(id)
    t.strictSame((read.at(-1) as { response?: unknown }).response, kept, 'complete is what is kept by then')
    t.match(kept.output, [{ type: 'reasoning' }, { type: 'message' }, { type: 'function_call', arguments: '{"at":1}' }])

    for (let after = 0; after < read.length; after++) {
      t.strictSame(await all(await client.responses.retrieve(id, { stream: true, starting_after: after })), read.slice(after + 1))
    }
    await t.rejects(client.responses.retrieve(id, { stream: true, starting_after: read.length }), { code: 'validation.invalid', message: /starting_after/ })
    const deltas = read.filter(({ type }) => type === 'response.output_text.delta')
    t.equal(deltas.length, 40, 'as the engine said it, and not in pieces made later')
    const final = await client.responses.stream({ response_id: id }).finalResponse()
    t.match(final, { id, status: 'completed', output_text: saying.deltas.map(({ content = '' }) => content).join('') })
  })
})

t.test('the end of one is told to each reader', async t => {
  const gateway = await home(t)
  const client = clientOf(gateway)
  const engine = gateway.runtime.engine('agent')
  const start = async (): Promise<{ id: string, events: Events }> => {
    const events = (await client.responses.create(order))[Symbol.asyncIterator]()
    return { id: idOf(await readTo(events, ({ type }) => type === 'response.in_progress')), events }
  }

  t.test('where it is cancelled, or deleted', async t => {
    engine.answer(sayingOnlyChat(saying, { headAfterMs: Infinity }))
    const cancelled = await start()
    await client.responses.cancel(cancelled.id)
    t.match(await rest(cancelled.events), [{ type: 'response.incomplete', sequence_number: 3, response: { status: 'cancelled' } }])
    const deleted = await start()
    const told = t.rejects(rest(deleted.events), { code: 'responses.not_found' })
    await client.responses.delete(deleted.id)
    await told
    await until(() => engine.active === 0, 'the engine is free')
  })

  t.test('where its engine refuses, dies, or ends early', async t => {
    const ends: Array<[object, RegExp]> = [
      [{ status: 400, headers: { 'content-type': 'application/json' }, chunks: ['{"error":{"message":"too long"}}'] }, /too long/],
      [{ dieAfter: 5 }, /./],
      [{ chunks: chunks.slice(0, 8) }, /./]
    ]
    for (const [script, message] of ends) {
      engine.answer(sayingOnlyChat(saying, script))
      await gateway.slots.ensureReady('agent', new AbortController().signal)
      const { id, events } = await start()
      const last = (await rest(events)).at(-1)
      t.match(last, { type: 'response.failed', response: { id, status: 'failed', error: { code: 'server_error', message } } })
      t.match(await client.responses.retrieve(id), { status: 'failed' })
      t.match((await all(await client.responses.retrieve(id, { stream: true }))).at(-1), last!)
    }
  })

  t.test('where it is not to be kept it is refused before it begins', async t => {
    await t.rejects(client.responses.create({ ...order, store: false }), { message: /'background' needs a response that is kept/ })
  })
})

t.test('one of an engine or upstream with words of its own is told under the id that its client has', async t => {
  const head = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-9', store: false }
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }
  const own = [
    { type: 'response.created', sequence_number: 7, response: { ...head, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', sequence_number: 8, output_index: 0, item },
    { type: 'response.output_item.done', sequence_number: 9, output_index: 0, item },
    { type: 'response.completed', sequence_number: 10, response: { ...head, status: 'completed', output: [item], usage: null } }
  ]
  const upstream = await fakeUpstream(t)
  const gateway = await wireGateway(t, { plugins: [responseRoutes], files: { 'etc/svc/upstreams.toml': upstreamTable('far', upstream.url) } })
  const client = clientOf(gateway)
  const answers = { stream: { headers: SSE, chunks: own.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`) },
    whole: { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ ...head, status: 'completed', output: [item], usage: null })] } }
  for (const how of ['stream', 'whole'] as const) {
    upstream.engine.answer(request => request.method === 'GET'
      ? { headers: { 'content-type': 'application/json' }, chunks: ['{"object":"list","data":[{"id":"gpt-9"}]}'] }
      : answers[how])
    await gateway.fetch('/v1/models')
    const events = await all(await client.responses.create({ ...order, model: 'gpt-9' }))
    t.strictSame(numbers(events), events.map((_, i) => i), how)
    const id = idOf(events)
    t.not(id, 'resp_1')
    t.match(events.at(-1), { type: 'response.completed', response: { id, background: true, store: true, output: [item] } })
    t.match(events.filter(({ type }) => type === 'response.output_item.done'), [{ item }])
    t.match(JSON.parse(upstream.calls.at(-1)!.body.toString()), { stream: true, background: undefined })
  }
})

t.test('what was told before the gateway was killed is told again, and then that it failed', async t => {
  const dir = t.testdir({ first: {}, copy: {} })
  const first = await home(t, { home: join(dir, 'first') })
  const client = clientOf(first)
  const model = written(first)
  const events = (await client.responses.create(order))[Symbol.asyncIterator]()
  const begun = await readTo(events, ({ type }) => type === 'response.in_progress')
  const id = idOf(begun)
  await until(model.begun, 'the engine is asked')
  model.write(0, 11)
  const seen = [...begun, ...await readTo(events, says('word 8 '))]
  const after = seen.at(-1)!.sequence_number
  // the disk as it is at this moment
  const copy = join(dir, 'copy')
  const folder = 'var/lib/svc/plugin-state/v1-responses'
  await mkdir(join(copy, 'var/lib/svc/plugin-state'), { recursive: true })
  await cp(join(first.home, folder), join(copy, folder), { recursive: true })
  await first.close()
  t.match((await rest(events)).at(-1), { type: 'response.failed', sequence_number: after + 1, response: { error: { message: /the gateway/ } } })

  const again = clientOf(await home(t, { home: copy }))
  t.match(await again.responses.retrieve(id), { status: 'failed', error: { message: /the gateway stopped/ } })
  const told = await all(await again.responses.retrieve(id, { stream: true }))
  t.strictSame(told.slice(0, -1), seen.slice(0, told.length - 1))
  t.match(told.at(-1), { type: 'response.failed', sequence_number: told.length - 1 })
  const behind = await all(await again.responses.retrieve(id, { stream: true, starting_after: after }))
  t.match(behind, [{ type: 'response.failed', sequence_number: after + 1 }], 'behind what a reader has seen, also where that was not written')

  const third = clientOf(await home(t, { home: first.home }))
  const stopped = await all(await third.responses.retrieve(id, { stream: true }))
  t.strictSame(stopped.slice(0, -1), seen, 'a gateway that stops writes all of it')
  t.match(stopped.at(-1), { type: 'response.failed', sequence_number: after + 1 })
})

t.test('long ones take little memory and disk, and survive a database that takes nothing', async t => {
  const gateway = await home(t)
  const client = clientOf(gateway)
  const engine = gateway.runtime.engine('agent')
  const file = join(gateway.home, 'var/lib/svc/plugin-state/v1-responses/responses.db')

  t.test('a reader who comes late reads what is on the disk', async t => {
    const words = Array.from({ length: 3000 }, (_, i) => ({ content: `word ${i} ` }))
    engine.answer(sayingOnlyChat({ deltas: words }))
    const events = await all(await client.responses.create(order))
    t.strictSame(numbers(events), events.map((_, i) => i))
    const again = await all(await client.responses.retrieve(idOf(events), { stream: true }))
    t.strictSame(again, events)
    const disk = new Database(file)
    const { rows, bytes } = disk.prepare('SELECT COUNT(*) AS rows, SUM(length(bytes)) AS bytes FROM events').get() as { rows: number, bytes: number }
    disk.close()
    const told = JSON.stringify(events.slice(0, -1)).length
    t.ok(rows > 5, `${rows} rows`)
    t.ok(bytes < told / 8, `${bytes} of ${told}`)
  })

  t.test('where the disk takes nothing it fails, in its stream too', async t => {
    const disk = new Database(file)
    disk.exec('CREATE TRIGGER full BEFORE INSERT ON events WHEN NEW.last > 100 BEGIN SELECT RAISE(FAIL, \'the disk is full\'); END')
    disk.close()
    const events = await all(await client.responses.create(order))
    t.match(events.at(-1), { type: 'response.failed', response: { status: 'failed', error: { message: /could not be kept/ } } })
    t.strictSame(numbers(events), events.map((_, i) => i))
    t.match(await client.responses.retrieve(idOf(events)), { status: 'failed' })
  })
})

t.test('a request that is refused before anything is asked for it is refused in the background as it is without', async t => {
  const gateway = await home(t)
  const post = (body: object): Promise<Response> =>
    gateway.fetch('/v1/responses', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ input: 'hi', ...body }) })
  for (const asked of [{ model: 'nothing' }, {}, { model: 'agent', prompt: { id: 'p' } }]) {
    const plain = await post(asked)
    const { error } = await plain.json() as { error: { code: string, param: string | null } }
    for (const stream of [true, false]) {
      const refused = await post({ ...asked, stream, background: true })
      t.equal(refused.status, plain.status)
      t.match(await refused.json(), { error: { code: error.code, param: error.param } })
    }
  }
})

t.test('an event that is longer than any may be fails the response in the background, once and for good', async t => {
  const gateway = await home(t)
  const text = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(9 * 1024 * 1024) }, finish_reason: null }] })}\n\n`
  gateway.runtime.engine('agent').answer({ headers: SSE, chunks: [chunks[0]!, text] })
  const client = clientOf(gateway)
  const events = await all(await client.responses.create(order))
  t.match(events.at(-1), { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', message: /without an end/ } } })
  t.equal(events.filter(({ type }) => type === 'response.failed' || type === 'error').length, 1)
  t.match(await client.responses.retrieve(idOf(events)), { status: 'failed', error: { message: /without an end/ } })
})
