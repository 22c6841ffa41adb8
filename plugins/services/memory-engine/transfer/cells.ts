import { DEEPEST, jsonSize } from './json-size.js'

/*
 * Cells of the rows in an archive. Maps and lists come as JSON or as its text, after the engine that wrote them. Pure.
 */

export function text (value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

/** Null for what is no map. */
export function mapOrNull (value: unknown): Readonly<Record<string, unknown>> | null {
  const read = decoded(value)
  return typeof read === 'object' && read !== null && !Array.isArray(read) ? read as Record<string, unknown> : null
}

export function map (value: unknown): Readonly<Record<string, unknown>> {
  return mapOrNull(value) ?? {}
}

export function strings (value: unknown): readonly string[] {
  const read = decoded(value)
  return Array.isArray(read) ? read.filter(each => typeof each === 'string') : []
}

/** Milliseconds of an ISO time; null for anything else. */
export function time (value: unknown): number | null {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? null : at
}

/** Null for a text that is no JSON, or nests deeper than a file of an archive may. */
function decoded (value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (jsonSize(Buffer.from(value)).depth > DEEPEST) return null
  try {
    return JSON.parse(value)
  } catch {
    return null
  }
}
