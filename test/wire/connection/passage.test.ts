import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { WebSocket } from 'undici'
import settings from '../../../plugins/api/settings/index.js'
import passage from '../../../plugins/v1/passage/index.js'
import { chatStream, createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { rawClient } from './raw-client.js'
import { readUntil, until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const SLOT = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "org/model.gguf"\n'

interface Told {
  readonly status: number
  readonly headers: Headers
  readonly json: { readonly headers: Record<string, string> }
}

/** Slot `agent` on an engine that says what it was asked, and echoes on WebSockets at `/ws`. */
function setup (t: Parameters<typeof wireGateway>[0], options: WireOptions = {}): Promise<WireGateway> {
  return wireGateway(t, {
    plugins: [passage, settings],
    onStart: ({ engine }) => {
      engine.answer(({ method, url, headers, body }) => ({
        status: url.startsWith('/missing') ? 404 : 200,
        headers: { ...JSON_TYPE, 'x-engine': 'fake', 'access-control-allow-origin': '*', 'content-encoding': 'identity' },
        chunks: [JSON.stringify({ method, url, body: body.toString(), headers })]
      }))
      engine.takeUpgrades(echo)
    },
    files: {
      'etc/svc/slots/agent.toml': SLOT,
      'etc/svc/upstreams.toml': '[[upstream]]\nname = "far"\nurl = "http://127.0.0.1:9/v1"\nauth_style = "none"\n[upstream.model_filters]\nmodels = ["gpt-9"]\n',
      'var/lib/svc/registry/registry.toml': '[models."org/model.gguf"]\npath = "/dev/null"\n'
    },
    svc: '[aliases]\n"gpt-4.1" = "agent"\n',
    ...options
  })
}

t.test('a request below /upstream reaches the engine as it came', async t => {
  const gateway = await setup(t)
  const ask = async (path: string, init: RequestInit = {}): Promise<Told> => {
    const response = await gateway.fetch(path, { redirect: 'manual', ...init })
    return { status: response.status, headers: response.headers, json: await response.json().catch(() => null) as never }
  }
  const first = await ask('/upstream/agent/props?a=1&b=%2F', { headers: { 'accept-encoding': 'br', 'authorization': 'Bearer mine', 'cookie': 'a=b', 'x-own': 'kept' } })
  t.equal(gateway.runtime.started.length, 1, 'the cold slot was loaded')
  t.match(first, { status: 200, json: { method: 'GET', url: '/props?a=1&b=%2F', headers: { 'accept-encoding': 'br', 'x-own': 'kept' } } })
  t.notOk(first.json.headers.authorization ?? first.json.headers.cookie, 'what a client tells the gateway alone stays here')
  t.equal(first.headers.get('x-engine'), 'fake')
  t.notOk(first.headers.get('access-control-allow-origin'), 'the gateway decides which pages may read')
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    t.match((await ask('/upstream/agent/slots/0?action=save', { method, body: '{"model":"agent"}' })).json, { method, url: '/slots/0?action=save', body: '{"model":"agent"}' }, 'not a byte is changed')
  }
  t.equal((await gateway.fetch('/upstream/agent/metrics', { method: 'HEAD' })).status, 200)
  for (const name of ['org/model.gguf', 'org%2Fmodel.gguf', 'gpt-4.1', 'svc/agent']) t.match((await ask(`/upstream/${name}/x/y//z/`)).json, { url: '/x/y//z/' }, name)
  t.match(await ask('/upstream/agent/missing'), { status: 404, json: { url: '/missing' } }, 'a refusal is the engine\'s')
  const bare = await ask('/upstream/agent?x=1')
  t.equal(bare.status, 302)
  t.equal(new URL(bare.headers.get('location')!, `${gateway.baseUrl}/upstream/agent`).href, `${gateway.baseUrl}/upstream/agent/?x=1`)
  t.match((await ask('/upstream/agent/')).json, { url: '/' })

  t.match(await ask('/upstream/nobody/props'), { status: 404, json: { error: { code: 'model.not_found', message: /'nobody' is neither a slot/ } } })
  t.match(await ask('/upstream/gpt-9/props'), { status: 404, json: { error: { code: 'dispatch.no_route', message: /remote upstream/ } } })
  t.match(await ask('/upstream/agent/props', { headers: { origin: 'http://evil.example' } }), { status: 403 })
  await gateway.fetch('/api/settings', { method: 'PATCH', body: '{"dispatcher":{"engine_passage":false}}' })
  t.match(await ask('/upstream/agent/props'), { status: 403, json: { error: { code: 'dispatch.passage_off', message: /engine_passage = true/ } } })
})

t.test('a passed request holds a lease, is metered, listed and cancelled like any other', async t => {
  const gateway = await setup(t, { plugins: [passage] })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  const { engine } = gateway.runtime.started[0]!
  const { active } = gateway.gateway.inference().dispatcher
  engine.answer({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(['one', 'two', 'three']) })
  const whole = await gateway.fetch('/upstream/agent/v1/chat/completions', { method: 'POST', body: '{"stream":true}' })
  t.equal(await whole.text(), chatStream(['one', 'two', 'three']).join(''), 'a stream is the engine\'s, byte for byte')
  await until(() => active.size === 0, 'it is over')
  t.match(gateway.slots.metrics('agent'), { requestCount: 1, tokenCount: 3 })

  engine.answer({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(['one', 'two']), hangAfter: 1 })
  const n = engine.requests.length
  const cancelled = await gateway.fetch('/upstream/agent/completion', { method: 'POST', body: '{}', headers: { 'x-request-id': 'mine' } })
  const seen = await engine.request(n)
  const { inference } = gateway.gateway
  t.match(inference().requests.list(), [{ id: 'mine', model: 'agent', surface: 'engine', slot: 'agent' }])
  t.equal(gateway.slots.status('agent').inFlight, 1, 'the slot is in use')
  t.equal(inference().requests.cancel('mine'), 1)
  t.match(await cancelled.text(), /request\.cancelled/)
  t.equal(await seen.closed, 'aborted')

  const stopped = await gateway.fetch('/upstream/agent/completion', { method: 'POST', body: '{}' })
  const unloaded = await engine.request(n + 1)
  await gateway.slots.unload('agent', { force: true })
  t.match(await stopped.text(), /slot\.stopped/, 'a slot that is unloaded by force says so, and not that its engine broke off')
  t.equal(await unloaded.closed, 'aborted')

  await gateway.slots.ensureReady('agent', new AbortController().signal)
  const { engine: next } = gateway.runtime.started[1]!
  next.answer({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(['one', 'two']), hangAfter: 1 })
  const client = new AbortController()
  const left = await gateway.fetch('/upstream/agent/completion', { method: 'POST', body: '{}', signal: client.signal })
  const again = await next.request(0)
  await readUntil(left, text => text.includes('data:')).catch(() => '')
  client.abort()
  t.equal(await again.closed, 'aborted', 'the client\'s leaving ends the engine\'s work')
  await until(() => gateway.slots.status('agent').inFlight === 0, 'the lease is given back')
})

t.test('what is only read does not wait for a worker', async t => {
  const runtimePlugins = createFakeProviderPlugin({ name: 'single', concurrency: () => 1, lightPaths: ['/tokenize'] })
  const gateway = await setup(t, { plugins: [passage, runtimePlugins], files: { 'etc/svc/slots/agent.toml': SLOT.replace('"fake"', '"single"').replace('org/model.gguf', 'fake-model') } })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  const { engine } = gateway.runtime.started[0]!
  engine.answer(({ url }) => url === '/completion' ? { headAfterMs: Infinity } : { headers: JSON_TYPE, chunks: ['{"fine":true}'] })
  const client = new AbortController()
  const busy = gateway.fetch('/upstream/agent/completion', { method: 'POST', body: '{}', signal: client.signal }).catch(() => null)
  await engine.request(0)
  for (const [path, method] of [['/slots', 'GET'], ['/tokenize?x', 'POST']] as const) {
    t.match(await (await gateway.fetch(`/upstream/agent${path}`, { method })).json(), { fine: true }, path)
  }
  const behind = gateway.fetch('/upstream/agent/infill', { method: 'POST', body: '{}' })
  await until(() => gateway.slots.status('agent').waiting === 1, 'what is computed waits in line')
  client.abort()
  await busy
  t.match(await (await behind).json(), { fine: true })
})

t.test('WebSockets of an engine pass through unchanged', async t => {
  const gateway = await setup(t)
  const { active } = gateway.gateway.inference().dispatcher
  const url = gateway.baseUrl.replace('http', 'ws')
  const open = async (path: string): Promise<WebSocket> => {
    const socket = new WebSocket(`${url}${path}`)
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', event => reject(event.error as Error))
    })
    return socket
  }
  const said = (socket: WebSocket): Promise<unknown> => new Promise(resolve => {
    socket.addEventListener('message', event => resolve(event.data), { once: true })
  })
  const over = (socket: WebSocket): Promise<number> => new Promise(resolve => {
    socket.addEventListener('close', event => resolve(event.code), { once: true })
  })
  const socket = await open('/upstream/agent/ws?client=1')
  t.equal(gateway.runtime.started.length, 1, 'the cold slot was loaded for it')
  for (const text of ['hello', 'ümläut', 'x'.repeat(60_000)]) {
    const heard = said(socket)
    socket.send(text)
    t.equal(await heard, `/ws?client=1 ${text}`)
  }
  t.match(gateway.gateway.inference().requests.list(), [{ surface: 'engine', phase: 'streaming', slot: 'agent' }])
  t.equal(gateway.slots.status('agent').inFlight, 1)
  socket.close()
  await until(() => active.size === 0 && gateway.slots.status('agent').inFlight === 0, 'nothing is left of it')

  const second = await open('/upstream/agent/ws')
  const closed = over(second)
  gateway.gateway.inference().requests.cancel(gateway.gateway.inference().requests.list()[0]!.id)
  t.equal(await closed, 1001, 'an operator\'s cancel closes it as a server that goes away')

  const raw = await rawClient(t, gateway.baseUrl)
  const ask = (path: string, more = ''): void => raw.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n${more}\r\n`)
  ask('/upstream/agent/plain')
  await raw.seen(/^HTTP\/1\.1 200 [^]*"url":"\/plain"/)
  await raw.closed
  const refused = await rawClient(t, gateway.baseUrl)
  refused.send('GET /upstream/agent/ws HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
  await refused.seen(/^HTTP\/1\.1 403 [^]*origin_not_allowed/)
  const elsewhere = await rawClient(t, gateway.baseUrl)
  elsewhere.send('GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
  await elsewhere.seen(/^HTTP\/1\.1 200 [^]*"object":"list"/)
  const h2c = await rawClient(t, gateway.baseUrl)
  const body = '{"model":"agent","messages":[]}'
  h2c.send(`POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await h2c.seen(/^HTTP\/1\.1 200 [^]*chat\/completions/)

  const last = await open('/upstream/agent/ws')
  const gone = over(last)
  await gateway.slots.unload('agent', { force: true })
  t.ok(await gone, 'an engine that stops takes its WebSockets along')
  await until(() => active.size === 0, 'nothing is left of it')
})

/** A WebSocket server that says each text back, behind the address that it was opened with. */
function echo (request: IncomingMessage, socket: Socket): void {
  if (!request.url!.startsWith('/ws')) {
    const answer = JSON.stringify({ url: request.url })
    socket.end(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`)
    return
  }
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
  let pending: Buffer = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk])
    for (let frame = frameOf(pending); frame !== null; frame = frameOf(pending)) {
      pending = pending.subarray(frame.size)
      if (frame.opcode === 8) return void socket.end(Buffer.concat([Buffer.from([0x88, frame.payload.length]), frame.payload]))
      if (frame.opcode === 1) socket.write(textFrame(`${request.url!} ${frame.payload.toString()}`))
    }
  })
}

/** The first whole frame of a client, unmasked; lengths up to 64 KiB. */
function frameOf (bytes: Buffer): { readonly opcode: number, readonly payload: Buffer, readonly size: number } | null {
  const short = (bytes[1] ?? 0) & 0x7f
  if (bytes.length < (short === 126 ? 4 : 2)) return null
  const [length, at] = short === 126 ? [bytes.readUInt16BE(2), 4] : [short, 2]
  if (bytes.length < at + 4 + length) return null
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length).map((byte, i) => byte ^ mask[i % 4]!))
  return { opcode: bytes[0]! & 0x0f, payload, size: at + 4 + length }
}

function textFrame (text: string): Buffer {
  const payload = Buffer.from(text)
  const length = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff]
  return Buffer.concat([Buffer.from([0x81, ...length]), payload])
}
