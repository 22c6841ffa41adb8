import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hardwareSchema, slotConfigSchema, type Device, type EngineProvider, type LaunchSpecInput } from '../../../../kernel/contract/index.js'
import { FakeClock } from '../../../../kernel/testing/index.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { providerConformance } from '../../../../kernel/testing/provider-conformance.js'
import { imagesOf } from '../../../../plugins/providers/imagegen/curated.js'
import { promptRefused, runFailed } from '../../../../plugins/providers/imagegen/engine-errors.js'
import plugin from '../../../../plugins/providers/imagegen/index.js'
import { pruneInputs, pruneOutputs } from '../../../../plugins/providers/imagegen/outputs.js'
import { graphParams, parseRequest } from '../../../../plugins/providers/imagegen/request.js'
import { fillGraph, parseWorkflow, shippedWorkflow, workflowNames } from '../../../../plugins/providers/imagegen/workflow.js'
import { curatedMedia } from '../../../../plugins/services/library/curated-media.js'
import library from '../../../../plugins/services/library/index.js'
import { nodeTable } from './fake/nodes.js'
import { validatePrompt, type PromptGraph } from './fake/validate.js'
import { CHECKPOINTS } from './image-gateway.js'

const curatedImages = imagesOf(curatedMedia)

function registeredProvider (config: Record<string, unknown> = {}): EngineProvider {
  let found: EngineProvider | undefined
  const ignore = (): void => undefined
  const addProvider = (provider: EngineProvider): void => { found = provider }
  const services = { config: { paths: { state: '/var/lib/svc' } }, curated: curatedMedia }
  const parsed = plugin.configSchema!.parse(config)
  const ctx = {
    name: plugin.name, config: parsed, services, addProvider, addSetting: ignore, addHealth: ignore, provide: ignore,
    onStart: ignore, onStop: ignore
  }
  void plugin.register(ctx as never)
  return found!
}

const healthy = { status: 200, json: { system: { os: 'posix', python_version: '3.13.7' }, devices: [] } }
const checks = [
  ...providerConformance(registeredProvider(), { healthy, loading: { status: 503 } }),
  ...providerConformance(registeredProvider({ main: '/opt/comfy/main.py' }), { slot: { device: 'gpu-rocm' } }),
  ...pluginConformance(plugin, { beside: [library] })
]
for (const { name, run } of checks) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

function launch (device: Device, provider: EngineProvider, form: 'container' | 'process' = 'container'): LaunchSpecInput {
  const input = {
    slot: { ...slotConfigSchema.parse({ type: 'image', device }), provider: 'imagegen', name: 'img' },
    device,
    form,
    bindHost: form === 'container' ? '0.0.0.0' : '127.0.0.1',
    port: 8188,
    model: null,
    profile: null,
    contextSize: null,
    chatTemplatePath: null,
    mmprojPath: null,
    modelRoots: [],
    hardware: hardwareSchema.parse({}),
    stateDir: '/var/lib/svc/slots/img',
    ports: {},
    engineKey: 'sk-svc-test'
  }
  return { ...input, argv: provider.argvSegments!(input).base! }
}

t.test('ComfyUI is launched as a container, or as a process if configured', async t => {
  const provider = registeredProvider()
  t.strictSame(provider.containerSpec(launch('gpu-rocm', provider)), {
    entrypoint: ['python', 'main.py'],
    command: ['--listen', '0.0.0.0', '--port', '8188'],
    workingDir: '/opt/ComfyUI',
    mounts: ['models', 'output', 'input', 'user'].map(folder =>
      ({ source: `/var/lib/svc/comfyui/${folder}`, target: `/opt/ComfyUI/${folder}`, readOnly: false })),
    shmSizeBytes: 8 * 1024 ** 3
  }, 'checkpoints are in the image cache')
  t.strictSame(provider.processSpec!(launch('gpu-rocm', provider, 'process')), [], 'without a ComfyUI on the host only containers')
  const own = registeredProvider({ main: '/srv/comfy/main.py', python: '/srv/comfy/venv/bin/python', data_root: '/data' })
  t.strictSame(own.processSpec!(launch('cpu', own, 'process')), [{
    command: '/srv/comfy/venv/bin/python',
    args: ['/srv/comfy/main.py', '--base-directory', '/data', '--listen', '127.0.0.1', '--port', '8188', '--cpu'],
    label: 'comfyui',
    requiresFiles: ['/srv/comfy/main.py']
  }])
  t.equal(provider.defaultProfile!('gpu-rocm', 'image'), 'imagegen')
  t.equal(provider.defaultProfile!('cpu', 'image'), null)
  t.match(provider, { cli: false, needsModel: false, slotTypes: ['image'], image: 'imagegen', family: 'imagegen' })
})

t.test('only an answer in the shape of ComfyUI\'s counts as healthy', async t => {
  const { verdict } = registeredProvider().health
  const cases: ReadonlyArray<readonly [number, unknown, string]> = [
    [200, { system: { python_version: '3.12' } }, 'ok'], [200, { python_version: '3.12' }, 'ok'], [200, { status: 'ok' }, 'failed'], [200, null, 'failed'],
    [200, 'x', 'failed'], [503, null, 'loading'], [404, null, 'failed'], [500, { system: { python_version: '3.12' } }, 'failed']
  ]
  for (const [status, json, expected] of cases) t.equal(verdict!({ status, json }), expected, `${status} ${JSON.stringify(json)}`)
})

t.test('each curated image model has a licence, and a workflow or a reason', async t => {
  t.equal(curatedImages.length, 3)
  t.strictSame(curatedImages.map(({ vramGbMin, problem }) => [vramGbMin, problem === null]), [[8, true], [4, true], [24, false]])
  for (const model of curatedImages) {
    t.match(model.licenseUrl, /^https:\/\//, model.id)
    t.equal(model.workflow === null, model.problem !== null, `${model.id}: refused exactly when nothing drives it`)
    if (model.workflow !== null) t.ok((workflowNames as readonly string[]).includes(model.workflow))
  }
})

t.test('every shipped workflow is one that the engine takes, filled in', async t => {
  for (const model of curatedImages.filter(({ workflow }) => workflow !== null)) {
    const workflow = shippedWorkflow(model.workflow!)
    const request = parseRequest(Buffer.from(JSON.stringify({
      model: model.id, prompt: 'a red apple', size: '640x384', n: 3, seed: 42, negative_prompt: 'pears', steps: null, cfg: null
    })))
    const params = graphParams(request, model, workflow, 'svc-prefix')
    const graph = fillGraph(workflow, params) as PromptGraph
    const verdict = validatePrompt(structuredClone(graph), nodeTable(CHECKPOINTS))
    t.strictSame([verdict.valid, verdict.nodeErrors], [true, {}], model.id)
    const text = JSON.stringify(graph)
    for (const part of ['"a red apple"', '"pears"', '"width":640', '"height":384', '"batch_size":3', ':42,', '"svc-prefix"', `"${model.hubFile}"`]) {
      t.ok(text.includes(part), `${model.id}: ${part}`)
    }
    t.notOk(text.includes('_meta'), 'the engine gets nodes and nothing else')
    t.strictSame(fillGraph(workflow, params), fillGraph(workflow, params), 'pure')
  }
  t.throws(() => shippedWorkflow('../index'), { code: 'image.workflow_not_found', status: 404 })
})

t.test('a workflow file that cannot be used is refused, with the reason', async t => {
  const good = structuredClone((await import('node:module')).createRequire(import.meta.url)(
    '../../../../plugins/providers/imagegen/workflows/sd15_simple.json')) as { _meta: { params: Record<string, string> } } & Record<string, unknown>
  const broken: ReadonlyArray<readonly [string, (json: typeof good) => void, RegExp]> = [
    ['no meta', json => { delete (json as Record<string, unknown>)._meta }, /_meta/],
    ['a pointer into nothing', json => { json._meta.params.seed = '/sampler/inputs/noise' }, /seed points at \/sampler\/inputs\/noise/],
    ['a pointer to a node that is not there', json => { json._meta.params.width = '/toString/inputs/width' }, /width points at/],
    ['a pointer that is none', json => { json._meta.params.cfg = 'sampler.cfg' }, /JSON pointer/],
    ['a node without a type', json => { json.save = { inputs: {} } }, /class_type/]
  ]
  for (const [what, damage, reason] of broken) {
    const json = structuredClone(good)
    damage(json)
    t.throws(() => parseWorkflow('mine', json), { code: 'image.workflow_invalid', status: 422, message: reason }, what)
  }
  t.equal(parseWorkflow('mine', good).name, 'mine')
})

t.test('what the engine says is wrong, in words', async t => {
  t.match(promptRefused({ error: { type: 'prompt_outputs_failed_validation', message: 'Prompt outputs failed validation', details: '' }, node_errors: {
    sampler: { class_type: 'KSampler', dependent_outputs: ['save'], errors: [{ type: 'value_bigger_than_max', message: 'Value 9 bigger than max of 8', details: 'cfg', extra_info: {} }] }
  } }), { code: 'dispatch.upstream_failed', status: 502, message: /node sampler \(KSampler\): Value 9 bigger than max of 8: cfg/ })
  t.match(promptRefused({ error: 'no prompt', node_errors: [] }), { message: /no prompt/ }, 'as old releases say it')
  t.match(promptRefused('what'), { message: /without saying why/ })
  t.match(runFailed({ outputs: {} }), { message: /ended the job without images/ })
})

t.test('the engine keeps as many of its own copies as one looks at', async t => {
  const folder = join(t.testdir({}), 'output')
  mkdirSync(folder)
  const name = (i: number): string => `svc-${String(i).padStart(12, '0')}_00001_.png`
  for (let i = 0; i < 8; i++) {
    writeFileSync(join(folder, name(i)), 'x')
    utimesSync(join(folder, name(i)), 1_000 + i, 1_000 + i)
  }
  for (const other of ['ComfyUI_00001_.png', 'svc-notes.txt', 'svc-0000.png']) writeFileSync(join(folder, other), 'x')
  await pruneOutputs(folder, 5)
  t.strictSame(readdirSync(folder).filter(file => file.endsWith('_00001_.png') && file.startsWith('svc')).sort(), [3, 4, 5, 6, 7].map(name))
  t.equal(readdirSync(folder).length, 8, 'what is not ours stays')
  await pruneOutputs(join(folder, 'nowhere'))
})

t.test('pictures that a killed gateway left with the engine go after a day', async t => {
  const folder = join(t.testdir({}), 'input')
  mkdirSync(folder)
  const clock = new FakeClock()
  const [old, fresh] = [clock.now() / 1000 - 90_000, clock.now() / 1000 - 3600]
  const files = [['svc-0123456789ab-image.png', old], ['svc-0123456789ab-mask.webp', old], ['svc-ba9876543210-image.jpeg', fresh], ['holiday.png', old]] as const
  for (const [name, at] of files) {
    writeFileSync(join(folder, name), 'x')
    utimesSync(join(folder, name), at, at)
  }
  await pruneInputs(folder, clock)
  t.strictSame(readdirSync(folder).toSorted(), ['holiday.png', 'svc-ba9876543210-image.jpeg'])
  await pruneInputs(join(folder, 'nowhere'), clock)
})
