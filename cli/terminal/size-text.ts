const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** Bytes in units of a thousand, as disks and hubs count: `2.5 GB`. */
export function sizeText (bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.95 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]!}`
}

/** `42s`, `3m05s`, `2h10m`. */
export function durationText (seconds: number): string {
  const s = Math.max(0, Math.round(seconds))
  const two = (n: number): string => String(n).padStart(2, '0')
  if (s < 60) return `${s}s`
  return s < 3600 ? `${Math.floor(s / 60)}m${two(s % 60)}s` : `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`
}
