/** `2026-11-22T17:46:05.713000+00:00`, as the wire writes times; null stays null. */
export function wireTime (ms: number): string
export function wireTime (ms: number | null): string | null
export function wireTime (ms: number | null): string | null {
  if (ms === null) return null
  // what was retained together has one time
  if (ms !== last.ms) last = { ms, text: written(ms) }
  return last.text
}

let last = { ms: NaN, text: '' }

function written (ms: number): string {
  const iso = new Date(ms).toISOString()
  return iso.endsWith('.000Z') ? `${iso.slice(0, -5)}+00:00` : `${iso.slice(0, -1)}000+00:00`
}

const ISO = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?$/i

/** Milliseconds of an ISO 8601 time, which is UTC where it names no zone; null if it is none. */
export function parseTime (text: string): number | null {
  const trimmed = text.trim()
  if (!ISO.test(trimmed)) return null
  const zoned = /(Z|[+-]\d{2}(:?\d{2})?)$/i.test(trimmed.slice(10))
  const whole = trimmed.length === 10 ? `${trimmed}T00:00:00Z` : `${trimmed.replace(' ', 'T').replace(',', '.').replace(' ', '')}${zoned ? '' : 'Z'}`
  const ms = Date.parse(whole.replace(/([+-]\d{2})(\d{2})$/, '$1:$2').replace(/([+-]\d{2})$/, '$1:00').replace(/(\.\d{3})\d+/, '$1'))
  return Number.isNaN(ms) ? null : ms
}
