/** What a cap is counted over, by UTC: the day, the calendar month, everything. */
export const windows = ['daily', 'monthly', 'lifetime'] as const
export type Window = typeof windows[number]

/** The window that a moment lies in, as totals are kept by. @param now epoch milliseconds */
export function windowKey (window: Window, now: number): string {
  if (window === 'lifetime') return 'lifetime'
  return new Date(now).toISOString().slice(0, window === 'daily' ? 10 : 7)
}

/** When it ends, ISO 8601 UTC; null for never. */
export function windowEnd (window: Window, now: number): string | null {
  const date = new Date(now)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (window === 'lifetime') return null
  return new Date(window === 'daily' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)).toISOString()
}
