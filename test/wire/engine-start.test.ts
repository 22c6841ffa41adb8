import { once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { z } from 'zod'
import docs from '../../plugins/api/docs/index.js'
import type { EngineProvider, HealthReport } from '../../kernel/contract/index.js'
import { createFakeProviderPlugin, FakeEngineRuntime, type StartedEngine } from '../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway } from './wire-gateway.js'

const never = new AbortController().signal
const SLOT = 'type = "llm"\nprovider = "own"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n'

/** Slot `own` on a provider that is the fake one with something of its own. */
async function ownGateway (
  t: Test, overrides: Partial<EngineProvider>, onStart?: (started: StartedEngine) => void
): Promise<WireGateway> {
  return await wireGateway(t, {
    plugins: [docs, createFakeProviderPlugin({ name: 'own', family: 'own', ...overrides })],
    files: { 'etc/svc/slots/own.toml': SLOT },
    ...(onStart === undefined ? {} : { onStart })
  })
}

t.test('a slot is ready only after its engine\'s warm-up', async t => {
  let finish = (): void => {}
  const finished = new Promise<void>(resolve => { finish = resolve })
  const gateway = await ownGateway(t, {
    warmUp: async (client, signal, { slot, modelId }) => {
      const response = await client.request({
        method: 'POST', path: '/v1/chat/completions', body: { model: modelId, messages: [{ role: 'user', content: slot.name }] }, signal
      })
      await response.json()
      await finished
    }
  })
  const loaded = gateway.slots.load('own', { signal: never })
  await until(() => gateway.runtime.running === 1, 'the engine runs')
  const engine = gateway.runtime.engine('own')
  const first = await engine.request(0)
  t.match(JSON.parse(first.body.toString()), { model: 'fake-model', messages: [{ content: 'own' }] })
  t.match(gateway.slots.status('own'), { state: 'warming', message: 'warming up' })
  const asked = gateway.chat({ model: 'own' })
  t.equal(engine.requests.length, 1, 'a request waits')
  finish()
  await loaded
  t.match(await (await asked).json(), { choices: [{}] })
})

t.test('a warm-up that fails fails the start, and says so', async t => {
  const gateway = await ownGateway(t, { warmUp: () => Promise.reject(new Error('the first inference gave 500')) })
  await t.rejects(gateway.slots.load('own', { signal: never }), {
    message: /engine of slot 'own' is healthy but its warm-up failed: the first inference gave 500/
  })
  t.equal(gateway.runtime.running, 0, 'its engine is gone')
})

t.test('an unload ends a warm-up that pays no heed to its signal', async t => {
  const gateway = await ownGateway(t, { warmUp: () => new Promise(() => {}) })
  const loaded = gateway.slots.load('own', { signal: never }).then(() => 'loaded', () => 'ended')
  await until(() => gateway.slots.status('own').message === 'warming up', 'it warms up')
  await gateway.slots.unload('own', { force: true })
  t.equal(await loaded, 'ended')
  t.equal(gateway.runtime.running, 0)
})

t.test('what an engine says of its start is shown with its progress', async t => {
  let report: HealthReport = { verdict: 'loading', progress: 0.425, message: 'reading tensors' }
  const gateway = await ownGateway(t, { health: { path: '/health', verdict: () => report } })
  const loaded = gateway.slots.load('own', { signal: never })
  await until(() => gateway.slots.status('own').progress !== null, 'the progress is known')
  const record = await (await gateway.fetch('/api/slots/own')).json() as object
  t.match(gateway.slots.status('own'), { state: 'warming', message: 'reading tensors (42 %)', progress: 0.425 })
  t.ok(record)
  report = { verdict: 'loading', message: 'compiling kernels' }
  await until(() => gateway.slots.status('own').message === 'compiling kernels', 'the next message')
  t.equal(gateway.slots.status('own').progress, null)
  report = { verdict: 'ok' }
  await loaded
  t.match(gateway.slots.status('own'), { state: 'ready', message: /^$/, progress: null })
})

t.test('what an engine needs of the machine is judged before it is started, and when its slot is written', async t => {
  const requires = { memoryMb: 1024 * 1024 * 1024, features: ['npu'] } as const
  const gateway = await ownGateway(t, { requires })
  const reason = /slot 'own' cannot run on cpu here: Fake engine needs \d+ MiB of memory, and the host has \d+; and an NPU, which this machine/
  await t.rejects(gateway.slots.load('own', { signal: never }), { message: reason })
  t.equal(gateway.runtime.started.length, 0)
  t.match(await gateway.slots.troubles('own'), [{ what: 'device', message: reason }])
  const fine = await ownGateway(t, { requires: { memoryMb: 1, drivers: ['amdgpu'] } })
  await fine.slots.load('own', { signal: never })
  t.equal(fine.slots.status('own').state, 'ready', 'a driver is a matter of GPUs')
})

t.test('whose an engine and its image are is told before the first pull', async t => {
  const about = { license: 'MIT', homepage: 'https://example.org/engine', image: { license: 'Apache-2.0 AND GPL-2.0-only' } }
  const runtime = new FakeEngineRuntime()
  let present = false
  let pulled = 0
  runtime.imagePresent = () => Promise.resolve(present)
  runtime.pull = async () => { pulled++ }
  t.teardown(() => runtime.destroy())
  const gateway = await wireGateway(t, {
    runtime,
    plugins: [createFakeProviderPlugin({ name: 'own', family: 'own', about })],
    files: { 'etc/svc/slots/own.toml': SLOT }
  })
  await gateway.slots.load('own', { signal: never })
  const told = (): unknown[] => gateway.gateway.kernel().events.list({ type: 'slot.image' }).events.map(event => event.message)
  const notice = 'pulling svc-test/fake: Fake engine, licence MIT, https://example.org/engine; the image: Apache-2.0 AND GPL-2.0-only'
  t.match(told(), [notice])
  t.equal(pulled, 1)
  present = true
  await gateway.slots.restart('own', { signal: never })
  t.equal(told().length, 1, 'once it is there nobody is told again')
})

t.test('options of an engine show in the OpenAPI document, in the body of the routes that it serves', async t => {
  const options = z.object({ pitch: z.int().min(0).max(99).optional().meta({ description: 'Pitch of the voice' }) })
  const gateway = await ownGateway(t, {
    surfaces: { chat: { path: '/v1/chat/completions', streaming: true, body: 'json', options } }
  })
  const document = await (await gateway.fetch('/api/openapi.json')).json() as object
  t.match(document, { paths: { '/v1/chat/completions': { post: { requestBody: { content: { 'application/json': { schema: {
    allOf: [{}, { properties: { pitch: { type: 'integer', maximum: 99, description: 'Option of Fake engine: Pitch of the voice' } } }]
  } } } } } } } })
})

t.test('an engine with a key of its own gets it with every request, and nobody else sees it', async t => {
  const seen: Array<string | undefined> = []
  let key = ''
  const guarded: Partial<EngineProvider> = {
    containerSpec: ({ argv, engineKey }) => ({ command: argv, env: { ENGINE_KEY: engineKey } }),
    health: { path: '/ready' },
    headers: ({ engineKey }) => ({ Authorization: `Bearer ${engineKey}` }),
    argvSegments: ({ engineKey }) => ({ base: ['--key-for-the-test', engineKey] }),
    voices: async (client, signal) => [await (await client.request({ path: '/v1/voices', signal })).text()]
  }
  const gateway = await ownGateway(t, guarded, ({ spec, engine }) => {
    key = spec.env.ENGINE_KEY ?? key
    engine.take((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization}`)
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
    })
  })
  const asked = await fetch(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'authorization': 'Bearer of-the-client' },
    body: '{"model":"own","messages":[]}'
  })
  t.equal(asked.status, 200)
  await gateway.slots.client('own')!.request({ path: '/props', signal: never })
  t.match(key, /^sk-svc-[\w-]{43}$/)
  t.strictSame([...new Set(seen)], ['/ready', '/v1/chat/completions', '/props'].map(path => `${path} Bearer ${key}`))
  const shown = JSON.stringify(gateway.slots.resolved('own'))
  t.notMatch(shown, key)
  t.match(shown, '"***"')
  await gateway.slots.unload('own', { force: true })
  const before = key
  await gateway.slots.load('own', { signal: never })
  t.equal(key, before, 'it is the same at each launch')
})

t.test('a surface and the calls of an engine\'s client go to the further port that they name', async t => {
  const further = createServer((request, response) => { response.end(JSON.stringify({ choices: [], at: request.url })) })
  t.teardown(() => { further.close() })
  const gateway = await ownGateway(t, {
    ports: ['inference'],
    containerSpec: ({ argv, ports }) => ({ command: [...argv, String(ports.inference)] }),
    surfaces: { chat: { path: '/chat', port: 'inference', streaming: true, body: 'json' } },
    warmUp: async (client, signal) => {
      await once(further.listen(client.address.ports!.inference, '127.0.0.1'), 'listening')
      const answer = await client.request({ port: 'inference', path: '/warm', signal })
      t.match(await answer.json(), { at: '/warm' })
      await t.rejects(client.request({ port: 'metrics', path: '/', signal }), /no port named 'metrics'/)
    }
  })
  t.match(await (await gateway.chat({ model: 'own' })).json(), { at: '/chat' })
  const { port, ports } = gateway.slots.status('own')
  const { port_range_start: start, port_range_end: end } = gateway.gateway.kernel().config.snapshot.svc.slots
  t.ok(ports.inference! >= start && ports.inference! <= end && ports.inference !== port)
  await gateway.slots.unload('own', { force: true })
  t.strictSame(gateway.slots.status('own').ports, {})
})
