import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { speaking } from '../plugins/v1/responses/speaking-gateway.js'
import { socketClient } from '../wire/socket-client.js'
import { until } from '../wire/wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const completed = 'data: {"type":"response.completed","response":{"id":"resp_engine","object":"response","status":"completed","output":[]}}\n\n'

t.setTimeout(600_000)

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
