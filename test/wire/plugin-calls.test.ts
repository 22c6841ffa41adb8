import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import {
  core, definePlugin, defineRoute, svcError, type AdaptedAnswer, type DispatchService, type OutgoingCall, type OutgoingUsage,
  type SlotGate
} from '../../kernel/contract/index.js'
import { chatStream } from '../../kernel/testing/index.js'
import { fakeUpstream, okAnswer, refusal, upstreamTable } from './fake-upstream.js'
import { readUntil, until, wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const never = new AbortController().signal

interface Setup {
  readonly gateway: WireGateway
  readonly dispatch: DispatchService
  /** What `GET /v1/composed` does; `?stream` says that the client waits for events. */
  compose: (signal: AbortSignal) => Promise<AdaptedAnswer>
}

/** A gateway with a plugin that makes calls of its own. */
async function setup (t: Test, options: WireOptions = {}): Promise<Setup> {
  let dispatch: DispatchService | undefined
  const caller = definePlugin({
    name: 'inner-calls',
    kind: 'routes',
    apiVersion: 1,
    requires: { dispatch: core.dispatch },
    register (ctx) {
      dispatch = ctx.services.dispatch
      ctx.addRoute(defineRoute({
        method: 'GET',
        url: '/v1/composed',
        summary: 'Something put together',
        answers: ([200, 201] as const).flatMap(status => ['application/json', 'text/event-stream'].map(type => ({ status, type }))),
        handler: call => ctx.services.dispatch.compose(call, { surface: 'chat', model: 'agent', stream: call.request.url.includes('stream') },
          signal => it.compose(signal))
      }))
    }
  })
  const gateway = await wireGateway(t, { ...options, plugins: [caller] })
  const it: Setup = { gateway, dispatch: dispatch!, compose: () => Promise.reject(new Error('not said')) }
  return it
}

const body = (more: object = {}): Buffer => Buffer.from(JSON.stringify({ model: 'svc/agent', messages: [], ...more }))
const chat = (more: object = {}, signal = never) => ({ surface: 'chat' as const, path: '/chat/completions', body: body(more), requestId: 'inner-1', signal })

async function text (body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function idle ({ gateway }: Setup): boolean {
  const { dispatcher, slots } = gateway.gateway.inference()
  return dispatcher.active.size === 0 && slots.status('agent').inFlight === 0
}

t.test('a plugin\'s call goes the way of a client\'s', async t => {
  const it = await setup(t)
  const answer = await it.dispatch.call({ ...chat({ a: 1, omni: true }), drop: ['omni'], edit: () => ({ add: { a: 2, b: 3 } }) })
  t.match(answer, { status: 200, headers: { 'content-type': 'application/json' } })
  t.match(JSON.parse(await text(answer.body)), { choices: [{ message: { content: 'Hello there' } }] })
  const engine = it.gateway.runtime.engine('agent')
  t.equal(engine.requests[0]!.body.toString(), '{"b":3,"model":"fake-model","messages":[],"a":1}', 'a cold slot was loaded, the body edited')
  t.match(engine.requests[0]!.headers, { 'x-request-id': 'inner-1', 'content-type': 'application/json' })
  t.ok(idle(it))

  engine.answer({ status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"no"}}'] })
  const refused = await it.dispatch.call(chat())
  t.strictSame([refused.status, await text(refused.body)], [400, '{"error":{"message":"no"}}'], 'an engine\'s refusal is an answer')
  for (const [request, code] of [
    [{ ...chat(), body: body({ model: 'nobody' }) }, 'model.not_found'], [{ ...chat(), body: body({ model: 3 }) }, 'request.missing_model'],
    [{ ...chat(), body: Buffer.from('{') }, 'request.invalid_json'], [{ ...chat(), surface: 'speech' as const }, 'dispatch.no_route']
  ] as const) await t.rejects(it.dispatch.call(request), { code })
  engine.answer({ headers: SSE, chunks: chatStream(['a', 'b']), dieAfter: 2 })
  const broken = await it.dispatch.call(chat({ stream: true }))
  await t.rejects(text(broken.body), { code: 'dispatch.upstream_failed' })
  t.ok(idle(it))
})

t.test('a call stands in line as the client whose request it is a part of asks, unless the plugin says otherwise', async t => {
  const { gateway, dispatch } = await setup(t)
  const { active } = gateway.gateway.inference().dispatcher
  const placeOf = async (more: object): Promise<unknown> => {
    const answer = dispatch.call({ ...chat({ stream: true }), ...more })
    const [request] = active.list()
    await text((await answer).body)
    return request?.priority
  }
  const origin = { 'x-svc-priority': 'low' }
  t.strictSame([await placeOf({}), await placeOf({ origin }), await placeOf({ origin, priority: 'normal' })], ['normal', 'low', 'normal'])
})

t.test('a call can be given up in every phase, by its signal or by leaving its body', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const it = await setup(t, { onStart: () => gate })
  const reason = new Error('enough')
  const given = new AbortController()
  given.abort(reason)
  await t.rejects(it.dispatch.call(chat({}, given.signal)), reason, 'before it began')
  const loading = new AbortController()
  const pending = it.dispatch.call(chat({}, loading.signal))
  await until(() => it.gateway.gateway.inference().slots.status('agent').waiting === 1, 'it waits for the slot')
  loading.abort(reason)
  await t.rejects(pending, reason, 'while its slot loads')
  release()
  await it.gateway.slots.ensureReady('agent', never)
  const engine = it.gateway.runtime.engine('agent')

  const long = chatStream(Array.from({ length: 200 }, (_, i) => `w${i} `))
  for (const [name, script] of [['before the head', { headAfterMs: Infinity }], ['in the body', { headers: SSE, chunks: long, hangAfter: 3 }]] as const) {
    engine.answer(script)
    const n = engine.requests.length
    const controller = new AbortController()
    const outcome = it.dispatch.call(chat({ stream: true }, controller.signal)).then(({ body }) => text(body))
      .catch((error: unknown) => error)
    const seen = await engine.request(n)
    controller.abort(reason)
    t.equal(await seen.closed, 'aborted', name)
    t.equal(await outcome, reason, name)
  }
  engine.answer({ headers: SSE, chunks: long, everyMs: 5 })
  const left = await it.dispatch.call(chat({ stream: true }))
  const seen = engine.requests.at(-1)!
  for await (const _ of left.body) break
  t.equal(await seen.closed, 'aborted', 'a body that is left')
  await until(() => idle(it), 'nothing is held')
})

t.test('a call is read at its caller\'s pace', async t => {
  const total = 256 * 1024 * 1024
  const piece = Buffer.alloc(64 * 1024, 'x')
  let sent = 0
  const upstream = createServer((req, res) => {
    if (req.url === '/v1/models') return res.end('{"data":[{"id":"far"}]}')
    const pump = (): void => {
      for (let open = true; open && sent < total; sent += piece.length) open = res.write(piece)
      if (sent >= total) res.end()
    }
    res.on('drain', pump)
    pump()
  })
  await new Promise<void>(resolve => { upstream.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => new Promise(resolve => {
    upstream.close(resolve)
    upstream.closeAllConnections()
  }))
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
  const it = await setup(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${url}"\nauth_style = "none"\n` } })
  const answer = await it.dispatch.call({ ...chat(), body: body({ model: 'far' }) })
  let last = -1
  let still = 0
  await until(() => {
    still = sent === last ? still + 1 : 0
    last = sent
    return still > 30
  }, 'it stands still')
  t.ok(sent < 64 * 1024 * 1024, `${Math.round(sent / 1024 / 1024)} MiB were sent that nobody read`)
  let read = 0
  for await (const chunk of answer.body) read += chunk.length
  t.equal(read, total, 'and all of it comes when it is read')
})

t.test('an answer that a plugin puts together', async t => {
  const it = await setup(t, { svc: '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.01\n' })
  it.compose = () => Promise.resolve({ status: 201, headers: JSON_TYPE, body: Buffer.from('{"a":1}') })
  const plain = await it.gateway.fetch('/v1/composed', { headers: { 'x-request-id': 'outer' } })
  t.strictSame([plain.status, await plain.text(), plain.headers.get('x-request-id')], [201, '{"a":1}', 'outer'])

  it.compose = () => Promise.reject(svcError('slot.load_failed', 'no'))
  const refused = await it.gateway.fetch('/v1/composed')
  t.match({ status: refused.status, body: await refused.json() }, { status: 502, body: { error: { code: 'slot.load_failed' } } })

  it.compose = () => Promise.reject(new Error('a bug'))
  t.match(await (await it.gateway.fetch('/v1/composed')).json(), { error: { code: 'system.internal' } })

  it.compose = async signal => {
    const { status, headers, body } = await it.dispatch.call(chat({ stream: true }, signal))
    return { status, headers, body }
  }
  const piped = await it.gateway.fetch('/v1/composed?stream')
  t.match((await piped.text()).replaceAll(': ping\n\n', ''), /^data: .*Hello.*\[DONE\]\n\n$/s, 'a call inside')

  let pinged = (): void => {}
  const isPinged = new Promise<void>(resolve => { pinged = resolve })
  it.compose = async () => {
    await isPinged
    return {
      status: 200,
      headers: SSE,
      body: (async function* () {
        yield Buffer.from('data: 1\n\n')
        throw svcError('gateway.stopping', 'bye')
      })()
    }
  }
  const decoder = new TextDecoder()
  let stream = ''
  for await (const chunk of (await it.gateway.fetch('/v1/composed?stream')).body!) {
    stream += decoder.decode(chunk as Uint8Array, { stream: true })
    pinged()
  }
  t.match(stream, /^(: ping\n\n)+data: 1\n\ndata: \{"error":\{"code":"gateway.stopping".*\n\n$/)

  t.test('ends with its client, and with an operator\'s word', async t => {
    const ends: unknown[] = []
    const wait = (signal: AbortSignal): Promise<never> => new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        ends.push(signal.reason)
        reject(signal.reason as Error)
      })
    })
    it.compose = wait
    const controller = new AbortController()
    const client = it.gateway.fetch('/v1/composed', { signal: controller.signal }).catch(() => 'gone')
    await until(() => it.gateway.gateway.inference().dispatcher.active.size === 1, 'it runs')
    controller.abort()
    await until(() => ends.length === 1, 'the work is given up')
    t.equal(await client, 'gone')

    it.compose = signal => Promise.resolve({
      status: 200,
      headers: SSE,
      body: (async function* () {
        yield Buffer.from('data: 1\n\n')
        await wait(signal)
      })()
    })
    const response = await it.gateway.fetch('/v1/composed?stream', { headers: { 'x-request-id': 'to-cancel' } })
    const rest = readUntil(response, () => false)
    await until(() => it.gateway.gateway.inference().requests.list()[0]?.bytes_out === 9, 'it flows')
    t.match(it.gateway.gateway.inference().requests.list(), [{ id: 'to-cancel', surface: 'chat', model: 'agent', phase: 'streaming' }])
    it.gateway.gateway.inference().requests.cancel('to-cancel')
    await until(() => ends.length === 2, 'the work is given up')
    t.match(ends[1], { code: 'request.cancelled' })
    t.match(await rest, /^data: 1\n\ndata: \{"error":\{"code":"request.cancelled"/)
    await until(() => idle(it), 'nothing is left')
  })
})

t.test('a plugin that watches what goes to upstreams sees each try before it is sent, refuses it, and hears its usage once', async t => {
  const [up, other] = [await fakeUpstream(t), await fakeUpstream(t, ['gpt-8'])]
  const tables = upstreamTable('up', up.url, { retries: 1, retry_wait_seconds: 0.05 }) + upstreamTable('backed', other.url, { fallback: ['agent'] })
  const it = await setup(t, { files: { 'etc/svc/upstreams.toml': tables } })
  const { gateway, dispatch } = it
  const seen: OutgoingCall[] = []
  const ends: OutgoingUsage[] = []
  let refused = false
  let asked = 0
  const end = dispatch.watchOutgoing(call => {
    asked++
    if (refused) throw svcError('slot.queue_full', 'too dear', { details: { retry_after_s: 5 } })
    if (call.headers['x-svc-agent'] === undefined) return null
    seen.push(call)
    return usage => { ends.push(usage) }
  })
  t.throws(() => dispatch.watchOutgoing(() => null), { code: 'plugin.conflict' })
  const ask = (more: object, agent?: string) => gateway.fetch('/v1/chat/completions', {
    method: 'POST', body: JSON.stringify({ model: 'gpt-9', messages: [], ...more }),
    headers: { 'content-type': 'application/json', ...(agent === undefined ? {} : { 'x-svc-agent': agent }) }
  })
  const ended = async (n: number): Promise<OutgoingUsage> => {
    await until(() => ends.length > n, `call ${n} ended`)
    return ends[n]!
  }

  t.equal((await ask({ model: 'agent' }, 'pi')).status, 200)
  t.equal(asked, 0, 'a slot of this gateway is never asked about')
  up.play(refusal(503), { headers: JSON_TYPE, chunks: ['{"usage":{"prompt_tokens":12,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4}},"choices":[]}'] })
  t.equal((await ask({ max_tokens: 9 }, 'pi')).status, 200)
  t.match(await ended(0), { status: 503, inputTokens: null, outputTokens: null }, 'a try that failed')
  const rest = { status: 200, whole: true, left: false }
  t.strictSame(await ended(1), { ...rest, inputTokens: 12, cachedTokens: 4, outputTokens: 7, pieces: 7 })
  t.match(seen[1], { upstream: 'up', modelId: 'gpt-9', surface: 'chat', headers: { 'x-svc-agent': 'pi' }, bodyBytes: 46 })
  t.equal(seen[1]!.body!.value('max_tokens'), 9)

  const block = ',"usage":{"input_tokens":3,"output_tokens":50,"cache_read_input_tokens":2,"cache_creation_input_tokens":1}}\n\n'
  const cut = Math.floor(block.length / 2)
  up.play({ headers: SSE, chunks: ['data: {"content":"says \\"usage\\":{\\"output_tokens\\":999}"}\n\n', `data: {"a":1${block.slice(0, cut)}`, block.slice(cut), 'data: [DONE]\n\n'] })
  await (await ask({ stream: true }, 'pi')).text()
  t.strictSame(await ended(2), { ...rest, inputTokens: 6, cachedTokens: 2, outputTokens: 50, pieces: 1 }, 'cut in its middle, and words of the model do not count')
  up.play({ headers: SSE, chunks: chatStream(['a', 'b', 'c', 'd']), dieAfter: 3 })
  await (await ask({ stream: true }, 'pi')).text()
  t.match(await ended(3), { whole: false, left: false, inputTokens: null, pieces: 2 }, 'a stream that broke off')
  up.play({ headers: SSE, chunks: chatStream(['a', 'b']), hangAfter: 2 })
  await readUntil(await ask({ stream: true }, 'pi'), text => text.includes('"a"'))
  t.match(await ended(4), { status: 200, whole: false, left: true, pieces: 1 }, 'one whose reader left')

  up.play(okAnswer)
  await text((await dispatch.call({ ...chat({ model: 'gpt-9' }), origin: { 'x-svc-agent': 'hermes' } })).body)
  t.match([seen[5]!.headers['x-svc-agent'], (await ended(5)).whole], ['hermes', true], 'a plugin says whose call it makes')
  t.equal((await ask({})).status, 200)
  t.equal(ends.length, 6, 'one that the watch let pass is not told of')

  refused = true
  const calls = up.calls.length
  const answer = await ask({}, 'pi')
  t.match([answer.status, answer.headers.get('retry-after'), await answer.json()], [503, '5', { error: { code: 'slot.queue_full', message: 'too dear' } }])
  t.equal(up.calls.length, calls, 'nothing of a refused call is sent')
  t.match(await (await ask({ model: 'gpt-8' }, 'pi')).json(), { choices: [{ message: { content: 'Hello there' } }] }, 'its fallback is asked')
  t.equal(other.calls.length, 0)
  end()
  t.equal((await ask({}, 'pi')).status, 200, 'and nothing is asked when the watch has ended')
  t.ok(idle(it))
})

t.test('a plugin asks the gate which slots the GPU is for, in both of its modes', async t => {
  let gate: SlotGate | undefined
  const asker = definePlugin({
    name: 'asks-first',
    kind: 'service',
    apiVersion: 1,
    requires: { gate: core.gate },
    register (ctx) {
      gate = ctx.services.gate
    }
  })
  const onGpu = (type: string): string => `type = "${type}"\nprovider = "fake"\ndevice = "gpu-rocm"\n`
  const gateway = await wireGateway(t, {
    plugins: [asker],
    deviceNodes: ['/dev/kfd', '/dev/dri/renderD128'],
    files: { 'etc/svc/slots/chat.toml': onGpu('llm'), 'etc/svc/slots/img.toml': onGpu('image') }
  })
  const allowed = (): readonly string[] => ['chat', 'img', 'agent'].filter(name => gate!.allows(name))
  t.strictSame(allowed(), ['chat', 'agent'], 'in LLM mode')
  await gateway.slots.load('img')
  t.strictSame(allowed(), ['img', 'agent'], 'in image mode')
  t.throws(() => gate!.assertAllows('chat'), { code: 'gpu.image_mode' })
  await gateway.slots.unload('img')
  t.strictSame(allowed(), ['chat', 'agent'], 'and again')
})
