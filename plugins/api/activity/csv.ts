import type { ActivityRow } from 'svc-gateway/plugin'

const columns = [
  'id', 'ts', 'kind', 'category', 'action', 'target', 'actor', 'severity', 'outcome', 'message', 'error', 'duration_ms', 'request_id',
  'before', 'after'
] as const

export const csvTitles = `${columns.join(',')}\r\n`

/** A spreadsheet would run what begins with one of these, and any client may name a slot. */
const FORMULA: ReadonlySet<number> = new Set([...'=+-@\t\r'].map(sign => sign.charCodeAt(0)))
const QUOTED = /[",\r\n]/

/** Rows as RFC 4180 has them. Pure. */
export function csvRows (rows: readonly ActivityRow[]): string {
  let text = ''
  for (const row of rows) {
    let separator = ''
    for (const column of columns) {
      text += separator + cell(row[column])
      separator = ','
    }
    text += '\r\n'
  }
  return text
}

function cell (value: unknown): string {
  if (value === null || value === undefined || value === '') return ''
  if (typeof value === 'number') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const harmless = FORMULA.has(text.charCodeAt(0)) ? `'${text}` : text
  return QUOTED.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
