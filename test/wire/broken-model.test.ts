import { once } from 'node:events'
import { createServer } from 'node:net'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { svcError } from '../../kernel/contract/index.js'
import type { EngineSpec } from '../../kernel/contract/provider/engine-runtime.js'
import { assertPortFree } from '../../kernel/runtime/port-check.js'
import { createFakeProviderPlugin, FakeClock, FakeEngineRuntime } from '../../kernel/testing/index.js'
import { freePort, reservePorts } from '../ports.js'
import { until, wireGateway, type WireGateway } from './wire-gateway.js'

const messages = [{ role: 'user' as const, content: 'hi' }]

/** Images that are not to be had for as long as they are gone; counts what it was asked for. */
class ImagelessRuntime extends FakeEngineRuntime {
  gone = true
  pulls = 0

  override imagePresent (): Promise<boolean> { return Promise.resolve(!this.gone) }

  override pull (): Promise<void> {
    this.pulls++
    return this.gone ? Promise.reject(svcError('runtime.image_missing', 'the image cannot be pulled: manifest unknown')) : Promise.resolve()
  }
}

/** Engines that do not come up for as long as they are broken, and say so in their log. */
class BrokenRuntime extends FakeEngineRuntime {
  broken = true
  tries = 0

  override start (id: string): Promise<void> {
    this.tries++
    return this.broken ? Promise.reject(new Error('it ended at once')) : super.start(id)
  }

  override async* logs (): AsyncGenerator<string> {
    yield 'loading the model'
    yield 'error: tensor 7 has the wrong shape'
  }
}

interface Broken extends WireGateway {
  readonly runtime: BrokenRuntime
  readonly clock: FakeClock
}

async function broken (t: Test): Promise<Broken> {
  const clock = new FakeClock()
  const runtime = new BrokenRuntime()
  t.teardown(() => runtime.destroy())
  // a launch goes on with another port where a gateway of another process has a claim on the one that it chose
  const { toml } = await reservePorts(t)
  return Object.assign(await wireGateway(t, { clock, runtime, svc: toml }), { runtime, clock })
}

interface Refusal {
  readonly status: number
  readonly retryAfter: string | null
  readonly again: string | null
  readonly error: { readonly code: string, readonly message: string, readonly details: { readonly log_tail?: readonly string[] } }
}

async function refusal (asked: Promise<Response>): Promise<Refusal> {
  const response = await asked
  const { error } = await response.json() as { error: Refusal['error'] }
  return { status: response.status, retryAfter: response.headers.get('retry-after'), again: response.headers.get('x-should-retry'), error }
}

t.test('a click of an unmodified client starts a broken model once, not once for each of its tries', async t => {
  for (const stream of [false, true]) {
    const { baseUrl, runtime } = await broken(t)
    const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'x', maxRetries: 5 })
    const asked = client.chat.completions.create({ model: 'agent', messages, stream })
    const error = await asked.then(() => null, (failure: unknown) => failure)
    t.match(error, { status: 502, code: 'slot.load_failed', message: /it ended at once/ })
    t.equal(runtime.tries, 1, `stream ${stream}`)
    runtime.broken = false
    t.equal((await client.chat.completions.create({ model: 'agent', messages })).choices.length, 1, 'the next click leaves the error behind')
  }
})

t.test('a storm of requests on a model that does not start: few starts, and everybody hears why and when', async t => {
  const { chat, runtime, clock } = await broken(t)
  const first = await refusal(chat({}))
  t.match(first, { status: 502, again: 'false', error: { code: 'slot.load_failed', details: { log_tail: ['loading the model', /wrong shape/] } } })
  await refusal(chat({}))
  t.equal(runtime.tries, 2, 'one more try at once')
  for (let second = 0; second < 300; second += 5) {
    const bodies = [{}, { stream: true }, { seed: second }, { stream: true, n: 2 }]
    const storm = await Promise.all(bodies.map(body => refusal(chat(body))))
    for (const { status, retryAfter, again, error } of storm) {
      if (error.code === 'slot.load_failed') continue
      t.match([status, error.code, again], [503, 'slot.crash_looping', null])
      t.ok(Number(retryAfter) >= 1 && Number(retryAfter) <= 300, `come back in ${retryAfter}`)
      t.match(error.details.log_tail?.at(-1), /wrong shape/)
    }
    await clock.advance(5_000)
  }
  t.ok(runtime.tries >= 6 && runtime.tries <= 9, `${runtime.tries} starts for 240 requests in five minutes`)
  runtime.broken = false
  await clock.advance(300_000)
  t.equal((await chat({})).status, 200, 'what is repaired is found by a request')
})

t.test('a launch that cannot succeed is refused at once, starts nothing, and is tried when the reason is gone', async t => {
  const gateway = await wireGateway(t, {
    files: {
      'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "ghost"\n',
      'etc/svc/slots/adrift.toml': 'type = "llm"\nprovider = "fake"\ndevice = "gpu-cuda"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/slots/fileless.toml': 'type = "llm"\nprovider = "filed"\ndevice = "cpu"\n[model]\ndefault = "lost"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n[models.lost]\npath = "/nowhere/lost.gguf"\n'
    },
    deviceNodes: [],
    plugins: [createFakeProviderPlugin({ name: 'filed', takesModel: true })]
  })
  const cases = [
    ['agent', 404, 'model.not_found', /model 'ghost' of slot 'agent' is not in the registry/],
    ['ghost', 404, 'model.not_found', /not in the registry/],
    ['adrift', 502, 'slot.load_failed', /device gpu-cuda is missing/],
    ['fileless', 502, 'slot.load_failed', /cannot be read at \/nowhere\/lost\.gguf/]
  ] as const
  await t.rejects(gateway.slots.ensureReady('agent', AbortSignal.timeout(120_000)), { code: 'model.not_found' }, 'as at the start of the gateway')
  for (const [model, status, code, message] of cases) {
    for (const nth of ['first', 'second', 'third']) {
      t.match(await refusal(gateway.chat({ model, stream: nth === 'second' })), { status, again: 'false', retryAfter: null, error: { code, message } }, `${model}, ${nth}`)
    }
  }
  t.match(gateway.slots.status('agent').failure, { kind: 'unfit', attempts: 0 })
  t.equal(gateway.runtime.started.length, 0, 'no engine was started')
  await gateway.slots.update('agent', { model: { default: 'fake-model' } })
  t.equal((await gateway.chat({})).status, 200, 'the file of the slot is mended')
  await gateway.gateway.kernel().models.put('lost', { path: '/dev/null' })
  t.equal((await gateway.chat({ model: 'fileless' })).status, 200, 'the row of the model is')
})

t.test('a port that another program has: nothing is started, and the first request after that program has gone is served', async t => {
  const port = await freePort()
  const squatter = createServer().listen(port, '127.0.0.1')
  t.teardown(() => squatter.close())
  await once(squatter, 'listening')
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  // as the drivers do whose engines listen on this machine
  const looking = Object.assign(runtime, { assertPortFree: ({ port: wanted }: EngineSpec) => assertPortFree('127.0.0.1', wanted!) })
  const gateway = await wireGateway(t, { runtime: looking, files: { 'etc/svc/slots/agent.toml': `type = "llm"\nprovider = "fake"\ndevice = "cpu"\nport = ${port}\n` } })
  for (const nth of ['first', 'second', 'third']) {
    t.match(await refusal(gateway.chat({})), { status: 502, again: 'false', retryAfter: null, error: { code: 'slot.load_failed', message: /is in use by another program/ } }, nth)
  }
  t.equal(runtime.started.length, 0)
  squatter.close()
  await once(squatter, 'close')
  t.equal((await gateway.chat({})).status, 200)
})

t.test('an image that cannot be had is asked for once, until something changes', async t => {
  const runtime = new ImagelessRuntime()
  t.teardown(() => runtime.destroy())
  const gateway = await wireGateway(t, { runtime })
  for (const nth of ['first', 'second', 'third']) {
    t.match(await refusal(gateway.chat({})), { status: 502, again: 'false', retryAfter: null, error: { code: 'slot.load_failed', message: /manifest unknown/ } }, nth)
  }
  t.equal(runtime.pulls, 1)
  t.match(gateway.slots.status('agent').failure, { kind: 'stays', code: 'runtime.image_missing' })
  await gateway.gateway.kernel().config.reload()
  t.match(await refusal(gateway.chat({})), { status: 502 })
  t.equal(runtime.pulls, 1, 'a reload that changes nothing is no reason to try again')
  await t.rejects(gateway.slots.load('agent'), { code: 'slot.load_failed' })
  t.equal(runtime.pulls, 2, 'a verb tries')
  await gateway.slots.update('agent', { context_size: 1024 })
  await refusal(gateway.chat({}))
  t.equal(runtime.pulls, 3, 'a change of the file, too')
  runtime.gone = false
  await gateway.slots.pullImage('agent')
  await until(() => gateway.slots.status('agent').failure?.kind !== 'stays', 'the pull has ended')
  t.equal((await gateway.chat({})).status, 200, 'the image is there')
})

t.test('an engine that ends while it loads is quoted', async t => {
  const runtime = new FakeEngineRuntime({
    onStart: ({ slot, engine }) => {
      engine.health(503)
      setImmediate(() => { void runtime.crash(slot, 1) })
    }
  })
  runtime.logs = async function* () {
    yield 'E cannot load bge: it has no ranking head'
    for (let i = 0; i < 90; i++) yield 'srv log: request: GET /health 127.0.0.1 503'
    yield 'main: exiting due to model loading error'
  }
  t.teardown(() => runtime.destroy())
  const gateway = await wireGateway(t, { runtime })
  const told = await refusal(gateway.chat({}))
  t.match(told.error.message, /exited during loading, with code 1; its last output: E cannot load bge: it has no ranking head$/)
  t.strictSame(told.error.details.log_tail, ['E cannot load bge: it has no ranking head', 'main: exiting due to model loading error'])
  t.match(gateway.slots.status('agent').message, /has no ranking head/)
})

t.test('a model that is too large for this machine is told as such', async t => {
  const gateway = await wireGateway(t, {
    onStart: ({ slot, engine }) => {
      engine.health(503)
      setImmediate(() => { void gateway.runtime.crash(slot, 137) })
    }
  })
  t.match(await refusal(gateway.chat({})), {
    status: 502, again: 'false', error: { code: 'slot.load_failed', message: /code 137: .*out of memory; unload another slot, .*or take a smaller model/ }
  })
})

t.test('a client that loses patience while a model loads, and asks again, joins the load', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  let starts = 0
  const gateway = await wireGateway(t, {
    onStart: () => {
      starts++
      return gate
    }
  })
  const { slots } = gateway
  // a load that only this client had asked for would end with it
  const other = slots.load('agent')
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'x', maxRetries: 10, timeout: 2_500 })
  const answer = client.chat.completions.create({ model: 'agent', messages })
  await until(() => slots.status('agent').waiting === 2, 'it waits')
  await until(() => slots.status('agent').waiting === 1, 'it has left')
  await until(() => slots.status('agent').waiting === 2, 'it waits again')
  release()
  await other
  t.equal((await answer).choices[0]!.message.content, 'Hello there')
  t.equal(starts, 1, 'one start for both')
  t.equal(gateway.runtime.engine('agent').requests.length, 1, 'and one call')
})
