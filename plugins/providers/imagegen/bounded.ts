import type { Clock } from 'svc-gateway/plugin'
import { callTooLong } from './engine-errors.js'

/** One call to the engine; it answers while it computes. */
export const CALL_TIMEOUT_MS = 60_000

/** Work under a time limit of its own, and under the signal when there is one. */
export async function bounded<T> (
  clock: Clock, ms: number, signal: AbortSignal | null, work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const late = new AbortController()
  const timer = clock.setTimer(ms, () => late.abort(callTooLong(ms / 1000)))
  try {
    return await work(signal === null ? late.signal : AbortSignal.any([late.signal, signal]))
  } finally {
    timer.cancel()
  }
}
