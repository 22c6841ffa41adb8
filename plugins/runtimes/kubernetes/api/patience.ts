import { isSvcError, pause, svcError, type Clock } from 'svc-gateway/plugin'

export interface Patience {
  readonly clock: Clock
  /** Ends the wait with `gateway.stopping`. */
  readonly closing: AbortSignal
}

/** An API server is restarted, or replaced by another one, within that. */
const PATIENCE_MS = 60_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000

/** Asks again while the API server is away, for up to a minute; then throws its `kubernetes.unavailable`. */
export async function outlast<T> (ask: () => Promise<T>, { clock, closing }: Patience): Promise<T> {
  const since = clock.monotonic()
  for (let waitMs = FIRST_PAUSE_MS; ; waitMs = Math.min(LONGEST_PAUSE_MS, waitMs * 2)) {
    try {
      return await ask()
    } catch (error) {
      if (closing.aborted) throw svcError('gateway.stopping', 'the gateway stops')
      if (!isAway(error) || clock.monotonic() - since >= PATIENCE_MS) throw error
      await pause(clock, waitMs, closing)
    }
  }
}

/** Pure. */
export function isAway (error: unknown): boolean {
  return isSvcError(error) && error.code === 'kubernetes.unavailable'
}
