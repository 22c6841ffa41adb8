import type { Clock, Timer } from '../contract/index.js'

/** Node's timers take at most this; anything longer would fire at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** The machine's time. Timers of any length; they never keep the process alive. */
export function createSystemClock (): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimer: (ms, fn) => startTimer(ms, fn)
  }
}

function startTimer (ms: number, fn: () => void): Timer {
  let handle: NodeJS.Timeout
  const arm = (left: number): void => {
    const step = Math.min(left, LONGEST_TIMEOUT_MS)
    handle = setTimeout(() => { if (left > step) arm(left - step); else fn() }, step)
    handle.unref()
  }
  if (ms !== Infinity) arm(Number.isNaN(ms) ? 0 : Math.max(0, ms))
  return { cancel: () => { clearTimeout(handle) } }
}
