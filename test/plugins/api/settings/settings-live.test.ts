import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import { settingsOf } from '../../../../kernel/contract/index.js'
import { createFakeProviderPlugin, FakeClock, type TestGateway } from '../../../../kernel/testing/index.js'
import apiMemory from '../../../../plugins/api/memory/index.js'
import modelStore from '../../../../plugins/api/model-store/index.js'
import updatesApi from '../../../../plugins/api/updates/index.js'
import ollama from '../../../../plugins/dialects/ollama/index.js'
import mcpAll from '../../../../plugins/mcp/all/index.js'
import mcpServers from '../../../../plugins/mcp/servers/index.js'
import hub from '../../../../plugins/services/hub/index.js'
import library from '../../../../plugins/services/library/index.js'
import memoryEngine from '../../../../plugins/services/memory-engine/index.js'
import memory from '../../../../plugins/services/memory/index.js'
import pull from '../../../../plugins/services/pull/index.js'
import updates from '../../../../plugins/services/updates/index.js'
import { telemetrySettings } from '../../../../plugins/services/updates/settings.js'
import audioRoutes from '../../../../plugins/v1/audio/index.js'
import { fakeHindsight } from '../../services/memory/fake-hindsight.js'
import { freePort } from '../../../ports.js'
import { live, Proofs, settled, type Live } from '../live-gateway.js'
import { until } from '../support.js'

/** Live keys of svc.toml but for those of [dispatcher]. */
const proofs = new Proofs()
const prove = (key: string, proof: (t: Test) => Promise<void>): void => proofs.prove(t, key, proof)

/** A request with headers that `fetch` does not let one set. */
async function statusWith (gateway: TestGateway, headers: Record<string, string>, path = '/api/settings'): Promise<number> {
  const request = httpRequest(`${gateway.baseUrl}${path}`, { headers })
  request.end()
  const [response] = await once(request, 'response') as [{ statusCode: number, resume (): void }]
  response.resume()
  return response.statusCode
}

prove('server.allowed_hosts', async t => {
  const gateway = await live(t)
  t.equal(await statusWith(gateway, { host: 'box.example' }), 421)
  await gateway.change({ server: { allowed_hosts: ['box.example'] } })
  t.equal(await statusWith(gateway, { host: 'box.example' }), 200)
})

prove('server.allowed_origins', async t => {
  const gateway = await live(t)
  t.equal(await statusWith(gateway, { origin: 'http://page.example' }), 403)
  await gateway.change({ server: { allowed_origins: ['http://page.example'] } })
  t.equal(await statusWith(gateway, { origin: 'http://page.example' }), 200)
})

/** No tool server is mounted: who gets past the guards hears that there is none. */
prove('mcp.allowed_hosts', async t => {
  const gateway = await live(t)
  const host = 'tools.example:8080'
  t.equal(await statusWith(gateway, { host }, '/mcp/admin'), 421)
  await gateway.change({ mcp: { allowed_hosts: ['tools.example'] } })
  t.equal(await statusWith(gateway, { host }, '/mcp/admin'), 404)
  t.equal(await statusWith(gateway, { host }), 421, 'the rest of the gateway does not answer to it')
  t.equal(await statusWith(gateway, { origin: 'https://tools.example' }, '/mcp/admin'), 404, 'pages of an allowed host may call')
  t.equal(await statusWith(gateway, { origin: 'https://tools.example' }), 403)
})

prove('mcp.allowed_origins', async t => {
  const gateway = await live(t)
  const origin = 'http://page.example'
  t.equal(await statusWith(gateway, { origin }, '/mcp/admin'), 403)
  await gateway.change({ mcp: { allowed_origins: [origin], allowed_hosts: ['tools.example'] } })
  t.equal(await statusWith(gateway, { origin }, '/mcp/admin'), 404)
  t.equal(await statusWith(gateway, { origin: 'https://tools.example' }, '/mcp/admin'), 403, 'only those named')
  t.equal(await statusWith(gateway, { origin }), 403)
})

prove('mcp.all_tools', async t => {
  const gateway = await live(t, { plugins: [mcpAll, mcpServers], svc: '[mcp]\nall_tools = 2\n' })
  const names = async (): Promise<readonly string[]> => {
    const response = await gateway.fetch('/mcp/all', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    })
    const { result } = await response.json() as { result: { tools: Array<{ name: string }> } }
    return result.tools.map(({ name }) => name)
  }
  t.strictSame(await names(), ['tool_search', 'tool_call'])
  await gateway.change({ mcp: { all_tools: 1000 } })
  t.ok((await names()).includes('admin_slot_list'))
})

prove('server.log_level', async t => {
  const levels: string[] = []
  const gateway = await live(t, { setLogLevel: level => { levels.push(level) } })
  await gateway.change({ server: { log_level: 'warn' } })
  t.same([levels.at(0), levels.at(-1)], ['info', 'warn'])
})

/** A form that stops in the middle of its file. */
function openUpload (gateway: TestGateway, file: string): Promise<{ readonly status: number, readonly code: string }> {
  const head = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nhear\r\n' +
    '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
  const request = httpRequest(`${gateway.baseUrl}/v1/audio/transcriptions`, {
    method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=b', 'transfer-encoding': 'chunked' }
  })
  request.on('error', () => {})
  request.write(head + file)
  return once(request, 'response').then(async ([response]) => {
    const chunks: Buffer[] = []
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
    const { error } = JSON.parse(Buffer.concat(chunks).toString()) as { error: { code: string } }
    return { status: (response as { statusCode: number }).statusCode, code: error.code }
  })
}

const hearing = {
  files: { 'etc/svc/slots/hear.toml': 'type = "transcription"\nprovider = "ears"\ndevice = "cpu"\n' },
  plugins: [audioRoutes, createFakeProviderPlugin({
    name: 'ears', slotTypes: ['transcription'], surfaces: { transcription: { path: '/v1/audio/transcriptions', streaming: false, body: 'multipart' } }
  })]
}

prove('server.upload_limit_bytes', async t => {
  const gateway = await live(t, hearing)
  gateway.runtime.hangs = 'start'
  await gateway.change({ server: { upload_limit_bytes: 2048 } })
  t.match(await openUpload(gateway, 'x'.repeat(4096)), { status: 413, code: 'request.too_large' })
})

prove('server.upload_idle_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { ...hearing, clock })
  gateway.runtime.hangs = 'start'
  await gateway.change({ server: { upload_idle_timeout_s: 5 } })
  const answer = openUpload(gateway, 'x')
  await until(() => gateway.slots.status('hear').waiting === 1, 'it waits for its slot')
  await clock.advance(4_000)
  t.notOk(await settled(answer))
  await clock.advance(1_100)
  t.ok((await answer).status >= 400)
})

prove('server.body_idle_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock })
  await gateway.change({ server: { body_idle_timeout_s: 4 } })
  const request = httpRequest(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', headers: { 'content-length': '100' } })
  request.on('error', () => {})
  request.write('{"model"')
  const answer = once(request, 'response') as Promise<[{ statusCode: number, resume (): void }]>
  await until(() => gateway.gateway.bodies().open === 1, 'the body is on its way')
  await clock.advance(3_900)
  t.notOk(await settled(answer))
  await clock.advance(1_200)
  const [response] = await answer
  response.resume()
  t.equal(response.statusCode, 408)
  await gateway.change({ server: { body_idle_timeout_s: 1e-9 } })
  await gateway.change({ server: { body_idle_timeout_s: 60 } })
  t.pass('no value keeps out the request that changes it')
})

prove('server.shutdown_grace_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock })
  await gateway.slots.load('chat')
  gateway.runtime.engine('chat').answer({ headAfterMs: Infinity })
  const answer = gateway.chat()
  await gateway.runtime.engine('chat').request(0)
  await gateway.change({ server: { shutdown_grace_s: 1 } })
  const stopped = gateway.gateway.stop()
  await clock.advance(900)
  t.notOk(await settled(answer), 'within the grace it goes on')
  await clock.advance(200)
  t.equal((await answer).status, 503)
  await stopped
})

prove('runtime.stop_with_gateway', async t => {
  const gateway = await live(t)
  await gateway.slots.load('chat')
  await gateway.change({ runtime: { stop_with_gateway: true } })
  await gateway.gateway.stop()
  t.equal(gateway.runtime.running, 0, 'containers stay unless that is set')
})

prove('slots.max_slots', async t => {
  const gateway = await live(t)
  await gateway.change({ slots: { max_slots: 1 } })
  t.match(await (await gateway.post('/api/slots', { name: 'more', device: 'cpu', provider: 'fake' })).json(), { error: { code: 'slot.capacity_exhausted' } })
  await gateway.change({ slots: { max_slots: 2 } })
  t.equal((await gateway.post('/api/slots', { name: 'more', device: 'cpu', provider: 'fake' })).status, 201)
})

for (const key of ['port_range_start', 'port_range_end']) {
  prove(`slots.${key}`, async t => {
    const gateway = await live(t, { svc: 'port_range_start = 8101\nport_range_end = 8101\n' })
    await gateway.change({ slots: { port_range_start: 8110, port_range_end: 8150 } })
    const started = async (name: string) => {
      await gateway.post('/api/slots', { name, device: 'cpu', provider: 'fake' })
      const response = await gateway.post(`/api/slots/${name}/load`)
      return { port: gateway.slots.status(name).port, text: await response.text() }
    }
    const { port } = await started('more')
    t.ok(port !== null && port >= 8110 && port <= 8150, `port ${port}`)
    if (key === 'port_range_start') return
    await gateway.change({ slots: { port_range_end: port, port_range_start: port } })
    t.match((await started('third')).text, 'slot.no_free_port')
  })
}

prove('slots.idle_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock })
  await gateway.slots.load('chat')
  await gateway.change({ slots: { idle_timeout_s: 5 } })
  await clock.advance(5_100)
  await until(() => gateway.slots.status('chat').state === 'offline', 'the slot is unloaded')
})

prove('slots.evict_pressure_mb', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, {
    clock, svc: 'evict_pressure_mb = 400\nidle_timeout_s = 0\n',
    files: { 'etc/svc/slots/vectors.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n' },
    readMemory: () => Promise.resolve([{ kind: 'ram', gpu: '', totalMb: 1000, availableMb: 500 }])
  })
  await gateway.slots.load('vectors')
  await clock.advance(100_000)
  t.not(gateway.slots.status('vectors').state, 'offline')
  await gateway.change({ slots: { evict_pressure_mb: 600 } })
  await clock.advance(31_000)
  await until(() => gateway.slots.status('vectors').state === 'offline', 'the idle slot makes room')
})

prove('models.file_extensions', async t => {
  const gateway = await live(t, { plugins: [library, modelStore], files: { 'var/lib/svc/models/found.odd': 'no model' } })
  const seen = async (): Promise<readonly { path: string }[]> => {
    const answer = await gateway.fetch('/api/config/models', { method: 'PUT', body: '{}' })
    return (await answer.json() as { scan: { skipped: { path: string }[] } }).scan.skipped
  }
  t.same(await seen(), [])
  await gateway.change({ models: { file_extensions: ['.odd'] } })
  t.match(await seen(), [{ path: /found\.odd$/ }])
})

for (const [key, hangs, message] of [
  ['image_pull_timeout_s', 'pull', /timed out after 5 s while pulling/], ['start_timeout_s', 'start', /timed out after 5 s while starting/]
] as const) {
  prove(`slots.${key}`, async t => {
    const clock = new FakeClock()
    const gateway = await live(t, { clock })
    gateway.runtime.hangs = hangs
    await gateway.change({ slots: { [key]: 5 } })
    const refused = t.rejects(gateway.slots.load('chat'), { message })
    const state = hangs === 'pull' ? 'pulling' : 'starting'
    await until(() => gateway.slots.status('chat').state === state, state)
    await clock.advance(5_100)
    await refused
  })
}

prove('slots.health_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock, probe: () => Promise.resolve('loading') })
  await gateway.change({ slots: { health_timeout_s: 5 } })
  const refused = t.rejects(gateway.slots.load('chat'), { message: /timed out after 5 s while waiting/ })
  await until(() => gateway.slots.status('chat').state === 'warming', 'warming')
  await clock.advance(5_100)
  await refused
})

prove('slots.health_refused_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock, probe: () => Promise.resolve({ verdict: 'failed', status: 404 }) })
  await gateway.change({ slots: { health_refused_s: 5 } })
  const refused = t.rejects(gateway.slots.load('chat'), { message: /health_refused_s = 5\): GET \/health answered 404, \d+ times/ })
  await until(() => gateway.slots.status('chat').state === 'warming', 'warming')
  await clock.advance(4_000)
  t.match(gateway.slots.status('chat'), { state: 'warming', message: /^GET \/health answered 404, \d+ times$/ }, 'told while it waits')
  await clock.advance(2_000)
  await refused
  t.match(gateway.slots.status('chat'), { state: 'error', message: /answered 404/ })
})

prove('slots.unresponsive_s', async t => {
  const clock = new FakeClock()
  let health: 'ok' | 'silent' = 'ok'
  const gateway = await live(t, { clock, probe: () => Promise.resolve(health) })
  await gateway.slots.load('chat')
  gateway.runtime.engine('chat').answer({ headAfterMs: Infinity })
  const answer = gateway.chat()
  await gateway.runtime.engine('chat').request(0)
  await gateway.change({ slots: { unresponsive_s: 7 } })
  health = 'silent'
  await clock.advance(12_000)
  t.match(await (await answer).json(), { error: { code: 'dispatch.upstream_failed', message: /has been silent for 7 s/ } })
})

prove('slots.first_token_timeout_s', async t => {
  const gateway = await live(t)
  await gateway.slots.load('chat')
  gateway.runtime.engine('chat').answer({ headAfterMs: Infinity })
  await gateway.change({ slots: { first_token_timeout_s: 0.2 } })
  t.match(await (await gateway.chat()).json(), { error: { code: 'dispatch.upstream_timeout' } })
})

prove('slots.drain_timeout_s', async t => {
  const clock = new FakeClock()
  const gateway = await live(t, { clock })
  await gateway.slots.load('chat')
  gateway.runtime.engine('chat').answer({ headAfterMs: Infinity })
  const answer = gateway.chat()
  await gateway.runtime.engine('chat').request(0)
  await gateway.change({ slots: { drain_timeout_s: 5 } })
  const unloaded = gateway.slots.unload('chat')
  await clock.advance(4_000)
  t.notOk(await settled(answer), 'it may end by itself first')
  await clock.advance(1_100)
  await unloaded
  t.ok((await answer).status >= 500)
})

prove('slots.stop_timeout_s', async t => {
  const gateway = await live(t)
  await gateway.slots.load('chat')
  await gateway.change({ slots: { stop_timeout_s: 33 } })
  await gateway.slots.unload('chat')
  t.equal(gateway.runtime.stopTimeouts[0], 33)
})

prove('activity.enabled', async t => {
  const gateway = await live(t)
  await gateway.change({ activity: { enabled: false } })
  t.equal((await gateway.fetch('/api/activity')).status, 503)
  await gateway.change({ activity: { enabled: true } })
  t.equal((await gateway.fetch('/api/activity')).status, 200)
})

for (const [key, value] of [['max_rows', 100], ['retention_days', 1]] as const) {
  prove(`activity.${key}`, async t => {
    const clock = new FakeClock()
    const gateway = await live(t, { clock })
    const { activity: log } = gateway.gateway.kernel()
    for (let i = 0; i < 150; i++) log.record({ category: 'slot', action: 'slot.test', target: 'x', actor: 'test' })
    await clock.advance(2 * 24 * 60 * 60 * 1000)
    await gateway.change({ activity: { [key]: value } })
    const left = log.list({ action: 'slot.test', limit: 1000 }).length
    t.ok(key === 'max_rows' ? left <= 100 && left > 80 : left === 0, `${left} rows are left`)
  })
}

prove('telemetry.channel', async t => {
  const gateway = await live(t, { plugins: [updates, updatesApi] })
  const channel = async (): Promise<unknown> => (await gateway.fetch('/api/updates/channel')).json()
  t.strictSame(await channel(), { channel: 'stable' })
  await gateway.change({ telemetry: { channel: 'nightly' } })
  t.strictSame(await channel(), { channel: 'nightly' })
})

prove('telemetry.enabled', async t => {
  const gateway = await live(t, { plugins: [updates] })
  await gateway.change({ telemetry: { enabled: true } })
  t.equal(settingsOf(gateway.gateway.kernel().config.snapshot.svc, telemetrySettings).enabled, true, 'whoever asks next is told')
})

prove('plugins.disabled', async t => {
  const gateway = await live(t)
  await gateway.change({ plugins: { disabled: ['v1-models'] } })
  t.equal(gateway.gateway.report().find(({ name }) => name === 'v1-models')?.state, 'disabled')
  t.equal((await gateway.fetch('/v1/models')).status, 404)
  await gateway.change({ plugins: { disabled: [] } })
  t.equal((await gateway.fetch('/v1/models')).status, 200)
})

prove('plugins.allow', async t => {
  const gateway = await live(t, {
    files: {
      'var/lib/svc/plugins/node_modules/svc-plugin-bell/package.json': JSON.stringify({
        name: 'svc-plugin-bell', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'service', entry: '.' }
      }),
      'var/lib/svc/plugins/node_modules/svc-plugin-bell/index.js':
        'import { definePlugin } from "svc-gateway/plugin"\nexport default definePlugin({ name: "bell", kind: "service", apiVersion: 1, register () {} })\n'
    }
  })
  const state = (): string | undefined => gateway.gateway.report().find(({ name }) => name === 'bell')?.state
  t.equal(state(), undefined)
  await gateway.change({ plugins: { allow: ['svc-plugin-bell'] } })
  t.equal(state(), 'active')
  await gateway.change({ plugins: { allow: [] } })
  t.equal(state(), undefined)
})

const remembering = (t: Test, svc: string): Promise<Live> => live(t, {
  plugins: [memory, memoryEngine, apiMemory], svc, files: { 'etc/svc/api.env': 'FIRST_KEY=one\nSECOND_KEY=two\n' }
})

prove('memory.enabled', async t => {
  const gateway = await remembering(t, '')
  const banks = async (): Promise<number> => (await gateway.fetch('/api/memory/banks')).status
  t.equal(await banks(), 503)
  await gateway.change({ memory: { enabled: true } })
  t.equal(await banks(), 200)
  await gateway.change({ memory: { enabled: false } })
  t.equal(await banks(), 503)
})

prove('memory.engine', async t => {
  const fake = await fakeHindsight(t)
  const gateway = await remembering(t, `[memory]\nenabled = true\nurl = "${fake.url}"\n`)
  t.equal((await gateway.fetch('/api/memory/banks')).status, 200)
  t.strictSame(fake.calls, [])
  await gateway.change({ memory: { engine: 'hindsight' } })
  await gateway.fetch('/api/memory/banks')
  t.match(fake.calls.at(-1), /^GET \/v1\/default\/banks/)
})

prove('memory.url', async t => {
  const [first, second] = [await fakeHindsight(t), await fakeHindsight(t)]
  const gateway = await remembering(t, `[memory]\nenabled = true\nengine = "hindsight"\nurl = "${first.url}"\n`)
  await gateway.change({ memory: { url: second.url } })
  const before = first.calls.length
  await gateway.fetch('/api/memory/banks')
  t.equal(first.calls.length, before)
  t.match(second.calls.at(-1), /^GET \/v1\/default\/banks/)
})

prove('memory.auth_value_env', async t => {
  const fake = await fakeHindsight(t)
  const gateway = await remembering(t, `[memory]\nenabled = true\nengine = "hindsight"\nurl = "${fake.url}"\nauth_value_env = "FIRST_KEY"\n`)
  const key = async (): Promise<string | undefined> => {
    await gateway.fetch('/api/memory/banks')
    return fake.seen.at(-1)?.headers.authorization
  }
  t.equal(await key(), 'Bearer one')
  await gateway.change({ memory: { auth_value_env: 'SECOND_KEY' } })
  t.equal(await key(), 'Bearer two')
})

prove('memory.consolidation_tokens_per_day', async t => {
  const gateway = await remembering(t, '[memory]\nenabled = true\n')
  const bank = '/api/memory/banks/notes'
  await gateway.post('/api/memory/hindsight/v1/default/banks/notes/memories', { items: [{ content: 'Alice works at Acme.' }] })
  for (const tokens of [1, 2]) {
    await gateway.change({ memory: { consolidation_tokens_per_day: tokens } })
    const { operation_id: id } = await (await gateway.post(`${bank}/consolidate`, {})).json() as { operation_id: string }
    const why = (): Promise<string | null> => gateway.fetch(`${bank}/operations/${id}`)
      .then(async answer => (await answer.json() as { error_message: string | null }).error_message)
    while (await why() === null);
    t.match(await why(), new RegExp(`used its ${tokens} tokens for today`))
  }
})

for (const [key, value] of [['enabled', true], ['extraction_slot', 'chat'], ['llm_timeout_s', 77]] as const) {
  prove(`memory.graph.${key}`, async t => {
    const gateway = await remembering(t, '[memory]\nenabled = true\n')
    const told = async (): Promise<unknown> => (await (await gateway.fetch('/api/memory/graph')).json() as Record<string, unknown>)[key]
    t.not(await told(), value)
    await gateway.change({ memory: { graph: { [key]: value } } })
    t.equal(await told(), value)
  })
}

prove('dialects.ollama_port', async t => {
  const gateway = await live(t, { plugins: [hub, library, pull, ollama] })
  const port = await freePort()
  await gateway.change({ dialects: { ollama_port: port } })
  const answers = (): Promise<boolean> => fetch(`http://127.0.0.1:${port}/`).then(async answer => await answer.text() === 'Ollama is running', () => false)
  while (!await answers());
  await gateway.change({ dialects: { ollama_port: 0 } })
  while (await answers());
})

t.test('there is a proof for every live key', async t => {
  // these are proven where what they govern can be made to happen: fleet.test.ts and gpu-arbiter.test.ts of kernel/slots, and
  // approvals.test.ts; memory.embedding.model in recall.test.ts of services/memory-engine
  proofs.complete(t, table => table !== 'dispatcher' && table !== 'aliases', ['slots.model_fetch_timeout_s', 'slots.gpu_drain_timeout_s', 'images.strip_metadata', 'approvals.ttl_s', 'approvals.auto', 'approvals.never', 'memory.embedding.model'])
})
