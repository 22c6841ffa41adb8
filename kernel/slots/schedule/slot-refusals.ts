import type { Refusal, ScheduledSlot } from './scheduled-slot.js'

/** When one who found the queue full may ask again. */
const QUEUE_RETRY_S = 5

/** Why nothing is tried at the moment; null when a launch may be. */
export function coolingDown (core: ScheduledSlot, now: number): Refusal | null {
  const { state, failure } = core
  if (state !== 'error' || failure === null) return null
  if (failure.kind === 'stays') return failedLoad(core, now)
  if (failure.retryAt <= now) return null
  return {
    code: 'slot.crash_looping',
    message: `failed ${failure.attempts} times in a row and waits before the next attempt: ${failure.message}`,
    retryAfterS: wholeSeconds(failure.retryAt - now),
    cause: failure.code,
    logTail: failure.logTail
  }
}

/** For those whose launch it was that failed, and for those who would only repeat it. */
export function failedLoad ({ failure }: ScheduledSlot, now: number): Refusal {
  const { code, message, retryAt, logTail } = failure!
  return {
    code: code === 'model.not_found' ? code : 'slot.load_failed',
    message,
    retryAfterS: retryAt > now ? wholeSeconds(retryAt - now) : null,
    cause: code,
    logTail
  }
}

/** Of a refusal to one who may not start the slot: who asked for another knows what to say of it. */
export const ASLEEP = 'asleep'

export function asleep ({ state }: ScheduledSlot): Refusal {
  return { code: 'slot.stopped', message: `is ${state}`, retryAfterS: null, cause: ASLEEP, logTail: [] }
}

export function queueFull ({ waitingWorkers, waitingLeases }: Pick<ScheduledSlot, 'waitingWorkers' | 'waitingLeases'>): Refusal {
  return {
    code: 'slot.queue_full',
    message: `has ${waitingWorkers + waitingLeases} requests waiting and accepts no more for now; try again later`,
    retryAfterS: QUEUE_RETRY_S,
    cause: 'queue_full',
    logTail: []
  }
}

/** Sums of fractions of a millisecond are never exact: five seconds are not told as six. */
function wholeSeconds (ms: number): number {
  return Math.ceil(Math.round(ms) / 1000)
}
