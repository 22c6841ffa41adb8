import t from 'tap'
import { defineRoute, definePlugin, sse, type AnyPlugin } from '../../../kernel/contract/index.js'
import { chatStream } from '../../../kernel/testing/index.js'
import { chatBody, post, rawClient } from './raw-client.js'
import { until, wireGateway } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const CHAT = '/v1/chat/completions'
const stream = chatStream(['Hello', ' there'])

/** Head and body of the first answer in what came over the wire. */
function parts (text: string): { status: number, head: string, body: string } {
  const end = text.indexOf('\r\n\r\n')
  return { status: Number(text.split(' ')[1]), head: text.slice(0, end).toLowerCase(), body: text.slice(end + 4) }
}

t.test('an HTTP/1.0 client gets an unframed answer and the end of the connection', async t => {
  const gateway = await wireGateway(t)
  for (const body of [chatBody(), chatBody({ stream: true })]) {
    const client = await rawClient(t, gateway.baseUrl)
    client.send(post(CHAT, body, [], '1.0'))
    await client.closed
    const answer = parts(client.text())
    t.equal(answer.status, 200)
    t.notMatch(answer.head, /transfer-encoding/)
    t.match(answer.head, /connection: close/)
    t.match(answer.body, body.includes('stream') ? new RegExp('data: \\[DONE\\]\\n\\n$') : /^\{.*\}$/)
  }
})

t.test('connections: kept alive over many answers, ended when the client says so', async t => {
  const gateway = await wireGateway(t)
  const client = await rawClient(t, gateway.baseUrl)
  for (let i = 1; i <= 3; i++) {
    client.send(post(CHAT, chatBody({ stream: i === 2 })))
    await until(() => client.text().split('HTTP/1.1 200').length === i + 1 && /(\}|0\r\n\r\n)$/.test(client.text()), `answer ${i}`)
  }
  client.send(post(CHAT, '{', ['X-Request-ID: third']))
  await client.seen(/HTTP\/1\.1 400[^]*x-request-id: third[^]*request\.invalid_json/i)
  client.send(post(CHAT, chatBody(), ['Connection: close']))
  await client.closed
  t.match(client.text().split('HTTP/1.1 ').at(-1), /^200[^]*connection: close/i)
})

t.test('requests in line on one connection are answered in order, and never begun once the client has left', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  const { dispatcher, slots } = gateway.gateway.inference()
  const engine = gateway.runtime.engine('agent')
  const inOrder = await rawClient(t, gateway.baseUrl)
  inOrder.send(post(CHAT, chatBody({ n: 1 })) + post(CHAT, '{') + post(CHAT, chatBody({ n: 3 }), ['Connection: close']))
  await inOrder.closed
  t.strictSame(inOrder.text().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 400', 'HTTP/1.1 200'])

  engine.answer({ headers: SSE, chunks: [...stream, `: ${'x'.repeat(256 * 1024)}\n\n`], hangAfter: 6 })
  const n = engine.requests.length
  const leaving = await rawClient(t, gateway.baseUrl)
  const behind = Array.from({ length: 200 }, (_, i) => post(CHAT, chatBody({ n: i })))
  leaving.send(post(CHAT, chatBody({ stream: true })) + behind.join(''))
  const first = await engine.request(n)
  t.equal(dispatcher.active.size, 1)
  leaving.socket.destroy()
  t.equal(await first.closed, 'aborted')
  await until(() => dispatcher.active.size === 0, 'no request is left')
  engine.answer({})
  await (await gateway.chat({})).text()
  t.equal(engine.requests.length, n + 2, 'what stood behind the answer that was left is never begun')
  t.equal(slots.status('agent').inFlight, 0)
})

t.test('request bodies arrive whole, or cost nothing but their connection', async t => {
  const gateway = await wireGateway(t, { svc: '[server]\nv1_body_limit_bytes = 2048\n' })
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  t.test('a body in pieces is sent on in one', async t => {
    const client = await rawClient(t, gateway.baseUrl)
    const body = chatBody({ seed: 7 })
    const chunks = [body.slice(0, 10), body.slice(10)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`)
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`)
    await client.seen(/HTTP\/1\.1 200/)
    const seen = engine.requests.at(-1)!
    t.equal(seen.body.toString(), body.replace('"agent"', '"fake-model"'))
    t.equal(seen.headers['transfer-encoding'], undefined, 'sent on in one piece')
    t.equal(seen.headers['content-length'], String(seen.body.length))
  })
  t.test('a body announced with Expect is asked for at once', async t => {
    const client = await rawClient(t, gateway.baseUrl)
    const body = chatBody()
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`)
    await client.seen(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
    client.send(body)
    await client.seen(/HTTP\/1\.1 200/)
    t.equal(engine.requests.at(-1)!.headers.expect, undefined)
  })
  t.test('that never end hold nothing but their connection', async t => {
    const n = engine.requests.length
    const client = await rawClient(t, gateway.baseUrl)
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"model"`)
    await (await gateway.chat({})).text()
    client.socket.destroy()
    t.equal((await gateway.chat({})).status, 200)
    t.equal(engine.requests.length, n + 2, 'it never reached the engine')
    await until(() => gateway.logs.some(line => /left before its request was complete/.test(line.message)), 'it is noted')
    t.strictSame(gateway.logs.filter(line => line.level === 'error'), [], 'and nobody is alarmed')
  })
  t.test('that are too large, announced or not', async t => {
    const announced = await rawClient(t, gateway.baseUrl)
    announced.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n`)
    await announced.seen(/HTTP\/1\.1 413[^]*request\.too_large/)
    await announced.closed
    t.match(announced.text(), /x-request-id: \S+/i)
    const growing = await rawClient(t, gateway.baseUrl)
    growing.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n${'x'.repeat(3000)}\r\n`)
    await growing.seen(/HTTP\/1\.1 413/)
  })
  t.test('with a length and with pieces at once are refused', async t => {
    const n = engine.requests.length
    const client = await rawClient(t, gateway.baseUrl)
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await client.seen(/^HTTP\/1\.1 400/)
    await client.closed
    t.equal(client.text().split('HTTP/1.1').length, 2, 'nothing behind them is taken for a request')
    t.equal(engine.requests.length, n)
  })
  t.test('that are not said to be anything', async t => {
    const client = await rawClient(t, gateway.baseUrl)
    const body = chatBody()
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await client.seen(/HTTP\/1\.1 200/)
    for (const type of [';', 'nonsense', 'application/json; charset=x; charset=y']) {
      const odd = await rawClient(t, gateway.baseUrl)
      odd.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      await odd.seen(/HTTP\/1\.1 (200|415)[^]*\}/)
      t.notMatch(odd.text(), /system\.internal/, type)
    }
  })
})

t.test('HEAD and OPTIONS end, whatever stands at the path', async t => {
  let sources = 0
  const events: AnyPlugin = definePlugin({
    name: 'events-of-a-test',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/test/events',
      summary: 'never ends',
      produces: 'text/event-stream',
      handler: () => sse(async function* (signal) {
        sources++
        yield { data: 1 }
        await new Promise(resolve => { signal.addEventListener('abort', resolve) })
      })
    }))
  })
  const gateway = await wireGateway(t, { plugins: [events] })
  const client = await rawClient(t, gateway.baseUrl)
  const ask = (line: string): void => client.send(`${line} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  for (const [line, status] of [['HEAD /api/test/events', 200], ['HEAD /v1/models', 200], ['HEAD /v1/chat/completions', 405], ['HEAD /nothing', 404], ['OPTIONS /v1/models', 204], ['OPTIONS *', 404]] as const) {
    const before = client.text().length
    ask(line)
    await until(() => client.text().length > before, line)
    const answer = parts(client.text().slice(before))
    t.equal(answer.status, status, line)
    if (line.startsWith('HEAD')) t.equal(answer.body, '', `${line}: no body`)
    t.match(answer.head, /x-request-id/, line)
  }
  t.equal(sources, 0, 'no stream was begun for an answer without a body')
})

t.test('what is no HTTP ends its own connection and nothing else', async t => {
  const gateway = await wireGateway(t)
  for (const text of ['hello\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', 'POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: x\r\n\r\n', '\u0016\u0003\u0001\u0002\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`]) {
    const client = await rawClient(t, gateway.baseUrl)
    client.send(text)
    await client.closed
    t.match(client.text(), /^HTTP\/1\.1 4\d\d/, JSON.stringify(text.slice(0, 40)))
  }
  t.equal((await gateway.chat({})).status, 200)
})
