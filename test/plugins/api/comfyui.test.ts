import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pluginConformance } from '../../../kernel/testing/index.js'
import comfyui from '../../../plugins/api/comfyui/index.js'
import { readGauges } from '../../../plugins/api/comfyui/gauges.js'
import { suitable } from '../../../plugins/api/comfyui/model-fetch.js'
import { engineState, view } from '../../../plugins/api/comfyui/status.js'
import imagegen from '../../../plugins/providers/imagegen/index.js'
import { imagesOf } from '../../../plugins/providers/imagegen/curated.js'
import { RunBoard } from '../../../plugins/providers/imagegen/run-board.js'
import hub from '../../../plugins/services/hub/index.js'
import { curatedMedia } from '../../../plugins/services/library/curated-media.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import text from '../../../plugins/v1/text/index.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { AheadClock } from '../../ahead-clock.js'
import { writeTree } from '../../kernel/config/support.js'
import { deviceNodesOf } from '../../kernel/hardware/machines/recording.js'
import { strixHalo } from '../../kernel/hardware/machines/strix-halo.js'
import { decodePng } from '../providers/imagegen/fake/png.js'
import { imageGateway, imagePlugins, type ImageGateway, type ImageGatewayOptions } from '../providers/imagegen/image-gateway.js'
import { chatBody, chatProvider, GPU_NODES, sharedGpu } from '../providers/imagegen/shared-gpu.js'
import { FakeHub } from '../services/hub/fake-hub.js'

for (const { name, run } of pluginConformance(comfyui, { beside: [imagegen, hub, library, pull] })) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

interface Answer {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

interface ComfyGateway extends ImageGateway {
  call (method: string, path: string, body?: unknown): Promise<Answer>
  chat (): Promise<Answer>
  /** The status once it fits. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  statusUntil (fits: (status: any) => boolean, what: string): Promise<any>
  /** Action, outcome and target of the audit rows, oldest first. */
  audit (): ReadonlyArray<readonly [string, unknown, string]>
}

async function comfy (t: Test, options: ImageGatewayOptions = {}): Promise<ComfyGateway> {
  const { files = {} } = options
  const gateway = await imageGateway(t, {
    plugins: [...imagePlugins, comfyui, hub, pull, text, chatProvider],
    deviceNodes: GPU_NODES,
    ...options,
    files: port => ({ ...sharedGpu(port), ...(typeof files === 'function' ? files(port) : files) })
  })
  const send = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await gateway.fetch(path, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: typeof body === 'string' ? body : JSON.stringify(body) })
    })
    return { status: response.status, json: await response.json() }
  }
  return Object.assign(gateway, {
    call: (method: string, path: string, body?: unknown) => send(method, `/api/comfyui${path}`, body),
    chat: () => send('POST', '/v1/chat/completions', chatBody()),
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
    statusUntil: async (fits: (status: any) => boolean, what: string) => {
      for (const end = performance.now() + 120_000; ;) {
        const { status, json } = await send('GET', '/api/comfyui/status')
        if (status === 200 && fits(json)) return json as unknown
        if (performance.now() > end) throw new Error(`it did not come about: ${what}: ${JSON.stringify(json)}`)
        await new Promise(resolve => { setTimeout(resolve, 10) })
      }
    },
    audit: () => gateway.gateway.kernel().activity.list({ kind: 'action', category: 'comfyui' })
      .map(({ action, outcome, target }) => [action, outcome, target] as const).reverse()
  })
}

/** On Strix Halo, as it was recorded. */
async function halo (t: Test, options: ImageGatewayOptions = {}): Promise<ComfyGateway> {
  const hardwareRoot = t.testdir()
  writeTree(hardwareRoot, strixHalo.tree)
  return await comfy(t, { hardwareRoot, deviceNodes: deviceNodesOf(strixHalo), ...options })
}

const MINUTE = 60_000

interface Mode {
  readonly switchover: { readonly active: boolean }
  readonly mode: string
}

const settled = ({ switchover, mode }: Mode, wanted: string): boolean => !switchover.active && mode === wanted
const image = { model: 'sdxl-turbo', prompt: 'a red apple', size: '64x64' }

t.test('the GPU goes to the image engine and back', async t => {
  const gateway = await comfy(t)
  t.equal((await gateway.chat()).status, 200)
  t.match((await gateway.call('GET', '/status')).json, {
    mode: 'inference', slot: 'img', reachable: false, engine: 'stopped', container: { name: null, state: 'absent' }, endpoint: /^:\d+$/, memory: null,
    queue: { running: 0, pending: 0 }, util: null, it_s: null, eta: null, step: null, inference: {},
    inventory: { checkpoints: 2, diffusion: 0, loras: 0, vae: 0, controlnet: 0, upscale: 0, text_encoders: 0 },
    switchover: { active: false, target: null, error: null },
    arbiter: { mode: 'llm', pinned: false, image_slots: ['img'], llm_slots: ['chat'], saved_llm_slots: { length: 0 }, idle_restore_minutes: 60, idle_restore_at: null }
  })
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }), { status: 200, json: { status: 'noop', mode: 'inference' } })
  t.match(await gateway.call('POST', '/switchover', { mode: 'generation' }), { status: 202, json: { status: 'switching', mode: 'generation' } })
  const there = await gateway.statusUntil(status => settled(status, 'generation') && status.engine === 'running', 'image mode with its engine')
  t.match(there, {
    reachable: true, container: { name: /^svc-.*-img-\d+-/, state: 'running' }, endpoint: /^:\d+$/, arbiter: { mode: 'img', saved_llm_slots: ['chat'], idle_restore_at: Number }
  })
  t.match(await gateway.chat(), { status: 503, json: { error: { code: 'gpu.image_mode' } } })
  t.match(await gateway.call('POST', '/switchover', { mode: 'generation' }), { status: 200, json: { status: 'noop' } })

  t.strictSame(await gateway.call('POST', '/pin', { pinned: true }), { status: 200, json: { pinned: true } })
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }), { status: 409, json: { error: { code: 'gpu.pinned' } } })
  t.match((await gateway.call('GET', '/status')).json.arbiter, { pinned: true, idle_restore_at: null })
  t.strictSame(await gateway.call('POST', '/pin', { pinned: false }), { status: 200, json: { pinned: false } })

  await gateway.engine({ holdAtStep: 3 })
  const made = gateway.post(image)
  const busy = await gateway.statusUntil(status => status.step?.value === 2 && status.queue.running === 1, 'it renders')
  t.match(busy, { engine: 'generating', queue: { running: 1, pending: 0 }, step: { value: 2, max: 4 }, it_s: Number, eta: Number })
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }),
    { status: 409, json: { error: { code: 'comfyui.busy', details: { queue: { running: 1, pending: 0 } } } } })
  t.match(await gateway.call('POST', '/render/cancel'), { status: 202, json: { status: 'cancel_requested' } })
  t.equal((await made).status, 502, 'who waited for the image is told')
  await gateway.engine({ holdAtStep: null })

  await gateway.statusUntil(status => status.engine === 'running' && gateway.slots.status('img').inFlight === 0, 'it is idle')
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }), { status: 202, json: { status: 'switching', mode: 'inference' } })
  await gateway.statusUntil(status => settled(status, 'inference'), 'the models are back')
  t.equal((await gateway.chat()).status, 200)
  t.match((await gateway.call('GET', '/status')).json, { engine: 'stopped', container: { state: 'absent' } })
  await gateway.gateway.stop()
})

t.test('a cancel reaches what comfyui.busy counts: the engine\'s jobs, the requests in line, and the launches', async t => {
  const gateway = await halo(t)
  await gateway.call('POST', '/switchover', { mode: 'generation' })
  await gateway.statusUntil(status => settled(status, 'generation') && status.engine === 'running', 'image mode with its engine')
  await gateway.engine({ holdAtStep: 3 })
  const made = gateway.post(image)
  await gateway.statusUntil(status => status.step?.value === 2 && status.queue.running === 1, 'it renders')
  const waits = gateway.post({ ...image, prompt: 'a green one' })
  const launched = await gateway.call('POST', '/workflows/sd15_simple/launch')
  t.strictSame(launched, { status: 202, json: { status: 'queued', prompt_id: null } })
  await gateway.statusUntil(() => gateway.slots.status('img').waiting === 2, 'two in line')
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }),
    { status: 409, json: { error: { code: 'comfyui.busy', details: { queue: { running: 1, pending: 2 } } } } })

  t.match(await gateway.call('POST', '/render/cancel'), { status: 202 })
  const cancelled = await waits
  t.match([cancelled.status, await cancelled.json()], [499, { error: { code: 'request.cancelled' } }])
  t.equal((await made).status, 502)
  await gateway.statusUntil(() => gateway.audit().some(([action]) => action === 'comfyui.launch'), 'the launch is over')
  t.match(gateway.audit().find(([action]) => action === 'comfyui.launch'), ['comfyui.launch', 'error', 'sd15_simple'])
  await gateway.engine({ holdAtStep: null })
  await gateway.statusUntil(() => gateway.slots.status('img').inFlight === 0, 'it is idle')
  t.match(gateway.slots.status('img'), { inFlight: 0, waiting: 0, state: 'ready' })
  t.match(await gateway.call('POST', '/switchover', { mode: 'inference' }), { status: 202 }, 'nothing is left to wait for')
  await gateway.statusUntil(status => settled(status, 'inference'), 'the models are back')
})

t.test('image mode lasts as long after the last image as it should, whether or not the gateway was started again meanwhile', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-idle-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const clock = new AheadClock()
  const first = await halo(t, { home, clock, stopEngines: false })
  t.equal((await first.post(image)).status, 200)
  clock.jump(50 * MINUTE)
  t.equal((await first.post({ ...image, prompt: 'a green apple' })).status, 200)
  const { idle_restore_at: due } = (await first.call('GET', '/status')).json.arbiter
  t.ok(due >= clock.now() + 59 * MINUTE, 'an hour after the second one')
  await first.gateway.stop()

  clock.jump(20 * MINUTE)
  const second = await halo(t, { home, clock })
  const { mode, arbiter } = (await second.call('GET', '/status')).json
  t.equal(mode, 'generation')
  t.ok(Math.abs(arbiter.idle_restore_at - due) < 1000, `${arbiter.idle_restore_at} is what it was: ${due}`)
  clock.jump(39 * MINUTE)
  t.equal((await second.post({ ...image, prompt: 'a third one' })).status, 200, 'long after the first image the GPU is still its engine\'s')
  clock.jump(61 * MINUTE)
  await second.statusUntil(status => settled(status, 'inference'), 'an hour of quiet gives it back')
  t.equal((await second.chat()).status, 200)
})

t.test('a launch whose engine is taken away ends with it', async t => {
  const gateway = await comfy(t)
  await gateway.slots.load('img')
  await gateway.engine({ holdAtStep: 3 })
  const { json } = await gateway.call('POST', '/workflows/sd15_simple/launch')
  t.match(json, { status: 'queued', prompt_id: String })
  await gateway.engineUntil(state => state.running === json.prompt_id, 'it runs')
  await gateway.slots.unload('img', { force: true })
  await gateway.statusUntil(() => gateway.audit().some(([action]) => action === 'comfyui.launch'), 'it is over')
  t.match(gateway.gateway.kernel().activity.list({ action: 'comfyui.launch' })[0], { outcome: 'error', error: /img.*unloaded/ })
  t.equal(gateway.events('image.cancelled').length, 1)
})

t.test('audit rows tell how a switch ended', async t => {
  const gateway = await comfy(t)
  await gateway.call('POST', '/switchover', { mode: 'generation', pin: true })
  await gateway.statusUntil(status => settled(status, 'generation'), 'image mode')
  await gateway.call('POST', '/switchover', { mode: 'inference' })
  await gateway.call('POST', '/switchover', { mode: 'inference', force: true })
  await gateway.statusUntil(status => settled(status, 'inference'), 'inference mode')
  await gateway.call('POST', '/render/cancel')
  await gateway.statusUntil(() => gateway.audit().length === 4, 'four rows')
  t.strictSame(gateway.audit(), [
    ['comfyui.switchover', 'ok', 'generation'],
    ['comfyui.switchover', 'error', 'inference'],
    ['comfyui.switchover', 'ok', 'inference'],
    ['comfyui.cancel', 'ok', 'img']
  ])
  const row = gateway.gateway.kernel().activity.list({ action: 'comfyui.switchover', target: 'generation' })[0]
  t.match(row, { before: { mode: 'inference', pinned: false }, after: { mode: 'generation', pinned: true }, actor: 'dashboard' })
})

t.test('a second switchover is refused while one is under way', async t => {
  const gateway = await comfy(t)
  t.equal((await gateway.chat()).status, 200)
  const started = gateway.slots.ensureReady('img', AbortSignal.timeout(120_000))
  const { gpu } = gateway.gateway.inference()
  t.equal(gpu.status().switching, true)
  for (const mode of ['generation', 'inference']) {
    t.match(await gateway.call('POST', '/switchover', { mode }),
      { status: 409, json: { error: { code: 'comfyui.switch_in_progress', details: { target: 'generation' } } } })
    if (!gpu.status().switching) return t.comment('it was over before the second question')
  }
  await started
})

t.test('workflows are listed, launched and looked at', async t => {
  const gateway = await comfy(t, { svc: '[dispatcher]\nqueue_per_slot = 8\n' })
  const graph = {
    1: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'v1-5-pruned-emaonly.safetensors' } },
    2: { class_type: 'CLIPTextEncode', inputs: { text: 'pears', clip: ['1', 1] } },
    3: { class_type: 'EmptyLatentImage', inputs: { width: 128, height: 64, batch_size: 1 } },
    4: {
      class_type: 'KSampler',
      inputs: {
        model: ['1', 0], seed: 1, steps: 2, cfg: 7, sampler_name: 'euler', scheduler: 'normal', positive: ['2', 0], negative: ['2', 0], latent_image: ['3', 0], denoise: 1
      }
    },
    5: { class_type: 'VAEDecode', inputs: { samples: ['4', 0], vae: ['1', 2] } },
    6: { class_type: 'SaveImage', inputs: { images: ['5', 0], filename_prefix: 'mine' } }
  }
  const put = async (path: string, content: string): Promise<void> => {
    await mkdir(join(gateway.dataRoot, path, '..'), { recursive: true })
    await writeFile(join(gateway.dataRoot, path), content)
  }
  await put('workflows/pears.json', JSON.stringify(graph))
  await put('user/default/workflows/page.json', JSON.stringify({ nodes: [], links: [], version: 0.4 }))
  await put('workflows/torn.json', '{"1":')
  await put('workflows/wrong.json', JSON.stringify({ ...graph, 4: { class_type: 'NoSuchNode', inputs: {} } }))
  await put('workflows/sd15_simple.json', '{}')
  await put('workflows/bad name.json', '{}')
  t.strictSame((await gateway.call('GET', '/workflows')).json, {
    workflows: [
      { name: 'sdxl_turbo_simple', source: 'primary' }, { name: 'sd15_simple', source: 'primary' }, { name: 'page', source: 'user' },
      { name: 'pears', source: 'user' }, { name: 'torn', source: 'user' }, { name: 'wrong', source: 'user' }
    ]
  })
  t.match(await gateway.call('GET', '/preview'), { status: 404, json: { error: { code: 'comfyui.no_output' } } })
  const launch = (name: string): Promise<Answer> => gateway.call('POST', `/workflows/${encodeURIComponent(name)}/launch`)
  for (const [name, status, code] of [
    ['nothing', 404, 'comfyui.workflow_not_found'], ['../index', 404, 'comfyui.workflow_not_found'],
    ['torn', 500, 'comfyui.workflow_read_error'], ['page', 422, 'image.workflow_invalid']
  ] as const) t.match(await launch(name), { status, json: { error: { code } } }, name)
  t.equal(gateway.gateway.inference().gpu.status().mode, 'llm', 'nothing was stopped for those')

  t.strictSame(await launch('pears'), { status: 202, json: { status: 'queued', prompt_id: null } }, 'the engine has to come up first')
  await gateway.statusUntil(status => status.engine === 'running' && gateway.events('image.completed').length === 1, 'it has run')
  const preview = await gateway.fetch('/api/comfyui/preview')
  t.equal(preview.headers.get('content-type'), 'image/png')
  const { width, height } = decodePng(Buffer.from(await preview.arrayBuffer()))
  t.strictSame([width, height], [128, 64])
  t.match(gateway.events('image.completed')[0], { data: { model: 'pears', images: 1, slot: 'img' } })

  await gateway.statusUntil(() => gateway.slots.status('img').inFlight === 0, 'the lease is back')
  const queued = await launch('sd15_simple')
  t.match(queued, { status: 202, json: { status: 'queued', prompt_id: /^[0-9a-f-]{36}$/ } })
  await gateway.engineUntil(state => state.history.includes(queued.json.prompt_id as string), 'the shipped one has run')
  await gateway.statusUntil(() => gateway.slots.status('img').inFlight === 0, 'the lease is back')
  t.match(await launch('wrong'), { status: 502, json: { error: { code: 'dispatch.upstream_failed', message: /NoSuchNode/ } } }, 'what the engine says')

  t.match((await gateway.call('GET', '/logs')).json.lines.join('\n'), /To see the GUI/)
  t.equal((await gateway.call('GET', '/logs?tail=1')).json.lines.length, 1)
  t.match(await gateway.call('GET', '/logs?tail=0'), { status: 400, json: { error: { code: 'validation.invalid' } } })

  const { generation, engineId } = gateway.slots.status('img')
  t.match(await gateway.call('POST', '/restart'), { status: 202, json: { status: 'restart_requested' } })
  await gateway.statusUntil(() => gateway.audit().some(([action, outcome]) => action === 'comfyui.restart' && outcome === 'ok'), 'it is over')
  t.ok(gateway.slots.status('img').generation > generation)
  t.not(gateway.slots.status('img').engineId, engineId, 'another engine')
  const kept = await gateway.fetch('/api/comfyui/preview')
  t.equal(kept.status, 200, 'the new engine remembers nothing, its folder does')
  await kept.arrayBuffer()
})

t.test('image models are fetched into the folder where the engine looks', async t => {
  const fake = await FakeHub.start(t)
  const repos = { 'stabilityai/sdxl-turbo': 'sd_xl_turbo_1.0_fp16.safetensors', 'stable-diffusion-v1-5/stable-diffusion-v1-5': 'v1-5-pruned-emaonly.safetensors' }
  for (const [id, file] of Object.entries(repos)) fake.add(id, { files: { [file]: Buffer.alloc(5000, file) } })
  const gateway = await comfy(t, {
    checkpoints: [],
    files: { 'etc/svc/api.env': `HF_ENDPOINT="${fake.url}"\nno_proxy="*"\n` },
    pluginConfig: { pull: { reserve_mb: 0 } }
  })
  for (const [body, code] of [
    [{}, 'comfyui.fetch.invalid_body'], [{ auto: false }, 'comfyui.fetch.invalid_body'], [{ selections: [] }, 'comfyui.fetch.invalid_body'],
    [{ auto: true, selections: [] }, 'comfyui.fetch.invalid_body'],
    [{ selections: [{ capability: 'image', family: 'dall-e' }] }, 'comfyui.fetch.unknown_variant'],
    [{ selections: [{ capability: 'chat', family: 'sd' }] }, 'comfyui.fetch.unknown_variant']
  ] as const) t.match(await gateway.call('POST', '/models/fetch', body), { status: 422, json: { error: { code } } }, JSON.stringify(body))
  const pulled = async (body: unknown): Promise<void> => {
    const { status, json } = await gateway.call('POST', '/models/fetch', body)
    t.match([status, json.jobs], [202, [/^[0-9a-f]{16}$/]])
    for (const end = performance.now() + 120_000; gateway.events('pull.completed').length === 0 && performance.now() < end;) {
      await new Promise(resolve => { setTimeout(resolve, 10) })
    }
  }
  await pulled({ auto: true })
  await gateway.statusUntil(status => status.inventory.checkpoints === 1, 'the small one, because no GPU tells how large it is')
  t.strictSame(await gateway.call('POST', '/models/fetch', { auto: true }), { status: 202, json: { jobs: [] } }, 'it is there')
  await pulled({ selections: [{ capability: 'image', family: 'sdxl' }] })
  await gateway.statusUntil(status => status.inventory.checkpoints === 2, 'both')
  t.strictSame(fake.complaints, [])
})

t.test('requests that the image engine cannot serve are refused with the reason', async t => {
  const gateway = await comfy(t)
  for (const [path, body, status, code] of [
    ['/switchover', {}, 422, 'comfyui.invalid_mode'], ['/switchover', { mode: 'both' }, 422, 'comfyui.invalid_mode'],
    ['/switchover', { mode: 'inference', pin: true }, 422, 'comfyui.invalid_pin'], ['/switchover', '{', 400, 'request.invalid_json'],
    ['/pin', {}, 422, 'comfyui.invalid_pin'], ['/pin', { pinned: 'yes' }, 422, 'comfyui.invalid_pin']
  ] as const) t.match(await gateway.call('POST', path, body), { status, json: { error: { code } } }, `${path} ${JSON.stringify(body)}`)
})

t.test('an image slot that shares no GPU, and none at all', async t => {
  const cpu = await comfy(t, { files: { 'etc/svc/slots/img.toml': 'type = "image"\nprovider = "imagegen"\ndevice = "cpu"\n' } })
  t.match((await cpu.call('GET', '/status')).json, { mode: 'inference', slot: 'img', arbiter: null })
  t.match(await cpu.call('POST', '/switchover', { mode: 'generation' }), { status: 503, json: { error: { code: 'comfyui.arbiter_unavailable' } } })
  t.match(await cpu.call('POST', '/pin', { pinned: true }), { status: 503, json: { error: { code: 'comfyui.arbiter_unavailable' } } })
  const none = await comfy(t, { files: { 'etc/svc/slots/img.toml': 'type = "image"\nprovider = "imagegen"\ndevice = "cpu"\nenabled = false\n' } })
  t.match((await none.call('GET', '/status')).json, { slot: null, engine: 'stopped', container: { name: null, state: 'absent' }, arbiter: null })
  for (const path of ['/switchover', '/restart', '/workflows/sd15_simple/launch']) {
    t.match(await none.call('POST', path, path === '/switchover' ? { mode: 'generation' } : undefined), { status: 404, json: { error: { code: 'gpu.img_slot_missing' } } }, path)
  }
  t.strictSame((await none.call('GET', '/logs')).json, { lines: [] })
  t.equal((await none.call('POST', '/render/cancel')).status, 202, 'nothing to cancel')
})

t.test('the image engine is generating only while a job runs', async t => {
  const cases = [[true, 2, 'running', 'generating'], [true, 0, 'running', 'running'], [false, 0, 'running', 'starting'], [false, 0, 'exited', 'stopped'],
    [false, 0, 'absent', 'stopped']] as const
  for (const [reachable, running, container, expected] of cases) t.equal(engineState(reachable, running, container), expected)
  const gpu = {
    mode: 'img', switching: true, error: 'full', pinned: false, image_slots: ['img'], llm_slots: [], saved_llm_slots: [],
    last_img_activity: null, idle_restore_minutes: 0, idle_restore_at: null
  } as const
  const gauges = { memory: null, util: 90, temp: 50, clock: 2.1 }
  const idle = view(null, { reachable: true, jobs: { running: 0, pending: 0 } }, gauges, null, gpu)
  t.match(idle, { mode: 'generation', util: null, temp: 50, clock: 2.1, switchover: { active: true, target: 'generation', error: 'full' } })
  const run = { value: 3, max: 4, perSecond: 2, etaS: 0.5 }
  t.match(view(null, { reachable: true, jobs: { running: 1, pending: 3 } }, gauges, run, { ...gpu, switching: false }), {
    util: 90, it_s: 2, eta: 0.5, step: { value: 3, max: 4 }, switchover: { active: false, target: null },
    queue: { running: 1, pending: 3 }
  })
})

t.test('the gauges of the GPU are read from the driver, null if unknown', async t => {
  const sys = t.testdir({
    class: { drm: { renderD128: { device: {
      mem_info_gtt_used: `${50 * 1024 ** 3}\n`, mem_info_gtt_total: `${80 * 1024 ** 3}\n`, gpu_busy_percent: '97\n',
      hwmon: { hwmon4: { temp1_input: '61000\n', freq1_input: '2900000000\n' } }
    } }, renderD129: { device: {} } } }
  })
  const gpu = (node: string): never => ({ drm_path: node }) as never
  t.match(await readGauges(gpu('/dev/dri/renderD128'), sys), {
    memory: { gtt_used_gb: 50, gtt_ceil_gb: 80, pressure: true, ram_used_gb: Number, ram_ceil_gb: Number },
    util: 97, temp: 61, clock: 2.9
  })
  const unknown = { memory: null, util: null, temp: null, clock: null }
  for (const one of [gpu('/dev/dri/renderD129'), gpu(''), undefined]) t.strictSame(await readGauges(one, sys), unknown)
})

t.test('which model suits the GPU', async t => {
  const catalogue = imagesOf(curatedMedia)
  const small = 'sd-1.5-pruned-emaonly'
  const ids = (...vram: number[]): readonly string[] =>
    suitable(catalogue, vram.map(vram_mb => ({ vram_mb }) as never)).map(({ id }) => id)
  t.strictSame([ids(), ids(2048), ids(4096), ids(8192), ids(4096, 16_384), ids(98_304)],
    [[small], [small], [small], ['sdxl-turbo'], ['sdxl-turbo'], ['sdxl-turbo']], 'never one that nothing drives')
})

t.test('how far a run is', async t => {
  const clock = new FakeClock()
  const board = new RunBoard(clock)
  const step = (value: number | null, max: number | null): void => board.step('a', 'img', { phase: 'running', node: 'x', value, max })
  step(null, null)
  t.equal(board.view('img'), null)
  step(1, 5)
  t.match(board.view('img'), { value: 1, max: 5, perSecond: null, etaS: null })
  await clock.advance(500)
  step(2, 5)
  t.strictSame(board.view('img'), { value: 2, max: 5, perSecond: 2, etaS: 1.5 })
  step(1, 3)
  t.match(board.view('img'), { value: 1, max: 3, perSecond: null }, 'the second sampler of a workflow')
  t.equal(board.view('other'), null)
  board.over('a')
  t.equal(board.view('img'), null)
})
