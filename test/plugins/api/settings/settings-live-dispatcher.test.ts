import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { FakeClock } from '../../../../kernel/testing/index.js'
import passage from '../../../../plugins/v1/passage/index.js'
import vectorRoutes from '../../../../plugins/v1/vectors/index.js'
import { live, Proofs, settled } from '../live-gateway.js'
import { until } from '../support.js'

/** Live keys of [dispatcher] and [aliases]. */
const proofs = new Proofs()
const prove = (key: string, proof: (t: Test) => Promise<void>): void => proofs.prove(t, key, proof)

interface UpstreamServer {
  readonly port: number
  readonly sockets: Socket[]
  answer (ids: readonly string[]): void
}

/** An upstream that takes connections; each answer waits until the test gives it. */
async function upstreamServer (t: Test): Promise<UpstreamServer> {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => { sockets.push(socket) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    answer: ids => {
      const body = JSON.stringify({ object: 'list', data: ids.map(id => ({ id, object: 'model', owned_by: 'x' })) })
      for (const socket of sockets.splice(0)) socket.end(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)
    }
  }
}

const upstreamFile = (names: readonly string[], port: number): string =>
  names.map(name => `[[upstream]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}/v1"\nauth_style = "none"\n`).join('\n')

prove('dispatcher.prefetch_timeout_s', async t => {
  const clock = new FakeClock()
  const server = await upstreamServer(t)
  const gateway = await live(t, { clock, files: { 'etc/svc/upstreams.toml': upstreamFile(['one'], server.port) } })
  await gateway.change({ dispatcher: { prefetch_timeout_s: 3 } })
  const models = gateway.fetch('/v1/models')
  await until(() => server.sockets.length > 0, 'the upstream is asked')
  await clock.advance(2_000)
  t.notOk(await settled(models))
  await clock.advance(1_100)
  t.equal((await models).status, 200)
})

prove('dispatcher.prefetch_parallel_cap', async t => {
  const server = await upstreamServer(t)
  const gateway = await live(t, { files: { 'etc/svc/upstreams.toml': upstreamFile(['one', 'two', 'three'], server.port) } })
  await gateway.change({ dispatcher: { prefetch_parallel_cap: 1 } })
  const models = gateway.fetch('/v1/models')
  for (let n = 0; n < 3; n++) {
    await until(() => server.sockets.length > 0, 'the next upstream is asked')
    t.notOk(await settled(models), 'the list waits')
    t.equal(server.sockets.length, 1, 'one at a time')
    server.answer(['m'])
  }
  await models
})

prove('dispatcher.models_ttl_s', async t => {
  const clock = new FakeClock()
  const server = await upstreamServer(t)
  const gateway = await live(t, { clock, files: { 'etc/svc/upstreams.toml': upstreamFile(['one'], server.port) } })
  const list = async (): Promise<unknown> => {
    const response = gateway.fetch('/v1/models').then(answer => answer.json())
    await until(() => server.sockets.length > 0, 'the upstream is asked')
    server.answer(['m'])
    return await response
  }
  await list()
  await clock.advance(2_000)
  await gateway.fetch('/v1/models')
  t.equal(server.sockets.length, 0, 'the list is trusted')
  await gateway.change({ dispatcher: { models_ttl_s: 1 } })
  await list()
})

for (const key of ['hold_headers_s', 'ping_interval_s']) {
  prove(`dispatcher.${key}`, async t => {
    const clock = new FakeClock()
    const gateway = await live(t, { clock })
    gateway.runtime.hangs = 'start'
    await gateway.change({ dispatcher: { hold_headers_s: 5, ping_interval_s: 3 } })
    const answer = gateway.chat(true)
    await until(() => gateway.slots.status('chat').state === 'starting', 'it loads')
    await clock.advance(4_900)
    t.notOk(await settled(answer), 'the head is held')
    await clock.advance(200)
    const response = await answer
    t.equal(response.status, 200)
    const reader = response.body!.getReader()
    const pings = async (): Promise<number> => {
      const { value } = await reader.read()
      return Buffer.from(value!).toString().split(': ping\n\n').length - 1
    }
    const first = await pings()
    await clock.advance(3_000)
    t.ok(first + await pings() >= 2, 'a ping every three seconds')
    await reader.cancel()
  })
}

prove('dispatcher.queue_per_slot', async t => {
  const gateway = await live(t)
  gateway.runtime.hangs = 'start'
  await gateway.change({ dispatcher: { queue_per_slot: 1 } })
  const first = gateway.chat()
  await until(() => gateway.slots.status('chat').waiting === 1, 'one waits')
  t.match(await (await gateway.chat(false, 'other words')).json(), { error: { code: 'slot.queue_full' } })
  gateway.runtime.goOn()
  t.equal((await first).status, 200)
})

prove('dispatcher.show_loading', async t => {
  const gateway = await live(t)
  gateway.runtime.hangs = 'start'
  await gateway.change({ dispatcher: { show_loading: true } })
  const answer = await gateway.chat(true)
  const reader = answer.body!.getReader()
  t.match(Buffer.from((await reader.read()).value!).toString(), /reasoning_content/, 'told before the slot is up')
  gateway.runtime.goOn()
  while (!(await reader.read()).done);
})

prove('dispatcher.embedding_line_bytes', async t => {
  const gateway = await live(t, {
    plugins: [vectorRoutes],
    files: { 'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  gateway.runtime.hangs = 'start'
  await gateway.change({ dispatcher: { embedding_line_bytes: 1024 } })
  const embed = (): Promise<Response> => gateway.fetch('/v1/embeddings', { method: 'POST', body: JSON.stringify({ model: 'embed', input: 'x'.repeat(800) }) })
  const first = embed()
  await until(() => gateway.slots.status('embed').waiting === 1, 'one waits')
  t.match(await (await embed()).json(), { error: { code: 'slot.queue_full' } })
  gateway.runtime.goOn()
  t.equal((await first).status, 200)
})

prove('dispatcher.direct_read_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock })
  await gateway.slots.load('chat')
  gateway.runtime.engine('chat').answer({ headers: { 'content-type': 'text/event-stream' }, chunks: ['data: {}\n\n', 'data: {}\n\n'], hangAfter: 1 })
  const before = await gateway.chat(true)
  await clock.advance(700_000)
  t.equal(gateway.gateway.inference().dispatcher.active.size, 1, 'as long as it likes')
  await before.body!.cancel()
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'its client has left')
  await gateway.change({ dispatcher: { direct_read_timeout_s: 30 } })
  const after = await gateway.chat(true)
  await clock.advance(40_000)
  t.match(await after.text(), /"code":"dispatch\.upstream_timeout"/)
})

async function idsOf (gateway: { readonly fetch: (path: string) => Promise<Response> }): Promise<readonly string[]> {
  return (await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string }> }).data.map(({ id }) => id)
}

prove('dispatcher.engine_passage', async t => {
  const gateway = await live(t, { plugins: [passage] })
  t.not((await gateway.fetch('/upstream/chat/props')).status, 403)
  await gateway.change({ dispatcher: { engine_passage: false } })
  t.equal((await gateway.fetch('/upstream/chat/props')).status, 403)
})

prove('dispatcher.list_unloaded', async t => {
  const gateway = await live(t)
  t.notOk((await idsOf(gateway)).includes('chat'))
  await gateway.change({ dispatcher: { list_unloaded: true } })
  t.ok((await idsOf(gateway)).includes('chat'))
})

prove('dispatcher.list_virtual', async t => {
  const gateway = await live(t)
  await gateway.change({ dispatcher: { list_unloaded: true } })
  t.ok((await idsOf(gateway)).includes('svc/chat'))
  await gateway.change({ dispatcher: { list_virtual: false } })
  t.notOk((await idsOf(gateway)).includes('svc/chat'))
})

prove('aliases', async t => {
  const gateway = await live(t)
  await gateway.change({ aliases: { 'gpt-4.1': 'chat' } })
  t.ok((await idsOf(gateway)).includes('gpt-4.1'))
  await gateway.change({ aliases: { 'gpt-4.1': null } })
  t.notOk((await idsOf(gateway)).includes('gpt-4.1'))
})

prove('dispatcher.connect_timeout_s', async t => {
  const gateway = await live(t)
  const { connections } = gateway.gateway.inference()
  const origin = 'http://127.0.0.1:9'
  const before = connections.to(origin)
  await gateway.change({ slots: { max_slots: 5 } })
  t.equal(connections.to(origin), before)
  await gateway.change({ dispatcher: { connect_timeout_s: 1 } })
  t.not(connections.to(origin), before, 'connections are made anew, with the new timeout')
})

prove('dispatcher.slow_reader_buffer_kb', async t => {
  const gateway = await live(t)
  gateway.runtime.hangs = 'start'
  await gateway.change({ dispatcher: { slow_reader_buffer_kb: 64 } })
  const body = JSON.stringify({ model: 'chat', stream: true, messages: [] })
  const slow = httpRequest(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  slow.end(body)
  const slowAnswer = once(slow, 'response') as Promise<[NodeJS.ReadableStream]>
  const fast = gateway.fetch('/v1/chat/completions', { method: 'POST', body })
  await until(() => gateway.gateway.inference().dispatcher.active.size === 2, 'both are on board')
  const filler = `: ${'x'.repeat(64 * 1024)}\n\n`
  gateway.runtime.answerWith = { headers: { 'content-type': 'text/event-stream' }, chunks: Array.from({ length: 150 }, () => filler) }
  gateway.runtime.goOn()
  const [stalled] = await slowAnswer
  stalled.pause()
  t.equal((await (await fast).text()).length, filler.length * 150)
  let rest = ''
  stalled.on('data', (chunk: Buffer) => { rest = (rest + chunk.toString()).slice(-4096) })
  stalled.resume()
  await once(stalled, 'close')
  t.match(rest, /dispatch\.slow_reader/, '10 MB behind is too far now')
})

t.test('there is a proof for every live key', async t => {
  proofs.complete(t, table => table === 'dispatcher' || table === 'aliases')
})
