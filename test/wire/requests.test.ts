import t, { type Test } from 'tap'
import { chatAnswer, chatStream, createFakeEngine } from '../../kernel/testing/index.js'
import { defineAgent, definePlugin } from '../../plugins/contract.js'
import requests from '../../plugins/api/requests/index.js'
import { until, wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(['a', 'b', 'c'])

interface Row {
  readonly id: string
  readonly phase: string
  readonly reason: string | null
  readonly [key: string]: unknown
}

interface Watched extends WireGateway {
  list (): Promise<Row[]>
  /** The list, once a request with this id is in this phase. */
  phase (id: string, phase: string): Promise<Row>
  cancel (id: string): Promise<{ status: number, body: unknown }>
  ask (id: string, body?: Record<string, unknown>, signal?: AbortSignal): Promise<Response>
}

async function watched (t: Test, options: WireOptions = {}): Promise<Watched> {
  const gateway = await wireGateway(t, { ...options, plugins: [requests, ...options.plugins ?? []] })
  const list = async (): Promise<Row[]> => (await (await gateway.fetch('/api/requests')).json() as { requests: Row[] }).requests
  return Object.assign(gateway, {
    list,
    phase: async (id: string, phase: string): Promise<Row> => {
      for (;;) {
        const row = (await list()).find(candidate => candidate.id === id)
        if (row?.phase === phase) return row
      }
    },
    cancel: async (id: string) => {
      const response = await gateway.fetch(`/api/requests/${encodeURIComponent(id)}/cancel`, { method: 'POST' })
      return { status: response.status, body: await response.json() }
    },
    ask: (id: string, body: Record<string, unknown> = {}, signal?: AbortSignal) => gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      // of the class whose loads go on without it
      headers: { 'content-type': 'application/json', 'x-request-id': id, 'x-svc-priority': 'normal' },
      body: JSON.stringify({ model: 'agent', messages: [], ...body }),
      ...(signal === undefined ? {} : { signal })
    })
  })
}

t.test('a request is listed in every phase, with what it waits for, and then no more', async t => {
  let start = (): void => {}
  const started = new Promise<void>(resolve => { start = resolve })
  const gateway = await watched(t, { onStart: () => started })
  t.strictSame(await gateway.list(), [])
  const answer = gateway.ask('one', { stream: true })
  const loading = await gateway.phase('one', 'loading')
  t.match(loading, { model: 'agent', surface: 'chat', slot: 'agent', upstream: null, reason: /^slot 'agent' is starting/, bytes_out: 0, tokens: 0 })
  t.equal(loading.bytes_in, JSON.stringify({ model: 'agent', messages: [], stream: true }).length)
  t.ok(Math.abs(Date.parse(loading.started_at as string) + (loading.age_ms as number) - Date.now()) < 60_000)
  start()
  await (await answer).text()
  t.strictSame(await gateway.list(), [])

  const engine = gateway.runtime.engine('agent')
  engine.answer({ headAfterMs: Infinity })
  const silent = gateway.ask('two').catch(() => null)
  t.match(await gateway.phase('two', 'waiting'), { reason: null, bytes_out: 0 })
  engine.answer({ headers: SSE, chunks: words, hangAfter: 3 })
  const streaming = await gateway.ask('three', { stream: true })
  const sent = words.slice(0, 3).join('').length
  await until(() => gateway.gateway.inference().requests.list().some(({ bytes_out: out }) => out === sent), 'three events are out')
  t.match((await gateway.list()).find(({ id }) => id === 'three'), { phase: 'streaming', reason: null, bytes_out: sent, tokens: 2 })
  t.strictSame((await gateway.list()).map(({ id }) => id), ['two', 'three'], 'oldest first')
  await gateway.cancel('two')
  await silent
  await streaming.body!.cancel()
  await until(() => gateway.gateway.inference().requests.list().length === 0, 'who leaves is listed no more')
})

t.test('one that waits for the lists of upstreams, and one that is there', async t => {
  const remote = await createFakeEngine()
  t.teardown(() => remote.close())
  remote.answer({ headAfterMs: Infinity })
  const gateway = await watched(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "up"\nurl = "${remote.origin}/v1"\nauth_style = "none"\n` } })
  const waiting = gateway.ask('lists', { model: 'far' })
  t.match(await gateway.phase('lists', 'queued'), { slot: null, upstream: null, reason: /model lists of upstreams are being fetched/ })
  t.match(await gateway.cancel('lists'), { status: 200 })
  t.equal((await waiting).status, 499)

  remote.answer(({ method }) => method === 'GET'
    ? { chunks: ['{"data":[{"id":"far"}]}'] }
    : { headers: SSE, chunks: words, hangAfter: 3 })
  const other = await watched(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "up"\nurl = "${remote.origin}/v1"\nauth_style = "none"\n` } })
  const answer = await other.ask('there', { model: 'far', stream: true })
  await until(() => other.gateway.inference().requests.list()[0]?.tokens === 2, 'tokens of an upstream are counted')
  t.match(await other.phase('there', 'streaming'), { model: 'far', slot: null, upstream: 'up' })
  t.match(await other.cancel('there'), { status: 200, body: { id: 'there', cancelled: 1 } })
  t.match(await answer.text(), /"request\.cancelled"/)
  t.equal(await (await remote.request(remote.requests.length - 1)).closed, 'aborted')
})

t.test('cancelling ends a request in every phase, at the client and at the engine', async t => {
  let start = (): void => {}
  const gateway = await watched(t, { onStart: () => new Promise<void>(resolve => { start = resolve }) })
  const cold = gateway.ask('cold')
  await gateway.phase('cold', 'loading')
  t.strictSame(await gateway.cancel('cold'), { status: 200, body: { id: 'cold', cancelled: 1 } })
  const refused = await cold
  t.equal(refused.status, 499)
  t.equal(refused.headers.get('x-should-retry'), 'false', 'an SDK does not ask again')
  t.match(await refused.json(), { error: { code: 'request.cancelled', request_id: 'cold' } })
  start()
  await gateway.gateway.inference().slots.ensureReady('agent', new AbortController().signal)
  t.equal(gateway.runtime.started.length, 1, 'the load goes on')

  const engine = gateway.runtime.engine('agent')
  engine.answer({ headAfterMs: Infinity })
  const silent = gateway.ask('silent')
  const atEngine = await engine.request(engine.requests.length)
  await gateway.cancel('silent')
  t.equal((await silent).status, 499)
  t.equal(await atEngine.closed, 'aborted')

  engine.answer({ headers: SSE, chunks: words, hangAfter: 2 })
  const stream = await gateway.ask('stream', { stream: true })
  await gateway.phase('stream', 'streaming')
  await gateway.cancel('stream')
  const text = await stream.text()
  t.match(text, /\n\ndata: \{"error":\{"code":"request\.cancelled".*\n\n$/)
  t.notMatch(text, /\[DONE\]/)
  t.equal(await (await engine.request(engine.requests.length - 1)).closed, 'aborted')

  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('x').slice(0, 20), 'rest'], hangAfter: 1 })
  const body = await gateway.ask('body')
  await gateway.phase('body', 'streaming')
  await gateway.cancel('body')
  await t.rejects(body.text(), 'half an answer is no answer')
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')
  t.match(gateway.slots.status('agent'), { inFlight: 0, waiting: 0 })
})

t.test('who shares a call with a cancelled request goes on; requests with one id go together', async t => {
  let start = (): void => {}
  const gateway = await watched(t, { onStart: () => new Promise<void>(resolve => { start = resolve }) })
  const [a, b] = [gateway.ask('a', { stream: true }), gateway.ask('b', { stream: true })]
  await gateway.phase('a', 'loading')
  await gateway.phase('b', 'loading')
  await gateway.cancel('a')
  start()
  t.equal((await a).status, 499)
  t.match(await (await b).text(), /\[DONE\]/)
  t.equal(gateway.runtime.engine('agent').requests.length, 1)
  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const twins = [gateway.ask('twin', { n: 1 }), gateway.ask('twin', { n: 2 })]
  await until(() => gateway.gateway.inference().requests.list().length === 2, 'both are there')
  t.match(await gateway.cancel('twin'), { body: { cancelled: 2 } })
  t.strictSame((await Promise.all(twins)).map(({ status }) => status), [499, 499])
})

t.test('nothing to cancel, and who did it', async t => {
  const gateway = await watched(t)
  t.match(await gateway.cancel('over'), { status: 404, body: { error: { code: 'request.not_found', details: { id: 'over' } } } })
  await (await gateway.ask('warm')).text()
  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const silent = gateway.ask('mine')
  await gateway.phase('mine', 'waiting')
  await gateway.cancel('mine')
  await silent
  const [last, first] = gateway.gateway.kernel().activity.list({ kind: 'action', limit: 2 })
  t.match(last, { action: 'request.cancel', target: 'mine', outcome: 'ok', before: { slot: 'agent', model: 'agent' } })
  t.match(first, { action: 'request.cancel', target: 'over', outcome: 'error' })
})

t.test('a request is listed with the agent that asks: by its name, or by the headers that its plugin knows it by', async t => {
  const known = defineAgent({
    id: 'known', name: 'Known', description: 'An agent', licence: { name: 'MIT', url: null }, program: 'known',
    requests: [{ 'user-agent': /^known\// }], wiring: () => ({})
  })
  const plugin = definePlugin({ name: 'known-agent', kind: 'service', apiVersion: 1, register: ctx => { ctx.addAgent(known) } })
  const gateway = await watched(t, { plugins: [plugin] })
  await (await gateway.ask('warm')).text()
  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const ask = (id: string, headers: Record<string, string>): Promise<unknown> => gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': id, ...headers },
    body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: id }] })
  })
  const asked = [ask('named', { 'x-svc-agent': 'Pi' }), ask('described', { 'user-agent': 'known/1.0' }), ask('none', {})]
  await until(() => gateway.gateway.inference().requests.list().length === 3, 'all are there')
  t.strictSame(Object.fromEntries((await gateway.list()).map(({ id, agent }) => [id, agent])), { named: 'pi', described: 'known', none: null })
  for (const id of ['named', 'described', 'none']) await gateway.cancel(id)
  await Promise.all(asked)
})
