import type { ScheduledSlot, Wants } from './scheduled-slot.js'
import { isServing } from './slot-machine.js'

/** Whether a request may go to the engine at this moment. */
export function canServe (core: ScheduledSlot): boolean {
  return isServing(core.state) && core.op === null && core.stopping === 'no'
}

/**
 * Whether it may go there at once. A request that needs a worker waits for a free one behind those that came before;
 * none is sent to an engine whose connection broke and that has not been heard of since.
 */
export function canLend (core: ScheduledSlot, wants: Wants): boolean {
  if (!canServe(core)) return false
  if (wants === 'ready') return true
  return !core.suspect && (wants === 'lease' || (core.waitingWorkers === 0 && freeWorkers(core) > 0))
}

/**
 * `demand` of a lease that can be had, for an engine that is busy already: the same core that `decide` gives, without
 * the bookkeeping around it. Null when the case is not that plain.
 */
export function lendAnother (core: ScheduledSlot, light: boolean, now: number): ScheduledSlot | null {
  if (core.state !== 'serving' || !canLend(core, light ? 'lease' : 'worker')) return null
  return withInFlight(core, core.inFlight + 1, light ? core.light + 1 : core.light, now)
}

/** `release` that is not the last one and that no request waits for, in the same way. */
export function takeOneBack (core: ScheduledSlot, generation: number, light: boolean, now: number): ScheduledSlot | null {
  if (core.state !== 'serving' || core.inFlight < 2 || core.waitingWorkers > 0 || generation !== core.generation || !canServe(core)) return null
  return withInFlight(core, core.inFlight - 1, light ? core.light - 1 : core.light, now)
}

/** Has an engine, or is getting one. */
export function isLive (core: ScheduledSlot | null): boolean {
  return core !== null && (core.engine !== null || core.op === 'launch')
}

/** Works, or is waited for. */
export function isBusy ({ inFlight, waitingWorkers, waitingLeases, waitingReady }: ScheduledSlot): boolean {
  return inFlight > 0 || waitingWorkers > 0 || waitingLeases > 0 || waitingReady > 0
}

/** The last request; an engine that had none counts from when it came up, whenever an earlier one was used. */
export function usedAt ({ lastUsedAt, readyAt, since }: Pick<ScheduledSlot, 'lastUsedAt' | 'readyAt' | 'since'>): number {
  return Math.max(lastUsedAt ?? -Infinity, readyAt ?? since)
}

/** Infinity where the engine takes as many requests as it is given. */
export function freeWorkers ({ engine, inFlight, light }: ScheduledSlot): number {
  const workers = engine?.workers ?? null
  return workers === null ? Infinity : workers - (inFlight - light)
}

/** Key by key: copying with a spread is several times slower, and this happens twice on every request. */
function withInFlight (core: ScheduledSlot, inFlight: number, light: number, lastUsedAt: number): ScheduledSlot {
  return {
    state: core.state,
    message: core.message,
    since: core.since,
    generation: core.generation,
    engine: core.engine,
    op: core.op,
    aborting: core.aborting,
    wanted: core.wanted,
    stopping: core.stopping,
    stuck: core.stuck,
    resisted: core.resisted,
    stopAgainAt: core.stopAgainAt,
    suspect: core.suspect,
    chore: core.chore,
    abandonedAt: core.abandonedAt,
    inFlight,
    light,
    waitingWorkers: core.waitingWorkers,
    waitingLeases: core.waitingLeases,
    waitingReady: core.waitingReady,
    failure: core.failure,
    progress: core.progress,
    readyAt: core.readyAt,
    lastUsedAt
  }
}
