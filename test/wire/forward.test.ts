import { request as httpRequest } from 'node:http'
import t from 'tap'
import { chatStream } from '../../kernel/testing/index.js'
import { readUntil, until, wireGateway } from './wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const long = chatStream(Array.from({ length: 200 }, (_, i) => ` word${i}`))

t.test('a cold slot is loaded by its first request, and the body arrives with the model rewritten', async t => {
  const gateway = await wireGateway(t)
  const text = '{"messages":[{"role":"user","content":"h\\u00e9 \\"model\\""}] , "model":"agent","omni":true,"temperature":0.10}'
  const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: text, headers: { 'x-request-id': 'abc-1', 'authorization': 'Bearer x' } })
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-request-id'), 'abc-1')
  t.match(await response.json(), { choices: [{ message: { content: 'Hello there' } }] })
  const seen = await gateway.runtime.engine('agent').request(0)
  t.equal(seen.body.toString(), text.replace('"agent"', '"fake-model"').replace('"omni":true,', ''))
  t.equal(seen.headers.authorization, undefined, 'the client\'s key stays here')
  t.equal(seen.headers['x-request-id'], 'abc-1')
  t.equal(gateway.runtime.started.length, 1)
})

t.test('a stream arrives byte for byte, however the engine cuts it', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  const whole = Buffer.from(`: comment of the engine\n\n${long.join('')}data: {"text":"é€😀"}\r\n\r\n`)
  for (const size of [1, 7, 64, 1000, whole.length]) {
    const chunks: Buffer[] = []
    for (let i = 0; i < whole.length; i += size) chunks.push(whole.subarray(i, i + size))
    engine.answer({ headers: SSE, chunks })
    const response = await gateway.chat({ stream: true })
    t.equal(response.headers.get('x-accel-buffering'), 'no')
    t.equal(response.headers.get('content-encoding'), null)
    const received = Buffer.from(await response.arrayBuffer())
    t.ok(received.equals(whole), `pieces of ${size} bytes`)
  }
})

t.test('an error body of the engine passes through unchanged', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  const body = '{"error":{"code":400,"message":"the prompt is too long","type":"exceed_context_size_error"}}'
  gateway.runtime.engine('agent').answer({ status: 400, headers: { 'content-type': 'application/json' }, chunks: [body] })
  const response = await gateway.chat({})
  t.equal(response.status, 400)
  t.equal(await response.text(), body)
})

t.test('a client that leaves cancels the engine\'s work at once, in every phase', async t => {
  const gateway = await wireGateway(t, { svc: '[dispatcher]\nping_interval_s = 0\n' })
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  const cases = [
    { name: 'before the head, streaming', script: { headAfterMs: Infinity }, body: { stream: true } },
    { name: 'before the head, not streaming', script: { headAfterMs: Infinity }, body: {} },
    { name: 'in a stream that stands still', script: { headers: SSE, chunks: long, hangAfter: 3 }, body: { stream: true } },
    { name: 'in a stream that flows', script: { headers: SSE, chunks: long, everyMs: 5 }, body: { stream: true } },
    { name: 'in a plain body', script: { headers: { 'content-type': 'application/json' }, chunks: ['{"a"', ':1}'], hangAfter: 1 }, body: {} }
  ]
  for (const { name, script, body } of cases) {
    engine.answer(script)
    const n = engine.requests.length
    const controller = new AbortController()
    const answer = gateway.chat(body, controller.signal).then(response => response.text()).catch(() => 'aborted')
    const seen = await engine.request(n)
    controller.abort()
    t.equal(await seen.closed, 'aborted', name)
    await answer
  }
  t.equal(gateway.gateway.inference().slots.status('agent').inFlight, 0, 'no lease is left')
  t.equal(gateway.gateway.inference().dispatcher.active.size, 0, 'no request is left')
  t.strictSame(gateway.logs.filter(({ level }) => level === 'error' || level === 'warn'), [], 'that is no failure')
  const told = gateway.logs.filter(({ level, message, fields }) =>
    level === 'debug' && typeof fields.request_id === 'string' && message === 'the client left before its answer was complete')
  t.equal(told.length, cases.length, 'and can be found by the id of the request')
})

t.test('a client that leaves while the slot loads does not stop the load for others', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const gateway = await wireGateway(t, { onStart: () => gate })
  const controller = new AbortController()
  const first = gateway.chat({ messages: [{ role: 'user', content: 'one' }] }, controller.signal).catch(() => null)
  const second = gateway.chat({ messages: [{ role: 'user', content: 'two' }] })
  await until(() => gateway.gateway.inference().slots.status('agent').waiting === 2, 'both wait')
  controller.abort()
  await until(() => gateway.gateway.inference().slots.status('agent').waiting === 1, 'one left')
  release()
  t.equal(await first, null)
  t.equal((await second).status, 200)
  t.equal(gateway.runtime.engine('agent').requests.length, 1, 'only the one who waited reached the engine')
})

t.test('a stream that breaks off ends with one error event and no [DONE]', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  const engine = gateway.runtime.engine('agent')
  const half = Buffer.from(long.join('')).subarray(0, 50)
  const cases: Array<[string, (string | Buffer)[], number]> = [
    ['between two events', long, 5],
    ['in the middle of a line', [half], 1],
    ['behind a line, before its blank line', [long[0]!.slice(0, -1)], 1],
    ['before the first byte of the body', [], 0]
  ]
  for (const [name, chunks, dieAfter] of cases) {
    engine.answer({ headers: SSE, chunks, dieAfter })
    const response = await gateway.chat({ stream: true })
    const text = await response.text()
    const events = text.split('\n\n').filter(event => event !== '')
    t.equal(response.status, 200, name)
    t.notMatch(text, /\[DONE\]/, name)
    const last = JSON.parse(events.at(-1)!.replace(/^data: /, '')) as { error: { code: string, message: string, details: object } }
    t.match(last.error, { code: 'dispatch.upstream_failed', type: 'server_error', details: { slot: 'agent', cause: /^(UND_ERR|E[A-Z])/ } }, name)
    t.notMatch(last.error.message, /[A-Z]{3,}_|ECONN/, `${name}: codes of libraries are no words for people`)
    for (const event of events) t.doesNotThrow(() => { JSON.parse(event.replace(/^data: /, '')) }, `${name}: every event is whole`)
  }
  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: ['{"half":'], dieAfter: 1 })
  await t.rejects(gateway.chat({}).then(response => response.text()), 'a plain body that breaks off is a broken connection')
  engine.answer({ headAfterMs: 0, headers: SSE, chunks: chatStream(['fine']) })
  t.match(await (await gateway.chat({ stream: true })).text(), /\[DONE\]/, 'the gateway goes on')
})

t.test('identical cold requests share one call; different ones share one load', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const gateway = await wireGateway(t, {
    onStart: async ({ engine }) => {
      engine.answer({ headers: SSE, chunks: long })
      await gate
    }
  })
  const same = Array.from({ length: 20 }, () => gateway.chat({ stream: true }))
  const other = gateway.chat({ stream: true, seed: 1 })
  await until(() => gateway.gateway.inference().dispatcher.active.size === 21, 'all are on board')
  release()
  const texts = await Promise.all([...same, other].map(async response => await (await response).text()))
  for (const text of texts) t.equal(text, long.join(''))
  t.equal(gateway.runtime.started.length, 1, 'one engine')
  t.equal(gateway.runtime.engine('agent').requests.length, 2, 'one call for the twenty, one for the other')
})

t.test('a slow reader of a shared stream is cut off and does not stall the others', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const filler = `: ${'x'.repeat(64 * 1024)}\n\n`
  const chunks = Array.from({ length: 200 }, () => filler)
  const gateway = await wireGateway(t, {
    svc: '[dispatcher]\nslow_reader_buffer_kb = 256\n',
    onStart: async ({ engine }) => {
      engine.answer({ headers: SSE, chunks: [...chunks, 'data: [DONE]\n\n'] })
      await gate
    }
  })
  const body = JSON.stringify({ model: 'agent', stream: true, messages: [] })
  const slow = httpRequest(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  slow.end(body)
  const slowAnswer = new Promise<NodeJS.ReadableStream>(resolve => { slow.on('response', resolve) })
  const fast = gateway.fetch('/v1/chat/completions', { method: 'POST', body })
  await until(() => gateway.gateway.inference().dispatcher.active.size === 2, 'both are on board')
  release()
  const stalled = await slowAnswer
  stalled.pause()
  const text = await (await fast).text()
  t.equal(text.length, filler.length * 200 + 'data: [DONE]\n\n'.length, 'the fast reader got everything')
  let rest = ''
  stalled.on('data', (chunk: Buffer) => { rest = (rest + chunk.toString()).slice(-4096) })
  stalled.resume()
  await new Promise(resolve => { stalled.on('close', resolve) })
  t.match(rest, /dispatch\.slow_reader/, 'the slow one is told why')
})

t.test('cold streams: quick failures keep their status, slow loads open the stream and ping', async t => {
  t.test('a failing load answers with its own status', async t => {
    const gateway = await wireGateway(t, { onStart: () => { throw new Error('out of memory') } })
    const response = await gateway.chat({ stream: true })
    t.equal(response.status, 502)
    t.equal(response.headers.get('x-should-retry'), 'false')
    t.match(await response.json(), { error: { code: 'slot.load_failed', message: /out of memory/ } })
  })
  t.test('a slow load opens the stream with pings', async t => {
    let release = (): void => {}
    const gate = new Promise<void>(resolve => { release = resolve })
    const gateway = await wireGateway(t, { svc: '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.01\n', onStart: () => gate })
    const response = await gateway.chat({ stream: true })
    t.equal(response.status, 200)
    const reader = response.body!.getReader()
    const first = Buffer.from((await reader.read()).value!).toString()
    t.match(first, /^: ping\n\n/)
    release()
    let text = first
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += Buffer.from(piece.value).toString()
    t.equal(text.replaceAll(': ping\n\n', ''), chatStream(['Hello', ' there']).join(''), 'nothing but pings was added')
    t.match(text, /(: ping\n\n)+data: /, 'and only before the first byte')
  })
  t.test('an engine that refuses after the stream was opened', async t => {
    const gateway = await wireGateway(t, { svc: '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.01\n' })
    await (await gateway.chat({})).text()
    const body = '{"error":{"code":400,"message":"no"}}'
    gateway.runtime.engine('agent').answer({ headAfterMs: 100, status: 400, headers: { 'content-type': 'application/json' }, chunks: [body] })
    const response = await gateway.chat({ stream: true })
    t.equal(response.status, 200)
    t.equal((await response.text()).replaceAll(': ping\n\n', ''), `data: ${body}\n\n`)
  })
})

t.test('what an engine says it cannot do is not asked again', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  for (const [status, own, expected] of [[501, {}, 'false'], [501, { 'X-Should-Retry': 'true' }, 'true'], [500, {}, null]] as const) {
    const body = '{"error":{"message":"no"}}'
    gateway.runtime.engine('agent').answer({ status, headers: { 'content-type': 'application/json', ...own }, chunks: [body] })
    const response = await gateway.chat({})
    t.equal(response.headers.get('x-should-retry'), expected, `${status} ${JSON.stringify(own)}`)
    t.equal(await response.text(), body, 'the body is the engine\'s')
  }
})

t.test('an engine that crashes is loaded again by the next request', async t => {
  const gateway = await wireGateway(t)
  await (await gateway.chat({})).text()
  gateway.runtime.engine('agent').answer({ headers: SSE, chunks: long, everyMs: 5 })
  const response = await gateway.chat({ stream: true })
  const text = readUntil(response, () => false)
  await until(() => gateway.runtime.engine('agent').active === 1, 'it streams')
  await gateway.runtime.crash('agent')
  t.match(await text, /"error"/)
  t.equal((await gateway.chat({})).status, 200)
  t.equal(gateway.runtime.started.length, 2)
})
