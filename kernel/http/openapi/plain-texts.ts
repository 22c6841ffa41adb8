import type { z } from 'zod'

/** Of a schema's inside, as far as it is looked at here. */
interface Def {
  readonly type: string
  readonly shape?: Readonly<Record<string, { readonly def: Def }>>
  readonly innerType?: { readonly def: Def }
  readonly checks?: ReadonlyArray<{ readonly _zod: { readonly def: Readonly<Record<string, unknown>> } }>
  readonly check?: unknown
  readonly coerce?: boolean
}

/** Bounds of a text's length in UTF-16 units, as the schema counts them. */
interface PlainText {
  readonly isOptional: boolean
  readonly min: number
  readonly max: number
}

type PlainTexts = ReadonlyMap<string, PlainText>

const known = new WeakMap<z.ZodType, PlainTexts | null>()

/**
 * Whether a value is what its schema would make of it, known without the schema: an object of texts, as most paths and many
 * queries are. False where only the schema can tell. A schema costs as much as all else that a path takes. Pure.
 */
export function arePlainTexts (schema: z.ZodType, value: unknown): boolean {
  let texts = known.get(schema)
  if (texts === undefined) known.set(schema, texts = textsOf(schema.def as unknown as Def))
  if (texts === null || typeof value !== 'object' || value === null) return false
  let needed = 0
  for (const key of Object.keys(value)) {
    const [text, bounds] = [(value as Readonly<Record<string, unknown>>)[key], texts.get(key)]
    if (bounds === undefined || typeof text !== 'string' || text.length < bounds.min || text.length > bounds.max) return false
    if (!bounds.isOptional) needed++
  }
  for (const { isOptional } of texts.values()) if (!isOptional) needed--
  return needed === 0
}

function textsOf ({ type, shape, checks = [] }: Def): PlainTexts | null {
  if (type !== 'object' || shape === undefined || checks.length > 0) return null
  const found = Object.entries(shape).map(([key, { def }]) => [key, textOf(def, false)] as const)
  return found.some(([, text]) => text === null) ? null : new Map(found as ReadonlyArray<readonly [string, PlainText]>)
}

function textOf ({ type, innerType, checks = [], check, coerce }: Def, isOptional: boolean): PlainText | null {
  if (type === 'optional' && innerType !== undefined && checks.length === 0) return textOf(innerType.def, true)
  if (type !== 'string' || check !== undefined || coerce === true) return null
  let [min, max] = [0, Infinity]
  for (const { _zod: { def } } of checks) {
    if (def.check === 'min_length' && typeof def.minimum === 'number') min = Math.max(min, def.minimum)
    else if (def.check === 'max_length' && typeof def.maximum === 'number') max = Math.min(max, def.maximum)
    else return null
  }
  return { isOptional, min, max }
}
