/** How one try of a request ended, as far as it matters for another one. Times in milliseconds. */
export interface Outcome {
  /** The upstream's status, or that of the error when there was no answer. */
  readonly status: number
  /** What the upstream said with `Retry-After`; null when nothing. */
  readonly retryAfterMs: number | null
  /** False when the upstream said that trying again is of no use. */
  readonly again: boolean
}

export interface RetrySettings {
  /** Further tries after the first. */
  readonly retries: number
  readonly waitMs: number
  readonly maxWaitMs: number
}

/** `answer`: what came is the answer. `again`: the same place, after a pause. `next`: the next place, if there is one. */
export type Decision = { readonly kind: 'answer' } | { readonly kind: 'next' } | { readonly kind: 'again', readonly waitMs: number }

const ANSWER: Decision = { kind: 'answer' }
const NEXT: Decision = { kind: 'next' }

/**
 * What follows a try that failed before the client got a byte. Pure.
 * @param tries that were made in this place, this one included
 * @param random from 0 up to 1: takes up to half off a pause, so that clients do not come back all at once
 */
export function afterTry (outcome: Outcome, tries: number, settings: RetrySettings, random: number): Decision {
  if (!isTransient(outcome.status)) return ANSWER
  if (!outcome.again || tries > settings.retries) return NEXT
  const pause = Math.min(settings.waitMs * 2 ** (tries - 1), settings.maxWaitMs)
  // never earlier than the upstream asked for
  const waitMs = outcome.retryAfterMs === null ? pause * (1 - random / 2) : outcome.retryAfterMs + settings.waitMs * random / 2
  return outcome.retryAfterMs !== null && outcome.retryAfterMs > settings.maxWaitMs ? NEXT : { kind: 'again', waitMs }
}

/** Whether the same request may well be answered later, or elsewhere. Every other 4xx is about the request itself. */
export function isTransient (status: number): boolean {
  if (status === 408 || status === 409 || status === 425 || status === 429) return true
  return status >= 500 && status !== 501 && status !== 505 && status !== 508
}

/**
 * Whether a status tells that the upstream itself is ill. One that says whether, or when, to come back is alive enough to say so:
 * another gateway speaks of one of its slots.
 */
export function isIll ({ status, retryAfterMs, again }: Outcome): boolean {
  const isProxyError = status === 502 || status === 503 || status === 504 || status >= 520
  return isProxyError && retryAfterMs === null && again
}

/** Reads an answer's head. @param now epoch milliseconds, for dates in `Retry-After` */
export function outcomeOf (status: number, rawHeaders: readonly Buffer[] | readonly string[], now: number): Outcome {
  let [retryAfterMs, exactMs, again]: [number | null, number | null, boolean] = [null, null, true]
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toString().toLowerCase()
    if (name === 'retry-after') retryAfterMs = waitOf(rawHeaders[i + 1]!.toString(), now)
    else if (name === 'retry-after-ms') exactMs = milliseconds(rawHeaders[i + 1]!.toString())
    else if (name === 'x-should-retry') again = rawHeaders[i + 1]!.toString().toLowerCase() !== 'false'
  }
  return { status, retryAfterMs: exactMs ?? retryAfterMs, again }
}

/** Seconds, or a date. */
function waitOf (text: string, now: number): number | null {
  const seconds = milliseconds(text)
  if (seconds !== null) return seconds * 1000
  const date = /^\s*[A-Z][a-z]{2},/.test(text) ? Date.parse(text) : NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

function milliseconds (text: string): number | null {
  return /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
