import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import ollama from '../../../plugins/dialects/ollama/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import { freePort } from '../../ports.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const chat = { method: 'POST', body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'hi' }] }) }

async function gatewayAt (t: Test, port: number): Promise<WireGateway> {
  return await wireGateway(t, { plugins: [hub, library, pull, ollama], svc: `[dialects]\nollama_port = ${port}\n` })
}

/** Status of a request whose headers are as given. */
async function statusOf (port: number, path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  const sent = request({ host: '127.0.0.1', port, path, method, headers }).end()
  const [response] = await once(sent, 'response') as [IncomingMessage]
  response.resume()
  return response.statusCode!
}

t.test('the port of Ollama is another door to the same house', async t => {
  const port = await freePort()
  const gateway = await gatewayAt(t, port)
  const there = `http://127.0.0.1:${port}`
  t.equal(await (await fetch(there)).text(), 'Ollama is running')
  t.equal(await statusOf(port, '/', {}, 'HEAD'), 200)
  t.match(await (await gateway.fetch('/')).json().catch(() => ({})), {}, 'the bare address of the gateway stays its own')
  t.match(await (await fetch(`${there}/api/tags`)).json(), { models: Array })
  const answer = await (await fetch(`${there}/api/chat`, chat)).text()
  t.match(JSON.parse(answer.trimEnd().split('\n').at(-1)!), { done: true })
  t.match(await (await fetch(`${there}/v1/models`)).json(), { object: 'list' })

  t.test('it has the guards and the bounds of the other', async t => {
    t.equal(await statusOf(port, '/api/tags', { host: 'evil.example' }), 421)
    t.equal(await statusOf(port, '/api/tags', { origin: 'http://evil.example' }), 403)
    const large = await fetch(`${there}/api/chat`, { method: 'POST', body: Buffer.alloc(65 * 1024 * 1024, 0x20) })
    t.equal(large.status, 413)
    await large.body?.cancel()
  })

  t.test('1,000 idle connections and readers that do not read keep nobody from it', async t => {
    const sockets: Socket[] = []
    t.teardown(() => { for (const socket of sockets) socket.destroy() })
    for (let i = 0; i < 1_000; i++) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      sockets.push(socket)
      if (i % 100 === 99) await once(socket, 'connect')
    }
    const engine = gateway.runtime.engine('agent')
    const sse = { 'content-type': 'text/event-stream' }
    const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(4_000) } }] })}\n\n`
    engine.answer({ headers: sse, chunks: Array.from({ length: 5_000 }, () => chunk) })
    const idle = sockets.slice(0, 3)
    for (const socket of idle) {
      socket.pause()
      socket.write(`POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: ${chat.body.length}\r\n\r\n${chat.body}`)
    }
    await until(() => engine.active === 1, 'one is served')
    engine.answer({ headers: sse, chunks: ['data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'] })
    for (const socket of idle) socket.destroy()
    const text = await (await fetch(`${there}/api/chat`, chat)).text()
    t.match(text, /"content":"ok".*\n.*"done":true/s)
    await until(() => engine.active === 0, 'nothing is worked at for those who left')
  })

  t.test('a reader that stays and does not read holds up its engine, and gets every line when it reads', async t => {
    const engine = gateway.runtime.engine('agent')
    const COUNT = 1_000
    const piece = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(64 * 1024) } }] })}\n\n`
    let sent = 0
    engine.take((asked, response) => {
      asked.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const write = (): void => {
        while (sent < COUNT) {
          sent++
          if (!response.write(piece)) return void response.once('drain', write)
        }
        response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
      }
      write()
    })
    const reader = request({ host: '127.0.0.1', port, path: '/api/chat', method: 'POST' }).end(chat.body)
    const [answer] = await once(reader, 'response') as [IncomingMessage]
    answer.pause()
    let [last, still] = [0, 0]
    await until(() => {
      still = sent === last && sent > 0 ? still + 1 : 0
      last = sent
      return still > 50
    }, 'the engine is made to wait')
    t.ok(sent < COUNT / 2, `${sent} of ${COUNT} pieces were taken from it`)
    let [lines, tail] = [0, '']
    for await (const chunk of answer) {
      const text = String(chunk)
      lines += text.split('\n').length - 1
      tail = (tail + text).slice(-1000)
    }
    t.ok(lines > COUNT, `${lines} lines`)
    t.match(tail, '"done":true')
    engine.take(null)
  })

  t.test('it closes with the gateway', async t => {
    await gateway.gateway.stop()
    const socket = connect(port, '127.0.0.1')
    const [error] = await once(socket, 'error') as [NodeJS.ErrnoException]
    t.equal(error.code, 'ECONNREFUSED')
  })
})

t.test('a port that another program has is a warning, and the gateway starts', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const gateway = await gatewayAt(t, port)
  t.equal((await gateway.fetch('/api/version')).status, 200)
  t.match(gateway.logs.filter(({ level }) => level === 'warn').map(({ message }) => message), [new RegExp(`ollama_port: .*:${port} is in use by another program; stop it, or choose another port`)])
  other.close()
  await once(other, 'close')
  const said = async (): Promise<string> => await fetch(`http://127.0.0.1:${port}`).then(answer => answer.text(), () => '')
  let home = ''
  while (home === '') home = await said()
  t.equal(home, 'Ollama is running', 'it is there once the other program is gone')
  t.equal(gateway.logs.filter(({ level }) => level === 'warn').length, 1, 'and is warned of once')
})
