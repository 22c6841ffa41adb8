import type { Clock } from 'svc-gateway/plugin'

/** Runs `work` over all items, at most `limit` at a time; results in order. */
export async function mapBounded<T, R> (items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, async () => {
    while (next < items.length) {
      const i = next++
      results[i] = await work(items[i]!)
    }
  }))
  return results
}

/**
 * What `work` resolves with, or null when it fails, takes longer than `ms`, or the caller leaves. `work` is told
 * through its signal; one that does not listen is left to itself.
 */
export function withinMs<T> (
  clock: Clock, ms: number, caller: AbortSignal | null, work: (signal: AbortSignal) => Promise<T>
): Promise<T | null> {
  const controller = new AbortController()
  const started = (async () => await work(controller.signal))()
  return new Promise(resolve => {
    const settle = (value: T | null): void => {
      timer.cancel()
      caller?.removeEventListener('abort', giveUp)
      resolve(value)
    }
    const giveUp = (): void => {
      controller.abort(new Error('the client has left'))
      settle(null)
    }
    const timer = clock.setTimer(ms, giveUp)
    caller?.addEventListener('abort', giveUp, { once: true })
    if (caller?.aborted === true) giveUp()
    started.then(settle, () => settle(null))
  })
}

/** What a promise resolves with; null when it fails, or is not there when the time is over. */
export type Within = <T>(work: Promise<T>) => Promise<T | null>

/** One limit for many answers that are waited for together; `end` when they are no longer. */
export function startDeadline (clock: Clock, ms: number): { readonly within: Within, readonly end: () => void } {
  let over: (value: null) => void = () => {}
  const passed = new Promise<null>(resolve => { over = resolve })
  const timer = clock.setTimer(ms, () => over(null))
  return {
    within: work => Promise.race([work.catch(() => null), passed]),
    end: () => timer.cancel()
  }
}
