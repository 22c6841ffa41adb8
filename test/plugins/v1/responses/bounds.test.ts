import OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import t from 'tap'
import { FakeClock, settle } from '../../../../kernel/testing/index.js'
import { unpacked, type EventBatch } from '../../../../plugins/v1/responses/kept/event-batch.js'
import { LiveEvents } from '../../../../plugins/v1/responses/kept/live-events.js'
import { lastEventOf } from '../../../../plugins/v1/responses/last-event.js'
import { socketClient } from '../../../wire/socket-client.js'
import { speaking } from './speaking-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const order = { model: 'agent', input: 'hi', background: true as const, stream: true as const }
const said = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const delta = (text: string): string => said({ type: 'response.output_text.delta', delta: text })
const completed = said({ type: 'response.completed', response: { id: 'resp_engine', object: 'response', status: 'completed', output: [] } })

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
