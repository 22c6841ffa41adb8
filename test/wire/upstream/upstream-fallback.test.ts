import t, { type Test } from 'tap'
import { chatStream, FakeClock, type EngineScript } from '../../../kernel/testing/index.js'
import requests from '../../../plugins/api/requests/index.js'
import audio from '../../../plugins/v1/audio/index.js'
import { fakeUpstream, okAnswer, refusal, upstreamTable, type FakeUpstream } from '../fake-upstream.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(['a', 'b', 'c'])

type Table = Readonly<Record<string, unknown>>

interface Rig {
  readonly one: FakeUpstream
  readonly two: FakeUpstream
  readonly gateway: WireGateway
  chat (body?: Record<string, unknown>, signal?: AbortSignal): Promise<Response>
}

/** Upstream `one`, whose requests may go on to `fallback`, and upstream `two`, which has the same model and one of its own. */
async function rig (
  t: Test, fallback: readonly string[], options: WireOptions & { one?: Table, two?: Table } = {}
): Promise<Rig> {
  const [one, two] = [await fakeUpstream(t), await fakeUpstream(t, ['gpt-9', 'own'])]
  const { one: moreOne = {}, two: moreTwo = {}, ...rest } = options
  const gateway = await wireGateway(t, {
    ...rest,
    plugins: [requests],
    files: { 'etc/svc/upstreams.toml': upstreamTable('one', one.url, { fallback, ...moreOne }) + upstreamTable('two', two.url, moreTwo) }
  })
  await gateway.fetch('/v1/models')
  one.play(refusal(503, {}, 'one is busy'))
  return { one, two, gateway, chat: (body = {}, signal) => gateway.chat({ model: 'one/gpt-9', ...body }, signal) }
}

const asked = ({ calls }: FakeUpstream): unknown[] =>
  calls.map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model)
const idle = (gateway: WireGateway): Promise<void> =>
  until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')

t.test('the same model of another upstream, another model, and entries that lead nowhere', async t => {
  const cases: Array<[readonly string[], string]> = [
    [['two'], 'gpt-9'], [['two/own'], 'own'], [['own'], 'own'], [['two/not-in-any-list'], 'not-in-any-list'],
    [['nobody', 'nobody/x', 'no-model', 'two'], 'gpt-9']
  ]
  for (const [fallback, model] of cases) {
    const { one, two, chat, gateway } = await rig(t, fallback)
    const response = await chat({ temperature: 0.10 })
    t.equal(response.status, 200, fallback.join(' '))
    t.strictSame([asked(one), asked(two)], [['gpt-9'], [model]])
    t.match(gateway.logs.filter(({ message }) => /next place/.test(message)), [{ fields: { upstream: 'one', status: 503, next: 'upstream \'two\'' } }])
    await idle(gateway)
  }
})

t.test('a slot, which is loaded for it: plain and as a stream that is kept alive', async t => {
  let start = (): void => {}
  const started = new Promise<void>(resolve => { start = resolve })
  const { one, chat, gateway } = await rig(t, ['agent'], { onStart: () => started, svc: '[dispatcher]\nhold_headers_s = 0\nping_interval_s = 0.02\n' })
  const stream = await chat({ stream: true })
  t.equal(stream.status, 200, 'the stream is open before the engine is up')
  t.match(gateway.gateway.inference().requests.list(), [{ slot: 'agent', upstream: null, phase: 'loading', attempt: 2 }])
  start()
  const text = await stream.text()
  t.match(text, /^(: ping\n\n)+data: \{/)
  t.match(text, /\[DONE\]\n\n$/)
  t.equal((await chat()).status, 200)
  t.strictSame(gateway.runtime.engine('agent').requests.map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model), ['fake-model', 'fake-model'])
  t.equal(one.calls.length, 2)
  await idle(gateway)
  t.match(gateway.slots.status('agent'), { inFlight: 0, waiting: 0 })
})

t.test('a slot that cannot be started is left for the next place, and a whole chain can fail', async t => {
  const { two, chat, gateway } = await rig(t, ['agent', 'two'], { onStart: () => { throw new Error('no memory') } })
  t.equal((await chat()).status, 200)
  t.strictSame(asked(two), ['gpt-9'])
  two.play(refusal(500, { 'x-mark': 'two' }, 'two is broken'))
  const last = await chat()
  t.equal(last.status, 500)
  t.equal(last.headers.get('x-mark'), 'two', 'the last answer is the answer')
  t.match(await last.json(), { error: { message: 'two is broken' } })
  await idle(gateway)

  const alone = await rig(t, ['agent'], { onStart: () => { throw new Error('no memory') } })
  const failed = await alone.chat()
  t.match(await failed.json(), { error: { code: /^slot\./ } })
  await idle(alone.gateway)
})

t.test('tries first, then the next place, with its own tries', async t => {
  const { one, two, chat } = await rig(t, ['two'], { one: { retries: 2, retry_wait_seconds: 0.05 }, two: { retries: 1, retry_wait_seconds: 0.05, fallback: ['agent'] } })
  two.play(refusal(503), okAnswer)
  t.equal((await chat()).status, 200)
  t.equal(one.calls.length, 3)
  t.equal(two.calls.length, 2)
  two.play(refusal(503, {}, 'two too'))
  t.match(await (await chat()).text(), 'two too', 'the chain of a fallback is not followed: chains have an end')
})

t.test('never after the first byte, and never for a refusal of the request', async t => {
  const { one, two, chat, gateway } = await rig(t, ['two', 'agent'])
  const cases: Array<[string, EngineScript, Record<string, unknown>, RegExp]> = [
    ['in a stream', { headers: SSE, chunks: words, dieAfter: 1 }, { stream: true }, /dispatch\.upstream_failed/],
    ['400', refusal(400, {}, 'too long'), {}, /too long/],
    ['404', refusal(404, {}, 'no such model'), {}, /no such model/]
  ]
  for (const [name, script, body, text] of cases) {
    one.play(script)
    t.match(await (await chat(body)).text(), text, name)
  }
  one.play({ headers: SSE, chunks: words, dieAfter: 0 })
  t.equal(await (await chat({ stream: true })).text().then(text => text.length > 0), true, 'a head is no byte of the answer yet')
  t.strictSame(asked(two), ['gpt-9'])
  t.equal(gateway.runtime.started.length, 0)
})

t.test('a client that leaves while the next place is asked', async t => {
  const { two, chat, gateway } = await rig(t, ['two'])
  two.play({ headAfterMs: Infinity })
  const controller = new AbortController()
  const lost = chat({}, controller.signal).catch(() => 'left')
  const seen = await two.call(0)
  controller.abort()
  t.equal(await seen.closed, 'aborted')
  t.equal(await lost, 'left')
  await idle(gateway)

  let start = (): void => {}
  const cold = await rig(t, ['agent'], { onStart: () => new Promise<void>(resolve => { start = resolve }) })
  const second = new AbortController()
  const gone = cold.chat({ stream: true }, second.signal).catch(() => 'left')
  await until(() => cold.gateway.runtime.started.length === 0 && cold.gateway.gateway.inference().requests.list()[0]?.phase === 'loading', 'the slot is loaded')
  second.abort()
  t.equal(await gone, 'left')
  await idle(cold.gateway)
  start()
  await cold.gateway.slots.ensureReady('agent', new AbortController().signal)
  t.match(cold.gateway.slots.status('agent'), { state: 'ready', inFlight: 0, waiting: 0 }, 'the load goes on for the others')
})

t.test('an open breaker: refused at once, others go on, one probe at a time', async t => {
  const clock = new FakeClock()
  const { one, two, chat, gateway } = await rig(t, [], { clock, one: { breaker_failures: 3, breaker_seconds: 30 } })
  for (let i = 0; i < 3; i++) t.equal((await chat()).status, 503)
  t.equal(one.calls.length, 3)
  // the clock stands still: whoever waited for anything would wait for ever
  const refused = await Promise.all(Array.from({ length: 100 }, (_, n) => chat({ n })))
  t.equal(one.calls.length, 3, 'nobody was sent there')
  for (const response of refused) {
    if (response.status !== 503 || response.headers.get('retry-after') !== '30') t.fail(`${response.status} ${response.headers.get('retry-after')}`)
  }
  t.match(await refused[0]!.json(), { error: { code: 'dispatch.circuit_open', type: 'overloaded_error', details: { upstream: 'one', failures: 3, retry_after_s: 30 } } })
  t.equal((await chat({ model: 'two/gpt-9' })).status, 200, 'the others go on')
  t.match(gateway.gateway.inference().upstreamService.get('one')?.circuit, { state: 'open', failures: 3, retry_in_ms: 30_000 })
  const events = gateway.gateway.kernel().events.list({ type: 'system.upstream_*' }).events
  t.match(events, [{ type: 'system.upstream_unhealthy', data: { upstream: 'one', circuit: 'open' } }])

  await clock.advance(29_999)
  t.equal((await chat()).status, 503)
  await clock.advance(1)
  t.equal(gateway.gateway.inference().upstreamService.get('one')?.circuit.state, 'half-open')
  one.play({ headAfterMs: Infinity }, okAnswer)
  const leaving = new AbortController()
  const probe = chat({}, leaving.signal).catch(() => 'left')
  await one.call(3)
  const meanwhile = await Promise.all(Array.from({ length: 10 }, () => chat()))
  t.strictSame(meanwhile.map(({ status }) => status), Array.from({ length: 10 }, () => 503))
  t.equal(one.calls.length, 4, 'one probe at a time')
  leaving.abort()
  await probe
  await idle(gateway)
  t.equal((await chat()).status, 200, 'the probe left without a word: the next request is one')
  t.equal((await chat()).status, 200)
  t.match(gateway.gateway.inference().upstreamService.get('one')?.circuit, { state: 'closed', failures: 0 })
  t.match(gateway.gateway.kernel().events.list({ type: 'system.upstream_healthy' }).events, [{ data: { upstream: 'one', circuit: 'closed' } }])
  t.equal(two.calls.length, 1)
})

t.test('an open breaker sends requests on at once, and is skipped in chains', async t => {
  const { one, two, chat, gateway } = await rig(t, ['two', 'agent'], { one: { breaker_failures: 1 }, two: { breaker_failures: 1 } })
  t.equal((await chat()).status, 200)
  t.equal((await chat()).status, 200)
  t.equal(one.calls.length, 1)
  t.equal(two.calls.length, 2)
  two.play(refusal(503))
  t.equal((await chat()).status, 200, 'two fell ill, the slot answers')
  t.equal((await chat()).status, 200)
  t.equal(two.calls.length, 3, 'and is not asked again')
  t.equal(gateway.runtime.engine('agent').requests.length, 2)
})

t.test('what opens a breaker, and what does not', async t => {
  const cases: Array<[string, EngineScript | 'gone', string]> = [
    ['503', refusal(503), 'open'], ['529', refusal(529), 'open'], ['gone', 'gone', 'open'],
    ['429', refusal(429), 'closed'], ['500', refusal(500), 'closed'], ['401', refusal(401), 'closed'],
    ['another gateway that loads a slot', refusal(503, { 'retry-after': '1' }), 'closed'],
    ['another gateway whose slot is broken', refusal(502, { 'x-should-retry': 'false' }), 'closed'],
    ['a stream that breaks off', { headers: SSE, chunks: words, dieAfter: 1 }, 'closed']
  ]
  for (const [name, script, state] of cases) {
    const { one, chat, gateway } = await rig(t, [], { one: { breaker_failures: 2 } })
    if (script === 'gone') await one.engine.close()
    else one.play(script)
    for (let i = 0; i < 2; i++) await (await chat()).text()
    t.equal(gateway.gateway.inference().upstreamService.get('one')?.circuit.state, state, name)
  }
})

t.test('an upload is sent once, tells the breaker, and is refused at once when it is open', async t => {
  const one = await fakeUpstream(t, ['whisper'])
  const gateway = await wireGateway(t, {
    plugins: [audio],
    files: { 'etc/svc/upstreams.toml': upstreamTable('one', one.url, { retries: 5, fallback: ['agent'], breaker_failures: 2, timeout_seconds: 5 }) }
  })
  await gateway.fetch('/v1/models')
  const upload = (headers: Record<string, string> = {}): Promise<Response> => {
    const form = new FormData()
    form.append('model', 'whisper')
    form.append('file', new Blob(['RIFF']), 'a.wav')
    return gateway.fetch('/v1/audio/transcriptions', { method: 'POST', body: form, headers })
  }
  one.play({ headers: { 'content-type': 'application/json' }, chunks: ['{"text":"hi"}'] })
  t.same(await (await upload()).json(), { text: 'hi' })
  t.match(one.calls[0]!.headers['x-svc-via'], /^[0-9a-f]{12}$/)
  one.play(refusal(503))
  for (let i = 0; i < 2; i++) t.equal((await upload()).status, 503)
  t.equal(one.calls.length, 3, 'its body is gone: it is not tried again')
  t.match(await (await upload()).json(), { error: { code: 'dispatch.circuit_open' } })
  t.equal(one.calls.length, 3)
  await gateway.gateway.inference().upstreamService.ask('one', new AbortController().signal)
  const looped = await upload({ 'x-svc-via': one.calls[0]!.headers['x-svc-via'] as string })
  t.equal(looped.status, 508)
  t.match(await looped.json(), { error: { code: 'dispatch.loop' } })
  t.equal(gateway.gateway.inference().upstreamService.get('one')?.circuit.state, 'closed', 'a loop says nothing of the upstream')
  await idle(gateway)
})
