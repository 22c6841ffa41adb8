/**
 * The circuit breaker of one upstream at one moment. `closed`: requests pass. `open`: none does until `until`. `half-open`:
 * one does, as a probe; while it is silent past `until` another may.
 */
export interface Breaker {
  readonly state: 'closed' | 'open' | 'half-open'
  /** Failures in a row. */
  readonly failures: number
  /** How often in a row it opened; decides how long. */
  readonly openings: number
  /** Monotonic milliseconds; of no meaning while closed. */
  readonly until: number
  /** Number of the latest ticket. */
  readonly serial: number
  /** First ticket of this state: what earlier ones have to say is about another time. */
  readonly since: number
}

export interface BreakerSettings {
  /** Failures in a row that open it; 0 never. */
  readonly failures: number
  readonly openMs: number
}

/** How a call ended, as far as it tells of the upstream's health. `unknown`: the client left before that was known. */
export type Verdict = 'alive' | 'ill' | 'unknown'

export interface Admission {
  readonly breaker: Breaker
  /** To be handed back with the verdict; null when the request may not pass. */
  readonly ticket: number | null
}

const LONGEST_OPEN_MS = 5 * 60_000

export const newBreaker: Breaker = { state: 'closed', failures: 0, openings: 0, until: 0, serial: 0, since: 0 }

/** Whether a request may go to the upstream now. Pure, as everything here. */
export function admit (breaker: Breaker, settings: BreakerSettings, now: number): Admission {
  if (settings.failures === 0 || breaker.state === 'closed') return { breaker, ticket: breaker.serial }
  if (now < breaker.until) return { breaker, ticket: null }
  const serial = breaker.serial + 1
  const until = now + openMs(breaker.openings, settings)
  const since = breaker.state === 'open' ? serial : breaker.since
  return { breaker: { ...breaker, state: 'half-open', until, serial, since }, ticket: serial }
}

/** As `admit`, without taking the place of a probe. */
export function wouldAdmit (breaker: Breaker, settings: BreakerSettings, now: number): boolean {
  return settings.failures === 0 || breaker.state === 'closed' || now >= breaker.until
}

export function judge (breaker: Breaker, ticket: number, verdict: Verdict, settings: BreakerSettings, now: number): Breaker {
  if (ticket < breaker.since || breaker.state === 'open' || settings.failures === 0) return breaker
  switch (verdict) {
    case 'alive': return breaker.state === 'closed' && breaker.failures === 0 ? breaker : closed(breaker)
    case 'ill': return breaker.state === 'half-open' || breaker.failures + 1 >= settings.failures
      ? opened(breaker, settings, now)
      : { ...breaker, failures: breaker.failures + 1 }
    // the probe told nothing: the next request may be one
    case 'unknown': return breaker.state === 'half-open' && ticket === breaker.serial ? { ...breaker, until: now } : breaker
  }
}

/** An operator's word, or another upstream under the same name: running calls have no say any more. */
export function reset ({ serial }: Breaker): Breaker {
  return { ...newBreaker, serial: serial + 1, since: serial + 1 }
}

function closed (breaker: Breaker): Breaker {
  return breaker.state === 'closed' ? { ...breaker, failures: 0 } : reset(breaker)
}

function opened ({ failures, openings, serial }: Breaker, settings: BreakerSettings, now: number): Breaker {
  const until = now + openMs(openings + 1, settings)
  return { state: 'open', failures: failures + 1, openings: openings + 1, until, serial: serial + 1, since: serial + 1 }
}

function openMs (openings: number, { openMs: first }: BreakerSettings): number {
  return Math.min(first * 2 ** Math.min(Math.max(0, openings - 1), 20), Math.max(first, LONGEST_OPEN_MS))
}
