import t, { type Test } from 'tap'
import { defineRoute, definePlugin, sse } from '../../../kernel/contract/index.js'
import { chatAnswer, chatStream } from '../../../kernel/testing/index.js'
import { chatBody, post, rawClient, type RawClient } from './raw-client.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const CHAT = '/v1/chat/completions'
const SSE = { 'content-type': 'text/event-stream' }
const GET = (path: string, version = '1.1'): string => `GET ${path} HTTP/${version}\r\nHost: localhost\r\n\r\n`

interface Setup {
  readonly gateway: WireGateway
  readonly release: () => void
  readonly left: () => number
  readonly asked: () => number
}

/** With routes that answer when the test says so. */
async function setup (t: Test): Promise<Setup> {
  let release = (): void => {}
  let left = 0
  let asked = 0
  const released = new Promise<void>(resolve => { release = resolve })
  const plugin = definePlugin({
    name: 'slow-routes',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => {
      ctx.addRoute(defineRoute({ method: 'GET', url: '/api/quick', summary: 'x', handler: () => ({ ok: true }) }))
      ctx.addRoute(defineRoute({
        method: 'POST',
        url: '/api/slow',
        summary: 'x',
        bodyKind: 'json',
        handler: async ({ signal }) => {
          signal.addEventListener('abort', () => { left++ })
          asked++
          await released
          return { ok: true }
        }
      }))
      ctx.addRoute(defineRoute({
        method: 'GET',
        url: '/api/silent',
        summary: 'x',
        produces: 'text/event-stream',
        handler: () => sse(async function* (signal) {
          signal.addEventListener('abort', () => { left++ })
          yield { data: 1 }
          await Promise.race([released, new Promise(resolve => { signal.addEventListener('abort', resolve) })])
          yield { data: 2 }
        })
      }))
    }
  })
  const gateway = await wireGateway(t, { plugins: [plugin] })
  await (await gateway.chat({})).text()
  return { gateway, release: () => release(), left: () => left, asked: () => asked }
}

/** Sends all of it and ends its own side, as `printf … | nc -N` does. */
async function halfClosed (t: Test, gateway: WireGateway, text: string): Promise<RawClient> {
  const client = await rawClient(t, gateway.baseUrl)
  client.socket.end(text, 'latin1')
  return client
}

/** Closes both sides, when what it sent has left. */
async function leaving (t: Test, gateway: WireGateway, text: string): Promise<RawClient> {
  const client = await rawClient(t, gateway.baseUrl)
  client.send(text)
  return client
}

t.test('a client that ends its side with the request is answered', async t => {
  const { gateway } = await setup(t)
  const chats = [post(CHAT, chatBody()), post(CHAT, chatBody({ stream: true }))]
  for (const request of [GET('/api/quick'), GET('/api/quick', '1.0'), GET('/v1/models'), ...chats]) {
    const client = await halfClosed(t, gateway, request)
    await client.closed
    t.match(client.text(), /HTTP\/1\.1 200 OK\r\n/, request.slice(0, 40))
    t.match(client.text(), /(\}|\]|\[DONE\]\s*|0\r\n\r\n)$/, 'to its end')
  }
  const two = await halfClosed(t, gateway, GET('/api/quick') + post(CHAT, chatBody()) + GET('/api/quick'))
  await two.closed
  t.equal(two.text().match(/HTTP\/1\.1 200 OK/g)?.length, 3, 'pipelined requests, each')
  const idle = await rawClient(t, gateway.baseUrl)
  idle.send(GET('/api/quick'))
  await idle.seen(/ok/)
  idle.socket.end()
  await idle.closed
})

t.test('also when the answer takes a while', async t => {
  const { gateway, release } = await setup(t)
  const engine = gateway.runtime.engine('agent')
  const plainGo = deferred()
  engine.answer({ after: plainGo.promise, chunks: [chatAnswer('Hello')] })
  const plain = await halfClosed(t, gateway, post(CHAT, chatBody({ seed: 1 })))
  const api = await halfClosed(t, gateway, post('/api/slow', '{}'))
  for (const client of [plain, api]) await client.seen(/(HTTP\/1\.1 100 Continue\r\n\r\n){3}/)
  plainGo.resolve()
  release()
  await plain.closed
  t.match(plain.text(), /^(HTTP\/1\.1 100 Continue\r\n\r\n){3,5}HTTP\/1\.1 200 OK\r\n[^]*chat\.completion/)
  await api.closed
  t.match(api.text(), /^(HTTP\/1\.1 100 Continue\r\n\r\n){3,5}HTTP\/1\.1 200 OK\r\n[^]*\{"ok":true\}$/)

  const words = chatStream(['one', 'two'])
  const streamGo = deferred()
  engine.take((_request, response) => {
    response.writeHead(200, SSE)
    response.write(words.slice(0, 2).join(''))
    void streamGo.promise.then(() => response.end(words.slice(2).join('')))
  })
  const stream = await halfClosed(t, gateway, post(CHAT, chatBody({ stream: true })))
  await stream.seen(/one[^]*\r\n000$/)
  streamGo.resolve()
  await stream.closed
  t.match(stream.text(), /two[^]*\[DONE\]/)
  t.strictSame(stream.text().match(/^data: \{.*\}$/gm)?.length, words.length - 1, 'every event is whole')
})

t.test('a stream of /api goes on for it', async t => {
  const { gateway, release } = await setup(t)
  const client = await halfClosed(t, gateway, GET('/api/silent'))
  await client.seen(/data: 1[^]*\r\n000$/)
  release()
  await client.closed
  t.match(client.text(), /data: 2[^]*0\r\n\r\n$/)
})

t.test('a client that closes both sides is still given up', async t => {
  const { gateway, left, asked } = await setup(t)
  const { dispatcher } = gateway.gateway.inference()
  const engine = gateway.runtime.engine('agent')
  for (const [what, body, version] of [['a plain answer', {}, '1.1'], ['a stream', { stream: true }, '1.1'], ['HTTP/1.0', {}, '1.0']] as const) {
    engine.answer({ headAfterMs: Infinity })
    const n = engine.requests.length
    const client = await leaving(t, gateway, post(CHAT, chatBody(body), [], version))
    const held = await engine.request(n)
    client.socket.destroy()
    t.equal(await held.closed, 'aborted', what)
  }
  engine.answer({ headers: SSE, chunks: chatStream(['one', 'two']), hangAfter: 2 })
  const n = engine.requests.length
  const client = await leaving(t, gateway, post(CHAT, chatBody({ stream: true })))
  await client.seen(/one/)
  client.socket.destroy()
  t.equal(await (await engine.request(n)).closed, 'aborted', 'a stream whose engine says nothing')
  for (const headers of [{ 'content-length': '8' }, {}]) {
    engine.answer({ headers, chunks: ['{"a"', ':1}'], hangAfter: 1 })
    const begun = engine.requests.length
    const reading = await leaving(t, gateway, post(CHAT, chatBody()))
    await reading.seen(/"a"/)
    reading.socket.destroy()
    t.equal(await (await engine.request(begun)).closed, 'aborted', 'a plain answer that stands still')
  }
  await until(() => dispatcher.active.size === 0, 'no request is left')

  for (const request of [post('/api/slow', '{}'), GET('/api/silent')]) {
    const before = left()
    const api = await leaving(t, gateway, request)
    if (request.startsWith('GET')) await api.seen(/data: 1/)
    else await until(() => asked() > 0, 'it is with its handler')
    api.socket.destroy()
    await until(() => left() > before, 'its handler is told')
  }
  t.strictSame(gateway.logs.filter(line => line.level === 'error'), [])
})

function deferred (): { readonly promise: Promise<void>, readonly resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>(done => { resolve = done })
  return { promise, resolve }
}
