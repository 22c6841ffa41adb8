import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { SqlFile } from 'svc-gateway/plugin'
import type { ReplayedEvent } from './replay.js'

/** Events of a stream in the order of their numbers, as they are in the database. */
export interface EventBatch {
  /** Number of the last one. */
  readonly last: number
  /** Empty for the event that ends the stream: it is made of the response. */
  readonly bytes: Buffer
}

export const EVENTS_FORM = `
CREATE TABLE events (
  response INTEGER NOT NULL REFERENCES responses (seq) ON DELETE CASCADE, last INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY (response, last)
) STRICT, WITHOUT ROWID;
`

/** Events differ in little but their number and a few characters. @param lines JSON */
export function packed (lines: readonly string[], last: number): EventBatch {
  return { last, bytes: deflateRawSync(`[${lines.join(',')}]`, { level: 1 }) }
}

export function unpacked ({ bytes }: EventBatch): readonly ReplayedEvent[] {
  return bytes.length === 0 ? [] : JSON.parse(inflateRawSync(bytes).toString('utf8')) as ReplayedEvent[]
}

/** Rows of events. @returns the bytes that they take up */
export function addBatches (file: SqlFile, response: number, batches: readonly EventBatch[]): number {
  for (const { last, bytes } of batches) file.run('INSERT INTO events (response, last, bytes) VALUES (?, ?, ?)', [response, last, bytes])
  return batches.reduce((sum, { bytes }) => sum + bytes.length, 0)
}

/** The first batch with an event of this number or a later one. */
export function batchFrom (file: SqlFile, id: string, number: number): EventBatch | undefined {
  const row = file.get<{ last: number, bytes: ArrayBuffer }>(
    'SELECT last, events.bytes FROM events JOIN responses ON seq = events.response WHERE id = ? AND last >= ? ORDER BY last LIMIT 1', [id, number]
  )
  return row === undefined ? undefined : { last: row.last, bytes: Buffer.from(row.bytes) }
}

/** The number of the event that ended a stream; null where none is written. */
export function endOf (file: SqlFile, id: string): number | null {
  const row = file.get<{ last: number }>(
    'SELECT last FROM events JOIN responses ON seq = events.response WHERE id = ? AND length(events.bytes) = 0', [id]
  )
  return row?.last ?? null
}
