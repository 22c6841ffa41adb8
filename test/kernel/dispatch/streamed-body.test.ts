import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import type { SvcError } from '../../../kernel/contract/index.js'
import { Connections } from '../../../kernel/dispatch/call/connections.js'
import { Exchange } from '../../../kernel/dispatch/call/exchange.js'
import type { WireReader } from '../../../kernel/dispatch/wire/plain-connection.js'
import { PlainPool } from '../../../kernel/dispatch/wire/plain-pool.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

interface Engine {
  readonly origin: string
  readonly sockets: Socket[]
  /** What came on each connection. */
  readonly came: string[]
}

/** @param heard told of all that came on a connection whenever more came */
async function engineOf (t: Test, heard: (socket: Socket, all: string, n: number) => void): Promise<Engine> {
  const [sockets, came]: [Socket[], string[]] = [[], []]
  const server = createServer(socket => {
    const n = sockets.push(socket) - 1
    came[n] = ''
    socket.on('error', () => {})
    socket.on('data', chunk => heard(socket, came[n] += chunk.toString('latin1'), n))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, came }
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'

function isWhole (all: string): boolean {
  const [head, ...rest] = all.split('\r\n\r\n')
  const length = /content-length: (\d+)/i.exec(head!)?.[1]
  return length === undefined ? all.endsWith('0\r\n\r\n') : rest.join('\r\n\r\n').length === Number(length)
}

function answersWhole (socket: Socket, all: string): void {
  if (isWhole(all)) socket.write(ANSWER)
}

interface Asked {
  /** The answer, or the code of the error. */
  readonly outcome: Promise<string>
  abort (reason: Error): void
}

function ask (post: (reader: WireReader) => unknown): Asked {
  let give: (reason?: Error) => void = () => {}
  const outcome = new Promise<string>(resolve => {
    let text = ''
    post({
      onConnect: abort => { give = abort },
      onHeaders: () => true,
      onData: chunk => {
        text += chunk.toString()
        return true
      },
      onComplete: () => resolve(text),
      onError: error => resolve((error as { code?: string }).code ?? error.message)
    })
  })
  return { outcome, abort: reason => give(reason) }
}

function pieces (...texts: string[]): Readable {
  return Readable.from(texts.map(text => Buffer.from(text)), { objectMode: false })
}

function askPlain (pool: PlainPool, body: Readable, length: number | null): Asked {
  return ask(reader => pool.post('/', length === null ? [] : ['content-length', String(length)], body, reader))
}

t.test('a body that streams reaches the engine as a general client sends it, with a length and in chunks', async t => {
  const { origin, came } = await engineOf(t, answersWhole)
  const bodies: ReadonlyArray<readonly [texts: readonly string[], length: number | null]> = [
    [['one', 'two', 'three'], 11], [['one', 'two', 'three'], null], [[], 0], [['x'.repeat(300_000)], null], [['x'.repeat(300_000), 'y'], 300_001]
  ]
  for (const [texts, length] of bodies) {
    const [general, pool] = [new Pool(origin), new PlainPool(origin, 0)]
    const headers = length === null ? [] : ['content-length', String(length)]
    const seen: string[] = []
    for (const post of [
      (reader: WireReader) => general.dispatch({ path: '/', method: 'POST', headers, body: pieces(...texts) }, reader as never),
      (reader: WireReader) => pool.post('/', headers, pieces(...texts), reader)
    ]) {
      t.equal(await ask(post).outcome, 'hi')
      seen.push(came.at(-1)!)
    }
    const [expected, own] = seen.map(all => [all.split('\r\n\r\n')[0]!.split('\r\n').map(line => line.toLowerCase()).sort(), all.slice(all.indexOf('\r\n\r\n'))])
    t.strictSame(own, expected, `${texts.length} pieces, length ${length}`)
    await general.destroy()
    pool.destroy()
  }
})

t.test('a connection whose body went out whole takes the next request, one whose answer came before that does not', async t => {
  const { origin, sockets } = await engineOf(t, (socket, all, n) => {
    if (n === 0) answersWhole(socket, all)
    else if (all.includes('\r\n\r\n')) socket.write(ANSWER)
  })
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  t.equal(await askPlain(pool, pieces('small'), 5).outcome, 'hi')
  const [first] = sockets
  const body = new PassThrough()
  body.write('half')
  first!.removeAllListeners('data').on('data', () => first!.write(ANSWER))
  t.equal(await askPlain(pool, body, 8).outcome, 'hi')
  t.equal(sockets.length, 1, 'the second went out on the first connection')
  t.ok(body.destroyed, 'what the engine did not wait for is given up')
  if (!first!.destroyed) await once(first!, 'close')
  t.equal(await askPlain(pool, pieces('small'), 5).outcome, 'hi')
  t.equal(sockets.length, 2)
})

t.test('an engine that does not read holds the body back', async t => {
  const { origin, sockets } = await engineOf(t, answersWhole)
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  t.equal(await askPlain(pool, pieces('first'), 5).outcome, 'hi')
  sockets[0]!.pause()
  const size = 32 * 1024 * 1024
  let taken = 0
  const body = new Readable({
    highWaterMark: 64 * 1024,
    read () {
      const piece = Buffer.alloc(Math.min(64 * 1024, size - taken), 'x')
      taken += piece.length
      this.push(piece.length === 0 ? null : piece)
    }
  })
  const asked = askPlain(pool, body, size)
  await once(body, 'pause')
  // what the kernel holds for a connection is bounded: it stays paused once that is full
  while (!body.isPaused()) await new Promise(resolve => { setImmediate(resolve) })
  t.ok(taken < size, `${taken} bytes were taken`)
  let bytes = 0
  sockets[0]!.removeAllListeners('data').on('data', chunk => {
    bytes += chunk.length
    if (bytes > size) sockets[0]!.write(ANSWER)
  }).resume()
  t.equal(await asked.outcome, 'hi')
  t.equal(taken, size)
})

t.test('a body that cannot be sent whole ends its request and its connection', async t => {
  const { origin, sockets } = await engineOf(t, () => {})
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  const destroyed = new PassThrough()
  destroyed.destroy()
  const failing = new PassThrough()
  failing.write('half')
  const closing = new PassThrough()
  closing.write('half')
  const rows: ReadonlyArray<readonly [name: string, body: Readable, length: number | null, code: string, then?: () => void]> = [
    ['one that is too short', pieces('four'), 5, 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'],
    ['one that is too long', pieces('four', 'more'), 5, 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'],
    ['one that was given up before', destroyed, 5, 'UND_ERR_ABORTED'],
    ['one that fails', failing, null, 'the disk is full', () => failing.destroy(new Error('the disk is full'))],
    ['one that is given up on its way', closing, null, 'UND_ERR_ABORTED', () => closing.destroy()]
  ]
  for (const [name, body, length, code, then] of rows) {
    const asked = askPlain(pool, body, length)
    if (then !== undefined) {
      await once(body, 'resume')
      then()
    }
    t.equal(await asked.outcome, code, name)
    t.ok(body.destroyed)
  }
  await Promise.all(sockets.map(async socket => { if (!socket.destroyed) await once(socket, 'close') }))
})

t.test('who leaves while a body streams ends its connection at once, and an engine that ends it is told', async t => {
  let came: (socket: Socket) => void = () => {}
  const { origin } = await engineOf(t, socket => came(socket))
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  const begun = async (): Promise<{ asked: Asked, body: PassThrough, socket: Socket }> => {
    const body = new PassThrough()
    body.write('half')
    const there = new Promise<Socket>(resolve => { came = resolve })
    return { asked: askPlain(pool, body, null), body, socket: await there }
  }
  const left = await begun()
  const closed = once(left.socket, 'close')
  left.asked.abort(new Error('it left'))
  t.equal(await left.asked.outcome, 'it left')
  t.ok(left.body.destroyed)
  await closed
  const ended = await begun()
  ended.socket.end()
  t.equal(await ended.asked.outcome, 'UND_ERR_SOCKET')
  t.ok(ended.body.destroyed)
  const unconnected = new PassThrough()
  const refused = createServer().listen(0, '127.0.0.1')
  await once(refused, 'listening')
  const { port } = refused.address() as AddressInfo
  refused.close()
  await once(refused, 'close')
  t.equal(await askPlain(new PlainPool(`http://127.0.0.1:${port}`, 0), unconnected, null).outcome, 'ECONNREFUSED')
  t.ok(unconnected.destroyed)
})

t.test('a length that cannot be read leaves a body that streams to the general client', async t => {
  const pool = new PlainPool('http://127.0.0.1:9', 0)
  const rows = [['content-length', '5x'], ['content-length', '-1'], ['Content-Length', '5', 'content-length', '5'], ['content-length', '']]
  for (const headers of rows) {
    const body = new PassThrough()
    t.equal(pool.post('/', headers, body, { onConnect () {}, onHeaders () {}, onData: () => true, onComplete () {}, onError () {} }), false)
    t.equal(body.destroyed, false)
  }
})

t.test('the time for an answer is the engine\'s: a client that stands still takes none of it', async t => {
  let pieceCame: () => void = () => {}
  const { origin } = await engineOf(t, () => pieceCame())
  const clock = new FakeClock()
  const connections = new Connections(clock, () => 0)
  t.teardown(() => connections.close())
  const body = new PassThrough()
  const outcome = new Promise<string>(resolve => {
    const sink = { head () {}, data: () => true, onDrain () {}, end: () => resolve('ended'), fail: ({ code }: SvcError) => resolve(code) }
    new Exchange(sink, { label: 'slot', details: {} }, () => {}).send(connections, {
      origin, path: '/', method: 'POST', headers: [], body, headersTimeoutMs: 8_000, bodyTimeoutMs: 0
    })
  })
  let isOver = false
  void outcome.then(() => { isOver = true })
  for (let n = 0; n < 4; n++) {
    const there = new Promise<void>(resolve => { pieceCame = resolve })
    body.write('piece')
    await there
    await clock.advance(20_000)
    t.equal(isOver, false, `piece ${n}`)
  }
  const there = new Promise<void>(resolve => { pieceCame = resolve })
  body.end()
  await there
  await clock.advance(6_000)
  t.equal(isOver, false, 'all of it')
  await clock.advance(10_000)
  t.equal(await outcome, 'dispatch.upstream_timeout')
  t.ok(body.destroyed)
})
