import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { z } from 'zod'
import {
  core, definePlugin, defineRoute, defineWebSocket, svcError, type AnyPlugin, type PluginService, type ServedSocket
} from '../../../kernel/contract/index.js'
import { createTestGateway, FakeClock, settle, type TestGateway } from '../../../kernel/testing/index.js'
import { rawClient } from './raw-client.js'
import { until } from '../wire-gateway.js'

const KEY = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='

interface Setup extends TestGateway {
  readonly clock: FakeClock
  readonly plugins: AnyPlugin[]
  readonly reload: PluginService['reload']
  /** Sockets that are served at the moment, the newest last. */
  readonly served: ServedSocket[]
  readonly open: (path: string, headers?: Record<string, string>) => WebSocket
  /** The status and code of the refusal of a handshake. */
  readonly refusal: (path: string, headers?: readonly string[], method?: string) => Promise<readonly [number, string, string]>
}

async function setup (t: Test): Promise<Setup> {
  let service: PluginService | null = null
  const served: ServedSocket[] = []
  const untilClosed = async (socket: ServedSocket): Promise<void> => {
    served.push(socket)
    await new Promise(resolve => { socket.signal.addEventListener('abort', resolve) })
    served.splice(served.indexOf(socket), 1)
  }
  const routes = definePlugin({
    name: 'sockets',
    kind: 'routes',
    apiVersion: 1,
    requires: { plugins: core.plugins },
    register: ctx => {
      service = ctx.services.plugins
      ctx.addRoute(defineRoute({ method: 'GET', url: '/api/plain', summary: 'x', handler: () => ({ ok: true }) }))
      ctx.addRoute(defineWebSocket({
        url: '/api/echo/:room',
        summary: 'x',
        schema: {
          params: z.strictObject({ room: z.string() }), querystring: z.strictObject({ n: z.coerce.number().int().optional() })
        },
        maxMessageBytes: 1024,
        handler: ({ params, query, actor }) => {
          if (params.room === 'closed') throw svcError('slot.not_found', 'there is no such room')
          return async socket => {
            await socket.send(JSON.stringify({ ...params, ...query, actor }))
            for await (const message of socket.messages) {
              if (message === 'fail') throw new Error('secret words')
              if (message === 'refuse') throw svcError('slot.pinned', 'not now')
              if (message === 'bye') return
              if (message === 'odd') return socket.close(1006, 'é'.repeat(200))
              await socket.send(message)
            }
          }
        }
      }))
      ctx.addRoute(defineWebSocket({ url: '/api/still', summary: 'x', maxSockets: 600, handler: () => untilClosed }))
      ctx.addRoute(defineWebSocket({ url: '/api/few', summary: 'x', maxSockets: 2, handler: () => untilClosed }))
      ctx.addRoute(defineWebSocket({
        url: '/api/slow',
        summary: 'x',
        maxMessageBytes: 4096,
        handler: () => async socket => {
          served.push(socket)
          let count = 0
          for await (const message of socket.messages) {
            if (count++ % 500 === 0) await settle()
            if (message === 'end') await socket.send(String(count))
          }
        }
      }))
    }
  })
  const clock = new FakeClock()
  const plugins: AnyPlugin[] = [routes]
  const gateway = await createTestGateway({ plugins, clock })
  t.teardown(() => gateway.close())
  const address = gateway.baseUrl.replace('http', 'ws')
  return Object.assign(gateway, {
    clock,
    plugins,
    served,
    reload: (again?: readonly string[]) => service!.reload(again),
    open: (path: string, headers: Record<string, string> = {}) => {
      const socket = new WebSocket(`${address}${path}`, { headers })
      t.teardown(() => socket.terminate())
      return socket
    },
    refusal: async (path: string, headers: readonly string[] = [], method = 'GET') => {
      const client = await rawClient(t, gateway.baseUrl)
      client.send([`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: Upgrade', ...headers, '', ''].join('\r\n'))
      await client.closed
      const text = client.text()
      return [Number(text.split(' ')[1]), /"code":"([^"]+)"/.exec(text)?.[1] ?? '', text] as const
    }
  })
}

const upgrade = ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', KEY]

/** Messages as they come; `next` waits for one. */
function reader (socket: WebSocket): { next: () => Promise<string> } {
  const waiting: string[] = []
  let wake = (): void => {}
  socket.on('message', data => {
    waiting.push((data as Buffer).toString())
    wake()
  })
  return {
    next: async () => {
      while (waiting.length === 0) await new Promise<void>(resolve => { wake = resolve })
      return waiting.shift()!
    }
  }
}

async function closing (socket: WebSocket): Promise<readonly [number, string]> {
  const [code, reason] = await once(socket, 'close') as [number, Buffer]
  return [code, reason.toString()]
}

/** A socket by hand, as far as the end of the handshake. */
async function byHand (t: Test, baseUrl: string, path: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(baseUrl).port), host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.write([`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: Upgrade', ...upgrade, '', ''].join('\r\n'))
  const [head] = await once(socket, 'data') as [Buffer]
  t.match(head.toString('latin1'), /^HTTP\/1\.1 101 /)
  return socket
}

t.test('a WebSocket is a route: what is asked for is checked, who asks is known, messages pass both ways in order', async t => {
  const it = await setup(t)
  const socket = it.open('/api/echo/den?n=7', { 'x-svc-agent': 'parrot', 'x-request-id': 'mine' })
  const { next } = reader(socket)
  const [response] = await once(socket, 'upgrade') as [{ headers: Record<string, string> }]
  t.equal(response.headers['x-request-id'], 'mine')
  t.strictSame(JSON.parse(await next()), { room: 'den', n: 7, actor: 'mcp:parrot' })
  for (const word of ['one', 'two', '']) socket.send(word)
  socket.send(Buffer.from([104, 105]))
  t.strictSame([await next(), await next(), await next(), await next()], ['one', 'two', '', 'hi'])
  socket.send('bye')
  t.strictSame(await closing(socket), [1000, ''], 'the end of what serves it')

  t.match(await it.refusal('/api/echo/den?n=x', upgrade), [400, 'validation.invalid'])
  t.match(await it.refusal('/api/echo/closed', upgrade), [404, 'slot.not_found'], 'a refusal is an ordinary answer')
})

t.test('what may not become a WebSocket is refused as a request, and an upgrade elsewhere is no WebSocket', async t => {
  const it = await setup(t)
  t.match(await it.refusal('/api/still', [...upgrade, 'Origin: https://evil.example']), [403, 'request.origin_not_allowed'])
  t.match(await it.refusal('/api/still', [...upgrade, 'Sec-Fetch-Site: cross-site']), [403, 'request.origin_not_allowed'])
  t.match(await it.refusal('/api/still', upgrade.slice(0, 2)), [400, 'request.handshake_invalid'])
  t.match(await it.refusal('/api/still', [...upgrade.slice(0, 2), 'Sec-WebSocket-Key: short']), [400, 'request.handshake_invalid'])
  t.match(await it.refusal('/api/still', ['Upgrade: websocket', 'Sec-WebSocket-Version: 8', KEY]), [426, 'request.upgrade_required', /sec-websocket-version: 13/i])
  t.match(await it.refusal('/api/still', upgrade, 'POST'), [405, 'system.http_405'])
  t.match(await it.refusal('/api/plain', upgrade), [200, /^$/, /"ok":true/])
  const plain = await it.fetch('/api/still')
  t.equal(plain.status, 426)
  t.equal(plain.headers.get('upgrade'), 'websocket')
  t.match(await plain.json(), { error: { code: 'request.upgrade_required' } })
  t.equal((await it.fetch('/api/still', { method: 'HEAD' })).status, 426)
  const page = it.open('/api/still', { origin: it.baseUrl })
  await once(page, 'open')
  t.equal(it.served.length, 1, 'a page of the gateway itself may')
})

t.test('a message in the same packet as the handshake is served', async t => {
  const it = await setup(t)
  const client = await rawClient(t, it.baseUrl)
  // a text frame: two bytes, masked with zeros
  const frame = '\x81\x82\0\0\0\0hi'
  client.send(['GET /api/echo/den?n=7 HTTP/1.1', 'Host: localhost', 'Connection: Upgrade', ...upgrade, '', frame].join('\r\n'))
  t.match(await client.seen(/hi$/), /^HTTP\/1\.1 101 /)
})

t.test('a client that breaks a rule is told by the code of the close', async t => {
  const it = await setup(t)
  const codes: Array<readonly [number, string | RegExp, (socket: WebSocket) => void]> = [
    [1009, '', socket => socket.send('x'.repeat(1025))],
    [1002, '', socket => { (socket as unknown as { _socket: Socket })._socket.write(Buffer.from([0xf1, 0x80, 0, 0, 0, 0])) }],
    [1007, '', socket => socket.send(Buffer.from([0xff]), { binary: false })],
    [1011, /^internal error; see the log, request id [\w-]+$/, socket => socket.send('fail')],
    [1011, 'slot.pinned: not now', socket => socket.send('refuse')],
    [1011, 'é'.repeat(61), socket => socket.send('odd')]
  ]
  for (const [code, reason, act] of codes) {
    const socket = it.open('/api/echo/den')
    await once(socket, 'open')
    act(socket)
    const [seen, why] = await closing(socket)
    t.equal(seen, code)
    t.match(why, reason)
  }
  const talker = it.open('/api/still')
  await once(talker, 'open')
  for (let i = 0; i < 2; i++) talker.send('x'.repeat(60_000))
  t.strictSame(await closing(talker), [1008, 'this socket accepts no messages'])
})

t.test('a client that ends its side, or is gone, ends what serves it', async t => {
  const it = await setup(t)
  for (const verb of ['end', 'resetAndDestroy', 'destroy'] as const) {
    const socket = await byHand(t, it.baseUrl, '/api/still')
    await until(() => it.served.length === 1, 'it is served')
    const { signal } = it.served[0]!
    const timers = it.clock.pending
    const ended = once(socket, 'close')
    socket[verb]()
    await until(() => signal.aborted && it.served.length === 0, 'it ends')
    await ended
    await until(() => it.clock.pending < timers, 'the timer of the pings ends with the last socket')
  }
})

t.test('a client that does not read is closed instead of kept for, one that reads late gets all before its close', async t => {
  const it = await setup(t)
  const socket = it.open('/api/still')
  let bytes = 0
  socket.on('message', data => { bytes += (data as Buffer).length })
  await once(socket, 'open')
  socket.pause()
  const [server] = it.served
  const piece = 'x'.repeat(64 * 1024)
  let sent = 0
  while (!server!.signal.aborted) {
    void server!.send(piece)
    if (!server!.signal.aborted) sent += piece.length
    if (sent > 256 * 1024 * 1024) throw new Error('it is kept for without a bound')
    await new Promise(resolve => { setImmediate(resolve) })
  }
  await server!.send('more')
  socket.resume()
  t.strictSame(await closing(socket), [1013, 'the client reads too slowly'])
  t.equal(bytes, sent)

  const asking = await byHand(t, it.baseUrl, '/api/still')
  asking.pause()
  await until(() => it.served.length === 1, 'it is served')
  const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125)])
  const flood = Buffer.concat(Array.from({ length: 1000 }, () => ping))
  await until(() => {
    if (asking.writableLength < 1_000_000) asking.write(flood)
    return it.served.length === 0
  }, 'nor may it pile up answers to its pings')
})

t.test('a client that sends faster than it is served is made to wait, and nothing is lost', async t => {
  const it = await setup(t)
  const socket = it.open('/api/slow')
  const { next } = reader(socket)
  await once(socket, 'open')
  for (let i = 0; i < 20_000; i++) socket.send(`message ${i}`)
  socket.send('end')
  t.equal(await next(), '20001')
})

t.test('a client that does not answer pings is dropped, one that does stays', async t => {
  const it = await setup(t)
  const awake = it.open('/api/echo/den')
  const { next } = reader(awake)
  await next()
  const asleep = await byHand(t, it.baseUrl, '/api/still')
  const frames: number[] = []
  asleep.on('data', data => frames.push(data[0]!))
  await until(() => it.served.length === 1, 'the other is served')
  const pinged = once(awake, 'ping')
  await it.clock.advance(30_000)
  await pinged
  await until(() => frames.length === 1, 'the silent one is pinged')
  t.equal(it.served.length, 1)
  awake.send('the answer to the ping came before this')
  await next()
  const ended = once(asleep, 'end')
  await it.clock.advance(30_000)
  await ended
  await until(() => it.served.length === 0, 'it is dropped')
  awake.send('still here')
  t.equal(await next(), 'still here')
})

t.test('sockets are bounded, of a route and of all together, and a place is free again when one has closed', async t => {
  const it = await setup(t)
  const few = [it.open('/api/few'), it.open('/api/few')]
  await Promise.all(few.map(socket => once(socket, 'open')))
  t.match(await it.refusal('/api/few', upgrade), [503, 'gateway.sockets_full', /retry-after/i])
  few[0]!.close()
  await closing(few[0]!)
  await until(() => it.served.length === 1, 'one is free')
  await once(it.open('/api/few'), 'open')

  const outcomes = await Promise.all(Array.from({ length: 1000 }, async () => {
    const socket = it.open('/api/still')
    socket.on('error', () => {})
    return await new Promise<string>(resolve => {
      socket.on('open', () => resolve('open'))
      socket.on('unexpected-response', (request, response) => {
        request.destroy()
        resolve(String(response.statusCode))
      })
    })
  }))
  const count = (word: string): number => outcomes.filter(outcome => outcome === word).length
  t.strictSame([count('open'), count('503')], [510, 490])
  t.equal(it.served.length, 512)
})

t.test('sockets close when their plugin is replaced and when the gateway stops', async t => {
  const it = await setup(t)
  let generation = 0
  const guest = (): AnyPlugin => definePlugin({
    name: 'guest',
    kind: 'routes',
    apiVersion: 1,
    register: ctx => ctx.addRoute(defineWebSocket({
      url: '/api/guest',
      summary: 'x',
      handler: () => async socket => {
        await socket.send(String(++generation))
        for await (const message of socket.messages) await socket.send(message)
      }
    }))
  })
  it.plugins.push(guest())
  await it.reload()
  const [staying, first] = [it.open('/api/still'), it.open('/api/guest')]
  await Promise.all([once(staying, 'open'), once(first, 'open')])
  it.plugins.splice(1, 1, guest())
  const closed = closing(first)
  await it.reload()
  t.match(await closed, [1012, /replaced or removed/])
  const second = it.open('/api/guest')
  t.equal(await reader(second).next(), '2')
  t.equal(it.served.length, 1, 'those of others stay')

  const deaf = await byHand(t, it.baseUrl, '/api/still')
  deaf.pause()
  const ends = Promise.all([closing(staying), closing(second)])
  await it.close()
  t.strictSame(await ends, [[1001, 'the gateway is stopping'], [1001, 'the gateway is stopping']])
})
