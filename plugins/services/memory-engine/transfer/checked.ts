/*
 * What a value in an archive must be. Each throws an Error that says where there is something else. Pure.
 */

export type JsonRow = Readonly<Record<string, unknown>>

export function wrong (at: string, expected: string): Error {
  return new Error(`Invalid transfer archive: ${at} must be ${expected}`)
}

export function object (value: unknown, at: string): JsonRow {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(at, 'an object')
  return value as JsonRow
}

export function array (value: unknown, at: string): unknown[] {
  if (!Array.isArray(value)) throw wrong(at, 'a list')
  return value
}

export function text (value: unknown, at: string): string {
  if (typeof value !== 'string') throw wrong(at, 'a text')
  return value
}

export function optional (value: unknown, at: string): string | null {
  return value === null || value === undefined ? null : text(value, at)
}

export function strings (value: unknown, at: string): string[] {
  return array(value ?? [], at).map((each, n) => text(each, `${at}[${n}]`))
}

export function whole (value: unknown, at: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong(at, 'a whole number')
  return value as number
}

export function time (value: unknown, at: string): string | null {
  const said = optional(value, at)
  if (said !== null && Number.isNaN(Date.parse(said))) throw wrong(at, 'an ISO time')
  return said
}

export function moment (value: unknown, at: string): string {
  const said = time(value, at)
  if (said === null) throw wrong(at, 'an ISO time')
  return said
}

export function oneOf<T extends string> (value: unknown, known: readonly T[], at: string): T {
  const said = text(value, at)
  if (!known.includes(said as T)) throw wrong(at, `one of ${known.join(', ')}`)
  return said as T
}
