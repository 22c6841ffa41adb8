import { crashAttempts } from '../../async/backoff.js'
import type { Engine, LaunchFailure, SlotInput } from './scheduled-slot.js'
import { isServing } from './slot-machine.js'
import { coolingDown, failedLoad } from './slot-refusals.js'
import { anybodyWaits, enter, fail, grantAll, refuseAll, resist, set, type Step } from './slot-step.js'

export function inherit (step: Step, engine: Engine, message: string, now: number): void {
  if (step.core.op !== null || step.core.engine !== null) return
  set(step, { engine })
  resist(step, now)
  fail(step, { code: 'runtime.failed', message, kind: 'heals', attempts: 1, logTail: [], resists: true }, now)
}

export function phase (step: Step, input: Extract<SlotInput, { type: 'phase' }>, now: number): void {
  const { core } = step
  if (core.op !== 'launch' || core.aborting || input.generation !== core.generation) return
  enter(step, input.phase, input.message, now)
  set(step, { progress: input.progress ?? null })
}

export function launched (step: Step, generation: number, engine: Engine, now: number): void {
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

export function launchFailed (step: Step, generation: number, failure: LaunchFailure, now: number): void {
  const { core } = step
  if (core.op !== 'launch' || generation !== core.generation) return
  const quiet = core.aborting || failure.quiet
  set(step, {
    op: null,
    aborting: false,
    stopping: 'no',
    engine: failure.leftover,
    wanted: quiet && anybodyWaits(core)
  })
  if (failure.leftover !== null) resist(step, now)
  if (quiet && failure.leftover === null) return enter(step, 'offline', core.aborting ? '' : failure.message, now)
  const { code, message, kind, logTail } = failure
  fail(step, { code, message, kind, attempts: kind === 'heals' ? (core.failure?.attempts ?? 0) + 1 : 0, logTail }, now)
  refuseAll(step, failedLoad(step.core, now))
}

export function exited (step: Step, engineId: string, exitCode: number | null, now: number): void {
  const { core } = step
  if (core.engine?.id !== engineId || core.op !== null || !isServing(core.state)) return
  gone(step, exitCode === 0 ? null : `the engine exited${exitCode === null ? '' : ` with code ${exitCode}`}`, now)
}

export function unhealthy (step: Step, generation: number, message: string, now: number): void {
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

export function stopped (step: Step, logTail: readonly string[], now: number): void {
  const { core } = step
  if (core.op !== 'stop') return
  set(step, { op: null, engine: null, stopping: 'no', readyAt: null, resisted: 0 })
  if (core.state === 'error' && core.failure !== null && core.failure.resists !== true) {
    set(step, { failure: { ...core.failure, logTail: logTail.length > 0 ? logTail : core.failure.logTail } })
    return
  }
  set(step, { failure: null })
  enter(step, 'offline', core.wanted ? 'restarting' : core.state === 'error' ? '' : core.message, now)
}

export function stopFailed (step: Step, message: string, now: number): void {
  const { core } = step
  if (core.op !== 'stop') return
  set(step, { op: null, stopping: 'no', wanted: false })
  resist(step, now)
  fail(step, {
    code: 'runtime.failed', message, kind: 'heals', attempts: (core.failure?.attempts ?? 0) + 1, logTail: core.failure?.logTail ?? [], resists: true
  }, now)
  refuseAll(step, failedLoad(step.core, now))
}
