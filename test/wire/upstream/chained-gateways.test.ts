import OpenAI, { APIError } from 'openai'
import t, { type Test } from 'tap'
import { chatStream } from '../../../kernel/testing/index.js'
import { fakeUpstream, refusal, upstreamTable } from '../fake-upstream.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(['a', 'b', 'c', 'é€😀'])

/** `front` has `back` as its upstream; `back` has slot `agent`. */
async function chain (t: Test, options: WireOptions = {}): Promise<{ front: WireGateway, back: WireGateway }> {
  const back = await wireGateway(t, options)
  const front = await wireGateway(t, {
    files: { 'etc/svc/upstreams.toml': upstreamTable('back', `${back.baseUrl}/v1`), 'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\nenabled = false\n' }
  })
  await (await back.chat({})).text()
  await front.fetch('/v1/models')
  return { front, back }
}

const idle = (gateway: WireGateway): Promise<void> =>
  until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')

async function addUpstream (gateway: WireGateway, row: Record<string, unknown>): Promise<void> {
  await gateway.gateway.kernel().config.change(draft => draft.upstreams.create({ auth_style: 'none', ...row }))
}

t.test('streams come through two gateways byte for byte, whatever the engine cuts them into', async t => {
  const { front, back } = await chain(t)
  const whole = `: hello\r\n\r\n${words.join('')}`
  const bytes = Buffer.from(whole)
  back.runtime.engine('agent').answer({ headers: SSE, chunks: Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(i * 7, i * 7 + 7)), everyMs: 1 })
  const response = await front.chat({ model: 'back/agent', stream: true })
  t.equal(response.headers.get('content-type'), 'text/event-stream')
  t.ok(bytes.equals(Buffer.from(await response.arrayBuffer())))
  const asked = JSON.parse(back.runtime.engine('agent').requests.at(-1)!.body.toString()) as { model: string }
  t.equal(asked.model, 'fake-model', 'each gateway names the model as the next one knows it')
  for (const gateway of [front, back]) await idle(gateway)
})

t.test('refusals of the gateway behind come through as they are, with what they say about another try', async t => {
  const { front, back } = await chain(t, { onStart: ({ engine }) => { engine.health(200) } })
  back.runtime.engine('agent').answer(refusal(422, { 'x-mark': 'engine' }, 'the engine says no'))
  const refused = await front.chat({ model: 'back/agent' })
  t.equal(refused.status, 422)
  t.equal(refused.headers.get('x-mark'), 'engine')
  t.match(await refused.json(), { error: { message: 'the engine says no' } })

  await back.slots.update('agent', { enabled: false })
  const disabled = await front.fetch('/v1/chat/completions', { method: 'POST', body: '{"model":"back/agent"}', headers: { 'x-request-id': 'through' } })
  t.equal(disabled.status, 404)
  t.equal(disabled.headers.get('x-should-retry'), 'false')
  t.match(await disabled.json(), { error: { code: 'model.not_loaded', request_id: 'through' } }, 'one id in both')
  await back.close()
  t.match(await (await front.chat({ model: 'back/agent' })).json(), { error: { code: 'dispatch.upstream_unavailable', details: { upstream: 'back' } } })
})

t.test('a client that leaves the front frees the engine behind; an engine that dies is told in the stream', async t => {
  const { front, back } = await chain(t)
  const engine = back.runtime.engine('agent')
  for (const script of [{ headAfterMs: Infinity }, { headers: SSE, chunks: words, hangAfter: 2 }]) {
    engine.answer(script)
    const n = engine.requests.length
    const controller = new AbortController()
    const lost = front.chat({ model: 'back/agent', stream: true }, controller.signal).then(response => response.text()).catch(() => 'left')
    const seen = await engine.request(n)
    controller.abort()
    t.equal(await seen.closed, 'aborted')
    t.equal(await lost, 'left')
  }
  engine.answer({ headers: SSE, chunks: words, dieAfter: 2 })
  const text = await (await front.chat({ model: 'back/agent', stream: true })).text()
  t.match(text, /\n\ndata: \{"error":\{"code":"dispatch\.upstream_failed".*"slot":"agent".*\n\n$/, 'in the words of the one that saw it')
  t.equal(text.match(/"error"/g)?.length, 1)
  for (const gateway of [front, back]) await idle(gateway)
})

t.test('a request that comes around is refused by the gateway that it comes back to', async t => {
  const [a, b] = [await wireGateway(t), await wireGateway(t)]
  await addUpstream(a, { name: 'b', url: `${b.baseUrl}/v1`, model_filters: { models: ['ghost'] }, retries: 5, fallback: ['agent'] })
  await addUpstream(b, { name: 'a', url: `${a.baseUrl}/v1`, model_filters: { models: ['ghost'] }, retries: 5, fallback: ['agent'] })
  const looped = await a.chat({ model: 'ghost' })
  t.equal(looped.status, 508)
  t.equal(looped.headers.get('x-should-retry'), 'false')
  t.match(await looped.json(), { error: { code: 'dispatch.loop', message: /looped back to this gateway/ } })
  t.equal(a.runtime.started.length + b.runtime.started.length, 0, 'a loop is no reason to fall back')
  t.equal(a.gateway.inference().upstreamService.get('b')?.circuit.failures, 0, 'nor an illness')
  await Promise.all([a, b].map(idle))

  const self = await wireGateway(t)
  await addUpstream(self, { name: 'me', url: `${self.baseUrl}/v1`, model_filters: { models: ['ghost'] } })
  t.equal((await self.chat({ model: 'ghost' })).status, 508)
  t.equal((await self.chat({ model: 'me/svc/agent' })).status, 200, 'one that ends here is no loop')
})

t.test('gateways that list each other answer at once; when both are asked at once, after half of the time', async t => {
  const pair = async (patienceS: number): Promise<[WireGateway, WireGateway]> => {
    const svc = `[dispatcher]\nprefetch_timeout_s = ${patienceS}\n`
    const [a, b] = [await wireGateway(t, { svc }), await wireGateway(t, { svc })]
    await addUpstream(a, { name: 'b', url: `${b.baseUrl}/v1` })
    await addUpstream(b, { name: 'a', url: `${a.baseUrl}/v1` })
    return [a, b]
  }
  const timed = async (...gateways: readonly WireGateway[]): Promise<number> => {
    const from = performance.now()
    const lists = await Promise.all(gateways.map(async gateway => (await gateway.fetch('/v1/models')).json())) as Array<{ data: Array<{ id: string }> }>
    for (const { data } of lists) t.ok(data.some(({ id }) => id === 'svc/agent'))
    return performance.now() - from
  }
  const [one] = await pair(60)
  const alone = await timed(one)
  t.ok(alone < 29_000, `${Math.round(alone)} ms`)
  const both = await timed(...await pair(20))
  t.ok(both < 19_000, `${Math.round(both)} ms`)
})

t.test('the OpenAI client through two gateways: lists, plain answers, streams, errors, and tries', async t => {
  const { front, back } = await chain(t)
  const remote = await fakeUpstream(t, ['far'])
  await addUpstream(front, { name: 'remote', url: remote.url, retries: 2, retry_wait_seconds: 0.05, fallback: ['back/agent'] })
  const client = new OpenAI({ baseURL: `${front.baseUrl}/v1`, apiKey: 'mine', maxRetries: 0 })
  await until(() => front.gateway.inference().upstreamService.get('remote') !== undefined, 'it is there')
  const ids: string[] = []
  for await (const { id } of await client.models.list()) ids.push(id)
  t.ok(ids.includes('far'), ids.join(' '))
  const messages = [{ role: 'user' as const, content: 'hi' }]

  const plain = await client.chat.completions.create({ model: 'back/agent', messages })
  t.equal(plain.choices[0]!.message.content, 'Hello there')
  let text = ''
  for await (const chunk of await client.chat.completions.create({ model: 'back/agent', messages, stream: true })) text += chunk.choices[0]?.delta.content ?? ''
  t.equal(text, 'Hello there')

  remote.play(refusal(429, { 'retry-after': '0' }), refusal(503), { headers: SSE, chunks: chatStream(['far', ' away']) })
  text = ''
  for await (const chunk of await client.chat.completions.create({ model: 'far', messages, stream: true })) text += chunk.choices[0]?.delta.content ?? ''
  t.equal(text, 'far away', 'the third try')
  t.equal(remote.calls.length, 3)
  remote.play(refusal(503))
  t.equal((await client.chat.completions.create({ model: 'far', messages })).choices[0]!.message.content, 'Hello there', 'then the gateway behind')

  remote.play(refusal(401, {}, 'bad key'))
  const error = await client.chat.completions.create({ model: 'far', messages }).then(() => null, (reason: unknown) => reason)
  t.ok(error instanceof APIError)
  t.match(error, { status: 401, message: /bad key/ })
  const missing = await client.chat.completions.create({ model: 'nowhere', messages }).then(() => null, (reason: unknown) => reason)
  t.match(missing, { status: 404, code: 'model.not_found', param: 'model' })
  for (const gateway of [front, back]) await idle(gateway)
})

t.test('a dead upstream slows neither the others nor the list', async t => {
  const [dead, alive, broken] = [await fakeUpstream(t, ['dead']), await fakeUpstream(t, Array.from({ length: 1_000 }, (_, i) => `m${i}`)), await fakeUpstream(t)]
  dead.list({ headAfterMs: Infinity })
  dead.play({ headAfterMs: Infinity })
  broken.list({ chunks: ['<html>'] })
  const gateway = await wireGateway(t, {
    svc: '[dispatcher]\nprefetch_timeout_s = 4\nprefetch_parallel_cap = 2\n',
    files: { 'etc/svc/upstreams.toml': upstreamTable('dead', dead.url) + upstreamTable('broken', broken.url) + upstreamTable('alive', alive.url) + upstreamTable('refused', 'http://127.0.0.1:1/v1') }
  })
  const list = async (): Promise<string[]> => {
    const { data } = await (await gateway.fetch('/v1/models')).json() as { data: Array<{ id: string }> }
    return data.map(({ id }) => id)
  }
  const first = await list()
  t.equal(first.filter(id => /^m\d+$/.test(id)).length, 1_000, 'while the dead one still owes its answer')
  const hanging = new AbortController()
  const lost = gateway.chat({ model: 'dead/dead' }, hanging.signal).catch(() => 'left')
  for (const ids of await Promise.all(Array.from({ length: 20 }, list))) t.equal(ids.length, first.length)
  t.ok(dead.listings <= 2, `it was asked ${dead.listings} times: lists that come together wait for it once, if at all`)
  t.equal((await gateway.chat({ model: 'm7' })).status, 200)
  t.equal((await gateway.chat({})).status, 200)
  hanging.abort()
  await lost
  await idle(gateway)
})
