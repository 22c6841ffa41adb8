import t from 'tap'
import {
  hardwareSchema, slotConfigSchema, type Device, type FitStatus, type HardwareInfo, type NamedSlotConfig
} from '../../../../kernel/contract/index.js'
import type { Place } from '../../../../plugins/api/capabilities/ref.js'
import { skipOf, wantsAgent } from '../../../../plugins/api/install/extensions.js'
import { fittingContext, modelBudgetMb } from '../../../../plugins/api/install/memory-budget.js'
import type { InstallModel } from '../../../../plugins/api/install/model-sources.js'
import { activation } from '../../../../plugins/api/install/pending-slots.js'
import { planSlot, type HostFacts, type SlotPlan, type WantedSlot } from '../../../../plugins/api/install/plan.js'
import { automatic, tierSlots, waitingSlots } from '../../../../plugins/api/install/tier-slots.js'
import { fittingTier, loadTiers, tierNamed } from '../../../../plugins/api/install/tiers.js'

const host = (over: Record<string, unknown>): HardwareInfo => hardwareSchema.parse(over)
const gpu = (vendor: string, vram: number): object => ({ vendor, vram_mb: vram, compute_capable: true, vulkan_capable: true })
const shared = { integrated: true, gtt_mb: 96_000 }

t.test('how much memory models may have', async t => {
  const cases: ReadonlyArray<readonly [string, Device, Record<string, unknown>, number]> = [
    ['half of what is free', 'cpu', { ram_mb: 32_000, ram_available_mb: 20_000 }, 10_000],
    ['a control group has less', 'cpu', { ram_available_mb: 20_000, cgroup_max_mb: 4_000 }, 4_000],
    ['half of a shared memory', 'gpu-rocm', { gpus: [{ ...gpu('amd', 512), ...shared }] }, 48_000],
    ['shared, and a control group', 'gpu-rocm', { cgroup_max_mb: 16_000, gpus: [{ ...gpu('amd', 512), ...shared }] }, 16_000],
    ['all of a GPU', 'gpu-cuda', { ram_available_mb: 8_000, gpus: [gpu('nvidia', 24_000)] }, 24_000],
    ['of the GPU that is meant', 'gpu-rocm', { gpus: [gpu('nvidia', 24_000), gpu('amd', 8_000)] }, 8_000],
    ['of the card, not of the graphics beside it', 'gpu-rocm', { gpus: [{ ...gpu('amd', 512), ...shared }, gpu('amd', 24_000)] }, 24_000],
    ['the graphics, where the card is of another maker', 'gpu-rocm', { gpus: [{ ...gpu('amd', 512), ...shared }, gpu('nvidia', 24_000)] }, 48_000],
    ['the largest where any will do', 'gpu-vulkan', { gpus: [gpu('nvidia', 24_000), gpu('amd', 8_000)] }, 24_000],
    ['nobody knows', 'cpu', {}, 0]
  ]
  for (const [name, device, hardware, wanted] of cases) t.equal(modelBudgetMb(device, host(hardware)), wanted, name)
})

t.test('how long a context may be', async t => {
  const gib = 1024 ** 3
  const cases: ReadonlyArray<readonly [string, number, number, number, number]> = [
    ['there is room', 16_384, 2 * gib, 32_000, 16_384],
    ['never more than 32768 by itself', 262_144, 2 * gib, 64_000, 32_768],
    ['unknown model', 0, 0, 64_000, 8_192],
    ['8 GiB less 1 to spare less 6 of weights is 1 GiB: 8192 tokens', 32_768, 6 * gib, 8_192, 8_192],
    ['a step below that', 32_768, 6 * gib, 8_191, 7_168],
    ['no room at all', 32_768, 20 * gib, 8_192, 2_048],
    ['a model that has less than the floor', 512, 20 * gib, 8_192, 512],
    ['nobody knows the memory', 32_768, 6 * gib, 0, 32_768]
  ]
  for (const [name, contextLength, sizeBytes, budget, wanted] of cases) {
    t.equal(fittingContext({ contextLength, sizeBytes }, budget), wanted, name)
  }
})

const model = (id: string, over: Partial<InstallModel> = {}): InstallModel =>
  ({ id, sizeBytes: 2 * 1024 ** 3, contextLength: 40_960, runtimes: [], file: `${id}.gguf`, installed: false, request: { model_id: id }, ...over })
const place = (device: Device, fit: FitStatus = 'fits', provider = 'llm-server'): Place => ({ device, provider, fit, fitReasons: [`it ${fit}`] })
const slot = (name: string, over: Record<string, unknown> = {}): NamedSlotConfig => ({ ...slotConfigSchema.parse(over), name, provider: 'llm-server' })
const main: WantedSlot = { kind: 'chat.primary', slot: 'agent', port: null, modelId: 'm', device: null, profile: null }

function facts (over: Partial<HostFacts> = {}): HostFacts {
  return {
    slots: new Map(),
    hardware: host({ ram_available_mb: 32_000, gpus: [gpu('amd', 8_192)] }),
    defaultDevice: 'gpu-rocm',
    backends: [],
    places: () => [place('gpu-vulkan'), place('gpu-rocm'), place('cpu')],
    misfits: () => [],
    model: id => id === 'm' ? model('m') : id === 'here' ? model('here', { installed: true }) : null,
    pull: true,
    ...over
  }
}

const holding = (...slots: NamedSlotConfig[]): Partial<HostFacts> => ({ slots: new Map(slots.map(one => [one.name, one])) })
const places = (...all: Place[]): Partial<HostFacts> => ({ places: () => all })

interface PlanCase {
  readonly name: string
  readonly wanted?: Partial<WantedSlot>
  readonly host?: Partial<HostFacts>
  readonly plan: Record<string, unknown>
}

const parked = { enabled: false, meta: { pending_model: 'm', pull_wanted: true, context_for: 'm' } }
const plans: readonly PlanCase[] = [
  {
    name: 'a new slot waits for its model, on the default device, with the context that fits',
    plan: {
      action: 'create',
      config: { type: 'llm', device: 'gpu-rocm', provider: 'llm-server', port: undefined, ...parked, model: { context_size: 32_768 } },
      pull: { id: 'm' }
    }
  },
  { name: 'nobody pulls', host: { pull: false }, plan: { action: 'create', config: { meta: { pending_model: 'm', pull_wanted: false } } } },
  {
    name: 'a model that is here needs no waiting',
    wanted: { modelId: 'here' },
    plan: { action: 'create', config: { model: { default: 'here', context_size: 32_768 }, meta: { context_for: 'here' }, enabled: undefined }, pull: null }
  },
  { name: 'a scaffold', wanted: { kind: 'tts', slot: 'tts', modelId: '' }, plan: { action: 'create', config: { type: 'tts', port: undefined, model: undefined }, pull: null } },
  { name: 'a model that nobody knows', wanted: { modelId: 'gpt-9' }, plan: { action: 'skip', reason: 'needs_upstream_routing', detail: /'gpt-9'/ } },
  { name: 'nothing here runs it', host: places(), plan: { action: 'skip', reason: 'not_applicable_on_this_hardware' } },
  {
    name: 'too large for all of it',
    host: places(place('gpu-rocm', 'too_large'), place('cpu', 'too_large')),
    plan: { action: 'skip', reason: 'not_applicable_on_this_hardware', detail: /it too_large/ }
  },
  { name: 'a GPU that would spill comes last', host: places(place('gpu-rocm', 'spills'), place('cpu')), plan: { action: 'create', config: { device: 'cpu' } } },
  { name: 'and is taken when nothing else will do', host: places(place('gpu-rocm', 'spills')), plan: { action: 'create', config: { device: 'gpu-rocm' } } },
  { name: 'another GPU comes before the CPU', host: places(place('cpu'), place('gpu-vulkan')), plan: { action: 'create', config: { device: 'gpu-vulkan' } } },
  { name: 'never by itself on the NPU', host: places(place('npu')), plan: { action: 'skip' } },
  { name: 'the device that was asked for', wanted: { device: 'cpu' }, plan: { action: 'create', config: { device: 'cpu' } } },
  { name: 'which this host has not', wanted: { device: 'gpu-cuda' }, plan: { action: 'skip', reason: 'not_applicable_on_this_hardware', detail: /gpu-cuda/ } },
  { name: 'the profile that was asked for', wanted: { profile: 'rocm-moe' }, plan: { action: 'create', config: { profile: 'rocm-moe' } } },
  { name: 'the port that was asked for', wanted: { port: 8095 }, plan: { action: 'create', config: { port: 8095 } } },
  {
    name: 'images: the launch takes the engine\'s own port',
    wanted: { kind: 'img', slot: 'img' },
    host: places(place('gpu-rocm', 'fits', 'imagegen')),
    plan: { action: 'create', config: { type: 'image', port: undefined, provider: 'imagegen', model: { context_size: undefined } } }
  },
  { name: 'the NPU, where there is none', wanted: { kind: 'npu', slot: 'npu', modelId: '' }, plan: { action: 'skip', reason: 'not_applicable_on_this_hardware' } },
  {
    name: 'the NPU, without its engine',
    wanted: { kind: 'npu', slot: 'npu', modelId: '' },
    host: { backends: [{ id: 'npu', label: 'NPU', short: 'NPU', provider: null, multiplex: false }] },
    plan: { action: 'skip' }
  },
  {
    name: 'the NPU',
    wanted: { kind: 'npu', slot: 'npu', modelId: '' },
    host: { backends: [{ id: 'npu', label: 'NPU', short: 'NPU', provider: 'npu-rt', multiplex: true }] },
    plan: { action: 'create', config: { type: 'llm', device: 'npu', provider: 'npu-rt', port: undefined, model: { context_size: 16_384 } } }
  },
  {
    name: 'a slot with another model keeps it',
    host: holding(slot('agent', { model: { default: 'mine' } })),
    plan: { action: 'skip', reason: 'slot_in_use', detail: /svc slot swap agent --model m/ }
  },
  { name: 'a slot that serves something else', host: holding(slot('agent', { type: 'tts' })), plan: { action: 'skip', reason: 'slot_in_use' } },
  { name: 'a slot with that model, which is gone', host: holding(slot('agent', { model: { default: 'm' } })), plan: { action: 'keep', pull: { id: 'm' } } },
  { name: 'a slot without a model waits for it', host: holding(slot('agent')), plan: { action: 'update', patch: { meta: { pending_model: 'm', pull_failed: null } } } },
  {
    name: 'or gets it',
    wanted: { modelId: 'here' },
    host: holding(slot('agent')),
    plan: { action: 'update', patch: { model: { default: 'here' }, meta: { pending_model: null }, enabled: true }, pull: null }
  },
  { name: 'a scaffold that is there', wanted: { modelId: '' }, host: holding(slot('agent', { model: { default: 'x' } })), plan: { action: 'keep', pull: null } }
]

t.test('what becomes of a slot', async t => {
  for (const { name, wanted = {}, host: over = {}, plan } of plans) {
    t.match(planSlot({ ...main, ...wanted }, facts(over)) as SlotPlan & Record<string, unknown>, plan, name)
  }
})

t.test('a slot gets the model it waited for', async t => {
  const waiting = slot('agent', { enabled: false, model: { context_size: 32_768 }, meta: { pending_model: 'm', context_for: 'm' } })
  const done = { pending_model: null, pull_wanted: null, pull_failed: null }
  const derived = { ...done, context_for: 'm' }
  t.same(activation(waiting, 'm', 40_960), { enabled: true, model: { default: 'm' }, meta: derived })
  t.same(activation(waiting, 'm', 4_096), { enabled: true, model: { default: 'm', context_size: 4_096 }, meta: derived }, 'no more than it was trained for')
  t.same(activation(slot('agent', { model: { default: 'mine' }, meta: { pending_model: 'm' } }), 'm', 4_096), { meta: done }, 'unless it was given another')
})

t.test('each tier has slots that fit it, one to chat with among them', async t => {
  const tiers = await loadTiers('/nowhere')
  t.same(tiers.map(({ name }) => name), ['Lite', 'Default', 'Pro', 'Max'])
  const cases: ReadonlyArray<readonly [string, string | null]> = [
    ['Lite', 'Lite'], ['lite', 'Lite'], [' MAX ', 'Max'], ['svc-omni-pro', 'Pro'], ['svc-default', 'Default'], ['omni_lite', 'Lite'], ['ultra', null], ['', null]
  ]
  for (const [text, wanted] of cases) t.equal(tierNamed(text), wanted, text)
  const picks: ReadonlyArray<readonly [number, string]> = [[0, 'Lite'], [4_000, 'Lite'], [8_192, 'Default'], [24_576, 'Pro'], [200_000, 'Max']]
  for (const [mb, wanted] of picks) t.equal(fittingTier(tiers, mb).name, wanted, `${mb} MiB`)

  const slots = tierSlots(tiers[0]!, { embed: { model_id: 'other', device: 'cpu' } }, true)
  t.match(slots, [{ slot: 'agent', kind: 'chat.primary' }, { slot: 'coder' }, { slot: 'embed', modelId: 'other', device: 'cpu' }, { slot: 'npu', device: 'npu' }])
  t.throws(() => tierSlots(tiers[0]!, { img: {} }, false), { code: 'install.pick_default_failed', message: /agent, coder, embed/ })

  const made = (slotNames: readonly string[], agent: boolean): string[] =>
    automatic(tierSlots(tiers[1]!, {}, false), { slotNames, agent }).slots.map(({ slot }) => slot)
  t.same(made([], false), ['agent'])
  t.same(made([], true), ['agent', 'coder'])
  t.same(made(['primary'], true), ['coder'], 'there is one to chat with')
  t.same(automatic(slots, { slotNames: [], agent: false }).defaults.map(({ slot }) => slot), ['embed'])
})

t.test('slots that still wait for their model are found', async t => {
  const slots = [
    slot('agent', { meta: { pending_model: 'm' } }), slot('mine', { type: 'embedding', meta: { pending_model: 'v' } }), slot('coder'),
    slot('tts', { type: 'tts', meta: {} })
  ]
  t.match(waitingSlots(slots), [{ kind: 'chat.primary', slot: 'agent', modelId: 'm' }, { kind: 'embed', slot: 'mine', modelId: 'v' }])
  t.equal(waitingSlots(slots).length, 2)
})

t.test('an extension that cannot be brought, or that nobody named, is skipped with the reason', async t => {
  const app = (installed: boolean): Parameters<typeof skipOf>[0] => ({ kind: 'app', installed })
  t.equal(skipOf(undefined, true), 'unknown_extension')
  t.equal(skipOf({ kind: 'slot', installed: true }, true), 'made_with_its_slot')
  t.equal(skipOf({ kind: 'slot', installed: false }, false), 'not_asked_for')
  t.equal(skipOf({ kind: 'slot', installed: false }, true), null)
  t.equal(skipOf(app(false), false), 'not_asked_for', 'what is large and has a licence of its own is not brought by being on by default')
  t.equal(skipOf(app(true), false), null)
  t.equal(skipOf(app(false), true), null)
  t.equal(skipOf({ kind: 'agent', installed: false }, false), 'not_asked_for')
  const agents = [{ id: 'hermes' }]
  t.equal(wantsAgent({ hermes: true }, agents), true)
  t.equal(wantsAgent({ openwebui: true, hermes: false }, agents), false)
})
