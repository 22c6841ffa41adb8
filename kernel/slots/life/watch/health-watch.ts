import type { Clock, EngineAddress, HealthCheck } from '../../../contract/index.js'
import type { Beat } from '../../../async/beat.js'
import { verdictOf, wordsOf, type HealthProbe } from './health.js'

/** How often an engine that works, or was not well, is looked at. */
export const WATCH_BEAT_MS = 2_000
/** One that is well and has nothing to do is left alone until the fifth beat, also when that comes a little early. */
const QUIET_MS = 4.5 * WATCH_BEAT_MS
const STRIKES = 2

/** What is known of an engine's work besides its health. */
export interface EngineWork {
  /** Whether a request runs. */
  readonly busy: () => boolean
  /** Grows with everything that comes from the engine. */
  readonly heard: () => number
}

export interface Watch {
  readonly probe: HealthProbe
  readonly address: EngineAddress
  readonly check: HealthCheck
  readonly clock: Clock
  /** When engines are looked at: all of them at once. */
  readonly beat: Beat
  readonly work: EngineWork
  /** How long a working engine may say nothing at all; 0 is for ever. Read every time, so that changes apply live. */
  readonly unresponsiveMs: () => number
}

/**
 * Watches a serving engine and calls `lost` once when two probes in a row fail. One that is well and has nothing to do is
 * asked seldom: its runtime tells when it ends, and its requests tell what else becomes of it. While requests run, a
 * silent health check alone is no failure: an engine may be too busy to answer. It is lost when nothing of its answers
 * came either, for as long as `unresponsiveMs`.
 */
export async function watchHealth (
  { probe, address, check, clock, beat, work, unresponsiveMs }: Watch, lost: (message: string) => void, signal: AbortSignal
): Promise<void> {
  let strikes = 0
  let [silentSince, heard]: [number | null, number] = [null, work.heard()]
  let restsUntil = -Infinity
  try {
    for (;;) {
      await beat.next(signal)
      if (signal.aborted) return
      const askedAt = clock.monotonic()
      if (askedAt < restsUntil && !work.busy() && work.heard() === heard) continue
      const answer = await probe(address, check, signal)
      const result = verdictOf(answer)
      const works = result === 'silent' && work.busy()
      strikes = result === 'ok' || result === 'loading' || works ? 0 : strikes + 1
      restsUntil = result === 'ok' ? askedAt + QUIET_MS : -Infinity
      if (strikes >= STRIKES) return lost(`the engine does not pass its health check: ${wordsOf(check.path, answer)}`)
      if (!works || work.heard() !== heard) silentSince = null
      else silentSince ??= askedAt
      heard = work.heard()
      const limitMs = unresponsiveMs()
      if (limitMs === 0 || silentSince === null || clock.monotonic() - silentSince < limitMs) continue
      return lost(`the engine has been silent for ${Math.round(limitMs / 1000)} s, on its requests and on its health check at ${check.path}`)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
