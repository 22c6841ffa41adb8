import { z } from 'zod'

/** Tables and lists in each other, at most. Deeper ones cost more to read and write than anything they could say. */
const MAX_DEPTH = 24
/** From here on a number is written with an exponent, so it is read as a fraction again and not as a whole number. */
const WRITTEN_AS_FRACTION = 1e21

interface TomlProblem {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * A value of a free table that ends in a TOML file. TOML has no null, and its whole numbers are read exactly or not at all.
 * A null that is the value of a key takes the key out before this is asked.
 */
export const tomlValueSchema = z.unknown().superRefine((value, context) => {
  const problem = tomlProblem(value, [])
  if (problem !== null) context.addIssue({ code: 'custom', path: [...problem.path], message: problem.message })
})

/** The first thing that cannot be written. Looks no deeper than it allows. Pure. */
function tomlProblem (value: unknown, path: readonly PropertyKey[]): TomlProblem | null {
  if (path.length > MAX_DEPTH) return { path, message: `must not be nested deeper than ${MAX_DEPTH} levels` }
  if (value === null) return { path, message: 'must not be null: TOML has no null; leave it out' }
  if (typeof value === 'number') return numberProblem(value, path)
  // a date, as the parser of a file gives it
  if (typeof value !== 'object' || value instanceof Date) return null
  const entries: Iterable<readonly [PropertyKey, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
  for (const [key, inner] of entries) {
    const problem = tomlProblem(inner, [...path, key])
    if (problem !== null) return problem
  }
  return null
}

function numberProblem (value: number, path: readonly PropertyKey[]): TomlProblem | null {
  if (!Number.isFinite(value)) return { path, message: 'must be a finite number' }
  const isExact = !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= WRITTEN_AS_FRACTION
  return isExact ? null : { path, message: `must be at most ${Number.MAX_SAFE_INTEGER}, or text` }
}
