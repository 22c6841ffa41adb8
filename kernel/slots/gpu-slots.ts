import type { EngineAddress, EngineClient } from '../contract/index.js'
import type { GpuSlots } from './gpu/arbitrated-slots.js'
import { isBusy } from './schedule/leases.js'
import type { ScheduledSlot } from './schedule/scheduled-slot.js'
import type { SlotFleet } from './life/slot-fleet.js'
import { isServing } from './schedule/slot-machine.js'
import type { SlotPlans } from './plan/slot-plans.js'

/**
 * The slots as the GPU arbiter sees them: straight at their owners, past its own gate.
 * @param turnedAway told of each slot, for those who wait elsewhere than with its owner
 */
export function gpuSlots (
  fleet: SlotFleet, plans: SlotPlans, clientOf: (address: EngineAddress) => EngineClient,
  turnedAway: (name: string) => void = () => {}
): GpuSlots {
  return {
    device: slot => plans.device(slot),
    isElsewhere: slot => plans.isElsewhere(slot),
    launchedAs: name => fleet.launchedAs(name) ?? fleet.held.place(name),
    held: () => fleet.held.places(),
    isUp: name => hasEngine(fleet.core(name)) || fleet.held.place(name) !== null,
    isBusy: name => {
      const core = fleet.core(name)
      return core !== null && isBusy(core)
    },
    lastUsedAt: name => fleet.core(name)?.lastUsedAt ?? null,
    turnAway: name => {
      if (fleet.core(name) !== null) fleet.owner(name).turnAway()
      turnedAway(name)
    },
    stop: async (name, force, drainMs) => {
      if (fleet.core(name) !== null) await fleet.owner(name).unload(force, drainMs)
      await fleet.held.stop(name)
    },
    departed: () => fleet.departed(),
    start: (name, signal) => fleet.owner(name).ensureReady(signal),
    engineBusy: async (name, signal) => {
      const core = fleet.core(name)
      if (core === null || core.engine === null || !isServing(core.state)) return false
      const metrics = plans.provider(name)?.metrics
      if (metrics === undefined) return false
      try {
        const { requestsProcessing = 0 } = await metrics(clientOf(core.engine.address), signal)
        return requestsProcessing > 0
      } catch {
        // an engine that cannot tell is not kept for it
        return false
      }
    }
  }
}

function hasEngine (core: ScheduledSlot | null): boolean {
  return core !== null && (core.engine !== null || core.op !== null || core.wanted)
}
