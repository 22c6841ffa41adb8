import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { definePlugin, svcError, type AnyPlugin } from '../../kernel/contract/index.js'
import { createGateway } from '../../kernel/gateway.js'
import { chatStream, createFakeProviderPlugin, FakeEngineRuntime } from '../../kernel/testing/index.js'
import statusRoutes from '../../plugins/api/status/index.js'
import { chatBody, post, rawClient } from './connection/raw-client.js'
import { until, wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(Array.from({ length: 30 }, (_, i) => ` w${i}`))

interface Streaming {
  readonly gateway: WireGateway
  readonly text: Promise<string>
}

/** A gateway whose slot is in the middle of a stream. */
async function streaming (t: Test, options: WireOptions, script: { everyMs?: number, hangAfter?: number }): Promise<Streaming> {
  const gateway = await wireGateway(t, options)
  await (await gateway.chat({})).text()
  gateway.runtime.engine('agent').answer({ headers: SSE, chunks: words, ...script })
  const response = await gateway.chat({ stream: true })
  return { gateway, text: response.text().catch((error: Error) => `broken: ${error.message}`) }
}

function lastEvent (text: string): { error?: { code: string } } {
  return JSON.parse(text.trimEnd().split('\n\n').at(-1)!.replace(/^data: /, '')) as { error?: { code: string } }
}

t.test('a stop lets a running stream end, and nothing new begin', async t => {
  const { gateway, text } = await streaming(t, { svc: '[server]\nshutdown_grace_s = 10\n' }, { everyMs: 4 })
  const half = await rawClient(t, gateway.baseUrl)
  half.send('GET /v1/models HTTP/1.1\r\n')
  const line = await rawClient(t, gateway.baseUrl)
  line.send(post('/v1/chat/completions', chatBody({ stream: true })))
  await line.seen(/data: /)
  const stopping = gateway.gateway.stop()
  half.send('Host: localhost\r\n\r\n')
  await half.seen(/^HTTP\/1\.1 503[^]*gateway\.stopping/)
  t.match(half.text(), /retry-after: 5/i)
  t.match(half.text(), /connection: close/i)
  await half.closed
  line.send(post('/v1/chat/completions', chatBody()))
  await t.rejects(gateway.fetch('/v1/models'), 'no new connection is taken')
  t.equal(await text, words.join(''), 'the stream is whole')
  await stopping
  await line.closed
  t.match(line.text().split('HTTP/1.1 ')[2], /^503[^]*gateway\.stopping/, 'also what stood in line behind a stream')
  t.equal(gateway.runtime.running, 1, 'the engine goes on')
  await gateway.gateway.stop()
  t.pass('a second stop is none')
})

t.test('the probes of a supervisor are well while the gateway serves, and refused from the moment on that it stops', async t => {
  const { gateway, text } = await streaming(t, { plugins: [statusRoutes], svc: '[server]\nshutdown_grace_s = 10\n' }, { everyMs: 4 })
  const probes = await Promise.all(['/health/live', '/health/ready'].map(async path => {
    const answer = await gateway.fetch(path)
    t.strictSame([answer.status, await answer.json()], [200, { status: 'ok' }], path)
    const probe = await rawClient(t, gateway.baseUrl)
    probe.send(`GET ${path} HTTP/1.1\r\n`)
    return probe
  }))
  const stopping = gateway.gateway.stop()
  for (const probe of probes) {
    probe.send('Host: localhost\r\n\r\n')
    await probe.seen(/^HTTP\/1\.1 503[^]*gateway\.stopping/)
    await probe.closed
  }
  t.equal(await text, words.join(''), 'while a stream goes on')
  await stopping
})

t.test('a stream that outlasts the grace ends with an error event', async t => {
  const { gateway, text } = await streaming(t, { svc: '[server]\nshutdown_grace_s = 0.1\n' }, { hangAfter: 5 })
  const plain = gateway.chat({ n: 2 }).then(async response => ({ status: response.status,
    text: await response.text() })).catch(() => null)
  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  await until(() => gateway.gateway.inference().dispatcher.active.size >= 1, 'it runs')
  await gateway.gateway.stop()
  const ended = await text
  t.match(lastEvent(ended), { error: { code: 'gateway.stopping' } })
  t.notMatch(ended, /\[DONE\]/)
  const answer = await plain
  t.ok(answer === null || answer.status === 200 || /gateway\.stopping/.test(answer.text))
})

t.test('a hurried stop does not wait for the grace', async t => {
  const { gateway, text } = await streaming(t, { svc: '[server]\nshutdown_grace_s = 600\n' }, { hangAfter: 5 })
  const stopping = gateway.gateway.stop()
  gateway.gateway.hurry()
  await stopping
  t.match(lastEvent(await text), { error: { code: 'gateway.stopping' } })
})

t.test('a plugin that ignores its signal does not keep the gateway from stopping', async t => {
  let calls = 0
  const deaf = createFakeProviderPlugin({
    name: 'deaf',
    surfaces: {
      chat: {
        path: '/chat',
        streaming: true,
        body: 'json',
        adapt: () => calls++ > 0 ? new Promise(() => {}) : Promise.resolve({ status: 200, headers: {}, body: Buffer.from('{}') })
      }
    }
  })
  const gateway = await wireGateway(t, { plugins: [deaf], files: { 'etc/svc/slots/deaf.toml': 'provider = "deaf"\ndevice = "cpu"\n' } })
  t.equal((await gateway.chat({ model: 'deaf' })).status, 200)
  const answer = gateway.chat({ model: 'deaf' }).then(response => response.status, () => 0)
  await until(() => gateway.gateway.inference().slots.status('deaf').inFlight === 1, 'it runs')
  gateway.gateway.hurry()
  await gateway.gateway.stop()
  t.equal(await answer, 503)
  t.ok(gateway.logs.some(({ level, message }) => level === 'error' && /did not end/.test(message)), 'and it is told')
})

t.test('requests that wait for a slot are refused at the end, and the load goes on for the next gateway', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const gateway = await wireGateway(t, { svc: '[server]\nshutdown_grace_s = 0.05\n', onStart: () => gate })
  const waiting = gateway.chat({})
  await until(() => gateway.gateway.inference().slots.status('agent').waiting === 1, 'it waits')
  const stopping = gateway.gateway.stop()
  const response = await waiting
  t.equal(response.status, 503)
  t.match(await response.json(), { error: { code: 'gateway.stopping' } })
  t.equal(response.headers.get('retry-after'), '5')
  release()
  await stopping
})

t.test('a second start on the same home adopts what runs, and answers at once', async t => {
  const home = t.testdir()
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const first = await wireGateway(t, { home, runtime })
  await (await first.chat({})).text()
  await first.gateway.stop()
  t.equal(runtime.running, 1)
  const second = await wireGateway(t, { home, runtime })
  t.equal((await second.chat({})).status, 200)
  t.equal(runtime.started.length, 1, 'the same engine')
  t.match(second.gateway.inference().slots.status('agent'), { adopted: true, state: 'ready' })
  t.equal(second.logs.filter(({ message }) => /adopt/.test(message)).length, 1, 'and one line says so')
  await runtime.crash('agent')
  t.equal((await second.chat({})).status, 200, 'an adopted engine that dies is replaced')
  t.equal(runtime.started.length, 2)
  await second.gateway.stop()
  const changed = await wireGateway(t, { home, runtime, files: { 'etc/svc/slots/agent.toml': 'provider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n[server.env]\nNEW = "1"\n' } })
  t.equal(runtime.running, 0, 'what was started from another configuration goes')
  t.equal((await changed.chat({})).status, 200)
})

t.test('two gateways on one home: the second refuses and leaves no trace', async t => {
  const home = t.testdir()
  const first = await wireGateway(t, { home })
  await t.rejects(wireGateway(t, { home }), { code: 'gateway.home_in_use' })
  t.equal((await first.chat({})).status, 200, 'the first goes on')
})

t.test('a start beside a gateway that lets its last answers end says so and waits for it', async t => {
  const home = t.testdir()
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const { gateway, text } = await streaming(t, { home, runtime }, { hangAfter: 3 })
  const stopping = gateway.gateway.stop()
  await until(() => readFileSync(join(home, 'var/lib/svc/gateway.lock'), 'utf8').includes('stopping'), 'it says that it stops')
  const told: string[] = []
  const log = { ...quiet, warn: (...said: unknown[]) => { told.push(said.map(String).join(' ')) } }
  const next = createGateway({ home, runtime, log, port: 0 })
  const starting = next.start()
  await until(() => told.some(line => /process \d+\) on this home is finishing its last answers; waiting for it/.test(line)), 'and the next one waits')
  gateway.gateway.hurry()
  await Promise.all([text, stopping])
  t.match((await starting).baseUrl, /^http/)
  await next.stop()
})

t.test('a start that waits for a gateway which is stopping can be given up', async t => {
  const home = t.testdir()
  const { gateway, text } = await streaming(t, { home }, { hangAfter: 3 })
  const stopping = gateway.gateway.stop()
  await until(() => readFileSync(join(home, 'var/lib/svc/gateway.lock'), 'utf8').includes('stopping'), 'it says that it stops')
  const next = createGateway({ home, runtime: new FakeEngineRuntime(), log: quiet, port: 0 })
  const starting = next.start()
  starting.catch(() => {})
  await next.stop()
  await t.rejects(starting, { code: 'gateway.stopping' })
  gateway.gateway.hurry()
  await Promise.all([text, stopping])
})

t.test('a gateway in standby takes over when the first is gone, and not before', async t => {
  const home = t.testdir()
  const runtime = new FakeEngineRuntime()
  t.teardown(() => runtime.destroy())
  const first = await wireGateway(t, { home, runtime })
  await (await first.chat({})).text()
  const told: string[] = []
  const log = { ...quiet, warn: (...said: unknown[]) => { told.push(said.map(String).join(' ')) } }
  const next = createGateway({ home, runtime, log, port: 0, standby: true, plugins: [createFakeProviderPlugin()] })
  let isUp = false
  const starting = next.start().finally(() => { isUp = true })
  await until(() => told.some(line => /process \d+\) on this home is running; waiting to take over/.test(line)), 'it says what it waits for')
  t.equal((await first.chat({})).status, 200)
  t.notOk(isUp)
  await first.gateway.stop()
  t.match((await starting).baseUrl, /^http/)
  t.match(next.inference().slots.status('agent'), { adopted: true, state: 'ready' }, 'with the engine that ran')
  t.equal(told.filter(line => /waiting/.test(line)).length, 1)

  const third = createGateway({ home, runtime, log: quiet, port: 0, standby: true })
  const given = third.start()
  given.catch(() => {})
  await third.stop()
  await t.rejects(given, { code: 'gateway.stopping' }, 'a wait can be given up')
  await next.stop()
})

t.test('a stop that comes during the start', async t => {
  const slow: AnyPlugin[] = [
    definePlugin({ name: 'slow-register', kind: 'service', apiVersion: 1, register: () => new Promise(resolve => { setTimeout(resolve, 50) }) }),
    definePlugin({
      name: 'slow-start',
      kind: 'service',
      apiVersion: 1,
      register: ctx => {
        ctx.onStart(() => { log.push('starts'); return new Promise(() => {}) })
        ctx.onStop(() => { log.push('stops') })
      }
    })
  ]
  let log: string[] = []
  for (const [when, plugins] of [['at once', []], ['while plugins register', slow.slice(0, 1)], ['while plugins start', slow.slice(1)]] as const) {
    log = []
    const home = t.testdir()
    const gateway = createGateway({ home, port: 0, host: '127.0.0.1', plugins, runtime: new FakeEngineRuntime(), log: quiet })
    const starting = gateway.start().then(() => 'up', (error: { code: string }) => error.code)
    if (when === 'while plugins register') await until(() => gateway.report().length === 0 && kernelIsThere(gateway), when)
    if (when === 'while plugins start') await until(() => log.length > 0, when)
    await gateway.stop()
    t.equal(await starting, 'gateway.stopping', when)
    if (when === 'while plugins start') t.strictSame(log, ['starts', 'stops'])
    const again = createGateway({ home, port: 0, host: '127.0.0.1', runtime: new FakeEngineRuntime(), log: quiet })
    await again.start()
    await again.stop()
    t.pass(`${when}: the home is free again`)
  }
  const never = createGateway({ home: t.testdir(), log: quiet })
  await never.stop()
  await t.rejects(never.start(), { code: 'gateway.stopping' }, 'what was stopped does not start')
})

t.test('a start that fails closes what it had opened', async t => {
  const home = t.testdir()
  const failing = definePlugin({ name: 'needed', kind: 'service', apiVersion: 1, register: ctx => ctx.onStart(() => { throw svcError('plugin.start_failed', 'no') }) })
  const broken = createGateway({ home, port: 0, plugins: [failing], runtime: new FakeEngineRuntime(), log: quiet })
  await t.rejects(broken.start(), { code: 'plugin.unavailable', message: /no plugin is active: needed: no/ })
  const again = createGateway({ home, port: 0, runtime: new FakeEngineRuntime(), log: quiet })
  await again.start()
  const port = Number(new URL((await again.start()).baseUrl).port)
  const taken = createGateway({ home: join(home, 'taken'), port, runtime: new FakeEngineRuntime(), log: quiet })
  await t.rejects(taken.start(), { code: 'gateway.listen_failed' })
  await again.stop()
})

const nothing = (): void => {}
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing }

function kernelIsThere (gateway: ReturnType<typeof createGateway>): boolean {
  try {
    return gateway.kernel() !== null
  } catch {
    return false
  }
}
