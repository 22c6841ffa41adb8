import { exited, inherit, launched, launchFailed, phase, stopFailed, stopped, unhealthy } from './engine-reports.js'
import { canServe, isBusy } from './leases.js'
import type { Decision, Engine, ScheduledSlot, SlotInput } from './scheduled-slot.js'
import { answers, demand, leave, load, release, turnAway, wait } from './slot-demands.js'
import { isServing } from './slot-machine.js'
import { beginStop, enter, set, type Step } from './slot-step.js'

/**
 * Every decision about one slot's life, as a pure function: no clock, no log, no I/O. `slot-owner.ts` feeds it
 * one input at a time and runs the effects in order. design.md of `slots` has the picture.
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
    case 'stop-again': return step.core.stuck ? set(step, { stuck: false }) : undefined
    case 'adopt': return adopt(step, input.generation)
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
  set(step, { op: 'stop', stopAgainAt: null, inFlight: 0, light: 0, generation: core.generation + 1 })
  if (!dead) enter(step, 'unloading', core.wanted ? 'restarting' : core.message, now)
  step.effects.push({ type: 'disarm-drain' })
  if (core.inFlight > 0) step.effects.push({ type: 'revoke', why: core.wanted ? 'restarted' : 'unloaded', message: '' })
  step.effects.push({ type: 'stop', engine, crashed: dead && core.state === 'error' })
}

function unload (step: Step, force: boolean, now: number): void {
  const { core } = step
  set(step, { wanted: false, stuck: false, resisted: 0, failure: null })
  turnAway(step)
  if (core.op === 'launch' || isServing(core.state)) return beginStop(step, force)
  if (core.state === 'error' && core.op === null) enter(step, 'offline', '', now)
}

function restart (step: Step, force: boolean): void {
  const { core } = step
  set(step, { failure: null, stuck: false, resisted: 0 })
  if (core.op === 'launch' || isServing(core.state)) beginStop(step, force)
  wait(step, 'ready')
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

function adopt (step: Step, found: number): void {
  const { core } = step
  if (core.op !== null || core.engine !== null) return
  // what is recorded may be a launch behind
  const generation = Math.max(core.generation, found) + 1
  set(step, { op: 'launch', aborting: false, wanted: true, generation, stopping: 'no' })
  step.effects.push({ type: 'adopt', generation })
}
