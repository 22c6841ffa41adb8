import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import t, { type Test } from 'tap'
import { createFakeProviderPlugin, FakeClock, settle } from '../../../../kernel/testing/index.js'
import responseRoutes from '../../../../plugins/v1/responses/index.js'
import { unpacked, type EventBatch } from '../../../../plugins/v1/responses/kept/event-batch.js'
import { LiveEvents } from '../../../../plugins/v1/responses/kept/live-events.js'
import { lastEventOf } from '../../../../plugins/v1/responses/last-event.js'
import { socketClient } from '../../../wire/socket-client.js'
import { until, wireGateway, type WireGateway } from '../../../wire/wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const order = { model: 'agent', input: 'hi', background: true as const, stream: true as const }
const said = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const delta = (text: string): string => said({ type: 'response.output_text.delta', delta: text })
const completed = said({ type: 'response.completed', response: { id: 'resp_engine', object: 'response', status: 'completed', output: [] } })

/** A gateway whose slot `agent` speaks responses itself. */
async function speaking (t: Test): Promise<WireGateway> {
  const responses = { path: '/v1/responses', streaming: true, body: 'json' } as const
  const gateway = await wireGateway(t, {
    plugins: [createFakeProviderPlugin({ name: 'fluent', surfaces: { responses } }), responseRoutes],
    files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fluent"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  return gateway
}

async function all (stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

t.test('an engine with a wire of its own', async t => {
  const gateway = await speaking(t)
  const engine = gateway.runtime.engine('agent')
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })

  t.test('that leaves its answer open behind the last event completes the response all the same', async t => {
    const chunks = [delta('Hi'), completed]
    engine.answer({ headers: SSE, chunks, hangAfter: chunks.length })
    const last = (await all(await client.responses.create(order))).at(-1)
    if (last?.type !== 'response.completed') return t.fail(`it ends with ${last?.type}`)
    t.match(await client.responses.retrieve(last.response.id), { status: 'completed' })

    const socket = await socketClient(t, `${gateway.baseUrl.replace('http', 'ws')}/v1/responses`)
    for (const input of ['one', 'two']) {
      socket.send({ type: 'response.create', model: 'agent', input, store: false })
      await socket.next('response.completed')
    }
    t.strictSame(socket.types(), ['response.output_text.delta', 'response.completed', 'response.output_text.delta', 'response.completed'], 'the next of its lane is answered')
    engine.cut()
  })

  t.test('that sends an event without a type has that one left out', async t => {
    engine.answer({ headers: SSE, chunks: [delta('Hi'), said({ delta: 'what?' }), said({ type: 7 }), completed] })
    const events = await all(await client.responses.create(order))
    t.strictSame(events.map(({ type }) => type), [
      'response.created', 'response.queued', 'response.in_progress', 'response.output_text.delta', 'response.completed'
    ])
    t.strictSame(events.map(({ sequence_number: number }) => number), [0, 1, 2, 3, 4])
  })

  t.test('that sends comments alone is left when its response in the background is cancelled', async t => {
    const left = new Promise<void>(resolve => {
      engine.take((request, response) => {
        request.resume()
        response.writeHead(200, SSE).once('close', resolve)
        const write = (): void => { if (!response.destroyed) response.write(': still here\n\n', () => setImmediate(write)) }
        write()
      })
    })
    const { id } = await client.responses.create({ ...order, stream: false })
    t.match(await client.responses.retrieve(id), { status: 'in_progress' })
    t.match(await client.responses.cancel(id), { status: 'cancelled' })
    await left
    t.match(await client.responses.retrieve(id), { status: 'cancelled' })
    engine.take(null)
  })

  t.test('that does not come to an end fails the response once it is too long, and is asked for no more', async t => {
    // each is a chunk: its client looks through what it has of an event again with every further one
    const piece = delta('x'.repeat(32 * 1024))
    const left = new Promise<void>(resolve => {
      engine.take((request, response) => {
        request.resume()
        response.writeHead(200, SSE).once('close', resolve)
        const write = (): void => {
          while (!response.destroyed) if (!response.write(piece)) return void response.once('drain', write)
        }
        write()
      })
    })
    let last: ResponseStreamEvent | null = null
    for await (const event of await client.responses.create(order)) last = event
    t.match(last, { type: 'response.failed', response: { error: { message: /longer than/ } } })
    await left
    engine.take(null)
  })
})

t.test('requests of connections that are as much as all of them may be are refused, and taken again once others are over', async t => {
  const gateway = await speaking(t)
  const engine = gateway.runtime.engine('agent')
  const url = `${gateway.baseUrl.replace('http', 'ws')}/v1/responses`
  const create = (input: string, lane: string): object => ({ type: 'response.create', model: 'agent', stream_id: lane, store: false, input })
  const long = 'x'.repeat(16 * 1024 * 1024 - 1024)
  // what it is sent is not held here too
  let working = 0
  engine.take((request, response) => {
    request.resume()
    working++
    response.once('close', () => { working-- })
  })
  const [busy, other] = [await socketClient(t, url), await socketClient(t, url)]
  // each is held as it was received and as it goes out
  for (let i = 0; i < 8; i++) {
    busy.send(create(long, `lane ${i}`))
    await until(() => working === i + 1, 'the engine has it')
  }
  other.send(create(long, 'late'))
  t.match(await other.next('error'), { stream_id: 'late', status: 503, error: { code: 'responses.busy', message: /ask again/ } })
  busy.socket.terminate()
  await until(() => working === 0, 'they end with their client')
  engine.take((request, response) => { request.resume().once('end', () => response.writeHead(200, SSE).end(completed)) })
  other.send(create(long, 'later'))
  t.match(await other.next('response.completed'), { stream_id: 'later' })
})

t.test('clients that ask for what is kept and never read', async t => {
  const gateway = await speaking(t)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const MIB = 1024 * 1024
  const kept = async (characters: number): Promise<{ readonly id: string, readonly text: string }> => {
    const text = 'x'.repeat(characters)
    const response = {
      id: `resp_0123456789abcdef${String(characters).padStart(8, '0')}`, object: 'response', status: 'completed',
      output: [{ id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] }]
    }
    gateway.runtime.engine('agent').answer({ headers: JSON_TYPE, chunks: [JSON.stringify(response)] })
    return { id: (await client.responses.create({ model: 'agent', input: 'hi' })).id, text }
  }
  const { hostname, port } = new URL(gateway.baseUrl)
  const asker = (t: Test, path: string) => {
    const sockets: Socket[] = []
    /** Its status; all that comes behind the first of its body is not read. */
    const ask = async (): Promise<string> => {
      const socket = connect(Number(port), hostname)
      t.teardown(() => socket.destroy())
      sockets.push(socket)
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)
      let head = ''
      while (!/output_text|"data":|responses\.busy/.test(head)) head += String((await once(socket, 'data'))[0])
      socket.pause()
      return head.slice(9, 12)
    }
    const leave = (): void => { for (const socket of sockets.splice(0)) socket.destroy() }
    return { ask, leave }
  }
  /** How many of them are answered, one after the other. */
  const answered = async (t: Test, ask: () => Promise<string>, tries: number): Promise<number> => {
    const statuses: string[] = []
    for (let i = 0; i < tries; i++) statuses.push(await ask())
    const count = statuses.indexOf('503')
    t.strictSame(new Set(statuses.slice(count)), new Set(['503']), 'the others are told to ask again')
    return count
  }

  await t.test('share a response as a stream, and are as many as may be', async t => {
    const { id, text } = await kept(4 * MIB)
    const { ask, leave } = asker(t, `/v1/responses/${id}?stream=true`)
    t.equal(await answered(t, ask, 100), 64, 'of 4 MiB each')
    leave()
    while (await ask() !== '200');
    const final = await client.responses.stream({ response_id: id }).finalResponse()
    t.equal(final.output_text.length, text.length, 'one who reads gets all of it')
    leave()
  })

  await t.test('share a response that they ask for as it is, and are as many as may be', async t => {
    const { id, text } = await kept(16 * MIB)
    const small = await kept(1000)
    const { ask, leave } = asker(t, `/v1/responses/${id}`)
    const before = process.memoryUsage().arrayBuffers
    t.equal(await answered(t, ask, 20), 16, 'of 16 MiB each')
    const held = (process.memoryUsage().arrayBuffers - before) / MIB
    t.ok(held < 64, `all of them hold ${held} MiB`)
    t.equal((await client.responses.retrieve(small.id)).output_text, small.text, 'a short one is told all the same')
    leave()
    while (await ask() !== '200');
    t.equal((await client.responses.retrieve(id)).output_text.length, text.length, 'one who reads gets all of it')
    leave()
  })

  await t.test('get the items of a conversation by the page, and are as many as may be', async t => {
    const long = (length: number): { role: 'user', type: 'message', content: string } => ({ role: 'user', type: 'message', content: 'x'.repeat(length) })
    const { id } = await client.conversations.create({ items: [long(15 * MIB)] })
    await client.conversations.items.create(id, { items: [long(2 * MIB)] })
    const { ask, leave } = asker(t, `/v1/conversations/${id}/items?order=asc`)
    t.equal(await answered(t, ask, 20), 18, 'of 15 MiB each: a page of long items has fewer of them')
    const refusal: unknown = await client.conversations.items.create(id, { items: [long(MIB)] }).catch((error: unknown) => error)
    t.match(refusal, { status: 503, error: { code: 'responses.busy' } }, 'what could not be told is not added')
    leave()
    while (await ask() !== '200');
    const lengths: number[] = []
    for await (const item of client.conversations.items.list(id)) lengths.push(Math.floor(JSON.stringify(item).length / MIB))
    t.strictSame(lengths, [2, 15], 'a client that turns the pages gets all of them')
    leave()
  })
})

t.test('the events of a long response are in memory only up to a bound, however many there are', t => {
  const batches: EventBatch[] = []
  const events = new LiveEvents(batch => { batches.push(batch) })
  const COUNT = 100_000
  let most = 0
  for (let i = 0; i < COUNT; i++) {
    const at = { item_id: 'msg_1', output_index: 0, content_index: 0 }
    events.push({ type: 'response.output_text.delta', ...at, delta: `word ${i} `, logprobs: [] })
    if (i % 997 !== 0) continue
    const held = events.batch()
    most = Math.max(most, held === null ? 0 : JSON.stringify(unpacked(held)).length)
  }
  t.ok(most > 1024 && most < 128 * 1024, `${most} characters`)
  t.equal(events.behind(-1), null, 'what is in the database is not held')
  const rest = events.batch()
  const written = [...batches, ...rest === null ? [] : [rest]]
  const numbers = written.flatMap(batch => unpacked(batch).map(({ sequence_number: number }) => number))
  t.equal(numbers.length, COUNT)
  t.ok(numbers.every((number, i) => number === i), 'each is written once, in its order')
  const bytes = batches.reduce((sum, batch) => sum + batch.bytes.length, 0)
  t.ok(bytes < 4 * 1024 * 1024, `${bytes} bytes in the database`)
  t.end()
})

t.test('an answer that its engine does not close is left a few seconds behind its last event', async t => {
  const clock = new FakeClock()
  let isLeft = false
  let wake = (): void => {}
  const chunks = [Buffer.from('data: 1\n\nda'), Buffer.from('ta: 2\n\ndata: 3\n\n')]
  const body: AsyncIterable<Buffer> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const value = chunks.shift()
        if (value !== undefined) return { done: false, value }
        await new Promise<void>(resolve => { wake = resolve })
        return { done: true, value: undefined }
      },
      return: async () => {
        isLeft = true
        wake()
        return Promise.resolve({ done: true, value: undefined })
      }
    })
  }
  t.equal(await lastEventOf(body, clock, data => data === '2' ? data : null), '2')
  await clock.advance(4_999)
  t.equal(isLeft, false)
  await clock.advance(1)
  await settle()
  t.equal(isLeft, true)
  t.equal(clock.pending, 0)
})
