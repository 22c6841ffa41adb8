import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { Connections } from '../../../kernel/dispatch/call/connections.js'
import { Exchange } from '../../../kernel/dispatch/call/exchange.js'
import type { WireReader } from '../../../kernel/dispatch/wire/plain-connection.js'
import { PlainPool } from '../../../kernel/dispatch/wire/plain-pool.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'

interface Told {
  status?: number
  headers?: string[]
  body: string
  /** The code of the error, or `ended`. */
  outcome: string
}

interface Scripted {
  readonly origin: string
  readonly requests: string[]
  readonly sockets: Socket[]
}

/** A server that hands each whole request, a POST with a length, to the test. */
async function scripted (t: Test, answer: (socket: Socket, request: string, n: number) => unknown): Promise<Scripted> {
  const [requests, sockets]: [string[], Socket[]] = [[], []]
  const server: Server = createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    let text = ''
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1 || text.length < head + 4 + Number(/content-length: (\d+)/i.exec(text)![1])) return
      const request = text
      text = ''
      answer(socket, request, requests.push(request) - 1)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, sockets }
}

/** Reads all that is told of one answer. */
function reader (done: (told: Told) => void, onData: (chunk: Buffer) => boolean = () => true): WireReader & {
  onHeaders (status: number, headers: Buffer[] | string[], resume: () => void): boolean
} {
  const told: Told = { body: '', outcome: '' }
  return {
    onConnect: () => {},
    onHeaders: (status, headers) => {
      if (status < 200) return true
      told.status = status
      // the general client leaves blanks behind a value
      told.headers = headers.map(text => typeof text === 'string' ? text : text.toString('latin1').trimEnd())
      return true
    },
    onData: chunk => {
      told.body += chunk.toString('latin1')
      return onData(chunk)
    },
    onComplete: () => done({ ...told, outcome: 'ended' }),
    onError: error => done({ ...told, outcome: (error as { code?: string }).code ?? error.name })
  }
}

function post (pool: PlainPool, path = '/', body = 'ask'): Promise<Told> {
  return new Promise(resolve => { pool.post(path, ['x-a', '1'], Buffer.from(body), reader(resolve)) })
}

const ok = 'HTTP/1.1 200 OK\r\n'
const chunkWith = (behindSize: string): string => `${ok}Transfer-Encoding: chunked\r\n\r\n5${behindSize}\r\nhello\r\n0\r\n\r\n`

/** What an engine may say, and whether it ends the connection behind it. */
const answers: Readonly<Record<string, readonly [text: string, ends?: boolean]>> = {
  'a length': [`${ok}Content-Type: a/b\r\nContent-Length: 5\r\n\r\nhello`],
  'no body': [`${ok}Content-Length: 0\r\n\r\n`],
  'chunks, an extension and trailers': [`${ok}Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0A\r\n, world!!!\r\n0\r\nX-T: 1\r\n\r\n`],
  'chunks that are small': [`${ok}transfer-encoding: Chunked\r\n\r\n${'1\r\nx\r\n'.repeat(40)}0\r\n\r\n`],
  'no length': [`${ok}Content-Type: a/b\r\n\r\nuntil the end`, true],
  'the older protocol': ['HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello'],
  'the older protocol without a length': ['HTTP/1.0 200 OK\r\n\r\nhello', true],
  'a status without a body': ['HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n'],
  'an announcement first': [`HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`],
  'no words behind the status': ['HTTP/1.1 503 \r\nContent-Length: 2\r\n\r\nno'],
  'blanks around values, letters beyond ASCII': [`${ok}X-A: \t a b  \r\nX-B:\r\nX-C: \xe9\xff\r\nX-A: again\r\nContent-Length: 2\r\n\r\nhi`],
  'that it closes': [`${ok}Connection: close\r\nContent-Length: 2\r\n\r\nhi`, true],
  'less than its length': [`${ok}Content-Length: 9\r\n\r\nhello`, true],
  'less than its chunks': [`${ok}Transfer-Encoding: chunked\r\n\r\n9\r\nhello`, true],
  'half a head': [`${ok}Content-Le`, true],
  'nothing': ['', true],
  'another protocol': ['hello there\r\n\r\n', true],
  'an impossible status': ['HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n', true],
  'a length of letters': [`${ok}Content-Length: 5x\r\n\r\nhello`, true],
  'a negative length': [`${ok}Content-Length: -5\r\n\r\nhello`, true],
  'two lengths': [`${ok}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`, true],
  'a length and chunks': [`${ok}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`, true],
  'a chunk of no number': [`${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`, true],
  'a chunk that is longer than its size': [`${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n`, true],
  'a chunk beyond all numbers': [`${ok}Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(20)}\r\nhello`, true],
  'extensions of every kind': [chunkWith(';a;b=c;d=;e="f; g\\"h"')],
  'a blank behind the size': [chunkWith(' '), true],
  'a tab behind the size': [chunkWith('\t'), true],
  'a blank in front of an extension': [chunkWith(' ;a=b'), true],
  'an extension without a name': [chunkWith(';'), true],
  'a value without a name': [chunkWith(';=a'), true],
  'a blank before the name of an extension': [chunkWith('; a=b'), true],
  'a blank in an extension': [chunkWith(';a =b'), true],
  'letters behind a quoted value': [chunkWith(';a="b"c'), true],
  'a quote without end': [chunkWith(';a="b'), true],
  'a colon in an extension': [chunkWith(';a:b'), true],
  'a feed in an extension': [chunkWith(';a\nb'), true],
  'a quote inside of a value': [chunkWith(';a=b"c"'), true],
  'two extensions with nothing between': [chunkWith(';;a'), true],
  'a letter beyond ASCII in a quoted value': [chunkWith(';a="\xe9"'), true],
  'a letter beyond ASCII in a name': [chunkWith(';\xe9'), true],
  'trailers without a return': [`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\n\n`, true],
  'an end without a return': [`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\n`, true],
  'a return inside of a trailer': [`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r2\r\n\r\n`, true],
  'a blank before the colon': [`${ok}X-A : 1\r\nContent-Length: 2\r\n\r\nhi`, true],
  'a zero in a value': [`${ok}X-A: a\0b\r\nContent-Length: 2\r\n\r\nhi`, true],
  'a head without end': [`${ok}X-A: ${'a'.repeat(40_000)}\r\n`, true],
  'lines without a return': ['HTTP/1.1 200 OK\nContent-Length: 2\n\nhi', true],
  'a line that is folded': [`${ok}X-A: a\r\n b\r\nContent-Length: 2\r\n\r\nhi`, true],
  'a coding that is none': [`${ok}Transfer-Encoding: gzip\r\n\r\nhello`, true]
}

/** What the dispatcher makes a difference between: a connection that ended may have met the request on its way. */
function kindOf (outcome: string): string {
  return outcome === 'ended' || outcome === 'UND_ERR_SOCKET' || outcome === 'UND_ERR_HEADERS_OVERFLOW' ? outcome : 'malformed'
}

t.test('what an engine says is read as a general client reads it, however it is cut', async t => {
  let [text, ends, cut] = ['', false, 0]
  const { origin } = await scripted(t, async socket => {
    const bytes = Buffer.from(text, 'latin1')
    const step = cut === 0 ? Math.max(1, bytes.length) : cut
    for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
      socket.write(bytes.subarray(at, at + step))
      await new Promise(resolve => { setImmediate(resolve) })
    }
    if (ends) socket.end()
  })
  for (const [name, [said, isLast = false]] of Object.entries(answers)) {
    const general = new Pool(origin)
    ;[text, ends, cut] = [said, isLast, 0]
    const expected = await new Promise<Told>(resolve => {
      general.dispatch({ path: '/', method: 'POST', headers: ['x-a', '1'], body: 'ask' }, reader(resolve) as never)
    })
    await general.destroy()
    for (cut of said.length > 1000 ? [0, 999] : [0, 1, 7]) {
      const pool = new PlainPool(origin, 0)
      const told = await post(pool)
      t.strictSame({ ...told, outcome: kindOf(told.outcome) }, { ...expected, outcome: kindOf(expected.outcome) }, `${name}, ${cut} bytes at a time`)
      pool.destroy()
    }
  }
  ;[text, ends, cut] = ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', false, 0]
  const pool = new PlainPool(origin, 0)
  t.equal((await post(pool)).outcome, 'ended', 'a status that has no body ends with its head, whatever length it names')
  text = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'
  t.equal(kindOf((await post(pool)).outcome), 'malformed', 'a protocol that was not asked for')
  pool.destroy()
})

t.test('a connection takes one request after the other, until either side ends it', async t => {
  const heads = ['', '', 'Keep-Alive: timeout=1\r\n', 'Connection: close\r\nConnection: keep-alive\r\n', '', '']
  const { origin, requests, sockets } = await scripted(t, (socket, _request, n) => {
    socket.write(`${ok}${heads[n] ?? ''}Content-Length: 1\r\n\r\n${n}${n === 4 ? 'more' : ''}`)
  })
  const pool = new PlainPool(origin, 0)
  const counts: number[] = []
  for (let n = 0; n < heads.length; n++) {
    t.strictSame((await post(pool, `/${n}`, `ask ${n}`)).body, `${n}`)
    counts.push(sockets.length)
  }
  t.strictSame(counts, [1, 1, 1, 2, 3, 4], 'not used again: one that is about to be ended, one that ends, one on which more came than was asked for')
  t.equal(requests[1], `POST /1 HTTP/1.1\r\nhost: ${new URL(origin).host}\r\nconnection: keep-alive\r\nx-a: 1\r\ncontent-length: 5\r\n\r\nask 1`)
  const [first, second] = [post(pool), post(pool)]
  await Promise.all([first, second])
  t.equal(sockets.length, 5, 'what runs at the same time has connections of its own')
  const ended = Promise.all(sockets.slice(3).map(async socket => { if (!socket.destroyed) await once(socket, 'close') }))
  pool.close()
  await ended
})

t.test('a request arrives byte for byte on either side of the length up to which head and body are one piece', async t => {
  const { origin, requests } = await scripted(t, socket => socket.write(`${ok}Content-Length: 0\r\n\r\n`))
  const pool = new PlainPool(origin, 5_000)
  t.teardown(() => pool.destroy())
  const wrong: number[] = []
  const bytes = Buffer.from(Array.from({ length: 4096 }, (_, i) => i % 256))
  for (const length of [0, 1, ...Array.from({ length: 200 }, (_, i) => 1900 + i), 4096]) {
    const body = bytes.subarray(0, length)
    const told = await new Promise<Told>(resolve => { pool.post('/', ['x-a', 'caf\xe9'], body, reader(resolve)) })
    const [head, ...rest] = requests.pop()!.split('\r\n\r\n')
    const isSame = Buffer.from(rest.join('\r\n\r\n'), 'latin1').equals(body)
    if (told.outcome !== 'ended' || !head!.includes('x-a: caf\xe9\r\n') || !isSame) wrong.push(length)
  }
  t.strictSame(wrong, [])
})

t.test('a reader that throws has its call ended with what it threw', async t => {
  const { origin, sockets } = await scripted(t, socket => socket.write(`${ok}Content-Length: 5\r\n\r\nhello`))
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  const fail = (): never => { throw new RangeError('not to be read') }
  for (const part of [{ onHeaders: fail }, { onData: fail }]) {
    const told = await new Promise<Told>(resolve => { pool.post('/', [], Buffer.from('ask'), { ...reader(resolve), ...part }) })
    t.equal(told.outcome, 'RangeError')
  }
  t.equal((await post(pool)).body, 'hello', 'others go on')
  t.equal(sockets.length, 3, 'on connections of their own')
})

t.test('a request that met a closed connection is not sent into another one that closes as well', async t => {
  const { origin, sockets, requests } = await scripted(t, (socket, request) => {
    if (request.startsWith('POST /restart') && sockets.length === 2) return [socket, ...sockets].forEach(each => each.end())
    return socket.write(`${ok}Content-Length: 2\r\n\r\nhi`)
  })
  const connections = new Connections(new FakeClock(), () => 0)
  t.teardown(() => connections.close())
  const send = (path: string): Promise<string> => new Promise(resolve => {
    const sink = { head: () => {}, data: () => true, onDrain: () => {}, end: () => resolve('ended'), fail: (error: Error) => resolve(error.message) }
    new Exchange(sink as never, { label: 'slot', details: {} }, () => {}).send(connections, {
      origin, path, method: 'POST', headers: [], body: Buffer.from('ask'), headersTimeoutMs: 0, bodyTimeoutMs: 0, resend: true
    })
  })
  await Promise.all([send('/'), send('/')])
  t.equal(await send('/restart'), 'ended')
  t.strictSame([sockets.length, requests.length], [3, 4], 'sent twice, the second time on a connection of its own')
})

t.test('connections that are forgotten are closed, those with a timeout of their own by themselves', async t => {
  const { origin } = await scripted(t, socket => socket.write(`${ok}Content-Length: 0\r\n\r\n`))
  const connections = new Connections(new FakeClock(), () => 0)
  t.teardown(() => connections.close())
  const [usual, own] = [connections.to(origin), connections.to(origin, 3000)]
  connections.forget(origin, 3000)
  t.equal(connections.to(origin), usual)
  t.not(connections.to(origin, 3000), own)
  await t.rejects(own.request({ path: '/', method: 'GET' }), { code: 'UND_ERR_CLOSED' })
  connections.forget(origin)
  t.not(connections.to(origin), usual)
})

t.test('what is unusual in a request is left to the general client', async t => {
  const { origin, sockets } = await scripted(t, socket => socket.write(`${ok}Content-Length: 0\r\n\r\n`))
  const pool = new PlainPool(origin, 0)
  const rows: ReadonlyArray<readonly [path: string, headers: readonly string[]]> = [
    ['/', ['a', 'b\r\nx-evil: 1']], ['/', ['a\r\nx-evil', '1']], ['/', ['a b', '1']], ['/', ['a', 'b\0']], ['/', ['a', '\u20ac']],
    ['/', ['Host', 'other']], ['/', ['content-length', '9']], ['/', ['Transfer-Encoding', 'chunked']], ['/', ['connection', 'close']],
    ['/ HTTP/1.1\r\nx-evil: 1\r\n', []], ['no slash', []], ['/\u20ac', []], ['', []]
  ]
  for (const [path, headers] of rows) t.equal(pool.post(path, headers, Buffer.from('ask'), reader(() => {})), false, JSON.stringify([path, headers]))
  t.equal(sockets.length, 0, 'and nothing was sent')
})

t.test('a reader that has enough holds the engine back, and one that leaves ends the connection', async t => {
  const size = 8 * 1024 * 1024
  const { origin, sockets } = await scripted(t, (socket, request) => {
    if (request.startsWith('POST /quick')) return socket.write(`${ok}Content-Length: 0\r\n\r\n`)
    socket.write(`${ok}Content-Length: ${size}\r\n\r\n`)
    return request.startsWith('POST /silent') || socket.write(Buffer.alloc(size, 'x'))
  })
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  let [resume, seen, calls]: [() => void, number, number] = [() => {}, 0, 0]
  let paused: () => void = () => {}
  const isPaused = new Promise<void>(resolve => { paused = resolve })
  const done = new Promise<Told>(resolve => {
    const plain = reader(resolve)
    pool.post('/', [], Buffer.from('ask'), {
      ...plain,
      onHeaders: (status, headers, goOn) => {
        resume = goOn
        return plain.onHeaders(status, headers, goOn)
      },
      onData: chunk => {
        calls++
        seen += chunk.length
        paused()
        return seen > chunk.length
      }
    })
  })
  await isPaused
  await post(pool, '/quick')
  t.equal(calls, 1, 'nothing is read while it is held back')
  t.ok(sockets[0]!.writableLength > 0, 'the engine could not send it all')
  resume()
  t.equal((await done).outcome, 'ended')
  t.equal(seen, size)
})

t.test('a reader that leaves ends its connection at once, and none is told of an answer twice', async t => {
  const { origin, sockets } = await scripted(t, socket => socket.write(`${ok}Content-Length: 9\r\n\r\nhalf`))
  const pool = new PlainPool(origin, 0)
  t.teardown(() => pool.destroy())
  const outcomes: string[] = []
  await new Promise<void>(resolve => {
    let leave: (reason?: Error) => void = () => {}
    const plain = reader(told => outcomes.push(told.outcome), () => {
      sockets[0]!.once('close', () => resolve())
      leave(new Error('it left'))
      leave(new Error('again'))
      return true
    })
    pool.post('/', [], Buffer.from('ask'), { ...plain, onConnect: abort => { leave = abort } })
  })
  t.strictSame(outcomes, ['Error'])
  let connected = false
  const given = await new Promise<Told>(resolve => {
    pool.post('/', [], Buffer.from('ask'), {
      ...reader(resolve),
      onConnect: abort => {
        connected = true
        abort(new Error('it left before'))
      }
    })
  })
  t.strictSame([given.outcome, connected], ['Error', true], 'one that left while it was connected to is not sent')
})

t.test('what waits for an answer is told when all connections are ended, and what gets no connection before it is told of one', async t => {
  const { origin } = await scripted(t, () => {})
  const pool = new PlainPool(origin, 0)
  const waiting = post(pool)
  await new Promise<void>(resolve => {
    pool.post('/', [], Buffer.from('ask'), { ...reader(() => {}), onConnect: () => resolve() })
  })
  pool.destroy()
  t.equal((await waiting).outcome, 'UND_ERR_DESTROYED')
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await once(closed, 'close')
  let connected = false
  const refused = await new Promise<Told>(resolve => {
    new PlainPool(`http://127.0.0.1:${port}`, 10_000).post('/', [], Buffer.from('ask'), { ...reader(resolve), onConnect: () => { connected = true } })
  })
  t.strictSame([refused.outcome, connected], ['ECONNREFUSED', false])
})
