import { canLend, canServe, freeWorkers } from './leases.js'
import type { ScheduledSlot, SlotInput, Wants } from './scheduled-slot.js'
import { asleep, coolingDown, queueFull } from './slot-refusals.js'
import { anybodyWaits, beginStop, enter, grantAll, lend, queue, refuseAll, set, type Step } from './slot-step.js'

/** For how long after a load that was ended with its last chore the next one goes on without those who asked. */
const ABANDONED_MS = 10 * 60_000

export function demand (step: Step, { wants, bound, joins = false, low = false }: Extract<SlotInput, { type: 'demand' }>, now: number): void {
  const { core } = step
  if (canLend(core, wants)) {
    if (wants !== 'ready') lend(step, 1, wants === 'lease' ? 1 : 0, now)
    step.answer = 'granted'
    return
  }
  const refusal = canServe(core) ? null : coolingDown(core, now) ?? (joins && !core.wanted && core.state !== 'error' ? asleep(core) : null)
  if (refusal !== null) step.answer = refusal
  else if (wants !== 'ready' && core.waitingWorkers + core.waitingLeases >= bound) step.answer = queueFull(core)
  else if (canServe(core)) standInLine(step, wants)
  else wait(step, wants, low && !wasAbandoned(core, now))
}

/** The slot is up, and all its workers are taken or its engine is being asked whether it is still there. */
function standInLine (step: Step, wants: Wants): void {
  queue(step, wants, 1)
  step.answer = 'wait'
}

export function load (step: Step): void {
  set(step, { failure: null })
  if (canServe(step.core)) {
    step.answer = 'granted'
    return
  }
  wait(step, 'ready')
}

export function wait (step: Step, wants: Wants, low = false): void {
  const { core } = step
  const isFirst = !core.wanted && core.op !== 'launch'
  set(step, { wanted: true, stuck: false, chore: low && (isFirst || core.chore) })
  queue(step, wants, 1)
  step.answer = 'wait'
}

/** A program that gives up sooner than the slot comes up and asks again must get its answer some time. */
function wasAbandoned ({ abandonedAt }: ScheduledSlot, now: number): boolean {
  return abandonedAt !== null && now - abandonedAt < ABANDONED_MS
}

/** A load that only chores asked for ends with the last of them; any other goes on. */
export function leave (step: Step, wants: Wants, now: number): void {
  queue(step, wants, -1)
  const { core } = step
  if (!core.chore || anybodyWaits(core) || !core.wanted) return
  set(step, { wanted: false, chore: false, abandonedAt: now })
  if (core.op === 'launch') beginStop(step, true)
}

export function release (step: Step, { generation, light, broken = false }: Extract<SlotInput, { type: 'release' }>, now: number): void {
  const { core } = step
  if (generation !== core.generation || core.inFlight === 0) return
  set(step, { inFlight: core.inFlight - 1, light: light ? core.light - 1 : core.light, lastUsedAt: now })
  // an engine that dies breaks its connections before its end is reported
  if (broken && !core.suspect && core.engine !== null && canServe(core)) {
    set(step, { suspect: true })
    step.effects.push({ type: 'probe', engine: core.engine, generation })
  }
  if (canServe(step.core) && !step.core.suspect) letWorkersIn(step, now)
  if (step.core.inFlight === 0 && core.state === 'serving') enter(step, 'ready', '', now)
}

export function answers (step: Step, generation: number, now: number): void {
  if (generation !== step.core.generation || !step.core.suspect) return
  set(step, { suspect: false })
  if (canServe(step.core)) grantAll(step, now)
}

/** As many as there are free workers for, in the order they came. */
function letWorkersIn (step: Step, now: number): void {
  const workers = Math.min(step.core.waitingWorkers, freeWorkers(step.core))
  if (workers <= 0) return
  set(step, { waitingWorkers: step.core.waitingWorkers - workers })
  lend(step, workers, 0, now)
  step.effects.push({ type: 'grant', workers, rest: false })
}

export function turnAway (step: Step): void {
  refuseAll(step, { code: 'slot.stopped', message: 'was unloaded while the request waited', retryAfterS: 1, cause: 'unloaded', logTail: [] })
}
