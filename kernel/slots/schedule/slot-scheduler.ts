import { backoffMs, crashAttempts } from '../../async/backoff.js'
import type {
  CoreFailure, Decision, DemandAnswer, Engine, LaunchFailure, Refusal, ScheduledSlot, SlotEffect, SlotInput, Wants
} from './scheduled-slot.js'
import { canLend, canServe, freeWorkers, isBusy } from './leases.js'
import { isServing } from './slot-machine.js'
import { asleep, coolingDown, failedLoad, queueFull } from './slot-refusals.js'

/** For how long after a load that was ended with its last chore the next one goes on without those who asked. */
const ABANDONED_MS = 10 * 60_000

type Step = { core: ScheduledSlot, effects: SlotEffect[], answer: DemandAnswer | null }

/**
 * Every decision about one slot's life, as a pure function: no clock, no log, no I/O. `slot-owner.ts` feeds it
 * one input at a time and runs the effects in order. See README.md of this folder for the picture.
 */
export function decide (before: ScheduledSlot, input: SlotInput, now: number): Decision {
  const step: Step = { core: before, effects: [], answer: null }
  apply(step, input, now)
  reconcile(step, now)
  return step
}

function apply (step: Step, input: SlotInput, now: number): void {
  switch (input.type) {
    case 'demand': return demand(step, input, now)
    case 'load': return load(step)
    case 'leave': return leave(step, input.wants, now)
    case 'release': return release(step, input, now)
    case 'answers': return answers(step, input.generation, now)
    case 'turn-away': return turnAway(step)
    case 'unload': return unload(step, input.force, now)
    case 'restart': return restart(step, input.force)
    case 'surroundings': return surroundings(step)
    case 'evict': return evict(step, input.reason)
    case 'soft-idle': return softIdle(step, now)
    case 'drain-due': return step.core.stopping === 'drain' ? set(step, { stopping: 'now' }) : undefined
    case 'adopt': return adopt(step)
    case 'inherit': return inherit(step, input.engine, input.message, now)
    case 'phase': return phase(step, input, now)
    case 'launched': return launched(step, input.generation, input.engine, now)
    case 'launch-failed': return launchFailed(step, input.generation, input.failure, now)
    case 'exited': return exited(step, input.engineId, input.exitCode, now)
    case 'unhealthy': return unhealthy(step, input.generation, input.message, now)
    case 'stopped': return stopped(step, input.logTail, now)
    case 'stop-failed': return stopFailed(step, input.message, now)
  }
}

/** Starts the operation that brings the slot to where it should be, if none runs. */
function reconcile (step: Step, now: number): void {
  const { core } = step
  if (core.op === 'launch') {
    if (!core.aborting && core.stopping !== 'no') {
      set(step, { aborting: true })
      enter(step, 'unloading', 'the load is being cancelled', now)
      step.effects.push({ type: 'abort-launch' })
    }
    return
  }
  if (core.op !== null || core.stuck) return
  if (core.engine !== null) return stopIfDue(step, core.engine, now)
  if (core.wanted) {
    set(step, { op: 'launch', aborting: false, wanted: true, generation: core.generation + 1, stopping: 'no' })
    step.effects.push({ type: 'launch', generation: core.generation + 1 })
  }
}

function stopIfDue (step: Step, engine: Engine, now: number): void {
  const { core } = step
  const dead = !isServing(core.state)
  const due = core.stopping === 'now' || (core.stopping === 'drain' && core.inFlight === 0)
  if (!dead && !due) return
  // leases of an engine that is going are void: their release carries an old generation
  set(step, { op: 'stop', inFlight: 0, light: 0, generation: core.generation + 1 })
  if (!dead) enter(step, 'unloading', core.wanted ? 'restarting' : core.message, now)
  step.effects.push({ type: 'disarm-drain' })
  if (core.inFlight > 0) step.effects.push({ type: 'revoke', why: core.wanted ? 'restarted' : 'unloaded', message: '' })
  step.effects.push({ type: 'stop', engine, crashed: dead && core.state === 'error' })
}

function demand (step: Step, { wants, bound, joins = false, low = false }: Extract<SlotInput, { type: 'demand' }>, now: number): void {
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

function load (step: Step): void {
  set(step, { failure: null })
  if (canServe(step.core)) {
    step.answer = 'granted'
    return
  }
  wait(step, 'ready')
}

function wait (step: Step, wants: Wants, low = false): void {
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
function leave (step: Step, wants: Wants, now: number): void {
  queue(step, wants, -1)
  const { core } = step
  if (!core.chore || anybodyWaits(core) || !core.wanted) return
  set(step, { wanted: false, chore: false, abandonedAt: now })
  if (core.op === 'launch') beginStop(step, true)
}

function queue (step: Step, wants: Wants, change: 1 | -1): void {
  const counter = counters[wants]
  set(step, { [counter]: Math.max(0, step.core[counter] + change) })
}

const counters = { worker: 'waitingWorkers', lease: 'waitingLeases', ready: 'waitingReady' } as const

function release (step: Step, { generation, light, broken = false }: Extract<SlotInput, { type: 'release' }>, now: number): void {
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

function answers (step: Step, generation: number, now: number): void {
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

function turnAway (step: Step): void {
  refuseAll(step, { code: 'slot.stopped', message: 'was unloaded while the request waited', retryAfterS: 1, cause: 'unloaded', logTail: [] })
}

function unload (step: Step, force: boolean, now: number): void {
  const { core } = step
  set(step, { wanted: false, stuck: false, failure: null })
  turnAway(step)
  if (core.op === 'launch' || isServing(core.state)) return beginStop(step, force)
  if (core.state === 'error' && core.op === null) enter(step, 'offline', '', now)
}

function restart (step: Step, force: boolean): void {
  const { core } = step
  set(step, { failure: null, stuck: false })
  if (core.op === 'launch' || isServing(core.state)) beginStop(step, force)
  wait(step, 'ready')
}

function beginStop (step: Step, force: boolean): void {
  const { core } = step
  if (core.stopping === 'now') return
  if (force || core.op === 'launch' || core.inFlight === 0) return set(step, { stopping: 'now' })
  if (core.stopping === 'no') {
    set(step, { stopping: 'drain' })
    step.effects.push({ type: 'arm-drain' })
  }
}

/** What stood in the way may be gone: the next request finds out. */
function surroundings (step: Step): void {
  const { failure } = step.core
  if (failure?.kind === 'stays') set(step, { failure: { ...failure, kind: 'unfit' } })
}

function evict (step: Step, reason: string): void {
  const { core } = step
  if (isBusy(core) || !canServe(core)) return
  set(step, { stopping: 'now', wanted: false, message: reason })
}

function softIdle (step: Step, now: number): void {
  const { core } = step
  if (core.state === 'ready' && !isBusy(core) && canServe(core)) enter(step, 'idle', 'no request for a while', now)
}

function adopt (step: Step): void {
  const { core } = step
  if (core.op !== null || core.engine !== null) return
  set(step, { op: 'launch', aborting: false, wanted: true, generation: core.generation + 1, stopping: 'no' })
  step.effects.push({ type: 'adopt', generation: core.generation + 1 })
}

function inherit (step: Step, engine: Engine, message: string, now: number): void {
  if (step.core.op !== null || step.core.engine !== null) return
  set(step, { engine, stuck: true })
  fail(step, { code: 'runtime.failed', message, kind: 'heals', attempts: 1, logTail: [] }, now)
}

function phase (step: Step, input: Extract<SlotInput, { type: 'phase' }>, now: number): void {
  const { core } = step
  if (core.op !== 'launch' || core.aborting || input.generation !== core.generation) return
  enter(step, input.phase, input.message, now)
  set(step, { progress: input.progress ?? null })
}

function launched (step: Step, generation: number, engine: Engine, now: number): void {
  const { core } = step
  if (core.op !== 'launch' || generation !== core.generation) return
  set(step, { op: null, engine, suspect: false, chore: false, readyAt: now, lastUsedAt: core.lastUsedAt ?? now, wanted: false })
  if (core.aborting) {
    // it came up in the very moment it was told to stop: `unloading` still stands, so it is stopped below
    set(step, { aborting: false, stopping: 'now', wanted: anybodyWaits(step.core) })
    return
  }
  enter(step, 'ready', engine.adopted ? 'adopted a running engine' : '', now)
  grantAll(step, now)
}

function launchFailed (step: Step, generation: number, failure: LaunchFailure, now: number): void {
  const { core } = step
  if (core.op !== 'launch' || generation !== core.generation) return
  const quiet = core.aborting || failure.quiet
  set(step, {
    op: null,
    aborting: false,
    stopping: 'no',
    engine: failure.leftover,
    stuck: failure.leftover !== null,
    wanted: quiet && anybodyWaits(core)
  })
  if (quiet && failure.leftover === null) return enter(step, 'offline', core.aborting ? '' : failure.message, now)
  const { code, message, kind, logTail } = failure
  fail(step, { code, message, kind, attempts: kind === 'heals' ? (core.failure?.attempts ?? 0) + 1 : 0, logTail }, now)
  refuseAll(step, failedLoad(step.core, now))
}

function exited (step: Step, engineId: string, exitCode: number | null, now: number): void {
  const { core } = step
  if (core.engine?.id !== engineId || core.op !== null || !isServing(core.state)) return
  gone(step, exitCode === 0 ? null : `the engine exited${exitCode === null ? '' : ` with code ${exitCode}`}`, now)
}

function unhealthy (step: Step, generation: number, message: string, now: number): void {
  const { core } = step
  if (core.generation !== generation || core.op !== null || !isServing(core.state)) return
  // its connections stand and nothing comes on them any more
  if (core.inFlight > 0) step.effects.push({ type: 'revoke', why: 'lost', message })
  gone(step, message, now)
  // it went under its requests: their clients ask again
  if (core.inFlight > 0 && step.core.state === 'error' && coolingDown(step.core, now) === null) set(step, { wanted: true })
}

/** The engine is gone from under its slot; null when it stopped cleanly. */
function gone (step: Step, message: string | null, now: number): void {
  const { core } = step
  const asked = core.stopping !== 'no'
  set(step, { inFlight: 0, light: 0, generation: core.generation + 1, stopping: 'no', wanted: anybodyWaits(core) })
  step.effects.push({ type: 'disarm-drain' })
  if (message === null || asked) return enter(step, 'offline', 'the engine exited', now)
  const attempts = crashAttempts(core.failure, core.readyAt, now)
  fail(step, { code: 'slot.load_failed', message, kind: 'heals', attempts, logTail: [] }, now)
  const refusal = coolingDown(step.core, now)
  if (refusal === null) return
  // those who stood in line are told what newcomers are told: one of them may be what the engine died of
  set(step, { wanted: false })
  refuseAll(step, refusal)
}

function stopped (step: Step, logTail: readonly string[], now: number): void {
  const { core } = step
  if (core.op !== 'stop') return
  set(step, { op: null, engine: null, stopping: 'no', readyAt: null })
  if (core.state === 'error' && core.failure !== null) {
    set(step, { failure: { ...core.failure, logTail: logTail.length > 0 ? logTail : core.failure.logTail } })
    return
  }
  set(step, { failure: null })
  enter(step, 'offline', core.wanted ? 'restarting' : core.message, now)
}

function stopFailed (step: Step, message: string, now: number): void {
  const { core } = step
  if (core.op !== 'stop') return
  set(step, { op: null, stopping: 'no', stuck: true, wanted: false })
  fail(step, {
    code: 'runtime.failed', message, kind: 'heals', attempts: (core.failure?.attempts ?? 0) + 1, logTail: core.failure?.logTail ?? []
  }, now)
  refuseAll(step, failedLoad(step.core, now))
}

function fail (step: Step, failure: Omit<CoreFailure, 'retryAt'>, now: number): void {
  set(step, { failure: { ...failure, retryAt: failure.kind === 'heals' ? now + backoffMs(failure.attempts) : now }, readyAt: null })
  enter(step, 'error', failure.message, now)
}

function refuseAll (step: Step, refusal: Refusal): void {
  if (!anybodyWaits(step.core)) return
  set(step, { waitingWorkers: 0, waitingLeases: 0, waitingReady: 0 })
  step.effects.push({ type: 'refuse', refusal })
}

/** The slot came up: all are let in, except those for whom there is no worker yet. */
function grantAll (step: Step, now: number): void {
  const { waitingLeases, waitingWorkers } = step.core
  if (!anybodyWaits(step.core)) return
  const workers = Math.min(waitingWorkers, freeWorkers(step.core))
  set(step, { waitingWorkers: waitingWorkers - workers, waitingLeases: 0, waitingReady: 0 })
  if (waitingLeases + workers > 0) lend(step, waitingLeases + workers, waitingLeases, now)
  step.effects.push({ type: 'grant', workers, rest: true })
}

function lend (step: Step, count: number, light: number, now: number): void {
  set(step, { inFlight: step.core.inFlight + count, light: step.core.light + light, lastUsedAt: now })
  if (step.core.state !== 'serving') enter(step, 'serving', '', now)
}

function anybodyWaits (core: ScheduledSlot): boolean {
  return core.waitingWorkers > 0 || core.waitingLeases > 0 || core.waitingReady > 0
}

function enter (step: Step, state: ScheduledSlot['state'], message: string, now: number): void {
  set(step, { state, message, since: step.core.state === state ? step.core.since : now })
}

function set (step: Step, patch: Partial<ScheduledSlot>): void {
  step.core = { ...step.core, ...patch }
}
