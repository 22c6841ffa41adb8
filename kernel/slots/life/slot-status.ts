import type { HeldEngine, SlotFailure, SlotStatus } from '../../contract/index.js'
import type { WallTime } from '../../state/wall-time.js'
import type { CoreFailure, ScheduledSlot } from '../schedule/scheduled-slot.js'
import { isServing } from '../schedule/slot-machine.js'
import { heldMessage } from './held-engines.js'

/** What of a slot's status its core does not know. */
export type StatusFacts = Pick<SlotStatus, 'name' | 'modelId' | 'port' | 'ports' | 'configDrift'>

/** A slot's life as others see it: its times are wall time here. */
export function slotStatus (core: ScheduledSlot, held: HeldEngine | null, facts: StatusFacts, wall: WallTime): SlotStatus {
  const status = ownStatus(core, facts, wall)
  if (held === null || core.engine !== null) return status
  return {
    ...status,
    state: 'error',
    message: heldMessage(held),
    port: held.address?.port ?? status.port,
    engineLabel: held.label,
    held: true
  }
}

function ownStatus (core: ScheduledSlot, facts: StatusFacts, wall: WallTime): SlotStatus {
  const { name, modelId, port, ports, configDrift } = facts
  return {
    name,
    state: core.state,
    since: wall.of(core.since),
    message: core.message,
    generation: core.generation,
    modelId,
    port,
    ports,
    address: core.engine?.address ?? null,
    engineId: core.engine?.id ?? null,
    engineName: core.engine?.name ?? null,
    engineLabel: core.engine?.label ?? null,
    inFlight: core.inFlight,
    waiting: core.waitingWorkers + core.waitingLeases + core.waitingReady,
    workers: core.engine?.workers ?? null,
    lastUsedAt: core.lastUsedAt === null ? null : wall.of(core.lastUsedAt),
    startedAt: core.readyAt === null ? null : wall.of(core.readyAt),
    adopted: core.engine?.adopted ?? false,
    healthOk: isServing(core.state) ? true : core.state === 'error' ? false : null,
    configDrift,
    held: false,
    failure: core.state === 'error' ? shownFailure(core.failure, wall) : null,
    progress: core.op === 'launch' ? core.progress : null
  }
}

function shownFailure (failure: CoreFailure | null, wall: WallTime): SlotFailure | null {
  return failure === null ? null : { ...failure, retryAt: wall.of(failure.retryAt) }
}
