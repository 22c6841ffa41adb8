import t, { type Test } from 'tap'
import { chatAnswer, chatStream, FakeClock } from '../../../kernel/testing/index.js'
import requests from '../../../plugins/api/requests/index.js'
import { fakeUpstream, okAnswer, refusal, upstreamTable, type FakeUpstream } from '../fake-upstream.js'
import { badCertificateServer } from './self-signed.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const KEY = 'sk-upstream-secret'
const words = chatStream(['a', 'b', 'c'])

interface Rig {
  readonly upstream: FakeUpstream
  readonly gateway: WireGateway
  readonly clock: FakeClock
  /** Timers besides the gateway's own. */
  timers (): number
  /** Resolves when a request waits between two tries. */
  waits (): Promise<void>
  /** The list is known by then. */
  chat (body?: Record<string, unknown>, signal?: AbortSignal): Promise<Response>
}

/** A gateway on a clock that stands, with upstream `up`. */
async function rig (t: Test, more: Readonly<Record<string, unknown>> = {}, others = '', options: WireOptions = {}): Promise<Rig> {
  const upstream = await fakeUpstream(t)
  const clock = new FakeClock()
  const gateway = await wireGateway(t, {
    clock,
    // the timer of slow bodies is the gateway's, too, and comes with the first body
    svc: '[server]\nbody_idle_timeout_s = 0\n',
    ...options,
    plugins: [requests],
    files: { 'etc/svc/upstreams.toml': upstreamTable('up', upstream.url, more) + others, 'etc/svc/api.env': `UP_KEY=${KEY}\n`, ...options.files }
  })
  await gateway.fetch('/v1/models')
  const own = clock.pending
  const waits = (): Promise<void> => until(() => gateway.gateway.inference().requests.list().some(({ reason }) => /try \d+ follows/.test(reason ?? '')), 'it waits')
  return { upstream, gateway, clock, timers: () => clock.pending - own, waits, chat: (body = {}, signal) => gateway.chat({ model: 'gpt-9', ...body }, signal) }
}

const idle = (gateway: WireGateway): Promise<void> =>
  until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')

t.test('429 with Retry-After: the same bytes again, not before it is over', async t => {
  const { upstream, clock, chat, gateway, timers } = await rig(t, { retries: 2, auth_style: 'bearer', auth_value_env: 'UP_KEY' })
  upstream.play(refusal(429, { 'retry-after': '2' }), okAnswer)
  const answer = chat({ temperature: 0.10 })
  await upstream.call(0)
  await until(() => gateway.gateway.inference().requests.list()[0]?.phase === 'queued', 'it waits')
  t.match(gateway.gateway.inference().requests.list(), [{ reason: 'upstream \'up\' gave no answer (429); try 2 follows', attempt: 1, upstream: 'up' }])
  await clock.advance(1_999)
  t.equal(upstream.calls.length, 1)
  await clock.advance(301)
  t.match(await (await answer).json(), { choices: [{ message: { content: 'fine' } }] })
  t.equal(upstream.calls.length, 2)
  t.ok(upstream.calls[0]!.body.equals(upstream.calls[1]!.body), 'byte for byte')
  for (const { headers } of upstream.calls) t.equal(headers.authorization, `Bearer ${KEY}`)
  t.equal(timers(), 0)
  t.notMatch(JSON.stringify(gateway.logs), KEY)
  t.match(gateway.logs.filter(({ message }) => /trying again/.test(message)), [{ level: 'info', fields: { upstream: 'up', status: 429, try: 1 } }])
})

t.test('503 until it is well; pauses grow; a stream comes through byte for byte', async t => {
  const { upstream, clock, chat, waits } = await rig(t, { retries: 3, retry_wait_seconds: 1 })
  upstream.play(refusal(503), refusal(500), { status: 502, headers: { 'content-type': 'text/html' }, chunks: ['<html>'] }, { headers: SSE, chunks: words })
  const answer = chat({ stream: true })
  for (const [n, least, most] of [[1, 499, 502], [2, 998, 1_003], [3, 1_996, 2_005]] as const) {
    await upstream.call(n - 1)
    await waits()
    await clock.advance(least)
    t.equal(upstream.calls.length, n, `not before ${least} ms`)
    await clock.advance(most)
    await upstream.call(n)
  }
  const response = await answer
  t.equal(response.status, 200)
  t.equal(await response.text(), words.join(''))
})

t.test('what is not tried again', async t => {
  t.test('anything, unless it was asked for', async t => {
    const { upstream, chat } = await rig(t)
    upstream.play(refusal(503, { 'retry-after': '1' }, 'busy'), okAnswer)
    const response = await chat()
    t.equal(response.status, 503)
    t.match(await response.text(), 'busy')
    t.equal(response.headers.get('retry-after'), '1', 'the client may')
    t.equal(upstream.calls.length, 1)
  })
  t.test('a refusal of the request itself, the key, or the model', async t => {
    const spare = await fakeUpstream(t, ['spare'])
    const { upstream, chat } = await rig(t, { retries: 5, fallback: ['spare'] }, upstreamTable('spare', spare.url))
    for (const status of [400, 401, 403, 404, 413, 422]) {
      upstream.play(refusal(status, { 'retry-after': '1' }), okAnswer)
      const before = upstream.calls.length
      const response = await chat()
      t.equal(response.status, status)
      t.match(await response.json(), { error: { message: `no ${status}`, type: 'upstream' } }, 'in the upstream\'s own words')
      t.equal(upstream.calls.length, before + 1)
    }
    t.equal(spare.calls.length, 0)
  })
  t.test('when the upstream says that it is of no use, or asks for too long a pause', async t => {
    const { upstream, chat } = await rig(t, { retries: 5, retry_max_wait_seconds: 10 })
    for (const headers of [{ 'x-should-retry': 'false' }, { 'retry-after': '11' }]) {
      upstream.play(refusal(503, headers), okAnswer)
      const response = await chat()
      t.equal(response.status, 503)
      t.equal(response.headers.get(Object.keys(headers)[0]!), Object.values(headers)[0]!)
    }
    t.equal(upstream.calls.length, 2)
  })
  t.test('an answer of which the client has seen a byte', async t => {
    const { upstream, chat, gateway } = await rig(t, { retries: 5, fallback: ['agent'] })
    upstream.play({ headers: SSE, chunks: words.slice(0, 2), dieAfter: 2 }, okAnswer)
    const text = await (await chat({ stream: true })).text()
    t.match(text, /\n\ndata: \{"error":\{"code":"dispatch\.upstream_failed".*\n\n$/)
    t.notMatch(text, /\[DONE\]/)
    upstream.play({ headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('x').slice(0, 30), 'never'], dieAfter: 1 }, okAnswer)
    await t.rejects(chat().then(response => response.text()))
    t.equal(upstream.calls.length, 2)
    t.equal(gateway.runtime.started.length, 0)
    await idle(gateway)
  })
  t.test('when all tries are used up: the client gets the last answer as it is', async t => {
    const { upstream, chat } = await rig(t, { retries: 2, retry_wait_seconds: 0.05 }, '', { clock: undefined as never })
    upstream.play(refusal(503, {}, 'one'), refusal(503, {}, 'two'), refusal(429, { 'x-ratelimit-remaining': '0' }, 'three'))
    const response = await chat()
    t.equal(response.status, 429)
    t.equal(await response.text(), '{"error":{"message":"three","type":"upstream"}}')
    t.equal(response.headers.get('x-ratelimit-remaining'), '0')
    t.equal(upstream.calls.length, 3)
  })
})

t.test('upstreams that give no answer at all', async t => {
  const quick = { retries: 1, retry_wait_seconds: 0.05 }
  t.test('refuse the connection, and are there at the next try', async t => {
    const { upstream, chat, clock, waits } = await rig(t, quick)
    await upstream.engine.close()
    const answer = chat()
    await waits()
    const again = await fakeUpstream(t, ['gpt-9'], upstream.engine.port)
    await clock.advance(50)
    t.equal((await answer).status, 200)
    t.equal(again.calls.length, 1)
  })
  t.test('stay silent before the head', async t => {
    const { upstream, chat, gateway } = await rig(t, { ...quick, timeout_seconds: 1 }, '', { clock: undefined as never })
    upstream.play({ headAfterMs: Infinity }, okAnswer)
    t.equal((await chat()).status, 200)
    t.equal(await upstream.calls[0]!.closed, 'aborted')
    upstream.play({ headAfterMs: Infinity })
    const silent = await chat()
    t.equal(silent.status, 504)
    t.match(await silent.json(), { error: { code: 'dispatch.upstream_timeout', details: { upstream: 'up' } } })
    await idle(gateway)
  })
  t.test('send a head and die before the first byte', async t => {
    const { upstream, chat } = await rig(t, { ...quick, retries: 2 }, '', { clock: undefined as never })
    upstream.play({ headers: SSE, chunks: ['x'], dieAfter: 0 }, { headers: SSE, chunks: words })
    const stream = await chat({ stream: true })
    t.equal(await stream.text(), words.join(''))
    upstream.play({ headers: { 'content-type': 'application/json' }, chunks: ['x'], dieAfter: 0 }, okAnswer)
    t.match(await (await chat()).json(), { choices: [{ message: { content: 'fine' } }] })
    t.equal(upstream.calls.length, 4)
  })
  t.test('fall silent inside the answer', async t => {
    const { upstream, chat, gateway } = await rig(t, { ...quick, idle_timeout_seconds: 1 }, '', { clock: undefined as never })
    upstream.play({ headers: SSE, chunks: words, hangAfter: 2 })
    t.match(await (await chat({ stream: true })).text(), /"dispatch\.upstream_timeout".*\n\n$/)
    t.equal(upstream.calls.length, 1)
    await idle(gateway)
  })
  t.test('have a certificate that is not good: not again, but elsewhere', async t => {
    const origin = await badCertificateServer(t)
    const { chat, gateway, upstream } = await rig(t, {},
      upstreamTable('tls', `${origin}/v1`, { retries: 5 }) + '[upstream.model_filters]\nmodels = ["secure"]\n')
    const refused = await chat({ model: 'secure' })
    t.equal(refused.status, 502)
    t.match(await refused.json(), { error: { code: 'dispatch.upstream_unavailable', details: { upstream: 'tls', cause: 'DEPTH_ZERO_SELF_SIGNED_CERT' } } })
    await gateway.gateway.kernel().config.change(draft => draft.upstreams.patch('tls', { fallback: ['up/gpt-9'] }))
    t.equal((await chat({ model: 'secure' })).status, 200)
    t.equal(upstream.calls.length, 1)
  })
})

t.test('a client that leaves, or is cancelled, ends the tries', async t => {
  const { upstream, chat, clock, gateway, timers, waits } = await rig(t, { retries: 5, fallback: ['agent'] })
  const controller = new AbortController()
  upstream.play(refusal(503))
  const lost = chat({}, controller.signal).catch(() => 'left')
  await waits()
  controller.abort()
  t.equal(await lost, 'left')
  await idle(gateway)
  t.equal(timers(), 0, 'no timer is left')
  await clock.advance(60_000)
  t.equal(upstream.calls.length, 1)

  const waiting = chat()
  await waits()
  const [{ id } = { id: '' }] = gateway.gateway.inference().requests.list()
  t.equal((await gateway.fetch(`/api/requests/${id}/cancel`, { method: 'POST' })).status, 200)
  t.match(await (await waiting).json(), { error: { code: 'request.cancelled' } })
  t.equal(timers(), 0)

  upstream.play(refusal(503), { headAfterMs: Infinity })
  const second = new AbortController()
  const n = upstream.calls.length
  const gone = chat({}, second.signal).catch(() => 'left')
  await upstream.call(n)
  await waits()
  await clock.advance(500)
  const retried = await upstream.call(n + 1)
  t.match(gateway.gateway.inference().requests.list(), [{ phase: 'waiting', attempt: 2 }])
  second.abort()
  t.equal(await retried.closed, 'aborted')
  t.equal(await gone, 'left')
  await idle(gateway)
  t.equal(gateway.runtime.started.length, 0, 'nobody falls back for one who left')
})
