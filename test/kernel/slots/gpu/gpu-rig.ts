import type { SlotConfigInput, SlotLease } from '../../../../kernel/contract/index.js'
import { SlotGpuArbiter } from '../../../../kernel/slots/gpu/gpu-arbiter.js'
import type { GpuState, GpuStateFile } from '../../../../kernel/slots/gpu/gpu-arbiter-file.js'
import { gpuSlots } from '../../../../kernel/slots/gpu-slots.js'
import type { SlotOwner } from '../../../../kernel/slots/life/slot-owner.js'
import type { SlotStateFile } from '../../../../kernel/slots/life/kept/slot-state-file.js'
import type { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import type { FakeRuntime } from '../../../../kernel/testing/fake-runtime.js'
import { pause } from '../../../../kernel/async/waiting.js'
import { createFleetHarness, type FleetHarness } from '../fleet-harness.js'

/** What is left when a gateway dies: the files. */
export class GpuDisk {
  state: GpuState = { mode: 'llm', pinned: false, saved_llm_slots: [], last_img_activity: null }
  readonly slots = new Map<string, SlotStateFile>()
  /** How long one write takes, and whether it fails. */
  writeMs: () => number = () => 0
  writeFails: () => boolean = () => false
  writes = 0
}

export interface GpuRig extends FleetHarness {
  readonly arbiter: SlotGpuArbiter
  /** What `SlotManager.tryAcquire` does. */
  lend (name: string): SlotLease | null
  /** What `SlotManager` does: past the arbiter to the owner. */
  admitted<T> (name: string, signal: AbortSignal, work: (owner: SlotOwner) => Promise<T>): Promise<T>
  readonly lines: string[]
  /** From here on nothing of this run reaches the disk. */
  die (): void
}

export const gpuConfigs: Readonly<Record<string, SlotConfigInput>> = {
  chat: { device: 'gpu-rocm' },
  embed: { device: 'gpu-vulkan', type: 'embedding' },
  talk: { device: 'cpu' },
  img: { device: 'gpu-rocm', type: 'image', provider: 'fake', image: { idle_restore_minutes: 30 } }
}

/** One run of a gateway, as far as slots and their GPU go. Not started. */
export function gpuRig (
  clock: FakeClock, runtime: FakeRuntime, disk: GpuDisk, settings: Record<string, unknown> = {}, workers: number | null = null,
  unread: ReadonlySet<string> = new Set()
): GpuRig {
  let writing = Promise.resolve()
  let dead = false
  const file = {
    read: async () => disk.state,
    write: (state: GpuState) => {
      const written = writing.then(async () => {
        await pause(clock, disk.writeMs())
        if (disk.writeFails()) throw new Error('no space left on device')
        if (dead) return
        disk.state = state
        disk.writes++
      })
      writing = written.catch(() => undefined)
      return written
    },
    idle: () => writing
  } as unknown as GpuStateFile
  const lines: string[] = []
  const log = (_data: unknown, line?: string): void => { lines.push(line ?? '') }
  const harness = createFleetHarness({
    clock, runtime, slots: Object.keys(gpuConfigs).filter(name => !unread.has(name)), unread, configs: gpuConfigs,
    states: disk.slots, idleTimeoutS: 0, settings, workers: () => workers, assertMayRun: name => arbiter.assertAllows(name)
  })
  const { fleet, config, plans, events } = harness
  const arbiter: SlotGpuArbiter = new SlotGpuArbiter({
    config,
    clock,
    events: { emit: (event: (typeof events)[number]) => { events.push(event) } } as never,
    log: { debug: log, info: log, warn: log, error: log },
    file,
    slots: gpuSlots(fleet, plans, () => { throw new Error('no client here') }),
    gpus: () => []
  })
  return {
    ...harness,
    arbiter,
    lines,
    configure: (patch, settings) => {
      harness.configure(patch, settings)
      arbiter.follow()
    },
    lend: name => arbiter.lends(name) ? fleet.owner(name).tryAcquire() : null,
    admitted: async (name, signal, work) => {
      fleet.owner(name)
      for (let wait = arbiter.admit(name, signal); wait !== null; wait = arbiter.admit(name, signal)) await wait
      return await work(fleet.owner(name)).catch((error: unknown) => {
        if ((error as { code?: string }).code === 'slot.stopped') arbiter.assertAllows(name)
        throw error
      })
    },
    die: () => { dead = true }
  }
}

/** Slots whose engine runs at this moment. */
export function runningSlots (runtime: FakeRuntime): string[] {
  return Object.keys(gpuConfigs).filter(name => runtime.running(name) !== undefined)
}
