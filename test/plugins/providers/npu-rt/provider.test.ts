import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { LaunchSpecInput, SlotConfigInput } from '../../../../kernel/contract/index.js'
import type { EngineSpec } from '../../../../kernel/contract/provider/engine-runtime.js'
import { createTestGateway, FakeEngineRuntime, providerConformance, type TestGateway } from '../../../../kernel/testing/index.js'
import npuRt, { provider } from '../../../../plugins/providers/npu-rt/index.js'
import { slotOf } from '../../../kernel/slots/plan/launch-input.js'
import { ANCHOR, NPU, NPU_NODES } from './npu-gateway.js'

const models = provider.models!

t.test('the provider keeps to the contract', async t => {
  const healthy = { status: 200, json: { object: 'list', data: [{ id: 'llama3.2:1b' }] } }
  const loading = { status: 200, json: { object: 'list', data: [] } }
  for (const npu of [{}, { asr: true, embed: true }, { chat: false, embed: true }]) {
    for (const { name, run } of providerConformance(provider, { slot: { npu }, healthy, loading, engineModel: 'gemma3-4b-FLM' })) {
      await t.test(`${JSON.stringify(npu)}: ${name}`, async () => run())
    }
  }
})

t.test('a model of the table says whether it sees, and no model is held to a schema', async t => {
  const abilities = (modelId: string | null, slot: SlotConfigInput = {}): unknown =>
    provider.abilities!({ slot: slotOf(slot), model: null, modelId, profile: null, mmprojPath: null })
  t.strictSame(abilities('gemma3:4b'), { json_schema: false, vision: true })
  t.strictSame(abilities('llama3.2-1b-FLM'), { json_schema: false, vision: false })
  t.strictSame(abilities('tomorrow:7b'), { json_schema: false }, 'one of a newer engine')
  t.strictSame(abilities(null), { json_schema: false })
  t.strictSame(abilities('embed-gemma:300m', { type: 'embedding' }), {})
})

t.test('a model name is translated to that of the NPU\'s engine', async t => {
  const cases: ReadonlyArray<readonly [string, string | null]> = [
    ['llama3.2:1b', 'llama3.2:1b'],
    ['Llama3.2:1B', 'llama3.2:1b'],
    ['llama3.2:1b-FLM', 'llama3.2:1b'],
    ['llama3.2-1b-FLM', 'llama3.2:1b'],
    ['llama3.2-1b', 'llama3.2:1b'],
    ['deepseek-r1-0528-8b-flm', 'deepseek-r1-0528:8b'],
    ['gemma3', 'gemma3:1b'],
    ['qwen3.5', 'qwen3.5:0.8b'],
    ['whisper-v3:turbo', 'whisper-v3:turbo'],
    ['tomorrow:7b', 'tomorrow:7b'],
    ['qwen2.5-7b-instruct-q4_k_m', null],
    ['owner/model:7b', null],
    ['/models/x.gguf', null],
    ['a:b:c', null],
    ['', null]
  ]
  for (const [id, tag] of cases) t.equal(models.canonical(id), tag, id)
  t.equal(models.contextSize!('Llama3.2-1B-FLM'), 131_072)
  t.equal(models.contextSize!('tomorrow:7b'), null)
})

t.test('a download that is not complete is not listed', async t => {
  const store = t.testdir({
    'Llama-3.2-1B-NPU2': { 'config.json': '{}', 'model.q4nx': '', 'tokenizer.json': '{}' },
    'Gemma3-4B-NPU2': { 'config.json': '{}', 'tokenizer.json': '{}' }
  })
  const list = await models.list(store)
  t.strictSame(list.filter(({ installed }) => installed).map(({ id }) => id), ['llama3.2:1b'], 'a download that is not done does not count')
  t.match(list.find(({ id }) => id === 'gemma3:4b'), { family: 'gemma3', capabilities: ['chat', 'vision'], sizeBytes: 4_000_000_000, installed: false })
  t.match(list.find(({ id }) => id === 'whisper-v3:turbo'), { capabilities: ['asr'] })
  t.equal(new Set(list.map(({ id }) => id)).size, list.length)
})

t.test('a slot of the NPU with a model that cannot chat, or with every switch off, is refused', async t => {
  const problem = (config: SlotConfigInput): string | null => provider.slotProblem!(slotOf({ device: 'npu', ...config }), null, { device: 'npu', model: null })
  t.equal(problem({ model: { default: 'gemma3:4b' } }), null)
  t.match(problem({ model: { default: 'whisper-v3:turbo' } }), /is not a chat model.*\[npu\]/)
  t.match(problem({ model: { default: 'embed-gemma' } }), /embed-gemma:300m/)
  t.match(problem({ npu: { chat: false } }), /every switch of \[npu\] is off/)
  t.equal(problem({ type: 'embedding', served_by: 'npu' }), null)
  t.equal(provider.carriesOnly!(slotOf({ npu: { chat: false, asr: true } })), true)
  t.equal(provider.carriesOnly!(slotOf()), false)
})

interface Launched { readonly spec: EngineSpec, readonly gateway: TestGateway }

async function launched (t: Test, anchor: string, env: Record<string, string> = {}): Promise<Launched> {
  const runtime = new FakeEngineRuntime({ onStart: ({ engine }) => engine.answer(() => ({ headers: { 'content-type': 'application/json' }, chunks: ['{"data":[{}]}'] })) })
  const gateway = await createTestGateway({
    runtime,
    deviceNodes: NPU_NODES,
    plugins: [npuRt],
    env: { ...process.env, ...env },
    files: { 'etc/svc/hardware.json': NPU, 'etc/svc/slots/npu.toml': anchor }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  await gateway.slots.load('npu')
  return { spec: runtime.started[0]!.spec, gateway }
}

t.test('a container of the NPU\'s engine gets its device, flags and model folder', async t => {
  const { spec: { form, env, port }, gateway: { home } } = await launched(t, `${ANCHOR}[server]\nextra_args = "--pmode balanced -q 20"\n`)
  t.match(form, {
    image: 'ghcr.io/fonix232/fastflowlm:v0.9.39',
    entrypoint: ['flm'],
    command: [
      'serve', 'llama3.2:1b', '--host', '0.0.0.0', '--port', String(port), '--cors', '0', '--ctx-len', '32768', '--asr', '1', '--embed', '1',
      '--pmode', 'balanced', '-q', '20'
    ],
    devices: ['/dev/accel/accel0'],
    ulimits: { memlock: { soft: -1, hard: -1 } },
    mounts: [{ source: join(home, 'var/lib/svc/models/flm/models'), target: '/var/lib/flm/models', readOnly: false }]
  })
  t.match(env, { FLM_MODEL_PATH: '/var/lib/flm', FLM_DISABLE_UPDATE_CHECK: '1' })
})

t.test('without chat it gets no model', async t => {
  const { spec: { form, port } } = await launched(t, 'device = "npu"\n[npu]\nchat = false\nembed = true\n', { SVC_TOOLBOX_IMAGE_NPU_RT: 'my/flm:1' })
  t.match(form, { image: 'my/flm:1', command: ['serve', '--host', '0.0.0.0', '--port', String(port), '--cors', '0', '--embed', '1'] })
})

t.test('a process of the NPU\'s engine gets the model store by its environment', async t => {
  const input = (store: string): LaunchSpecInput => ({ slot: { name: 'npu' }, engineModels: { id: 'gemma3:1b', store }, argv: ['serve'] }) as never
  t.match(provider.processSpec!(input('/srv/flm/models')), [
    { command: 'flm', args: ['serve'], env: { FLM_MODEL_PATH: '/srv/flm' } }, { command: '/opt/fastflowlm/bin/flm' }
  ])
  t.throws(() => provider.processSpec!(input('/srv/flm')), { code: 'slot.config_error', param: 'models.flm_store', message: /end in \/models/ })
})

t.test('a model is fetched by the engine\'s own program', async t => {
  const input = { id: 'gemma3:1b', store: '/srv/flm/models' }
  const { containerSpec, processSpec } = models.fetch!
  t.strictSame(containerSpec(input), {
    entrypoint: ['flm'],
    command: ['pull', 'gemma3:1b'],
    env: { FLM_MODEL_PATH: '/var/lib/flm', FLM_DISABLE_UPDATE_CHECK: '1' },
    mounts: [{ source: '/srv/flm/models', target: '/var/lib/flm/models', readOnly: false }]
  })
  t.match(processSpec!(input), [{ command: 'flm', args: ['pull', 'gemma3:1b'], env: { FLM_MODEL_PATH: '/srv/flm' } }, { command: '/opt/fastflowlm/bin/flm' }])
  t.throws(() => processSpec!({ ...input, store: '/srv/flm' }), { code: 'slot.config_error', param: 'models.flm_store' })
})

t.test('flags that the gateway owns', async t => {
  const { gateway: { slots } } = await launched(t, ANCHOR)
  for (const flag of ['--port 1', '-p 1', '--host 0.0.0.0', '--asr 0', '-e 1', '-c 512', '--hf']) {
    await t.rejects(slots.update('npu', { server: { extra_args: flag } }), { code: 'slot.managed_arg_denied' }, flag)
  }
})
