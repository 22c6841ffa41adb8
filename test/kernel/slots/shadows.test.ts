import t from 'tap'
import type { EngineProvider, NamedSlotConfig, SlotConfigInput, SlotStatus } from '../../../kernel/contract/index.js'
import { checkSlotSet } from '../../../kernel/slots/write/slot-rules.js'
import { namesOf, shadowsOf, shadowStatus, withEngine, type Shadow } from '../../../kernel/slots/shadows/shadows.js'
import { providerOf, slotOf } from './plan/launch-input.js'

const trio: EngineProvider = providerOf({
  name: 'trio',
  devices: ['npu'],
  slotTypes: ['llm', 'transcription', 'embedding'],
  children: [
    { suffix: '-stt', type: 'transcription', model: 'ear', active: slot => slot.npu?.asr === true },
    { suffix: '-embed', type: 'embedding', model: 'small', active: slot => slot.npu?.embed === true }
  ]
})
const provider = (name: string): EngineProvider | undefined => name === 'trio' ? trio : undefined

function slotsOf (slots: Readonly<Record<string, SlotConfigInput>>): Map<string, NamedSlotConfig> {
  return new Map(Object.entries(slots).map(([name, config]) => [name, slotOf(config, name)]))
}

const shadows = (slots: Readonly<Record<string, SlotConfigInput>>): ReadonlyMap<string, Shadow> => {
  return shadowsOf(slotsOf(slots), provider)
}
const anchor: SlotConfigInput = { provider: 'trio', device: 'npu', port: 8088, npu: { asr: true } }

t.test('an anchor has a slot for each child of its engine, which follows its switches', async t => {
  const found = shadows({ npu: anchor, other: {} })
  t.strictSame([...found.keys()], ['npu-stt', 'npu-embed'])
  t.match(found.get('npu-stt'), {
    anchor: 'npu',
    hasFile: false,
    slot: {
      name: 'npu-stt', type: 'transcription', provider: 'trio', device: 'npu', port: 8088,
      served_by: 'npu', enabled: true, model: { default: 'ear' }
    }
  })
  t.equal(found.get('npu-embed')!.slot.enabled, false, 'switched off')
  t.equal(shadows({ npu: { ...anchor, enabled: false } }).get('npu-stt')!.slot.enabled, false, 'with the anchor')
  t.strictSame([...shadows({ away: { ...anchor, provider: 'away' } }).keys()], [], 'nobody knows what a provider that is away serves')
})

t.test('a file gives a child another name', async t => {
  const files = { ear: { type: 'transcription', served_by: 'npu', port: 1025 }, npu: anchor } as const
  const found = shadows(files)
  t.strictSame([...found.keys()], ['ear', 'npu-embed'])
  t.match(found.get('ear'), { hasFile: true, slot: { provider: 'trio', port: 8088, enabled: true, model: { default: 'ear' } } })
  t.equal(shadows({ ...files, ear: { ...files.ear, enabled: false } }).get('ear')!.slot.enabled, false)
  t.strictSame(namesOf(slotsOf(files), found), ['npu', 'ear', 'npu-embed'], 'each stands behind its anchor')
  t.strictSame([...withEngine(slotsOf(files)).keys()], ['npu'])
  const lost = shadows({ ear: { type: 'transcription', served_by: 'gone' }, wrong: { type: 'reranking', served_by: 'npu' }, npu: anchor })
  t.match(lost.get('ear'), { child: null, slot: { enabled: false } }, 'without an anchor')
  t.match(lost.get('wrong'), { child: null, slot: { enabled: false } }, 'of a type that its engine does not serve')
  t.strictSame(namesOf(slotsOf({ ear: { served_by: 'gone' }, a: {} }), lost), ['ear', 'a'])
})

t.test('its status is the anchor\'s, as far as the running engine serves it', async t => {
  const [shadow] = [...shadows({ npu: anchor }).values()]
  const running = (state: SlotStatus['state']): SlotStatus => ({
    name: 'npu', state, since: 5, message: 'm', generation: 3, modelId: 'big', port: 8088, ports: {}, address: { host: 'h', port: 1 },
    engineId: 'e', engineName: 'svc-npu', engineLabel: 'image', inFlight: 1, waiting: 2, workers: 1, lastUsedAt: 4, startedAt: 3, adopted: true, healthOk: true,
    configDrift: true, held: false, failure: null, progress: null
  })
  const launchedAs = slotOf(anchor, 'npu')
  t.match(shadowStatus(shadow!, running('serving'), launchedAs), {
    name: 'npu-stt', state: 'serving', modelId: 'ear', address: { host: 'h', port: 1 }, engineId: null, engineLabel: 'image',
    inFlight: 1, waiting: 2, workers: 1, configDrift: false, held: false
  })
  t.match(shadowStatus(shadow!, running('warming'), null), { state: 'warming', address: null })
  t.match(shadowStatus(shadow!, running('ready'), slotOf({ ...anchor, npu: {} }, 'npu')), { state: 'offline', address: null, message: /started without it; restart/ })
  const off = { ...shadow!, slot: { ...shadow!.slot, enabled: false } }
  t.match(shadowStatus(off, running('ready'), launchedAs), { state: 'offline', inFlight: 0, message: /switched off at slot 'npu'/ })
  t.match(shadowStatus(shadow!, null, null), { state: 'offline', modelId: 'ear' })
})

t.test('a slot in another\'s engine is refused what only an engine of its own can have', async t => {
  const check = (slots: Readonly<Record<string, SlotConfigInput>>): string[] => checkSlotSet([...slotsOf(slots).values()], {
    profiles: new Map(), providers: { get: provider, list: () => [], ownerOf: () => undefined }, device: slot => slot.device ?? 'cpu', model: () => undefined, gpus: [], runtime: { form: 'process' }, maxSlots: 0, gatewayPort: 8080
  }).map(({ slot, rule, message }) => `${slot} ${rule} ${message}`)
  t.match(check({ 'npu': anchor, 'npu-embed': {} }), [/^npu-embed anchor 'npu-embed' is the embedding slot in the engine of slot 'npu'/])
  t.strictSame(check({ 'npu': anchor, 'npu-embed': { type: 'embedding', served_by: 'npu', provider: 'trio' } }), [])
  t.match(check({ alone: { provider: 'trio', type: 'embedding', device: 'npu' } }), [/^alone anchor .*`served_by`/])
})
