import fc from '../../property.js'
import t, { type Test } from 'tap'
import {
  gpuInfoSchema, type EventBus, type GpuInfo, type HardwareService, type Logger, type SlotConfigInput
} from '../../../kernel/contract/index.js'
import type { MemoryPool } from '../../../kernel/hardware/memory-pools.js'
import { evictionFor, MIN_QUIET_MS, shortages, type Tenant } from '../../../kernel/slots/schedule/pressure.js'
import { PressureEviction, SWEEP_MS } from '../../../kernel/slots/pressure-eviction.js'
import { newCore, type ScheduledSlot } from '../../../kernel/slots/schedule/scheduled-slot.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'
import { FakeRuntime, type EngineBehaviour } from '../../../kernel/testing/fake-runtime.js'
import { createFleetHarness, type FleetHarness } from './fleet-harness.js'
import { providerOf, slotOf } from './plan/launch-input.js'

const NOW = 10_000_000
const never = new AbortController().signal
const ram = (availableMb: number, totalMb = 64_000): MemoryPool => ({ kind: 'ram', gpu: '', totalMb, availableMb })
const gpuPool = (kind: 'vram' | 'gtt', availableMb: number, totalMb: number, gpu = '0000:03:00.0'): MemoryPool => ({ kind, gpu, totalMb, availableMb })
const gpus: readonly GpuInfo[] = [
  gpuInfoSchema.parse({ vendor: 'amd', index: 0, pci_id: '0000:03:00.0' }), gpuInfoSchema.parse({ vendor: 'amd', index: 1, pci_id: '0000:43:00.0' })
]

/** A slot whose engine was last used that long ago. */
function tenant (name: string, quietS: number, config: SlotConfigInput = {}, core: Partial<ScheduledSlot> = {}): Tenant {
  const slot = slotOf(config, name)
  return {
    slot,
    provider: providerOf({ children: [{ suffix: '-x', type: 'embedding', model: 'x', active: ({ npu }) => npu?.embed === true }] }),
    device: slot.device ?? 'cpu',
    core: { ...newCore(0), state: 'ready', lastUsedAt: NOW - quietS * 1000, ...core }
  }
}

t.test('a memory pool is short when it is below its floor', async t => {
  const cases: Array<[name: string, pools: MemoryPool[], floorMb: number, short: string[]]> = [
    ['enough', [ram(9_000)], 8_192, []],
    ['just enough', [ram(8_192)], 8_192, []],
    ['too little', [ram(8_191)], 8_192, ['ram 8192']],
    ['switched off', [ram(1), gpuPool('vram', 1, 16_000)], 0, []],
    ['nothing can be read', [], 8_192, []],
    ['a GPU keeps an eighth at most', [ram(9_000), gpuPool('vram', 2_100, 16_000)], 8_192, []],
    ['less than that', [ram(9_000), gpuPool('vram', 1_900, 16_000)], 8_192, ['vram 2000']],
    ['a large pool keeps what is configured', [gpuPool('gtt', 8_000, 96_000)], 8_192, ['gtt 8192']],
    ['the carve-out of an integrated GPU does not count', [gpuPool('vram', 0, 512)], 8_192, []],
    ['the one that lacks most comes first', [ram(8_000), gpuPool('gtt', 1_000, 96_000)], 8_192, ['gtt 8192', 'ram 8192']]
  ]
  for (const [name, pools, floorMb, short] of cases) {
    t.strictSame(shortages(pools, floorMb).map(({ pool, floorMb: floor }) => `${pool.kind} ${floor}`), short, name)
  }
})

t.test('short memory takes the least recently used slot that nothing leans on', async t => {
  const busy: Partial<ScheduledSlot> = { state: 'serving', inFlight: 1 }
  const cases: Array<[name: string, tenants: Tenant[], pools: MemoryPool[], who: string | null]> = [
    ['the least recently used', [tenant('new', 100), tenant('old', 900), tenant('middle', 400)], [ram(1)], 'old'],
    ['nobody when nothing is short', [tenant('old', 900)], [ram(60_000)], null],
    ['never a busy one', [tenant('old', 900, {}, busy), tenant('new', 100)], [ram(1)], 'new'],
    ['nor one that is waited for', [tenant('old', 900, {}, { waitingReady: 1 }), tenant('older', 901, {}, { waitingWorkers: 1 })], [ram(1)], null],
    ['nor a pinned one', [tenant('old', 900, { pinned: true }), tenant('new', 100)], [ram(1)], 'new'],
    ['nor one that the gateway leans on', ['agent', 'utility', 'npu'].map(name => tenant(name, 900)), [ram(1)], null],
    ['nor one whose process serves others', [tenant('trio', 900, { npu: { embed: true } })], [ram(1)], null],
    ['which is switched off', [tenant('trio', 900, { npu: { embed: false } })], [ram(1)], 'trio'],
    ['nor an image engine, whose time on the GPU is for the arbiter to say', [tenant('img', 900, { type: 'image', device: 'gpu-rocm' })], [ram(1)], null],
    ['nor one that is on its way', [tenant('a', 900, {}, { state: 'warming', op: 'launch' }), tenant('b', 900, {}, { state: 'ready', op: 'stop' })], [ram(1)], null],
    ['nor one without an engine', [tenant('a', 900, {}, { state: 'offline' }), tenant('b', 900, {}, { state: 'error' })], [ram(1)], null],
    ['nor one that was used a moment ago', [tenant('a', 29)], [ram(1)], null],
    ['one that came up and was not used yet', [tenant('a', 900, {}, { readyAt: NOW - 10_000 })], [ram(1)], null],
    ['an idle one', [tenant('a', 900, {}, { state: 'idle' })], [ram(1)], 'a'],
    ['for want of video memory one on the GPU', [tenant('cpu', 900), tenant('gpu', 100, { device: 'gpu-vulkan' })], [gpuPool('vram', 1, 16_000)], 'gpu'],
    ['and on that GPU', [tenant('other', 900, { device: 'gpu-rocm', gpu_index: 1 }), tenant('this', 100, { device: 'gpu-rocm', gpu_index: 0 })],
      [gpuPool('vram', 1, 16_000)], 'this'],
    ['no NVIDIA slot for want of an AMD card\'s memory', [tenant('nv', 900, { device: 'gpu-cuda' })], [gpuPool('vram', 1, 16_000)], null],
    ['the next shortage, when nobody helps the first', [tenant('cpu', 900)], [gpuPool('gtt', 1, 96_000), ram(8_000)], 'cpu']
  ]
  for (const [name, tenants, pools, who] of cases) {
    t.equal(evictionFor(shortages(pools, 8_192), tenants, gpus, NOW)?.name ?? null, who, name)
  }
})

t.test('whoever goes was quiet, unpinned and idle, and nobody who could have gone was quiet for longer', async t => {
  const any = fc.record({
    quietS: fc.integer({ min: 0, max: 1_000 }), pinned: fc.boolean(), inFlight: fc.integer({ min: 0, max: 2 }), name: fc.constantFrom('agent', 'a', 'b', 'c')
  })
  fc.assert(fc.property(fc.array(any, { maxLength: 8 }), all => {
    const tenants = all.map(({ quietS, pinned, inFlight, name }, i) =>
      tenant(name === 'agent' ? name : `${name}${i}`, quietS, { pinned }, { inFlight, state: inFlight > 0 ? 'serving' : 'ready' }))
    const may = tenants.filter(({ slot, core }) => slot.name !== 'agent' && !slot.pinned && core.inFlight === 0 && NOW - core.lastUsedAt! >= MIN_QUIET_MS)
    const went = evictionFor(shortages([ram(1)], 8_192), tenants, [], NOW)
    const oldest = Math.min(...may.map(({ core }) => core.lastUsedAt!))
    if (went === null ? may.length > 0 : may.find(({ slot }) => slot.name === went.name)?.core.lastUsedAt !== oldest) throw new Error('the wrong one')
  }))
  t.pass('whatever there was')
})

interface Rig extends FleetHarness {
  readonly clock: FakeClock
  readonly runtime: FakeRuntime
  readonly pressure: PressureEviction
  /** MiB of the host that are left. */
  left: number
  readonly reads: number[]
  /** Brings slots up one after the other, ten seconds between them. */
  up (...names: string[]): Promise<void>
}

/** Four slots, and a host that has 3000 MiB more for every engine that is gone. */
async function rig (
  t: Test, behave: (slot: string) => EngineBehaviour = () => ({}), settings: Record<string, unknown> = {}
): Promise<Rig> {
  const clock = new FakeClock()
  const runtime = new FakeRuntime(clock, behave)
  const harness = createFleetHarness({ clock, runtime, slots: ['a', 'b', 'c', 'd'], idleTimeoutS: 0, settings })
  const starting = harness.fleet.start()
  await clock.advance(10)
  await starting
  const reads: number[] = []
  const it: Rig = Object.assign(harness, {
    clock,
    runtime,
    reads,
    left: 20_000,
    pressure: new PressureEviction({
      ...harness,
      hardware: { info: { gpus: [] } } as unknown as HardwareService,
      clock,
      events: { emit: (event: FleetHarness['events'][number]) => { harness.events.push(event) } } as EventBus,
      log: { warn: () => {} } as unknown as Logger,
      readPools: async () => {
        const gone = 4 - [...runtime.engines.values()].filter(({ state }) => state === 'running').length
        reads.push(it.left + gone * 3_000)
        return [ram(reads.at(-1)!)]
      }
    }),
    up: async (...names: string[]) => {
      for (const name of names) {
        const loading = harness.fleet.owner(name).load(never)
        await clock.advance(10_000)
        await loading
      }
    }
  })
  it.pressure.start()
  t.teardown(async () => {
    await it.pressure.close()
    const closing = harness.fleet.close(() => false)
    for (let i = 0; i < 10; i++) await clock.advance(60_000)
    await closing
    if (clock.pending > 0) throw new Error('a timer is left')
  })
  return it
}

const states = ({ fleet }: Rig): string => ['a', 'b', 'c', 'd'].map(name => fleet.status(name).state).join(' ')
const evicted = ({ events }: Rig): unknown[] => events.filter(({ type }) => type === 'slot.evicted').map(({ data }) => data?.slot)

t.test('slots go one at a time, the least recently used first, until memory has recovered', async t => {
  const it = await rig(t, () => ({ stopMs: 500 }))
  await it.up('c', 'a', 'b', 'd')
  await it.clock.advance(SWEEP_MS * 2)
  t.equal(states(it), 'ready ready ready ready', 'while there is enough')
  it.left = 3_000
  await it.clock.advance(SWEEP_MS)
  await it.clock.advance(2_000)
  t.equal(states(it), 'offline ready offline ready')
  t.strictSame(evicted(it), ['c', 'a'])
  t.strictSame(it.reads.slice(-3), [3_000, 6_000, 9_000], 'each time it looked when the memory was back')
  t.match(it.fleet.status('c').message, /unloaded because memory ran low: 3000 MiB left, 8192 wanted/)
  t.match(it.events.find(({ type }) => type === 'slot.evicted'), {
    severity: 'warn', source: 'slot:c', data: { pool: 'ram', available_mb: 3_000, floor_mb: 8_192 }
  })
  const lease = it.fleet.owner('c').acquire(never)
  await it.clock.advance(10)
  ;(await lease).release()
  t.equal(it.fleet.status('c').state, 'ready', 'the next request brings it back')
})

t.test('pinned, busy and leaned-on slots stay, however little is left, and the setting counts at once', async t => {
  const it = await rig(t)
  await it.up('a', 'b', 'c', 'd')
  it.configure({ a: { port: 7001, pinned: true } })
  const lease = it.fleet.owner('b').tryAcquire()!
  it.left = 0
  await it.clock.advance(SWEEP_MS * 3)
  t.equal(states(it), 'ready serving offline offline')
  lease.release()
  await it.clock.advance(SWEEP_MS - 1_000)
  t.equal(it.fleet.status('b').state, 'ready', 'right after its last request')
  await it.clock.advance(SWEEP_MS + 1_000)
  t.equal(states(it), 'ready offline offline offline')
  const off = await rig(t, () => ({}), { evict_pressure_mb: 0 })
  await off.up('a')
  off.left = 0
  await off.clock.advance(SWEEP_MS * 3)
  t.equal(off.fleet.status('a').state, 'ready', '0 is off')
})

t.test('an idle slot whose engine is on another machine stays: its memory is not this one\'s', async t => {
  const it = await rig(t)
  it.configure({ a: { port: 7001, runtime: 'far' } })
  await it.up('a', 'b', 'c', 'd')
  it.left = 0
  await it.clock.advance(SWEEP_MS * 6)
  t.equal(states(it), 'ready offline offline offline')
  t.strictSame(evicted(it), ['b', 'c', 'd'], 'though it was used before them')
})

t.test('one that gets busy in the last moment, or resists, is passed over', async t => {
  let leave = (): void => {}
  const it = await rig(t, slot => slot === 'a' ? { removeFails: 100 } : {})
  await it.up('a', 'b', 'c', 'd')
  const owner = it.fleet.owner('b')
  const evict = owner.evict.bind(owner)
  owner.evict = reason => {
    const lease = owner.tryAcquire()!
    leave = () => lease.release()
    return evict(reason)
  }
  it.left = 1_000
  await it.clock.advance(SWEEP_MS * 2)
  t.equal(states(it), 'error serving offline offline')
  t.strictSame(evicted(it), ['c', 'd'])
  leave()
})

t.test('it ends with the gateway, also in the middle of a sweep', async t => {
  const it = await rig(t, () => ({ stopMs: 2_000 }))
  await it.up('a', 'b')
  await it.clock.advance(SWEEP_MS)
  it.left = -10_000
  await it.clock.advance(10_500)
  t.equal(states(it), 'unloading ready offline offline')
  it.pressure.halt()
  await it.clock.advance(10_000)
  await it.pressure.close()
  await settle()
  t.equal(states(it), 'offline ready offline offline', 'what was begun is ended, and no more')
  const reads = it.reads.length
  await it.clock.advance(SWEEP_MS * 5)
  t.equal(it.reads.length, reads)
})
