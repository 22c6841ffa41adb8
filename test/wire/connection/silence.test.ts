import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { HttpServer } from '../../../kernel/http/server/http-server.js'
import { chatStream, createFakeProviderPlugin, FakeClock, type FakeEngine } from '../../../kernel/testing/index.js'
import audioRoutes from '../../../plugins/v1/audio/index.js'
import { fakeUpstream, upstreamTable } from '../fake-upstream.js'
import { until, wireGateway } from '../wire-gateway.js'

const HOUR = 3_600_000
/** The clock of undici's own timeouts, which its tests move as well. */
const undici = createRequire(import.meta.url)('undici/lib/util/timers.js') as { tick (ms: number): void }
const words = chatStream(['late', ' but', ' whole'])
const SSE = { 'content-type': 'text/event-stream' }

/** Posts to the gateway through no client that has a patience of its own. */
function post (url: string, body: string, type = 'application/json'): { readonly text: () => string, readonly ended: Promise<number> } {
  let text = ''
  const request = httpRequest(url, { method: 'POST', agent: false, headers: { 'content-type': type, 'accept-encoding': 'gzip, br' } })
  request.end(body)
  const ended = once(request, 'response').then(async ([response]: IncomingMessage[]) => {
    for await (const chunk of response!) text += String(chunk)
    return response!.statusCode!
  })
  return { text: () => text, ended }
}

/** The next answer of an engine, once it was asked for something else than its models: the test writes it. */
function reach (engine: FakeEngine): Promise<ServerResponse> {
  return new Promise(resolve => {
    engine.take((request, response) => {
      if (request.method === 'GET') response.end('{"data":[{"id":"far"}]}')
      else request.resume().on('end', () => resolve(response))
    })
  })
}

const chat = (stream: boolean, model = 'agent'): string => JSON.stringify({ model, stream, messages: [] })
const form = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\near\r\n' +
  '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nsound\r\n--b--\r\n'

t.test('an engine may think for an hour before its answer and inside it; its slot stays', async t => {
  const clock = new FakeClock()
  const remote = await fakeUpstream(t, ['far'])
  const gateway = await wireGateway(t, {
    clock,
    svc: 'idle_timeout_s = 60\n[dispatcher]\nping_interval_s = 0\n',
    plugins: [audioRoutes],
    files: {
      'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\nidle_timeout_s = 60\n',
      'etc/svc/slots/ear.toml': 'type = "transcription"\nprovider = "fake"\ndevice = "cpu"\nidle_timeout_s = 60\n',
      'etc/svc/upstreams.toml': upstreamTable('up', remote.url, { timeout_seconds: 2 * HOUR / 1_000 })
    }
  })
  await gateway.fetch('/v1/models')
  const cases: Array<[name: string, path: string, slot: string | null, body: string, pieces: readonly string[]]> = [
    ['a plain answer', 'chat/completions', 'agent', chat(false), ['{"choices":', '[]}']],
    ['a stream', 'chat/completions', 'agent', chat(true), words],
    ['a form', 'audio/transcriptions', 'ear', form, ['{"text":', '"hi"}']],
    ['a stream of an upstream', 'chat/completions', null, chat(true, 'far'), words]
  ]
  for (const [name, path, slot, body, pieces] of cases) {
    for (const inside of [false, true]) {
      if (slot !== null) await gateway.slots.load(slot)
      const engine = slot === null ? remote.engine : gateway.runtime.engine(slot)
      const reached = reach(engine)
      const answer = post(`${gateway.baseUrl}/v1/${path}`, body, slot === 'ear' ? 'multipart/form-data; boundary=b' : undefined)
      const response = await reached
      response.on('error', () => {})
      const begin = (): void => void response.writeHead(200, pieces === words ? SSE : { 'content-type': 'application/json' }).write(pieces[0])
      if (inside) begin()
      await until(() => answer.text() === (inside ? pieces[0] : ''), 'what there is has come')
      undici.tick(1_000)
      undici.tick(HOUR)
      await clock.advance(HOUR)
      if (slot !== null) t.match(gateway.slots.status(slot), { state: 'serving', inFlight: 1 }, `${name}: nobody calls it idle`)
      if (!inside) begin()
      response.end(pieces.slice(1).join(''))
      t.equal(await answer.ended, 200, `${name}, ${inside ? 'inside' : 'before'}`)
      t.equal(answer.text(), pieces.join(''), name)
    }
  }
  t.strictSame(['agent', 'ear'].map(name => gateway.slots.status(name).state), ['offline', 'offline'], 'who has nothing to do for that long goes')
})

t.test('an upstream is waited for as long as its row says, before its head and between two pieces', async t => {
  const clock = new FakeClock()
  const remote = await fakeUpstream(t, ['far'])
  const gateway = await wireGateway(t, {
    clock,
    svc: '[dispatcher]\nping_interval_s = 0\n',
    files: { 'etc/svc/upstreams.toml': upstreamTable('up', remote.url, { timeout_seconds: 60, idle_timeout_seconds: 90 }) }
  })
  await gateway.fetch('/v1/models')
  const ask = async (): Promise<[answer: ReturnType<typeof post>, response: ServerResponse]> => {
    const reached = reach(remote.engine)
    const answer = post(`${gateway.baseUrl}/v1/chat/completions`, chat(true, 'far'))
    const response = await reached
    return [answer, response.on('error', () => {})]
  }
  const [never] = await ask()
  await clock.advance(50_000)
  const [begun, response] = await ask()
  await clock.advance(15_000)
  t.equal(await never.ended, 504)
  t.match(never.text(), /"code":"dispatch\.upstream_timeout"/)
  response.writeHead(200, SSE).write(words[0])
  for (let i = 1; i <= 3; i++) {
    await until(() => begun.text() === words[0]!.repeat(i), 'the other goes on')
    await clock.advance(80_000)
    response.write(words[0])
  }
  await until(() => begun.text() === words[0]!.repeat(4), 'every piece counts anew')
  await clock.advance(120_000)
  t.equal(await begun.ended, 200)
  t.match(begun.text(), /"code":"dispatch\.upstream_timeout"/)
})

t.test('an engine is lost when neither its answers nor its health check come for a minute, and one that says something is not', async t => {
  const clock = new FakeClock()
  const gateway = await wireGateway(t, { clock, probe: async (_address, _check, signal) => await health(signal), svc: '[dispatcher]\nping_interval_s = 0\n' })
  let silent = false
  const health = async (signal: AbortSignal): Promise<'ok' | 'silent'> => {
    signal.throwIfAborted()
    return silent ? 'silent' : 'ok'
  }
  await gateway.slots.load('agent')
  const engine = gateway.runtime.engine('agent')
  const reached = reach(engine)
  const answer = post(`${gateway.baseUrl}/v1/chat/completions`, chat(true))
  const response = await reached
  response.on('error', () => {})
  response.writeHead(200, SSE).write(words[0])
  await until(() => answer.text() === words[0], 'it has begun')
  silent = true
  for (let i = 1; i <= 3; i++) {
    await clock.advance(50_000)
    response.write(words[1])
    await until(() => answer.text() === words[0] + words[1]!.repeat(i), 'it says something')
  }
  t.match(gateway.slots.status('agent'), { state: 'serving', inFlight: 1 }, 'what comes counts, whatever the health check says')
  silent = false
  await clock.advance(50_000)
  silent = true
  await clock.advance(50_000)
  t.match(gateway.slots.status('agent'), { state: 'serving' }, 'a minute without either, not two halves')
  await clock.advance(20_000)
  t.equal(await answer.ended, 200)
  t.match(answer.text(), /"code":"dispatch\.upstream_failed".*has been silent for 60 s/)
  silent = false
  await clock.advance(5_000)
  await until(() => gateway.slots.status('agent').state === 'ready', 'the slot comes up again by itself')
  t.equal(gateway.runtime.started.length, 2)
})

t.test('the hour is one: a client with limits gives up, and the server has none', async t => {
  const remote = await fakeUpstream(t)
  remote.play({ headAfterMs: Infinity })
  const pool = new Pool(remote.engine.origin)
  t.teardown(() => pool.destroy())
  const refused = t.rejects(pool.request({ path: '/', method: 'POST' }), { code: 'UND_ERR_HEADERS_TIMEOUT' })
  await remote.call(0)
  undici.tick(1_000)
  undici.tick(HOUR)
  await refused
  t.match(new HttpServer({ debug () {}, info () {}, warn () {}, error () {} }).raw, { requestTimeout: 0, timeout: 0 })
})

/** Sends one piece after the other, each only when the client has the one before. */
async function inStep (
  t: Test, name: string, response: ServerResponse, answers: ReadonlyArray<{ text (): string }>, pieces: readonly string[]
): Promise<void> {
  let sent = ''
  for (const piece of pieces) {
    response.write(piece)
    sent += piece
    await until(() => answers.every(answer => answer.text() === sent), `${name}: ${JSON.stringify(piece)} has come`)
  }
  response.end()
  t.pass(name)
}

t.test('every event is with the client before the engine sends the next one', async t => {
  const remote = await fakeUpstream(t, ['far'])
  const gateway = await wireGateway(t, {
    // one of the engines answers what no document has
    checkAnswers: false,
    plugins: [audioRoutes, createFakeProviderPlugin({ name: 'voice', slotTypes: ['tts'] })],
    files: {
      'etc/svc/slots/mouth.toml': 'type = "tts"\nprovider = "voice"\ndevice = "cpu"\n',
      'etc/svc/upstreams.toml': upstreamTable('up', remote.url)
    }
  })
  await gateway.fetch('/v1/models')
  for (const name of ['agent', 'mouth']) await gateway.slots.load(name)
  const events = [': engines say this too\n\n', ...words]
  const cases: Array<[name: string, path: string, slot: string | null, body: string, type: string, pieces: readonly string[]]> = [
    ['a stream', 'chat/completions', 'agent', chat(true), 'text/event-stream', events],
    ['of an upstream', 'chat/completions', null, chat(true, 'far'), 'text/event-stream; charset=utf-8', events],
    ['lines of no known type', 'chat/completions', 'agent', chat(true), 'application/x-ndjson', ['{"a":1}\n', '{"b":2}\n']],
    ['a plain answer', 'chat/completions', 'agent', chat(false), 'application/json', ['{"id', '":1', '}']],
    ['sound', 'audio/speech', 'mouth', JSON.stringify({ model: 'mouth', input: 'hello' }), 'audio/mpeg', ['one', 'two', 'three']]
  ]
  for (const [name, path, slot, body, type, pieces] of cases) {
    const engine = slot === null ? remote.engine : gateway.runtime.engine(slot)
    const reached = reach(engine)
    const answer = post(`${gateway.baseUrl}/v1/${path}`, body)
    await inStep(t, name, (await reached).writeHead(200, { 'content-type': type }), [answer], pieces)
    t.equal(await answer.ended, 200)
  }
})

t.test('the same when several clients share a cold stream', async t => {
  let start = (): void => {}
  let reached: Promise<ServerResponse> | null = null
  const gateway = await wireGateway(t, {
    onStart: ({ engine }) => {
      reached = reach(engine)
      return new Promise<void>(resolve => { start = resolve })
    }
  })
  const answers = [post(`${gateway.baseUrl}/v1/chat/completions`, chat(true)), post(`${gateway.baseUrl}/v1/chat/completions`, chat(true))]
  await until(() => gateway.gateway.inference().dispatcher.active.size === 2, 'both are on board')
  start()
  await inStep(t, 'shared', (await reached!).writeHead(200, SSE), answers, words)
  t.strictSame(await Promise.all(answers.map(({ ended }) => ended)), [200, 200])
})
