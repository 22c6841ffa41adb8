import { isSvcError, messageOf, svcError, type SvcError } from '../../contract/index.js'
import { inReplicaWords } from '../schedule/replica-names.js'
import type { LaunchFailure } from '../schedule/scheduled-slot.js'
import { HealthRefused } from './watch/health.js'

/** The code of a program that was killed: only the system does that to an engine that loads. */
const KILLED = 137
const WANT_OF_MEMORY = ': it was killed, probably out of memory; unload another slot, raise its limit where it has one, or take a smaller model or context_size'

/**
 * A step took longer than its budget.
 * @param setting of `[slots]` that says how long it may take
 */
export function overspent (slot: string, doing: string, ms: number, setting: string): SvcError {
  const what = `slot '${slot}' timed out after ${Math.round(ms / 1000)} s while ${doing}`
  return svcError('slot.load_failed', `${what}; see why with \`svc slot logs ${slot}\`, or raise ${setting} in [slots]`, { details: { slot }, heals: true })
}

export function exitedEarly (slot: string, exitCode: number | null): SvcError {
  const how = exitCode === null ? '' : `, with code ${exitCode}`
  return svcError('slot.load_failed', `the engine of slot '${slot}' exited during loading${how}${exitCode === KILLED ? WANT_OF_MEMORY : ''}`,
    { details: { slot, exit_code: exitCode }, heals: true })
}

function mendOf ({ message }: HealthRefused): string {
  return message.includes('was refused')
    ? 'check that its command makes it listen on the port and host that it is given'
    : 'check that the health path of its provider exists in the engine'
}

/** What fell before it was a `SvcError`. */
export function toSvcError (slot: string, error: unknown): SvcError {
  if (isSvcError(error)) return error
  if (error instanceof HealthRefused) {
    return svcError('slot.load_failed',
      `the engine of slot '${slot}' is running but does not become healthy (health_refused_s = ${error.limitMs / 1000}): ${error.message}; ${mendOf(error)}`,
      { details: { slot }, heals: true })
  }
  return svcError('slot.load_failed', `slot '${slot}': ${messageOf(error)}`, { cause: error, heals: true })
}

/** The launcher rejects with a `LaunchFailure`; anything else fell before an engine was made. */
export function toLaunchFailure (slot: string, error: unknown): LaunchFailure {
  if (typeof error === 'object' && error !== null && 'leftover' in error) return error as LaunchFailure
  const code = isSvcError(error) ? error.code : 'slot.load_failed'
  return { code, message: inReplicaWords(slot, messageOf(error)), logTail: [], leftover: null, quiet: false, kind: 'heals' }
}
