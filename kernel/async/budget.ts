import type { SvcError } from '../contract/errors/errors.js'
import type { Clock } from '../contract/services/clock.js'

/**
 * Runs `work` under its own time budget inside the caller's signal. When the budget is spent the inner signal
 * aborts with `spent()`, and that is what the promise rejects with, even when `work` rejects with something else.
 * Waits for `work` to settle, so nothing of it is left behind.
 */
export async function withBudget<T> (
  clock: Clock, ms: number, signal: AbortSignal, spent: () => SvcError, work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const controller = new AbortController()
  const forward = (): void => controller.abort(signal.reason)
  if (signal.aborted) forward()
  else signal.addEventListener('abort', forward, { once: true })
  const timer = clock.setTimer(ms, () => controller.abort(spent()))
  try {
    return await work(controller.signal)
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', forward)
  }
}
