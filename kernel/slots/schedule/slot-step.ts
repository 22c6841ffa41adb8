import { backoffMs, retryPauseMs } from '../../async/backoff.js'
import { freeWorkers } from './leases.js'
import type { CoreFailure, DemandAnswer, Refusal, ScheduledSlot, SlotEffect, Wants } from './scheduled-slot.js'

/** One decision under way: the slot as it will be, and what has to be done for it. */
export type Step = { core: ScheduledSlot, effects: SlotEffect[], answer: DemandAnswer | null }

export function fail (step: Step, failure: Omit<CoreFailure, 'retryAt'>, now: number): void {
  set(step, { failure: { ...failure, retryAt: failure.kind === 'heals' ? now + backoffMs(failure.attempts) : now }, readyAt: null })
  enter(step, 'error', failure.message, now)
}

/** Its engine could not be removed, and is to go again after a pause: the slot may never be asked for again. */
export function resist (step: Step, now: number): void {
  const resisted = step.core.resisted + 1
  set(step, { stuck: true, resisted, stopAgainAt: now + retryPauseMs(resisted) })
}

export function refuseAll (step: Step, refusal: Refusal): void {
  if (!anybodyWaits(step.core)) return
  set(step, { waitingWorkers: 0, waitingLeases: 0, waitingReady: 0 })
  step.effects.push({ type: 'refuse', refusal })
}

export function anybodyWaits (core: ScheduledSlot): boolean {
  return core.waitingWorkers > 0 || core.waitingLeases > 0 || core.waitingReady > 0
}

export function enter (step: Step, state: ScheduledSlot['state'], message: string, now: number): void {
  set(step, { state, message, since: step.core.state === state ? step.core.since : now })
}

export function set (step: Step, patch: Partial<ScheduledSlot>): void {
  step.core = { ...step.core, ...patch }
}

export function lend (step: Step, count: number, light: number, now: number): void {
  set(step, { inFlight: step.core.inFlight + count, light: step.core.light + light, lastUsedAt: now })
  if (step.core.state !== 'serving') enter(step, 'serving', '', now)
}

/** The slot came up: all are let in, except those for whom there is no worker yet. */
export function grantAll (step: Step, now: number): void {
  const { waitingLeases, waitingWorkers } = step.core
  if (!anybodyWaits(step.core)) return
  const workers = Math.min(waitingWorkers, freeWorkers(step.core))
  set(step, { waitingWorkers: waitingWorkers - workers, waitingLeases: 0, waitingReady: 0 })
  if (waitingLeases + workers > 0) lend(step, waitingLeases + workers, waitingLeases, now)
  step.effects.push({ type: 'grant', workers, rest: true })
}

export function queue (step: Step, wants: Wants, change: 1 | -1): void {
  const counter = counters[wants]
  set(step, { [counter]: Math.max(0, step.core[counter] + change) })
}

const counters = { worker: 'waitingWorkers', lease: 'waitingLeases', ready: 'waitingReady' } as const

export function beginStop (step: Step, force: boolean): void {
  const { core } = step
  if (core.stopping === 'now') return
  if (force || core.op === 'launch' || core.inFlight === 0) return set(step, { stopping: 'now' })
  if (core.stopping === 'no') {
    set(step, { stopping: 'drain' })
    step.effects.push({ type: 'arm-drain' })
  }
}
