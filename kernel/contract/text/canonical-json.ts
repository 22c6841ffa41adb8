import { createHash } from 'node:crypto'

/** JSON with sorted keys and no spaces, so that the order in which something was put together does not show. */
export function canonicalJson (value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => isObject(inner)
    ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0))
    : inner)
}

/** `sha256:` and hex over the canonical JSON of an envelope's body; keys that are null count as absent. */
export function bodyChecksum (body: unknown): string {
  return `sha256:${createHash('sha256').update(canonicalJson(withoutNulls(body))).digest('hex')}`
}

function withoutNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutNulls(inner)]))
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
