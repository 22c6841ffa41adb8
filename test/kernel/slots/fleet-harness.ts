import {
  defineProvider, slotConfigSchema, svcConfigSchema, type ConfigService, type Logger, type NamedSlotConfig, type NewEvent,
  type SlotConfigInput
} from '../../../kernel/contract/index.js'
import { LABEL_CONFIG, LABEL_GENERATION, LABEL_INSTANCE, LABEL_PLACE, LABEL_SLOT } from '../../../kernel/contract/provider/engine-runtime.js'
import { placeLabel } from '../../../kernel/slots/plan/launch/engine-place.js'
import { portLabels, type EnginePorts } from '../../../kernel/slots/plan/launch/engine-ports.js'
import { SlotFleet } from '../../../kernel/slots/life/slot-fleet.js'
import { slotNotFound } from '../../../kernel/slots/schedule/slot-errors.js'
import type { SlotPlans } from '../../../kernel/slots/plan/slot-plans.js'
import { Swaps } from '../../../kernel/slots/plan/swaps.js'
import type { SlotStateFile, SlotStateFiles } from '../../../kernel/slots/life/kept/slot-state-file.js'
import type { FakeClock } from '../../../kernel/testing/fake-clock.js'
import type { FakeRuntime } from '../../../kernel/testing/fake-runtime.js'

const provider = defineProvider({
  name: 'fake',
  title: 'Fake engine',
  family: 'fake',
  devices: ['cpu'],
  slotTypes: ['llm'],
  cli: false,
  needsModel: false,
  surfaces: { chat: { path: '/v1/chat/completions', streaming: true, body: 'json' } },
  health: { path: '/health' },
  exclusivity: 'standard',
  containerSpec: () => ({ command: [] })
})

const nothing = (): void => {}
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing } as unknown as Logger

export interface FleetOptions {
  readonly clock: FakeClock
  readonly runtime: FakeRuntime
  readonly slots: readonly string[]
  readonly idleTimeoutS?: number
  readonly settings?: Record<string, unknown>
  /** What the slots are; one that is not named here is a plain llm slot on the CPU. Runtime `far` is another machine's. */
  readonly configs?: Readonly<Record<string, SlotConfigInput>>
  readonly assertMayRun?: (slot: string) => void
  readonly hash?: (slot: string, port: number) => string
  /** Workers of the engines to come. */
  readonly workers?: () => number | null
  /** Ports that something else listens on. */
  readonly isTaken?: (port: number) => boolean
  /** How many may wait for a slot. */
  readonly bound?: number
  /** What a launch waits for before it knows what to start. */
  readonly prepared?: () => Promise<void>
  /** State files that an earlier fleet left. */
  readonly states?: Map<string, SlotStateFile>
  /** Slots whose files cannot be read; they are not among `slots`. */
  readonly unread?: ReadonlySet<string>
}

export interface FleetHarness {
  readonly fleet: SlotFleet
  readonly config: ConfigService
  readonly plans: SlotPlans
  /** State files as they would stand on disk. */
  readonly states: Map<string, SlotStateFile>
  readonly events: NewEvent[]
  /** What a reload of the configuration does: slots laid over those that are there, null takes one out. */
  configure (slots: Readonly<Record<string, SlotConfigInput | null>>, settings?: Record<string, unknown>): void
}

export function createFleet (options: FleetOptions): SlotFleet {
  return createFleetHarness(options).fleet
}

/** A fleet on a fake runtime: real owners, real launcher, configuration and planning replaced by tables. */
export function createFleetHarness (options: FleetOptions): FleetHarness {
  const { clock, runtime, slots, idleTimeoutS = 300, settings = {}, workers = () => null, bound = 512 } = options
  const { hash = () => 'hash', prepared = async () => {}, states = new Map<string, SlotStateFile>(), unread = new Set() } = options
  let svc = svcConfigSchema.parse({ slots: { idle_timeout_s: idleTimeoutS, health_timeout_s: 60, drain_timeout_s: 5,
    stop_timeout_s: 3, port_range_start: 7501, port_range_end: 7599, ...settings }, dispatcher: { queue_per_slot: bound } })
  let configs: ReadonlyMap<string, NamedSlotConfig> = new Map(slots.map((name, i) =>
    [name, { ...slotConfigSchema.parse({ port: 7001 + i, ...options.configs?.[name] }), name, provider: provider.name }]))
  const config = {
    get snapshot () {
      return { svc, slots: configs, profiles: new Map(), diagnostics: [...unread].map(name => ({ file: `slots/${name}.toml`, path: '', message: 'bad' })) }
    },
    withoutSecrets: (text: string) => text
  } as unknown as ConfigService
  const swaps = new Swaps()
  const slotOf = (name: string): NamedSlotConfig => {
    const slot = configs.get(name)
    if (slot === undefined) throw slotNotFound(name)
    return slot
  }
  const modelId = (name: string): string => swaps.of(name)?.model ?? slotOf(name).model.default ?? 'model'
  const plans = {
    isElsewhere: ({ runtime }: NamedSlotConfig) => runtime === 'far',
    swaps,
    slot: slotOf,
    device: (slot: NamedSlotConfig) => slot.device ?? 'cpu',
    provider: (name: string) => slotOf(name) && provider,
    modelId,
    plan: (name: string, { port }: EnginePorts) => ({
      argv: { argv: [], provenance: [], removed: 0 }, env: {}, form: { kind: 'candidates', candidates: [] },
      configHash: hash(name, port), workers: workers(), headers: null
    }),
    prepare: (name: string, { port }: EnginePorts, generation: number) => prepared().then(() => ({
      provider,
      modelId: modelId(name),
      configHash: hash(name, port),
      workers: workers(),
      headers: null,
      image: null,
      rendered: new Map(),
      spec: {
        name,
        port,
        env: {},
        labels: {
          [LABEL_INSTANCE]: 'i',
          [LABEL_SLOT]: name,
          [LABEL_CONFIG]: hash(name, port),
          [LABEL_GENERATION]: String(generation),
          [LABEL_PLACE]: placeLabel({ slot: slotOf(name), device: slotOf(name).device ?? 'cpu' }),
          ...portLabels(port, {})
        },
        form: { kind: 'process', command: '/bin/true', args: [], workingDir: null, label: 'fake', bindHost: '127.0.0.1' }
      }
    }))
  } as unknown as SlotPlans
  const stateFiles = {
    read: async (name: string) => states.get(name) ?? null,
    note: (name: string, state: SlotStateFile) => { states.set(name, state) },
    remove: async (name: string) => { states.delete(name) },
    written: async () => {},
    flush: async () => {}
  } as unknown as SlotStateFiles
  const events: NewEvent[] = []
  const fleet = new SlotFleet({
    config,
    plans,
    models: {},
    runtime,
    clock,
    events: { emit: (event: NewEvent) => { events.push(event) } } as never,
    log,
    instance: 'i',
    stateFiles,
    probe: async (address, _check, signal) => {
      signal.throwIfAborted()
      return runtime.health(address.port)
    },
    client: () => { throw new Error('no engine of this harness is called') },
    assertMayRun: options.assertMayRun ?? nothing,
    ports: { customary: () => null, reserved: () => [], claim: async port => options.isTaken?.(port) === true ? null : () => {} },
    changed: nothing,
    heldGone: nothing,
    engineGone: nothing,
    watchRelease: () => Promise.resolve(() => Promise.resolve())
  })
  return {
    fleet,
    config,
    plans,
    states,
    events,
    configure: (patch, changed = {}) => {
      const previous = config.snapshot
      svc = { ...svc, slots: { ...svc.slots, ...changed } }
      const next = new Map(configs)
      for (const [name, input] of Object.entries(patch)) {
        if (input === null) next.delete(name)
        else next.set(name, { ...slotConfigSchema.parse(input), name, provider: provider.name })
      }
      configs = next
      fleet.follow(config.snapshot, previous)
    }
  }
}
