/** Digits of the largest number that a grammar allows. */
const MOST_DIGITS = 15

/** The integers from `min` to `max` as a grammar; null is without bound, and null for none at all. Pure. */
export function integerRange (min: number | null, max: number | null): string | null {
  const limit = 10 ** MOST_DIGITS - 1
  const low = Math.max(min ?? -limit, -limit)
  const high = Math.min(max ?? limit, limit)
  if (low > high) return null
  const parts: string[] = []
  if (low < 0) parts.push(...digitPatterns(Math.max(1, -high), -low).map(pattern => `"-" ${pattern}`))
  if (high >= 0) parts.push(...digitPatterns(Math.max(0, low), high))
  return parts.join(' | ')
}

/** The numbers from `low` to `high` as a grammar; null where a bound is a fraction, and when there are none. Pure. */
export function numberRange (low: number | null, high: number | null): string | null {
  if (!Number.isInteger(low ?? 0) || !Number.isInteger(high ?? 0)) return null
  const ends = integerRange(low, high)
  if (ends === null) return null
  // an integer k stands for k up to, and without, its neighbour further from zero
  const inner = [
    high === null || high > 0 ? integerRange(Math.max(0, low ?? 0), high === null ? null : high - 1) : null,
    low === null || low < 0 ? integerRange(low === null ? null : low + 1, Math.min(-1, high ?? -1)) : null,
    (low === null || low < 0) && (high === null || high >= 0) ? '"-0"' : null
  ].filter(part => part !== null)
  return [ends, ...inner.length === 0 ? [] : [`(${inner.join(' | ')}) fraction`]].join(' | ')
}

/** The whole numbers from `low` to `high`, neither below zero, as alternatives of fixed digits and classes. */
function digitPatterns (low: number, high: number): string[] {
  const patterns: string[] = []
  for (let from = low; from <= high;) {
    const to = endOfBlock(from, high)
    patterns.push(pattern(String(from), String(to)))
    from = to + 1
  }
  return patterns
}

/** The largest end that differs from `from` in one digit followed by all nines, with zeros to start from. */
function endOfBlock (from: number, high: number): number {
  const length = String(from).length
  let best = from
  for (let power = 1; power < 10 ** length; power *= 10) {
    if (from % power !== 0) break
    const digit = Math.floor(from / power) % 10
    const room = Math.min(9 - digit, Math.floor((high - from + 1) / power) - 1)
    if (room < 0) break
    best = from + room * power + power - 1
  }
  return best
}

function pattern (from: string, to: string): string {
  return [...from].map((digit, i) => digit === to[i] ? `"${digit}"` : `[${digit}-${to[i]}]`).join(' ')
}
