import type { ModelObject } from '../../contract/index.js'

/** A model as an upstream lists it: its id, and every other member of its row. */
export interface UpstreamRow {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Which upstream is asked for a name, and under which id. */
export interface UpstreamRoute {
  readonly upstream: string
  readonly modelId: string
}

/** Characters. A longer id names no real model, and every list that shows it would suffer. */
export const LONGEST_MODEL_ID = 512
export const MOST_MODELS = 20_000
const LONGEST_ROW_CHARS = 16 * 1024

/** A row of an upstream's list; null for what is none. Members beyond any sensible size are left out as a whole. Pure. */
export function upstreamRowOf (entry: unknown): UpstreamRow | null {
  if (typeof entry !== 'object' || entry === null) return null
  const { id, ...fields } = entry as { readonly id?: unknown, readonly [key: string]: unknown }
  if (typeof id !== 'string' || id === '' || id.length > LONGEST_MODEL_ID) return null
  return { id, fields: JSON.stringify(fields).length > LONGEST_ROW_CHARS ? {} : fields }
}

/**
 * An upstream's row as `GET /v1/models` shows it: its own members, and in front of them what clients of either API look
 * for and it does not say. The owner is always the upstream. Pure.
 * @param created epoch seconds, for a row without a date
 */
export function listedUpstreamRow ({ id, fields }: UpstreamRow, upstream: string, created: number): ModelObject {
  const { name, display_name: display, created: at, created_at: date, type } = fields
  const known = isSeconds(at) ? at : secondsOf(date) ?? created
  const title = text(name) ?? text(display) ?? id
  return {
    ...fields,
    id,
    object: 'model',
    type: text(type) ?? 'model',
    created: known,
    created_at: text(date) ?? isoOf(known),
    owned_by: upstream,
    name: title,
    display_name: text(display) ?? title
  }
}

/** Epoch seconds as the date that the Messages API has in its rows. */
export function isoOf (seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/\.000Z$/, 'Z')
}

function text (value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Up to the last second that a date can hold. */
function isSeconds (value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 8_640_000_000_000
}

function secondsOf (date: unknown): number | null {
  const at = typeof date === 'string' ? Date.parse(date) : NaN
  return Number.isNaN(at) ? null : Math.floor(at / 1000)
}
