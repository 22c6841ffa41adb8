import type { z } from 'zod'

/** What zod 4 keeps in `schema.def`, as far as it is read here. */
interface Def {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly innerType?: z.ZodType
  readonly valueType?: z.ZodType
  readonly keyType?: z.ZodType
  readonly entries?: Readonly<Record<string, string | number>>
  readonly element?: z.ZodType
  readonly options?: readonly z.ZodType[]
  readonly catchall?: z.ZodType
}

/** Keys that an object or a record may have at `path`; empty where any key is taken. */
export function keysAt (schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: z.ZodType | undefined = schema
  for (const key of path) {
    const { shape, valueType, element } = unwrap(at)
    at = shape?.[String(key)] ?? valueType ?? element
    if (at === undefined) return []
  }
  const { shape, keyType } = unwrap(at)
  if (shape !== undefined) return Object.keys(shape)
  return keyType === undefined ? [] : Object.values(unwrap(keyType).entries ?? {}).map(String)
}

/** Whether the schema has a place for a key at `path`: named, in a record, or in an object that takes any key. */
export function isKnownPath (schema: z.ZodType, path: readonly string[]): boolean {
  const [key, ...rest] = path
  if (key === undefined) return true
  const { shape, valueType, catchall, type } = unwrap(schema)
  if (shape !== undefined && Object.hasOwn(shape, key)) return isKnownPath(shape[key]!, rest)
  if (valueType !== undefined) return isKnownPath(valueType, rest)
  return type === 'unknown' || (catchall !== undefined && catchall.def.type !== 'never')
}

/** Dotted paths of the keys of all nested objects, to tell where a misplaced key belongs. */
export function keyPaths (schema: z.ZodType, prefix = ''): readonly string[] {
  return Object.entries(unwrap(schema).shape ?? {})
    .flatMap(([key, value]) => [prefix + key, ...keyPaths(value, `${prefix}${key}.`)])
}

/** The object, record or array under defaults, optionals and unions; the schema's own definition otherwise. */
function unwrap (schema: z.ZodType): Def {
  const def = schema.def as unknown as Def
  if (def.innerType !== undefined) return unwrap(def.innerType)
  const inside = def.options?.map(unwrap).find(option => option.shape ?? option.valueType ?? option.element)
  return inside ?? def
}
