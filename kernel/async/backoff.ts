const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 300_000
/** What ran this long was sound: its crash counts as the first one. */
const SOUND_AFTER_MS = 60_000

/**
 * Pause after the n-th failure in a row. The first failure costs nothing, so that the next request simply
 * tries again; from the second on the pause doubles from 5 s to 5 min.
 */
export function backoffMs (attempts: number): number {
  return attempts <= 1 ? 0 : retryPauseMs(attempts - 1)
}

/** Pause after the n-th failure in a row of what is tried again by itself: it doubles from 5 s to 5 min. */
export function retryPauseMs (failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
}

/** How many failures in a row it is now, after one that ran from `readyAt` (null: it never got ready) to `now`. */
export function crashAttempts (previous: { readonly attempts: number } | null, readyAt: number | null, now: number): number {
  const sound = readyAt !== null && now - readyAt >= SOUND_AFTER_MS
  return sound || previous === null ? 1 : previous.attempts + 1
}
