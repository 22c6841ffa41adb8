import t from 'tap'
import {
  devices, slotConfigSchema, slotStates, type EngineProvider, type NamedSlotConfig, type SlotState, type SlotStatus,
  type UpstreamView
} from '../../../kernel/contract/index.js'
import { createFakeProvider, FakeClock, settle } from '../../../kernel/testing/index.js'
import { resumePoint } from '../../../plugins/api/events/resume-point.js'
import { followFilterSchema, listFilterSchema } from '../../../plugins/api/events/schemas.js'
import { enumsDocument, enumsTag, namesTag } from '../../../plugins/api/meta/enums.js'
import { noiseFilter } from '../../../plugins/api/slots/log/log-lines.js'
import { isImage } from '../../../plugins/api/slots/record/image-name.js'
import { mapBounded, withinMs } from '../../../plugins/api/slots/record/probe-limits.js'
import { laid } from '../../providers.js'
import { slotRecord, type SlotFacts } from '../../../plugins/api/slots/record/record.js'
import { slotRecordSchema, upstreamRowSchema, type SlotRecord } from '../../../plugins/api/slots/record/record-schema.js'
import { hoisted } from '../../../plugins/api/slots/slot-file.js'
import { share } from '../../../plugins/api/slots/slot-usage.js'
import { upstreamRows } from '../../../plugins/api/slots/record/upstream-row.js'
import { readVoices } from '../../../kernel/slots/life/engine/voices.js'

function slot (input: Record<string, unknown> = {}, name = 'chat'): NamedSlotConfig {
  return { ...slotConfigSchema.parse(input), name, provider: 'fake' }
}

function status (over: Partial<SlotStatus> = {}): SlotStatus {
  return {
    name: 'chat', state: 'offline', since: 1_000, message: '', generation: 0, modelId: null, port: null, ports: {}, address: null,
    engineId: null, engineName: null, engineLabel: null, inFlight: 0, waiting: 0, workers: null, lastUsedAt: null,
    startedAt: null,
    adopted: false,
    healthOk: null, configDrift: false, held: false,
    failure: null, progress: null, ...over
  }
}

function facts (over: Partial<SlotFacts> = {}): SlotFacts {
  return {
    config: slot(), status: status(), device: 'cpu', provider: createFakeProvider(), problem: null, argv: [], runtime: 'container',
    outlook: { profile: null, image: 'img:1', contextSize: 8192, vision: false }, imageState: 'present', memMb: 100, anchor: null, diagnostics: [],
    metrics: { tokensPerSec: 0, ttftMs: null, requestCount: 0, tokenCount: 0 }, ...over
  }
}

const trio = createFakeProvider({
  name: 'npu-engine',
  children: [
    { suffix: 'stt', type: 'transcription', model: 'whisper', active: anchor => anchor.npu?.asr === true },
    { suffix: 'embed', type: 'embedding', model: 'gemma', active: anchor => anchor.npu?.embed === true }
  ]
})
const anchorSlot = slot({ device: 'npu', npu: { asr: true } }, 'npu')

interface RecordCase {
  readonly name: string
  readonly given: Partial<SlotFacts>
  readonly wanted: Partial<SlotRecord>
  /** Keys that must not be there. */
  readonly absent?: readonly string[]
}

const ready = status({ state: 'ready', modelId: 'm', healthOk: true, engineLabel: 'img:1' })
const records: readonly RecordCase[] = [
  {
    name: 'a bare slot',
    given: {},
    wanted: { model_id: null, models: [], role: null, declared_backend: null, backend: 'cpu', device_class: 'cpu', llamacpp_args: null, mem_mb: 0 },
    absent: ['model_default', 'labels', 'npu', 'served_by', 'coresident_group', 'npu_modality_active', 'actual_image', 'config_drift']
  },
  {
    name: 'what the file says',
    given: {
      config: slot({
        device: 'gpu-rocm', workers: 2, mtp: true, pinned: true, model: { default: 'm', labels: ['vision'], n_gpu_layers: 9 },
        server: { extra_args: '--a b' }
      }),
      device: 'gpu-rocm'
    },
    wanted: {
      declared_backend: 'rocm', backend: 'rocm', device_class: 'gpu', workers: 2, mtp: true, pinned: true, model_default: 'm', labels: ['vision'],
      n_gpu_layers: 9, llamacpp_args: '--a b'
    }
  },
  { name: 'the anchor plays a role', given: { config: slot({}, 'agent') }, wanted: { role: 'primary' } },
  { name: 'a name is a role', given: { config: slot({}, 'utility') }, wanted: { role: 'utility' } },
  { name: 'a role that is written wins', given: { config: slot({ role: 'npu' }, 'utility') }, wanted: { role: 'npu' } },
  { name: 'an image slot', given: { config: slot({ type: 'image' }), device: 'gpu-vulkan' }, wanted: { device_class: 'img' } },
  {
    name: 'no context',
    given: { outlook: { profile: 'p', image: null, contextSize: null, vision: false } },
    wanted: { profile: 'p', image: null, image_status: 'not-configured', resolved_command: null },
    absent: ['ctx_max']
  },
  {
    name: 'a slot that cannot run',
    given: { config: slot({ profile: 'p' }), outlook: null, argv: null, problem: 'no such model', provider: null },
    wanted: { profile: 'p', image: null, resolved_command: null },
    absent: ['ctx_max']
  },
  { name: 'its command', given: { argv: ['--x'] }, wanted: { resolved_command: ['img:1', '--x'] } },
  {
    name: 'up',
    given: { status: ready },
    wanted: { models: ['m'], mem_mb: 100, container_health: true, actual_image: 'img:1', image_mismatch: false }
  },
  { name: 'up, memory unknown', given: { status: ready, memMb: null }, wanted: {}, absent: ['mem_mb'] },
  { name: 'another image runs', given: { status: { ...ready, engineLabel: 'img:0' } }, wanted: { actual_image: 'img:0', image_mismatch: true } },
  { name: 'a child process', given: { status: ready, runtime: 'process' }, wanted: { runtime: 'process' }, absent: ['actual_image', 'image_mismatch'] },
  { name: 'serving with a model', given: { status: status({ state: 'serving', modelId: 'm' }) }, wanted: { status: 'serving' } },
  {
    name: 'serving without the model it needs',
    given: { status: status({ state: 'serving' }), provider: createFakeProvider({ needsModel: true }) },
    wanted: { state: 'serving', status: 'idle' }
  },
  { name: 'serving, needs no model', given: { status: status({ state: 'serving' }) }, wanted: { status: 'serving' } },
  { name: 'times in seconds', given: { status: status({ lastUsedAt: 1_500 }) }, wanted: { last_used_at: 1.5 } },
  { name: 'the image is not there', given: { imageState: 'failed' }, wanted: { image_status: 'missing' } },
  { name: 'the image comes', given: { status: status({ state: 'pulling' }) }, wanted: { image_status: 'pulling' } },
  { name: 'nobody knows about the image', given: { imageState: null }, wanted: { image: 'img:1' }, absent: ['image_status'] },
  {
    name: 'a trio that is up',
    given: { config: anchorSlot, provider: trio, device: 'npu', status: ready },
    wanted: { models: ['m', 'whisper'], coresident_group: 'npu-engine-trio', npu: { chat: true, asr: true, embed: false } }
  },
  { name: 'a trio that is down', given: { config: anchorSlot, provider: trio, device: 'npu' }, wanted: {}, absent: ['coresident_group'] },
  {
    name: 'a slot that the anchor serves',
    given: {
      config: slot({ type: 'transcription', served_by: 'npu' }), device: 'npu', anchor: { config: anchorSlot, state: 'ready', provider: trio }
    },
    wanted: { served_by: 'npu', npu_modality_active: true, coresident_group: 'npu-engine-trio' }
  },
  {
    name: 'one that is switched off there',
    given: { config: slot({ type: 'embedding', served_by: 'npu' }), device: 'npu', anchor: { config: anchorSlot, state: 'offline', provider: trio } },
    wanted: { npu_modality_active: false },
    absent: ['coresident_group']
  },
  {
    name: 'one whose anchor is gone',
    given: { config: slot({ type: 'embedding', served_by: 'npu' }), anchor: null },
    wanted: { served_by: 'npu', npu_modality_active: false },
    absent: ['coresident_group']
  }
]

t.test('an image is the one that was asked for in whichever way its driver spells it', async t => {
  const cases: Array<[running: string, asked: string, isSame: boolean]> = [
    ['docker.io/team/engine:1', 'team/engine:1', true],
    ['docker.io/library/engine:1', 'engine:1', true],
    ['localhost/engine:latest', 'engine', true],
    ['team/engine:latest', 'docker.io/team/engine', true],
    ['localhost:5000/engine:latest', 'localhost:5000/engine', true],
    ['localhost:5000/engine:1', 'localhost:5001/engine:1', false],
    ['quay.io/team/engine:1', 'docker.io/team/engine:1', false],
    ['docker.io/team/engine:2', 'team/engine:1', false],
    ['docker.io/other/engine:1', 'team/engine:1', false],
    ['docker.io/team/engine@sha256:00', 'team/engine@sha256:00', true],
    ['docker.io/team/engine@sha256:01', 'team/engine@sha256:00', false]
  ]
  for (const [running, asked, isSame] of cases) t.equal(isImage(running, asked), isSame, `${running}, asked for as ${asked}`)
})

t.test('a slot record is made of what is known of the slot', async t => {
  for (const { name, given, wanted, absent = [] } of records) {
    const record = slotRecord(facts(given))
    t.match(record, wanted, name)
    for (const key of absent) t.notOk(Object.hasOwn(record, key), `${name}: no ${key}`)
    t.doesNotThrow(() => slotRecordSchema.parse(record), `${name}: fits the schema`)
  }
  const containerOf = (state: SlotState): string => slotRecord(facts({ status: status({ state }) })).container_status
  const containers = Object.fromEntries(slotStates.map(state => [state, containerOf(state)]))
  t.same(containers, {
    offline: 'stopped', pulling: 'starting', starting: 'starting', warming: 'running', ready: 'running', serving: 'running',
    idle: 'running', unloading: 'running', error: 'crashed'
  } satisfies Record<SlotState, string>)
  const failure = { code: 'slot.load_failed', message: 'broke', kind: 'heals' as const, attempts: 2, retryAt: 9_000, logTail: ['last'] }
  t.match(slotRecord(facts({
    status: status({ state: 'error', since: 2_500, failure, healthOk: false, generation: 4 }),
    problem: 'why',
    diagnostics: [{ file: 'slots/chat.toml', path: 'device', message: 'is wrong', line: 3 }, { file: 'slots/chat.toml', path: '', message: 'is odd' }]
  })).metadata, {
    updated_at: 2.5, generation: 4, health_ok: false, config_error: 'why',
    failure: { code: 'slot.load_failed', message: 'broke', kind: 'heals', attempts: 2, retry_at: 9, log_tail: ['last'] },
    file_problems: [{ path: 'device', message: 'is wrong', line: 3 }, { path: /^$/, message: 'is odd' }]
  })
  t.equal(slotRecord(facts({ status: ready, runtime: 'process' })).metadata.engine, 'img:1', 'what runs is told for processes too')
  const metrics = { tokensPerSec: 12.5, ttftMs: 80.6, requestCount: 3, tokenCount: 9 }
  t.same(slotRecord(facts({ status: ready, metrics })).metrics, { toks: 12.5, ttft: 81, ctx: 8192, kv: null, mem: 100 })
})

t.test('an upstream is a row beside the slots, without the password of its URL', async t => {
  const view: UpstreamView = {
    name: 'cloud', kind: 'remote', url: 'https://u:p@api.example/v1', svc: false, enabled: true, models: ['a', 'b'], refreshed_at: '2026-01-01T00:00:00Z', error: null
  }
  const cases: ReadonlyArray<readonly [Partial<UpstreamView>, string, RegExp]> = [
    [{}, 'serving', /configured upstream$/],
    [{ enabled: false }, 'offline', /switched off/],
    [{ error: 'refused' }, 'offline', /refused/],
    [{ refreshed_at: null, models: [] }, 'offline', /not known yet/]
  ]
  for (const [over, state, reason] of cases) {
    const [row] = upstreamRows([{ ...view, ...over }], new Set())
    t.match(row, { state, status: state, _synthetic: true, _synthetic_reason: reason, url: 'https://api.example/v1' })
    t.doesNotThrow(() => upstreamRowSchema.parse(row))
  }
  t.match(upstreamRows([view], new Set()), [{ model: 'a', advertised_models: 2, last_used_model: null }])
  t.same(upstreamRows([view], new Set(['cloud'])), [], 'a slot hides the upstream of its name')
})

t.test('polls of the health check are left out of an engine\'s log', async t => {
  const provider = { health: { path: '/health' } } as EngineProvider
  const noisy = ['"GET /health HTTP/1.1" 200 OK', 'request: GET /health 127.0.0.1 200', 'GET /v1/models?x=1', 'HEAD /metrics', 'x GET /slots']
  const worthy = ['GET /healthy', 'POST /v1/chat/completions', 'health is fine', 'GET /v1/models/abc', 'POST /health']
  for (const line of noisy) t.ok(noiseFilter(provider)(line), line)
  for (const line of worthy) t.notOk(noiseFilter(provider)(line), line)
  t.notOk(noiseFilter(null)('GET /health'), 'without a provider nobody knows what it polls')
})

t.test('a slot\'s fields are found at the top level and in their tables', async t => {
  t.same(hoisted({ slot: { name: 'a', port: 1 }, model: { default: 'm' } }), { name: 'a', port: 1, model: { default: 'm' } })
  t.same(hoisted({ port: 1 }), { port: 1 })
  t.same(hoisted({ slot: 3 }), { slot: 3 })
  t.same(share('gpu-rocm', 10, 7), { vram_mb: 10, ram_mb: 7, mem_mb: 7 })
  t.same(share('gpu-rocm', 0, null), { vram_mb: null, ram_mb: null, mem_mb: null })
  t.same(share('cpu', 10, 7), { vram_mb: 0, ram_mb: 7, mem_mb: 7 })
  t.same(share('npu', 10, null), { vram_mb: 0, ram_mb: 10, mem_mb: null })

  let running = 0
  let most = 0
  t.same(await mapBounded([3, 1, 2], 2, async n => {
    most = Math.max(most, ++running)
    await settle()
    running--
    return n * 2
  }), [6, 2, 4])
  t.equal(most, 2)
})

t.test('work is waited for up to a limit, and no timer stays', async t => {
  const clock = new FakeClock()
  t.equal(await withinMs(clock, 100, null, async () => 1), 1)
  t.equal(await withinMs(clock, 100, null, async () => { throw new Error('no') }), null)
  t.equal(await withinMs(clock, 100, null, () => { throw new Error('at once') }), null)
  let told: AbortSignal | null = null
  const slow = withinMs(clock, 100, null, signal => {
    told = signal
    return new Promise(() => {})
  })
  await clock.advance(99)
  t.equal(told!.aborted, false)
  await clock.advance(1)
  t.equal(await slow, null)
  t.equal(told!.aborted, true)
  const caller = new AbortController()
  const left = withinMs(clock, 100, caller.signal, () => new Promise(() => {}))
  caller.abort()
  t.equal(await left, null, 'the caller left')
  t.equal(await withinMs(clock, 100, caller.signal, async () => 1), null, 'the caller had left')
  t.equal(clock.pending, 0, 'no timer stays')

  const mute = createFakeProvider({ voices: () => new Promise(() => {}) })
  const voices = readVoices('tts', mute, {} as never, clock, new AbortController().signal)
  await clock.advance(2_000)
  t.same(await voices, { name: 'tts', voices: [], source: 'offline' }, 'two seconds and no more')
})

t.test('filters of events have defaults and bounds', async t => {
  t.same(listFilterSchema.parse({}), { limit: 200 })
  t.same(listFilterSchema.parse({ since: '3', type: 'slot.*', severity: 'warn', limit: '1000' }), { since: 3, type: 'slot.*', severity: 'warn', limit: 1000 })
  t.same(followFilterSchema.parse({}), {})
  for (const query of [
    { since: '-1' }, { since: 'x' }, { since: ['1', '2'] }, { type: 'a b' }, { type: '' }, { severity: 'loud' }, { limit: '0' }, { limit: '1001' }, { kind: 'x' }
  ]) t.notOk(listFilterSchema.safeParse(query).success, JSON.stringify(query))
  t.equal(resumePoint(undefined, 'e'), null)
  t.equal(resumePoint('e:12', 'e'), 12)
  t.equal(resumePoint('earlier:12', 'e'), 0, 'everything since the restart')
  t.equal(resumePoint('12', 'e'), null)
  t.equal(resumePoint(['e:1', 'e:2'], 'e'), null)
})

t.test('the document of enums follows the providers that are loaded', async t => {
  const none = enumsDocument(laid())
  t.same(none.devices.map(({ id }) => id), devices)
  t.same(none.devices.filter(({ recommended }) => recommended).map(({ id }) => id), ['gpu-rocm'])
  t.same(none.slot_types, ['llm', 'embedding', 'reranking', 'transcription', 'tts', 'image'])
  t.same(none.selectable_backends, ['rocm', 'vulkan', 'cuda', 'cpu', 'auto'])
  t.same(none.model_backends, ['rocm', 'vulkan', 'cuda', 'cpu'])
  t.match(none.backend_to_device, { 'rocm': 'gpu-rocm', 'cuda': 'gpu-cuda', 'npu-rt': 'npu', 'gpu-vulkan': 'gpu-vulkan', 'cpu': 'cpu' })
  t.same(none.device_to_backend, { 'gpu-rocm': 'rocm', 'gpu-vulkan': 'vulkan', 'gpu-cuda': 'cuda', 'cpu': 'cpu', 'npu': 'npu-rt' })
  for (const alias of Object.values(none.capability_aliases)) t.ok(none.model_capabilities.includes(alias))
  const two = enumsDocument(laid(createFakeProvider({ name: 'a', family: 'x' }), createFakeProvider({ name: 'b', family: 'x' })))
  t.same(two.runtime_families, ['x'])
  t.same(two.model_backends, ['rocm', 'vulkan', 'cuda', 'cpu', 'x'])
  t.same(two.providers.map(({ name }) => name), ['a', 'b'])

  const tag = enumsTag('1.0.0', none)
  t.match(tag, /^W\/"svc-enums-1\.0\.0-[0-9a-f]{12}"$/)
  t.not(enumsTag('1.0.0', two), tag, 'another set of providers')
  t.not(enumsTag('1.0.1', none), tag, 'another release')
  t.equal(enumsTag('1.0.0', enumsDocument(laid())), tag)
  for (const [header, names] of [
    [undefined, false], ['*', true], [tag, true], [tag.slice(2), true], [`"x", ${tag}`, true], ['"x"', false], ['', false]
  ] as const) t.equal(namesTag(header, tag), names, String(header))
})
