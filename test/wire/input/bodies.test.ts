import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import type { IncomingMessage } from 'node:http'
import * as zlib from 'node:zlib'
import t, { type Test } from 'tap'
import { FakeClock } from '../../../kernel/testing/index.js'
import audioRoutes from '../../../plugins/v1/audio/index.js'
import { fakeUpstream, okAnswer, refusal as upstreamRefusal, upstreamTable } from '../fake-upstream.js'
import { chatBody, post, rawClient, type RawClient } from '../connection/raw-client.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const CHAT = '/v1/chat/completions'
const MIB = 1024 * 1024

function head (length: number, path = CHAT): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
}

/** A chat request whose body has that many bytes and a little more. As a text, tens of megabytes would take a second. */
function large (bytes: number, letter = 'x'): Buffer {
  const [before = '', after = ''] = chatBody({ messages: [{ role: 'user', content: '|' }] }).split('|')
  const start = head(before.length + bytes + after.length) + before
  return Buffer.concat([Buffer.from(start), Buffer.alloc(bytes, letter), Buffer.from(after)])
}

async function packed (gateway: WireGateway, coding: string, body: Buffer, path = CHAT): Promise<Response> {
  return await fetch(`${gateway.baseUrl}${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json', 'content-encoding': coding }, body
  })
}

async function refusal (response: Response): Promise<[number, string, string | null]> {
  const { error } = await response.json() as { error: { code: string } }
  return [response.status, error.code, response.headers.get('x-should-retry')]
}

t.test('thirty partial bodies of 25 MB stay within the memory of bodies', async t => {
  const gateway = await wireGateway(t, { svc: '[server]\nbody_memory_bytes = 104857600\n' })
  await (await gateway.chat({})).text()
  const part = Buffer.alloc(25 * MIB, 0x20)
  const clients = await Promise.all(Array.from({ length: 30 }, () => rawClient(t, gateway.baseUrl)))
  await Promise.all(clients.map(async ({ socket, send }) => {
    send(head(26 * MIB))
    await new Promise<void>(resolve => { socket.write(part, () => resolve()) })
  }))
  const refused = (): RawClient[] => clients.filter(client => client.text() !== '')
  await until(() => refused().length >= 26, 'what does not fit is refused')
  t.ok(refused().length < 30, 'what fits is not')
  for (const client of refused()) {
    const answer = await client.seen(/\}$/)
    t.match(answer, /^HTTP\/1\.1 503[^]*retry-after: 5[^]*gateway\.body_memory_full/)
    t.notMatch(answer, /x-should-retry: false/)
  }
  t.equal((await gateway.chat({})).status, 200, 'small requests go on')
  for (const { socket } of clients) socket.destroy()
  const next = await rawClient(t, gateway.baseUrl)
  await until(() => gateway.logs.filter(line => /left before its request was complete/.test(line.message)).length >= 30 - refused().length, 'they are gone')
  next.send(large(50 * MIB))
  await next.seen(/HTTP\/1\.1 200/)
})

t.test('a body counts until its request is answered, and not longer', async t => {
  const gateway = await wireGateway(t, { svc: `[server]\nbody_memory_bytes = ${MIB}\n` })
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  const ask = async (): Promise<string> => {
    const client = await rawClient(t, gateway.baseUrl)
    client.send(large(700_000))
    return (await client.seen(/HTTP\/1\.1 \d+/)).slice(9, 12)
  }
  t.equal(await ask(), '200')
  t.equal(await ask(), '200', 'the first counts no longer')
  engine.answer({ headAfterMs: Infinity })
  const n = engine.requests.length
  const waiting = await rawClient(t, gateway.baseUrl)
  waiting.send(large(700_000))
  const held = await engine.request(n)
  t.equal(await ask(), '503', 'one that waits for its answer counts')
  waiting.socket.destroy()
  t.equal(await held.closed, 'aborted')
  engine.answer({})
  t.equal(await ask(), '200', 'one whose client has left does not')
  const broken = await rawClient(t, gateway.baseUrl)
  broken.send(post(CHAT, `{"model":"agent",${' '.repeat(700_000)}`))
  await broken.seen(/HTTP\/1\.1 400/)
  t.equal(await ask(), '200', 'nor one that was refused')
  const gone = await rawClient(t, gateway.baseUrl)
  gone.send(large(900_000).subarray(0, 800_000))
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'all is answered')
  gone.socket.destroy()
  await until(() => gateway.logs.some(line => /left before its request was complete/.test(line.message)), 'it is noted')
  t.equal(await ask(), '200', 'nor one that never came whole')
})

t.test('large bodies that follow each other through the same memory arrive as they were sent', async t => {
  const upstream = await fakeUpstream(t)
  const gateway = await wireGateway(t, {
    files: { 'etc/svc/upstreams.toml': upstreamTable('up', upstream.url, { retries: 1, retry_wait_seconds: 0.05 }) }
  })
  await (await gateway.chat({})).text()
  await gateway.fetch('/v1/models')
  const engine = gateway.runtime.engine('agent')
  const ask = async (model: string, i: number): Promise<number> => {
    const content = `<${i}>`.padEnd(MIB * (1 + i % 3) + i, String.fromCharCode(97 + i % 26)) + `</${i}>`
    sent.set(i, content)
    const answer = await gateway.chat({ model, messages: [{ role: 'user', content }] })
    await answer.text()
    return answer.status
  }
  const sent = new Map<number, string>()
  const arrived = (body: string): boolean => {
    const { messages: [message] } = JSON.parse(body) as { messages: [{ content: string }] }
    const number = /^<(\d+)>/.exec(message.content)?.[1]
    return number === undefined ? message.content === 'hi' : sent.get(Number(number)) === message.content
  }
  for (let round = 0; round < 4; round++) {
    // one is refused first, and sent once more from the same memory
    upstream.play(upstreamRefusal(503), okAnswer)
    const leaver = await rawClient(t, gateway.baseUrl)
    leaver.send(large(2 * MIB).subarray(0, MIB))
    const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => ask(i % 2 === 0 ? 'agent' : 'up/gpt-9', round * 6 + i)))
    t.strictSame(answers, [200, 200, 200, 200, 200, 200])
    leaver.socket.destroy()
  }
  t.equal(sent.size, 24)
  t.equal(upstream.calls.length, 16, 'some were asked again')
  // what is still on its way to an engine that has answered already must not change
  const unread: IncomingMessage[] = []
  engine.take((request, response) => {
    unread.push(request)
    response.writeHead(200, { 'content-length': 2 }).end('{}')
  })
  const client = await rawClient(t, gateway.baseUrl)
  client.send(large(20 * MIB, 'e'))
  await client.seen(/HTTP\/1\.1 200/)
  engine.take(null)
  t.strictSame(await Promise.all([24, 25, 26].map(i => ask('agent', i))), [200, 200, 200])
  const late: Buffer[] = []
  for (const request of unread) {
    request.on('error', () => {}).on('data', (piece: Buffer) => late.push(piece))
    await until(() => request.socket.destroyed || request.complete, 'the connection has ended')
  }
  t.notMatch(Buffer.concat(late).toString(), /[a-df-z]{9}/)
  const all = [...engine.requests.filter(({ url }) => url === CHAT), ...upstream.calls]
  t.ok(all.every(({ body }) => arrived(body.toString())))
})

t.test('a client that was refused while it sends reads why, on a connection that goes on', async t => {
  const gateway = await wireGateway(t, { svc: `[server]\nbody_memory_bytes = ${MIB}\n` })
  await (await gateway.chat({})).text()
  const first = await rawClient(t, gateway.baseUrl)
  first.send(large(900_000).subarray(0, 800_000))
  const second = await rawClient(t, gateway.baseUrl)
  await until(() => gateway.gateway.bodies().memory.taken > 700_000, 'the first is there')
  second.send(large(3_000_000))
  await second.seen(/HTTP\/1\.1 503[^]*\}$/)
  second.send(post(CHAT, chatBody()))
  await second.seen(/HTTP\/1\.1 200/)
})

t.test('a body that trickles is given up, one that gets on is not', async t => {
  const clock = new FakeClock()
  const gateway = await wireGateway(t, { clock })
  const chat = await rawClient(t, gateway.baseUrl)
  const moving = await rawClient(t, gateway.baseUrl)
  chat.send(head(500))
  moving.send(head(8 * 20_000))
  await until(() => gateway.gateway.bodies().open === 2, 'both are begun')
  for (let i = 0; i < 6; i++) {
    chat.send(' ')
    const before = moving.socket.bytesWritten
    moving.send(' '.repeat(20_000))
    await until(() => moving.socket.bytesWritten > before && moving.socket.writableLength === 0, 'it is sent')
    await clock.advance(15_000)
  }
  await chat.seen(/^HTTP\/1\.1 408[^]*connection: close[^]*request\.body_stalled/i)
  await chat.closed
  t.equal(moving.text(), '')
})

function zstd (text: string): Buffer | null {
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (body: string) => Buffer }
  return zstdCompressSync?.(text) ?? null
}

t.test('compressed bodies are unpacked, and what goes on is what came out', async t => {
  const gateway = await wireGateway(t)
  const body = chatBody({ seed: 5 })
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  const codings: Array<readonly [string, Buffer]> = [
    ['gzip', gzipSync(body)], ['x-gzip', gzipSync(body)], ['GZIP', gzipSync(body)], ['deflate', deflateSync(body)],
    ['deflate', deflateRawSync(body)], ['br', brotliCompressSync(body)], ['identity', Buffer.from(body)]
  ]
  const zstandard = zstd(body)
  if (zstandard !== null) codings.push(['zstd', zstandard])
  for (const [coding, bytes] of codings) {
    const answer = await packed(gateway, coding, bytes)
    t.equal(answer.status, 200, coding)
    await answer.text()
    const seen = engine.requests.at(-1)!
    t.equal(seen.body.toString(), body.replace('"agent"', '"fake-model"'), coding)
    t.equal(seen.headers['content-encoding'], undefined)
    t.equal(seen.headers['content-length'], String(seen.body.length))
  }
  const inPieces = await rawClient(t, gateway.baseUrl)
  const bytes = gzipSync(chatBody({ n: 'x'.repeat(100_000) })).toString('latin1')
  const chunks = [bytes.slice(0, 9), bytes.slice(9)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
  inPieces.send(`POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
  await inPieces.seen(/HTTP\/1\.1 200/)
})

t.test('what no body may be when it is unpacked', async t => {
  const gateway = await wireGateway(t, { svc: '[server]\nv1_body_limit_bytes = 1048576\n', plugins: [audioRoutes] })
  t.strictSame(await refusal(await packed(gateway, 'gzip', gzipSync(Buffer.alloc(50 * MIB, 0x20), { level: 1 }))), [413, 'request.too_large', 'false'], 'a bomb')
  t.strictSame(await refusal(await packed(gateway, 'gzip', Buffer.from('{"model":"agent"}'))), [400, 'request.invalid_encoding', 'false'], 'not packed')
  t.strictSame(await refusal(await packed(gateway, 'gzip', gzipSync(chatBody()).subarray(0, 40))), [400, 'request.invalid_encoding', 'false'], 'cut short')
  for (const coding of ['lzma', 'gzip, br', 'x'.repeat(2000), ...zstd('') === null ? ['zstd'] : []]) {
    const answer = await packed(gateway, coding, Buffer.from(chatBody()))
    const text = await answer.clone().text()
    t.strictSame(await refusal(answer), [415, 'request.unsupported_encoding', 'false'], coding.slice(0, 20))
    t.match(text, /one of gzip, deflate, br/)
    t.ok(text.length < 1000)
  }
  const form = new FormData()
  form.set('model', 'agent')
  const upload = await fetch(`${gateway.baseUrl}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-encoding': 'gzip' }, body: form })
  t.strictSame(await refusal(upload), [415, 'request.unsupported_encoding', 'false'])
})

t.test('unpacked bodies count like all others', async (t: Test) => {
  const gateway = await wireGateway(t, { svc: `[server]\nbody_memory_bytes = ${MIB}\n` })
  await (await gateway.chat({})).text()
  const first = await rawClient(t, gateway.baseUrl)
  first.send(large(900_000).subarray(0, 800_000))
  await until(() => gateway.gateway.bodies().memory.taken > 700_000, 'the first is there')
  const bomb = gzipSync(chatBody({ n: ' '.repeat(8 * MIB) }))
  t.strictSame(await refusal(await packed(gateway, 'gzip', bomb)), [503, 'gateway.body_memory_full', null])
})
