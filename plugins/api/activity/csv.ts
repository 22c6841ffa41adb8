import type { ActivityRow } from 'svc-gateway/plugin'

const columns = [
  'id', 'ts', 'kind', 'category', 'action', 'target', 'actor', 'severity', 'outcome', 'message', 'error', 'duration_ms', 'request_id',
  'before', 'after'
] as const

export const csvTitles = `${columns.join(',')}\r\n`

/** Rows as RFC 4180 has them. Pure. */
export function csvRows (rows: readonly ActivityRow[]): string {
  return rows.map(row => `${columns.map(column => cell(row[column])).join(',')}\r\n`).join('')
}

function cell (value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // a spreadsheet would run what begins like a formula, and anybody may name a slot
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
