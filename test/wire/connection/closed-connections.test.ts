import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { ContainerRuntime, EngineInspection } from '../../../kernel/contract/provider/engine-runtime.js'
import { FakeEngineRuntime, chatAnswer, chatStream } from '../../../kernel/testing/index.js'
import { wireGateway, type WireGateway } from '../wire-gateway.js'

interface RawEngine {
  readonly port: number
  /** Bodies, in order, by the connection they came on. */
  readonly seen: Array<{ readonly connection: number, readonly body: string }>
}

/** An engine that says what the test says, byte for byte, on connections that the test ends. */
async function rawEngine (t: Test, answer: (socket: Socket, body: string, n: number) => void): Promise<RawEngine> {
  const seen: RawEngine['seen'] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const connection = sockets.add(socket).size
    socket.on('error', () => {})
    let text = ''
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < head + 4 + length) return
      const body = text.slice(head + 4, head + 4 + length)
      const isHealth = text.startsWith('GET /health')
      text = ''
      if (isHealth) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}')
      else answer(socket, body, seen.push({ connection, body }) - 1)
    })
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, seen }
}

/** A gateway whose slot `agent` is that engine. */
async function gatewayOn (t: Test, engine: RawEngine): Promise<WireGateway> {
  const runtime = new FakeEngineRuntime()
  const inspect = runtime.inspect.bind(runtime)
  const elsewhere: ContainerRuntime['inspect'] = async id => {
    const found = await inspect(id)
    return found === null ? null : { ...found, address: { host: '127.0.0.1', port: engine.port } } satisfies EngineInspection
  }
  t.teardown(() => runtime.destroy())
  return await wireGateway(t, { runtime: Object.assign(runtime, { inspect: elsewhere }) })
}

const plain = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${chatAnswer('Hello').length}\r\n\r\n${chatAnswer('Hello')}`
const streamed = ['HTTP/1.1 200 OK', 'Content-Type: text/event-stream', 'Transfer-Encoding: chunked', '', '']
  .join('\r\n') + chatStream(['Hello']).map(event => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`).join('') + '0\r\n\r\n'

t.test('an engine that ends its connection behind every stream costs nobody an answer', async t => {
  // some of the next requests are on their way by then, some are not
  const engine = await rawEngine(t, (socket, body, n) => {
    if (!body.includes('"stream":true')) return void socket.write(plain)
    socket.write(streamed)
    setTimeout(() => socket.destroy(), n % 8)
  })
  const gateway = await gatewayOn(t, engine)
  for (let i = 0; i < 150; i++) {
    const stream = await gateway.chat({ stream: true })
    t.match(await stream.text(), /\[DONE\]/)
    const next = await gateway.chat({ seed: i })
    if (next.status !== 200) t.fail(`request ${i}: ${await next.text()}`)
    else await next.text()
  }
  const asked = engine.seen.map(({ body }) => body).filter(body => body.includes('"seed"'))
  t.ok(asked.length >= 150 && new Set(asked).size === 150, `${asked.length - 150} of 150 were sent twice`)
})

t.test('only a connection that had served is tried again, only once, and only at once', async t => {
  let script = (socket: Socket, _n: number): void => { socket.write(plain) }
  const engine = await rawEngine(t, (socket, _body, n) => script(socket, n))
  const gateway = await gatewayOn(t, engine)
  const ask = async (): Promise<{ status: number, calls: number }> => {
    const before = engine.seen.length
    const response = await gateway.chat({})
    await response.text()
    return { status: response.status, calls: engine.seen.length - before }
  }
  t.strictSame(await ask(), { status: 200, calls: 1 })
  script = socket => { socket.end() }
  t.strictSame(await ask(), { status: 502, calls: 2 }, 'one that had served, then a fresh one')
  t.strictSame(await ask(), { status: 502, calls: 1 }, 'a fresh one')
  script = socket => { socket.write(plain) }
  t.strictSame(await ask(), { status: 200, calls: 1 })
  script = socket => { setTimeout(() => socket.end(), 1_100) }
  t.strictSame(await ask(), { status: 502, calls: 1 }, 'what took long had been worked on')
})
