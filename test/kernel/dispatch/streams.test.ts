import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import fc from '../../property.js'
import t from 'tap'
import type { Dispatcher } from 'undici'
import { svcError, type SlotLease, type SlotState, type SlotStatus, type SvcError } from '../../../kernel/contract/index.js'
import { ActiveRequests, type ActiveRequest } from '../../../kernel/dispatch/requests/active-requests.js'
import type { AnswerSink } from '../../../kernel/dispatch/answer/answer-sink.js'
import { ClientSink, slowReader } from '../../../kernel/dispatch/answer/client-sink.js'
import { FanOut } from '../../../kernel/dispatch/answer/fan-out.js'
import { Exchange } from '../../../kernel/dispatch/call/exchange.js'
import { SilenceWatch } from '../../../kernel/dispatch/call/silence-watch.js'
import { Flights, type FlightPlan, type Passenger } from '../../../kernel/dispatch/call/flights.js'
import { answerHead, openedStreamHeaders, overlaid, requestHeaders } from '../../../kernel/dispatch/answer/headers.js'
import { errorEvent, eventOfUpstreamError } from '../../../kernel/dispatch/answer/in-stream-error.js'
import { requestView } from '../../../kernel/dispatch/requests/request-list.js'
import { gapAfter, LineAligner } from '../../../kernel/dispatch/answer/sse-align.js'
import { contentDeltas, SseMeter, UsageMeter } from '../../../kernel/dispatch/answer/sse-meter.js'
import { StreamShaper } from '../../../kernel/dispatch/answer/stream-shaper.js'
import { Throughput } from '../../../kernel/slots/life/engine/throughput.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'
import { FakeResponse } from './fake-response.js'

const SSE = ['content-type', 'text/event-stream']
const JSON_HEAD = ['content-type', 'application/json']
const failed = svcError('dispatch.upstream_failed', 'broke off')

t.test('request headers: what is the client\'s own stays here', async t => {
  const kept = ['Content-Type', 'application/json', 'User-Agent', 'x', 'X-Custom', '1', 'X-Custom', '2', 'OpenAI-Organization', 'o']
  const raw = [
    'Host', 'h', ...kept, 'Authorization', 'Bearer secret', 'X-API-Key', 'secret', 'api-key', 'secret', 'X-Goog-Api-Key', 'secret', 'Cookie', 'secret',
    'Connection', 'keep-alive, X-Hop', 'X-Hop', '1', 'Transfer-Encoding', 'chunked', 'Content-Length', '3', 'Expect', '100-continue', 'TE', 'trailers',
    'Upgrade', 'websocket', 'Accept-Encoding', 'gzip', 'Content-Encoding', 'gzip', 'Origin', 'o', 'Referer', 'r', 'X-Request-ID', 'theirs'
  ]
  t.strictSame(requestHeaders(raw, 'mine'), [...kept, 'x-request-id', 'mine'])
  t.strictSame(requestHeaders(['Connection', 'close', 'A', '1'], 'i'), ['A', '1', 'x-request-id', 'i'])
  t.strictSame(overlaid(['Api-Key', 'theirs', 'A', 'Api-Key'], ['api-key', 'ours']), ['A', 'Api-Key', 'api-key', 'ours'], 'own ones replace, by name and not by value')
  t.strictSame(overlaid(['A', '1'], ['x', 'y'], ['a', '2', 'B', '3']), ['A', '1', 'B', '3', 'x', 'y'], 'a fallback is for those who bring none')
})

t.test('a client gets the headers of an answer once each, without those of the connection', async t => {
  const plain = answerHead(404, ['Content-Type', 'application/json', 'Content-Length', '2', 'Connection', 'close', 'Transfer-Encoding', 'chunked', 'Set-Cookie', 'a=b',
    'Access-Control-Allow-Origin', '*', 'X-Request-ID', 'theirs', 'X-Other', 'é'].map(text => Buffer.from(text, 'latin1')), 'mine')
  t.strictSame(plain, { status: 404, isStream: false, contentLength: 2, headers: ['x-request-id', 'mine', 'Content-Type', 'application/json', 'Content-Length', '2', 'X-Other', 'é'] })
  const stream = answerHead(200, ['Content-Type', 'text/event-stream; charset=utf-8', 'Content-Length', '99', 'X-Accel-Buffering', 'yes'], 'i')
  t.strictSame(stream.headers, ['x-request-id', 'i', 'Content-Type', 'text/event-stream; charset=utf-8', 'x-accel-buffering', 'no', 'cache-control', 'no-cache'],
    'no length that an error event would exceed, and every header once')
  t.strictSame(answerHead(200, [...SSE, 'Cache-Control', 'no-store'], 'i').headers.filter(word => /^no-/.test(word)), ['no-store'], 'the engine\'s own stays')
  t.ok(openedStreamHeaders('i').includes('text/event-stream; charset=utf-8'))
})

t.test('event streams are cut behind whole lines, and nothing is added or lost', async t => {
  const text = fc.array(fc.constantFrom('data: {"a":1}', '\n', '\r\n', '\r', '\n\n', ': comment', 'é€😀', 'x', ''), { maxLength: 30, size: 'max' }).map(parts => Buffer.from(parts.join('')))
  fc.assert(fc.property(text, fc.array(fc.nat(40), { minLength: 1, maxLength: 20 }), (bytes, cuts) => {
    const aligner = new LineAligner()
    const out: Buffer[] = []
    for (let at = 0, i = 0; at < bytes.length; i++) {
      const end = at + Math.max(1, cuts[i % cuts.length]!)
      const lines = aligner.push(bytes.subarray(at, end))
      if (lines !== null) assert.match(lines.toString('latin1'), /[\r\n]$/, 'never a part of a line before the end')
      if (lines !== null) out.push(lines)
      at = end
    }
    const rest = aligner.flush()
    if (rest !== null) out.push(rest)
    assert.ok(Buffer.concat(out).equals(bytes), 'what comes out is what went in')
    assert.equal(aligner.flush(), null)
  }), { numRuns: 3_000 })
  const aligner = new LineAligner()
  t.equal(aligner.push(Buffer.alloc(1024 * 1024, 'x')), null)
  t.equal(aligner.push(Buffer.from('y'))?.length, 1024 * 1024 + 1, 'a line without end is passed on in pieces')
  const gaps: Array<[string, string]> = [['', ''], ['a', '\n\n'], ['a\n', '\n'], ['a\n\n', ''], ['a\r\n', '\n'], ['a\r\n\r\n', ''], ['a\r\r', ''], ['long tail\n\n', '']]
  for (const [tail, gap] of gaps) t.equal(gapAfter(Buffer.from(tail)), gap, JSON.stringify(tail))
})

t.test('meters count and change nothing', async t => {
  const cases: Array<[string, number]> = [
    ['{"delta":{"role":"assistant","content":null}}', 0], ['{"delta":{"content":""}}', 0], ['{"delta":{"content":"a"}}', 1], ['{"delta":{"content": "a"}}', 1],
    ['{"delta":{"reasoning_content":"a"}}', 1], ['{"choices":[{"text":"a"}]}', 1], ['{"function":{"arguments":"{\\"x\\":"}}', 1],
    ['{"delta":{"content":"a \\"content\\":\\"b\\""}}', 1], ['{"delta":{"content":"a"}}{"delta":{"content":"b"}}', 2], ['[DONE]', 0], ['', 0]
  ]
  for (const [event, count] of cases) t.equal(contentDeltas(Buffer.from(`data: ${event}\n\n`)), count, event)
  const word = fc.constantFrom('"', ':', ' ', '"content":', 'text":', '"', 'arguments', 'thinking":', '"partial_json": "a', 'n', 'é', '"x"')
  fc.assert(fc.property(fc.array(word, { maxLength: 12 }).map(words => words.join('')), text => {
    const found = text.match(/(?:content|text|arguments|thinking|partial_json)":(?= ?"[^"])/g) ?? []
    assert.equal(contentDeltas(Buffer.from(text)), found.length, text)
  }), { numRuns: 3_000 })
  const clock = new FakeClock(1_000_000)
  const throughput = new Throughput(clock)
  const meter = new SseMeter(throughput, { tokens: 0 }, clock, clock.monotonic())
  meter.push(Buffer.from('data: {"delta":{"content":""}}\n\n'))
  await clock.advance(250)
  meter.push(Buffer.from('data: {"delta":{"content":"a"}}\n\n'))
  await clock.advance(250)
  meter.push(Buffer.from('data: {"delta":{"content":"b"}}\n\n'))
  t.match(throughput.read(), { ttftMs: 250, tokenCount: 2 })
  const answer = JSON.stringify({ choices: [{ text: 'x'.repeat(9_000) }], usage: { prompt_tokens: 3, completion_tokens: 42, total_tokens: 45 } })
  for (const size of [1, 100, 5_000, 100_000]) {
    const counted = new Throughput(clock)
    const counter = { tokens: 0 }
    const usage = new UsageMeter(counted, counter)
    for (let i = 0; i < answer.length; i += size) usage.push(Buffer.from(answer.slice(i, i + size)))
    usage.end()
    t.equal(counted.read().tokenCount, 42, `usage in pieces of ${size}`)
    t.equal(counter.tokens, 42)
  }
  for (const [text, tokens] of [
    ['{"completion_tokens" :\n 7}', 7], ['{"completion_tokens":null}', 0], ['{"completion_tokens":-3}', 0], ['{"completion_tokens"', 0],
    ['{"completion_tokens":12345678901234}', 123_456_789], ['{"completion_tokens":5.5}', 5]
  ] as const) {
    const counter = { tokens: 0 }
    const usage = new UsageMeter(new Throughput(clock), counter)
    usage.push(Buffer.from(text))
    usage.end()
    t.equal(counter.tokens, tokens, text)
  }
})

t.test('an error inside a stream is one event in the shape of the API', async t => {
  t.equal(errorEvent(failed, 'r').toString(), `data: ${JSON.stringify({ error: { code: 'dispatch.upstream_failed', message: 'broke off', type: 'server_error', param: null, details: {}, request_id: 'r' } })}\n\n`)
  t.equal(eventOfUpstreamError(400, Buffer.from('{\n "error": {"message": "a\\nb"}}'), 'r').toString(), 'data: {"error":{"message":"a\\nb"}}\n\n', 'their shape, on one line')
  for (const body of ['<html>', '', '42', '{"half":']) {
    t.match(eventOfUpstreamError(503, Buffer.from(body), 'r').toString(), /^data: .*"dispatch\.upstream_failed".*503.*\n\n$/, body)
  }
})

interface Client { readonly res: FakeResponse, readonly sink: ClientSink, gone: number }

function client (reads = true, hasSocket = true): Client {
  const res = new FakeResponse(reads, hasSocket)
  const it: Client = { res, gone: 0, sink: new ClientSink(res.raw, 'id', () => { it.gone++ }) }
  return it
}

t.test('a failure reaches a client in the form that its answer still allows', async t => {
  t.test('a plain answer, and what comes after its end is nothing', async t => {
    const { res, sink } = client()
    sink.head(201, JSON_HEAD)
    t.equal(sink.data(Buffer.from('{}')), true)
    sink.end()
    sink.fail(failed)
    sink.end()
    t.match({ status: res.status, text: res.text, ended: res.ended }, { status: 201, text: '{}', ended: true })
    res.leave()
    t.equal(res.listenerCount('close'), 0, 'nothing watches any more')
  })
  t.test('the head of a stream waits for what comes in the same turn, and for nothing else', async t => {
    const [together, alone, over] = [client(), client(), client()]
    for (const { sink } of [together, alone, over]) sink.head(200, SSE)
    together.sink.data(Buffer.from('data: a\n\n'))
    over.sink.end()
    await turn()
    t.strictSame([together, alone, over].map(({ res }) => res.flushes), [0, 1, 0])
    alone.sink.data(Buffer.from('data: b\n\n'))
    t.equal(alone.res.text, 'data: b\n\n')
  })
  t.test('failures: before the head, in a stream, in a plain body', async t => {
    const before = client()
    before.sink.fail(svcError('slot.crash_looping', 'wait', { details: { retry_after_s: 2.2 } }))
    t.match({ status: before.res.status, text: before.res.text }, { status: 503, text: /slot\.crash_looping/ })
    t.strictSame(before.res.header('retry-after'), ['3'])
    t.strictSame(before.res.header('x-should-retry'), [])
    const permanent = client()
    permanent.sink.fail(svcError('slot.load_failed', 'no'))
    t.strictSame(permanent.res.header('x-should-retry'), ['false'])
    for (const [written, gap] of [['', ''], ['data: a\n\n', ''], ['data: a\n', '\n'], ['data: a', '\n\n']]) {
      const { res, sink } = client()
      sink.head(200, SSE)
      for (const byte of written!) sink.data(Buffer.from(byte))
      sink.fail(failed)
      t.equal(res.text, `${written}${gap}${errorEvent(failed, 'id').toString()}`)
      t.ok(res.ended)
    }
    const plain = client()
    plain.sink.head(200, JSON_HEAD)
    plain.sink.data(Buffer.from('{"half'))
    plain.sink.fail(failed)
    t.ok(plain.res.destroyed, 'only a broken connection tells that the rest is missing')
    t.equal(plain.gone, 0, 'which is not the client\'s leaving')
  })
  t.test('the hold: the head of a slow stream goes out after the grace, then pings until the first byte', async t => {
    const clock = new FakeClock()
    const { res, sink } = client()
    sink.hold(clock, { holdMs: 2_000, pingMs: 10_000 })
    await clock.advance(1_999)
    t.equal(res.status, undefined)
    await clock.advance(1)
    t.equal(res.status, 200)
    await clock.advance(25_000)
    t.equal(res.text, ': ping\n\n'.repeat(3))
    sink.head(200, SSE)
    await clock.advance(60_000)
    sink.data(Buffer.from('data: a\n\n'))
    sink.end()
    t.equal(res.text, `${': ping\n\n'.repeat(3)}data: a\n\n`)
    t.equal(res.head.length, 1, 'one head')
    t.equal(clock.pending, 0)
  })
  t.test('an upstream that dies between its head and its body is told with a status', async t => {
    const { sink, res } = client()
    sink.head(200, JSON_HEAD)
    t.equal(res.status, undefined, 'nothing is out')
    sink.fail(failed)
    t.equal(res.status, 502)
  })
  t.test('the hold: an answer in time, a failure, a client that leaves, and 0 end it', async t => {
    const clock = new FakeClock()
    const times = { holdMs: 2_000, pingMs: 10_000 }
    const quick = client()
    quick.sink.hold(clock, times)
    quick.sink.head(400, JSON_HEAD)
    quick.sink.end()
    const refused = client()
    refused.sink.hold(clock, times)
    refused.sink.fail(failed)
    const left = client()
    left.sink.hold(clock, times)
    left.res.leave()
    const off = client()
    off.sink.hold(clock, { ...times, pingMs: 0 })
    t.equal(clock.pending, 0)
    t.strictSame([quick.res.status, refused.res.status, left.res.status, off.res.status], [400, 502, undefined, undefined])
    t.equal(left.gone, 1)
  })
  t.test('an upstream that refuses an open stream is told as an event', async t => {
    for (const [status, head, body, expected] of [
      [429, JSON_HEAD, '{"error":{"message":"slow down"}}', 'data: {"error":{"message":"slow down"}}\n\n'], [200, JSON_HEAD, '{"choices":[]}', 'data: {"choices":[]}\n\n'],
      [500, ['content-type', 'text/html'], '<html>', /^data: .*500/]
    ] as Array<[number, string[], string, string | RegExp]>) {
      const clock = new FakeClock()
      const { res, sink } = client()
      sink.hold(clock, { holdMs: 0, pingMs: 1_000 })
      await clock.advance(0)
      sink.head(status, head)
      sink.data(Buffer.from(body.slice(0, 5)))
      sink.data(Buffer.from(body.slice(5)))
      sink.end()
      t.match(res.text.slice(': ping\n\n'.length), expected)
      t.ok(res.ended)
    }
    const clock = new FakeClock()
    const { res, sink } = client()
    sink.hold(clock, { holdMs: 0, pingMs: 1_000 })
    await clock.advance(0)
    sink.head(500, JSON_HEAD)
    sink.data(Buffer.alloc(1024 * 1024, 'x'))
    sink.fail(failed)
    t.match(res.text, /upstream_failed/, 'also when it breaks off in its refusal')
  })
  t.test('the client leaves: told once, in every phase, also on a connection with requests in line', async t => {
    for (const hasSocket of [true, false]) {
      for (const phase of ['waiting', 'flowing', 'done']) {
        const it = client(true, hasSocket)
        if (phase !== 'waiting') it.sink.head(200, SSE)
        if (phase === 'done') it.sink.end()
        it.res.leave()
        it.res.leave()
        t.equal(it.gone, phase === 'done' ? 0 : 1, `${phase}, ${hasSocket ? 'first' : 'not first'} in line`)
        it.sink.data(Buffer.from('late'))
        t.equal(it.res.text, '', 'nothing is written to nobody')
        t.equal(it.res.req.socket.listenerCount('close') + it.res.listenerCount('close'), 0)
      }
    }
  })
})

t.test('one answer for several clients', async t => {
  const chunk = Buffer.alloc(1_000, 'x')
  t.test('all get everything; the fastest sets the pace', async t => {
    const fast = client()
    const slow = client(false)
    const out = new FanOut(10_000)
    for (const { sink } of [fast, slow]) out.add(sink)
    out.head(200, SSE)
    t.equal(out.data(chunk), true, 'one is ready')
    out.end()
    t.equal(fast.res.text, slow.res.text)
    t.equal(out.size, 0)
  })
  t.test('all are slow: pause, and go on when one drains, whoever left meanwhile', async t => {
    const [a, b] = [client(false), client(false)]
    const out = new FanOut(10_000)
    for (const { sink } of [a, b]) out.add(sink)
    let resumed = 0
    out.onDrain(() => { resumed++ })
    out.head(200, SSE)
    t.equal(out.data(chunk), false)
    t.equal(out.data(chunk), false)
    out.remove(a.sink)
    b.res.drain()
    await turn()
    t.equal(resumed, 1)
    t.equal(out.data(chunk), false, 'the last one is waited for')
  })
  t.test('who falls too far behind the fastest is cut off and counts as gone', async t => {
    const fast = client()
    const slow = client(false)
    const out = new FanOut(2_500)
    for (const { sink } of [fast, slow]) out.add(sink)
    out.head(200, SSE)
    for (let i = 0; i < 5; i++) t.equal(out.data(chunk), true)
    t.equal(out.size, 1)
    t.match(slow.res.text, /dispatch\.slow_reader/)
    t.equal(slow.gone, 1)
    t.match(slow.res.timeout, { ms: 30_000 })
    slow.res.timeout!.fn()
    t.ok(slow.res.destroyed, 'and what it never reads is given up')
    t.equal(fast.res.text.length, 5_000)
  })
  t.test('a chunk larger than the bound cuts nobody off who keeps up with the others', async t => {
    const clients = [client(false), client(false)]
    const out = new FanOut(10)
    for (const { sink } of clients) out.add(sink)
    out.head(200, SSE)
    t.equal(out.data(chunk), false)
    t.equal(out.size, 2)
    const alone = new FanOut(10)
    alone.add(client(false).sink)
    t.equal(alone.data(chunk), true, 'no head yet, nothing to wait for')
    t.equal(new FanOut(10).data(chunk), true, 'for nobody: nothing is waited for')
  })
})

t.test('equal requests for a cold slot share one call', async t => {
  interface Rig {
    readonly flights: Flights
    readonly plan: (body?: string, path?: string) => FlightPlan
    readonly calls: FanOut[]
    released: number
    aborted: Error[]
    left: Error[]
    ready: () => void
    refuse: (error: unknown) => void
  }
  function rig (): Rig {
    let settleLease = { resolve: (_: SlotLease): void => {}, reject: (_: unknown): void => {} }
    const it: Rig = {
      flights: new Flights(error => error instanceof Error && 'status' in error ? error as SvcError : svcError('system.internal', 'hidden')),
      calls: [],
      released: 0,
      aborted: [],
      left: [],
      ready: () => settleLease.resolve({ release: () => { it.released++ } } as SlotLease),
      refuse: error => settleLease.reject(error),
      plan: (body = '{}', path = '/chat') => ({
        slot: 'a',
        path,
        body: Buffer.from(body),
        limitBytes: 100,
        shared: true,
        acquire: signal => new Promise((resolve, reject) => {
          settleLease = { resolve, reject }
          signal.addEventListener('abort', () => {
            it.left.push(signal.reason as Error)
            reject(signal.reason as Error)
          })
        }),
        send: (lease, sink, settled) => {
          it.calls.push(sink)
          return reason => {
            it.aborted.push(reason)
            lease.release()
            settled()
          }
        }
      })
    }
    return it
  }
  const aboard = (done = (): void => {}): Passenger => ({ sent: () => {}, returned: () => {}, done })
  t.test('the same body on the same path shares one call, until the slot is ready', async t => {
    const it = rig()
    const clients = [client(), client(), client()]
    let done = 0
    for (const { sink } of clients) it.flights.board(it.plan(), sink, aboard(() => { done++ }))
    t.equal(it.flights.boarding, 1)
    it.ready()
    await settle()
    t.equal(it.flights.boarding, 0, 'it has left')
    t.equal(it.calls.length, 1)
    it.flights.board(it.plan(), client().sink, aboard())
    t.equal(it.flights.boarding, 1, 'who comes later takes the next')
    it.calls[0]!.head(200, JSON_HEAD)
    it.calls[0]!.data(Buffer.from('{}'))
    it.calls[0]!.end()
    t.strictSame(clients.map(({ res }) => res.text), ['{}', '{}', '{}'])
    t.equal(done, 0, 'over is over when the call says so')
  })
  t.test('another body, path or slot takes another', async t => {
    const it = rig()
    for (const plan of [it.plan(), it.plan('{"a":1}'), it.plan('{}', '/completions'), { ...it.plan(), slot: 'b' }]) it.flights.board(plan, client().sink, aboard())
    t.equal(it.flights.boarding, 4)
  })
  t.test('the last one out ends the wait, or the call', async t => {
    const waiting = rig()
    const [a, b] = [waiting.flights.board(waiting.plan(), client().sink, aboard()),
      waiting.flights.board(waiting.plan(), client().sink, aboard())]
    a.leave(new Error('a'))
    t.strictSame(waiting.left, [])
    b.leave(new Error('b'))
    t.match(waiting.left, [{ message: 'b' }])
    t.equal(waiting.flights.boarding, 0)
    await settle()
    t.equal(waiting.calls.length, 0)

    const flying = rig()
    let done = 0
    const last = flying.flights.board(flying.plan(), client().sink, aboard(() => { done++ }))
    flying.ready()
    await settle()
    last.leave(new Error('left'))
    last.leave(new Error('twice'))
    t.match(flying.aborted[0], { message: 'left' })
    t.equal(done, 1)
    t.equal(flying.released, 1)
  })
  t.test('all leave while the lease is on its way: it is given back', async t => {
    const it = rig()
    const one = it.flights.board({ ...it.plan(),
      acquire: () => new Promise(resolve => {
        setImmediate(() =>
          resolve({ release: () => { it.released++ } } as SlotLease))
      }) }, client().sink, aboard())
    one.leave(new Error('left'))
    await settle()
    await settle()
    t.equal(it.released, 1)
    t.equal(it.calls.length, 0)
  })
  t.test('a refusal is told to all, and what nobody expected is not shown', async t => {
    for (const [error, text] of [[svcError('slot.load_failed', 'no memory'), /no memory/], [new TypeError('x is undefined'), /hidden/]] as const) {
      const it = rig()
      const clients = [client(), client()]
      let done = 0
      for (const { sink } of clients) it.flights.board(it.plan(), sink, aboard(() => { done++ }))
      it.refuse(error)
      await settle()
      for (const { res } of clients) t.match(res.text, text)
      t.equal(done, 2)
    }
    const broken = rig()
    const one = client()
    broken.flights.board({ ...broken.plan(), send: () => { throw new Error('cannot') } }, one.sink, aboard())
    broken.ready()
    await settle()
    t.match(one.res.text, /hidden/)
    t.equal(broken.released, 1, 'the lease is not lost')
  })
})

t.test('the shaper lets no part of a line out when an engine dies, and measures on the way', async t => {
  const clock = new FakeClock(1_000_000)
  const throughput = new Throughput(clock)
  const { res, sink } = client()
  const counter = { tokens: 0 }
  const shaper = new StreamShaper(sink, throughput, counter, clock)
  shaper.head(200, ['Content-Type', 'text/event-stream'].map(text => Buffer.from(text)))
  shaper.data(Buffer.from('data: {"delta":{"content":"a"}}\n\ndata: {"del'))
  shaper.fail(failed)
  t.equal(res.text, `data: {"delta":{"content":"a"}}\n\n${errorEvent(failed, 'id').toString()}`)
  t.equal(throughput.read().tokenCount, 1)
  t.equal(counter.tokens, 1)
  const whole = client()
  const other = new StreamShaper(whole.sink, new Throughput(clock), counter, clock)
  other.head(200, SSE)
  other.data(Buffer.from('data: no newline at the end'))
  other.end()
  t.equal(whole.res.text, 'data: no newline at the end', 'an orderly end brings the rest')
})

t.test('a request is active until it is removed, and can be stopped with all others', async t => {
  const active = new ActiveRequests()
  const stopped: string[] = []
  const request = (id: string): ActiveRequest => ({
    id, model: 'm', surface: 'chat', slot: null, upstream: null, priority: 'normal', sent: false, attempt: 0, note: null, startedAt: 0, bytesIn: 2, headers: {}, tokens: 0, shared: null,
    sink: { flowing: false, bytesOut: 0, failed: false, isClients: true }, index: -1, stop: () => { stopped.push(id) }
  })
  await active.idle()
  const all = ['a', 'b', 'c', 'd'].map(request)
  for (const one of all) active.add(one)
  let idle = false
  const waiting = active.idle().then(() => { idle = true })
  active.remove(all[1]!)
  active.remove(all[1]!)
  active.remove(request('never added'))
  t.strictSame(active.list().map(({ id }) => id).sort(), ['a', 'c', 'd'])
  active.stopAll(failed)
  t.strictSame(stopped.sort(), ['a', 'c', 'd'])
  for (const index of [3, 0, 2]) active.remove(all[index]!)
  t.equal(active.size, 0)
  await waiting
  t.ok(idle)
})

t.test('where a request stands is told from its fields and its slot, when somebody asks', async t => {
  const base: ActiveRequest = {
    id: 'r', model: 'm', surface: 'chat', slot: 'a', upstream: null, priority: 'normal', sent: false, attempt: 0, note: null, startedAt: 1_000, bytesIn: 2, headers: {}, tokens: 5, shared: null,
    sink: { flowing: false, bytesOut: 7, failed: false, isClients: true }, index: 0, stop: () => {}
  }
  const status = (state: SlotState, over: Partial<SlotStatus> = {}): SlotStatus => ({ name: 'a', state, message: '', inFlight: 2, waiting: 3, workers: null, ...over }) as SlotStatus
  const cases: Array<[Partial<ActiveRequest>, SlotStatus | null, string, RegExp | null]> = [
    [{ slot: null }, null, 'queued', /model lists of upstreams are being fetched/],
    [{}, status('pulling', { message: 'layer 3 of 9' }), 'loading', /^slot 'a' is pulling: layer 3 of 9$/],
    [{}, status('warming'), 'loading', /^slot 'a' is warming$/],
    [{}, status('serving'), 'queued', /^slot 'a' is busy: 2 running, 3 waiting$/],
    [{}, status('unloading'), 'queued', /^slot 'a' is unloading and will be started$/],
    [{}, status('error'), 'queued', /^slot 'a' is in error and will be started$/],
    [{}, null, 'queued', null],
    [{ sent: true }, status('serving'), 'waiting', null],
    [{ slot: null, upstream: 'u', sent: true }, null, 'waiting', null],
    [{ sent: true, sink: { flowing: true, bytesOut: 7, failed: false, isClients: true } }, status('serving'), 'streaming', null]
  ]
  for (const [over, slot, phase, reason] of cases) {
    const view = requestView({ ...base, ...over }, { agent: 'pi', status: slot, now: 4_000, startedAt: 60_000 })
    t.equal(view.phase, phase)
    if (reason === null) t.equal(view.reason, null, phase)
    else t.match(view.reason, reason)
    t.match(view, { agent: 'pi', age_ms: 3_000, started_at: '1970-01-01T00:01:00.000Z', bytes_in: 2, bytes_out: 7, tokens: 5 })
  }
  t.equal(requestView({ ...base, shared: { tokens: 9 } }, { agent: null, status: null, now: 0, startedAt: 0 }).tokens, 9, 'of the call that it shares')
})

t.test('a reader that was cut off is told how far behind it was allowed to be', async t => {
  t.match(slowReader(4096 * 1024), { code: 'dispatch.slow_reader', message: /4096 KiB/ })
})

t.test('an upstream that nobody reads from is not silent; it is from when it is read again', async t => {
  const clock = new FakeClock()
  let handler: Dispatcher.DispatchHandler = {}
  let goOn = (): void => {}
  let [failure, resumed]: [string | null, number] = [null, 0]
  const sink: AnswerSink = {
    head: () => {}, data: () => false, end: () => {}, fail: ({ code }) => { failure = code }, onDrain: resume => { goOn = resume }
  }
  const settled: string[] = []
  const exchange = new Exchange(sink, { label: 'it', details: {} }, outcome => settled.push(outcome))
  const dispatcher = { dispatch: (_: unknown, given: Dispatcher.DispatchHandler) => { handler = given } } as unknown as Dispatcher
  exchange.send({ silence: new SilenceWatch(clock), plain: () => null, to: () => dispatcher }, {
    origin: 'http://it', path: '/', method: 'POST', headers: [], body: null, headersTimeoutMs: 0, bodyTimeoutMs: 30_000
  })
  handler.onConnect!(error => handler.onError!(error!))
  handler.onHeaders!(200, [], () => { resumed++ }, 'OK')
  t.equal(handler.onData!(Buffer.from('x')), false)
  await clock.advance(100_000)
  t.equal(failure, null)
  goOn()
  await clock.advance(29_000)
  t.strictSame([failure, resumed], [null, 1])
  await clock.advance(10_000)
  t.equal(failure, 'dispatch.upstream_timeout')
  t.strictSame(settled, ['failed'])
  t.equal(clock.pending, 0, 'no timer is left')
})
