import t, { type Test } from 'tap'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Agent } from 'undici'
import { createEngineClient } from '../../../../kernel/slots/life/engine/engine-client.js'
import { runGraph } from '../../../../plugins/providers/imagegen/run.js'
import { shippedWorkflow } from '../../../../plugins/providers/imagegen/workflow.js'
import { openStream } from '../../api/support.js'
import { eventually, realClock } from '../../../kernel/runtime/support.js'
import activity from '../../../../plugins/api/activity/index.js'
import settings from '../../../../plugins/api/settings/index.js'
import { decodePng } from './fake/png.js'
import { startFakeComfy } from './fake/server.js'
import { imageGateway, imagePlugins, type EngineState, type ImageGateway } from './image-gateway.js'

const body = { model: 'sdxl-turbo', prompt: 'a red apple', size: '64x64' }

interface Refusal {
  readonly error: { readonly code: string, readonly message: string, readonly details: Readonly<Record<string, unknown>> }
}

async function refusal (answer: Promise<Response>): Promise<Refusal['error'] & { readonly status: number }> {
  const response = await answer
  return { status: response.status, ...(await response.json() as Refusal).error }
}

function types (gateway: ImageGateway): string[] {
  return gateway.events('image.*').map(event => event.type)
}

/** Steps that come close together are told as one, on a busy machine more of them; the last one always is. */
function tellsSteps (t: Test, percents: readonly unknown[]): void {
  const steps = [25, 50, 75, 100].filter(percent => percents.includes(percent))
  t.strictSame(percents, steps, 'steps of the engine, in their order')
  t.ok(steps.length >= 2 && steps.at(-1) === 100, 'some on the way, and the last')
}

t.test('progress is told on the event bus', async t => {
  const gateway = await imageGateway(t)
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  await gateway.engine({ stepMs: 300 })
  const answer = await gateway.fetch('/v1/images/generations', {
    method: 'POST', headers: { 'content-type': 'application/json', 'x-request-id': 'mine' }, body: JSON.stringify(body)
  })
  t.equal(answer.status, 200)
  const events = gateway.events('image.*')
  t.strictSame([events.at(0)!.type, events.at(-1)!.type], ['image.progress', 'image.completed'])
  const steps = events.map(event => event.data).filter(data => data.value !== null && data.value !== undefined)
  tellsSteps(t, steps.map(({ percent }) => percent))
  for (const { value, max, percent } of steps) t.strictSame([max, percent], [4, Number(value) * 25])
  for (const { source, data } of events) t.match([source, data], ['slot:img', { request_id: 'mine', slot: 'img', model: 'sdxl-turbo' }])
  t.match(events.at(-1)!.data, { images: 1, duration_ms: Number })
  await gateway.engineUntil(state => state.sockets === 0, 'the event stream of the engine is closed')
})

t.test('a client of the event stream sees an image come', async t => {
  const gateway = await imageGateway(t)
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  await gateway.engine({ stepMs: 300 })
  const stream = await openStream(t, gateway, '/api/events/stream?type=image.*')
  const made = gateway.post(body)
  const frames: string[] = []
  await stream.until(({ data }) => {
    frames.push(data.data.percent === undefined || data.data.percent === null ? data.type : `${data.data.percent} %`)
    return data.type === 'image.completed'
  })
  t.equal(frames.at(-1), 'image.completed')
  tellsSteps(t, frames.filter(frame => frame.endsWith(' %')).map(frame => Number.parseInt(frame, 10)))
  t.equal((await made).status, 200)
  await stream.close()
})

t.test('the same request again, with its seed, once the first image was read and its file is gone', async t => {
  const gateway = await imageGateway(t)
  const ask = async (): Promise<Buffer> => {
    const response = await gateway.post({ ...body, seed: 7, response_format: 'b64_json' })
    t.equal(response.status, 200)
    return Buffer.from((await response.json() as { data: Array<{ b64_json: string }> }).data[0]!.b64_json, 'base64')
  }
  const first = await ask()
  const output = join(gateway.dataRoot, 'output')
  for (const name of await readdir(output)) await rm(join(output, name))
  t.strictSame(await ask(), first, 'the same picture')
  t.equal((await readdir(output)).length, 1, 'the engine has saved it anew, although it kept the rest')
})

t.test('the prompt is not in the image, unless the operator wants it there', async t => {
  const gateway = await imageGateway(t, { plugins: [...imagePlugins, activity, settings] })
  const ask = async (): Promise<Buffer> => {
    const response = await gateway.post({ ...body, response_format: 'b64_json' })
    return Buffer.from((await response.json() as { data: Array<{ b64_json: string }> }).data[0]!.b64_json, 'base64')
  }
  const change = (strip: boolean): Promise<Response> =>
    gateway.fetch('/api/settings', { method: 'PATCH', body: JSON.stringify({ images: { strip_metadata: strip } }), headers: { 'content-type': 'application/json' } })
  const stripped = await ask()
  t.notOk(stripped.includes('tEXt') || stripped.includes('a red apple'))
  t.same(decodePng(stripped).width, 64)
  t.equal((await change(false)).status, 200)
  t.ok((await ask()).includes('a red apple'), 'the engine writes its graph into each')
  t.equal((await change(true)).status, 200)
  t.notOk((await ask()).includes('a red apple'))
})

t.test('every folder that the engine is told of is there', async t => {
  const gateway = await imageGateway(t)
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  for (const name of ['models', 'output', 'input', 'user', 'temp', 'custom_nodes']) t.ok((await stat(join(gateway.dataRoot, name))).isDirectory(), name)
  await gateway.slots.unload('img')
  await rm(join(gateway.dataRoot, 'custom_nodes'), { recursive: true })
  await t.rejects(gateway.slots.load('img'), { message: /FileNotFoundError.*custom_nodes/ }, 'without it the engine does not start')
})

t.test('a client that leaves takes its job out of the engine, wherever it is', async t => {
  const gateway = await imageGateway(t, { img: 'workers = 2\n' })
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  await gateway.engine({ holdAtStep: 2 })
  const [runs, waits] = [new AbortController(), new AbortController()]
  const first = gateway.post(body, runs.signal).catch((error: unknown) => error)
  await gateway.engineUntil(state => state.running !== null, 'the first runs')
  const second = gateway.post(body, waits.signal).catch((error: unknown) => error)
  const both = await gateway.engineUntil(state => state.pending.length === 1, 'the second waits')

  waits.abort()
  const afterQueue = await gateway.engineUntil(state => state.pending.length === 0, 'it is out of the queue')
  t.equal(afterQueue.running, both.running, 'the other one goes on')
  t.notOk(afterQueue.seen.includes('POST /interrupt'), 'nothing was interrupted for it')
  runs.abort()
  const afterRun = await gateway.engineUntil(state => state.running === null && state.sockets === 0, 'it was interrupted')
  t.ok(afterRun.seen.includes('POST /interrupt'))
  await Promise.all([first, second])
  await gateway.engineUntil(() => gateway.slots.status('img').inFlight === 0, 'the slot is free')
  t.equal(types(gateway).filter(type => type === 'image.cancelled').length, 2)
  await gateway.engine({ holdAtStep: null })
  t.equal((await gateway.post(body)).status, 200, 'and the engine serves')
})

t.test('a gateway that stops takes its jobs out of the engine', async t => {
  const gateway = await imageGateway(t, { stopEngines: false, img: 'workers = 2\n' })
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  await gateway.engine({ holdAtStep: 1 })
  const { address } = gateway.slots.status('img')
  const state = async (): Promise<EngineState> =>
    await (await fetch(`http://${address!.host}:${address!.port}/__test__`, { method: 'POST', headers: { connection: 'close' }, body: '{}' })).json() as EngineState
  const asked = [gateway.post(body), gateway.post(body)]
  await gateway.engineUntil(({ running, pending }) => running !== null && pending.length === 1, 'one runs and one waits')
  gateway.gateway.hurry()
  await gateway.gateway.stop()
  const after = await state()
  t.teardown(() => { process.kill(after.pid, 'SIGKILL') })
  t.match(after, { running: null, pending: { length: 0 } }, 'the engine goes on living, without our jobs')
  // it hears of the end of its event streams when it gets round to it
  await eventually('its event streams are closed', async () => (await state()).sockets === 0)
  for (const answer of await Promise.all(asked)) {
    t.match([answer.status, (await answer.json() as Refusal).error.code], [503, 'gateway.stopping'])
  }
})

t.test('what goes wrong at the engine is told', async t => {
  const gateway = await imageGateway(t, { checkpoints: ['sd_xl_turbo_1.0_fp16.safetensors'], img: 'workers = 2\n' })
  t.match(await refusal(gateway.post({ ...body, model: 'sd-1.5-pruned-emaonly' })), {
    status: 502, code: 'dispatch.upstream_failed', message: /does not have the file v1-5-pruned-emaonly.safetensors/, details: { missing_file: 'v1-5-pruned-emaonly.safetensors' }
  })
  await gateway.engine({ failIn: 'VAEDecode' })
  t.match(await refusal(gateway.post(body)), {
    status: 502, code: 'dispatch.upstream_failed', message: /failed in VAEDecode: HIP out of memory\. Tried to allocate 2\.00 GiB$/, details: { exception_type: 'torch.OutOfMemoryError' }
  })
  t.equal(types(gateway).at(-1), 'image.failed')

  await gateway.engine({ holdAtStep: 1 })
  const interrupted = refusal(gateway.post(body))
  await gateway.engineUntil(state => state.running !== null, 'it runs')
  const { address } = gateway.slots.status('img')
  await fetch(`http://${address!.host}:${address!.port}/interrupt`, { method: 'POST' })
  t.match(await interrupted, { status: 502, message: /interrupted at the engine/ }, 'somebody interrupts it on the engine\'s own page')

  const first = refusal(gateway.post(body))
  await gateway.engineUntil(state => state.running !== null, 'it runs')
  const second = refusal(gateway.post(body))
  await gateway.engineUntil(state => state.pending.length === 1, 'another waits')
  await fetch(`http://${address!.host}:${address!.port}/queue`, { method: 'POST', body: '{"clear":true}' })
  t.match(await second, { status: 502, message: /no longer in the engine's queue/ }, 'somebody empties the queue')

  await gateway.engine({ dropSockets: true })
  await gateway.engine({ release: true })
  const lost = await Promise.race([first, new Promise(resolve => { setTimeout(() => resolve('late'), 120_000).unref() })])
  t.match(lost, { status: 200 }, 'without the event stream the history tells that it is over')

  await gateway.engine({ holdAtStep: 1 })
  const dying = refusal(gateway.post(body))
  await gateway.engineUntil(state => state.running !== null, 'it runs')
  await gateway.engine({ crash: true }).catch(() => null)
  t.match(await dying, { status: 502, code: 'dispatch.upstream_unavailable' }, 'the engine dies')
  t.equal((await gateway.post(body)).status, 200, 'the next request starts another')
})

t.test('a job without progress is cancelled', async t => {
  const gateway = await imageGateway(t, { imagegen: { silence_timeout_s: 1 } })
  await gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  await gateway.engine({ holdAtStep: 3 })
  t.match(await refusal(gateway.post(body)), { status: 504, code: 'dispatch.upstream_timeout', message: /no progress for 1 s/ })
  await gateway.engineUntil(state => state.running === null, 'it was interrupted')
})

t.test('an engine that gives its own ids, and interrupts whatever runs', async t => {
  const home = t.testdir({ models: { checkpoints: { 'sd_xl_turbo_1.0_fp16.safetensors': '' } } })
  const engine = await startFakeComfy({ host: '127.0.0.1', port: 0, baseDirectory: home, argv: [], knowsIds: false })
  const agent = new Agent()
  t.teardown(async () => {
    await agent.destroy()
    await engine.close()
  })
  const client = createEngineClient({ host: '127.0.0.1', port: engine.port }, () => agent, ({ port }) => `http://127.0.0.1:${port}`)
  const run = (signal: AbortSignal): Promise<unknown> => runGraph({
    client, clock: realClock, graph: shippedWorkflow('sdxl_turbo_simple').graph, silenceMs: 0, onStep: () => {}, signal
  }).catch((error: Error) => error.message)
  const [runs, waits] = [new AbortController(), new AbortController()]
  engine.pace.holdAtStep = 1
  const first = run(runs.signal)
  await eventually('the first runs', () => engine.queue.running !== null)
  const second = run(waits.signal)
  await eventually('the second waits', () => engine.queue.pending.length === 1)
  waits.abort(new Error('left'))
  t.equal(await second, 'left')
  t.notOk(engine.seen.includes('POST /interrupt'), 'the job of another is not interrupted')
  t.equal(engine.queue.pending.length, 0)
  runs.abort(new Error('left too'))
  t.equal(await first, 'left too')
  await eventually('ours was', () => engine.queue.running === null)
})
