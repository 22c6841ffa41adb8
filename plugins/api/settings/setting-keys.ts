import type { ApplyClass, ConfigService, PluginSetting } from 'svc-gateway/plugin'
import { z } from 'zod'

/** JSON Schema of svc.toml; leaves carry `apply_class`. */
export interface SettingsSchema {
  readonly [keyword: string]: unknown
  readonly properties?: Readonly<Record<string, SettingsSchema>>
  readonly apply_class?: ApplyClass
}

/** Dotted key to what a change of it takes. A key that is a table of free keys stands for all below it. */
export type SettingKeys = ReadonlyMap<string, ApplyClass>

const known = new WeakMap<object, SettingsSchema>()

/** Made for the first that asks: a start does not. */
function base (file: ConfigService['schema']): SettingsSchema {
  const made = known.get(file) ?? z.toJSONSchema(file, { io: 'input' }) as SettingsSchema
  known.set(file, made)
  return made
}

/** Types, bounds, defaults and descriptions from the schemas that check the file, settings of plugins included. Pure. */
export function settingsSchema (file: ConfigService['schema'], settings: readonly PluginSetting[]): SettingsSchema {
  return settings.reduce((schema, { plugin, key, schema: type, description, apply }) => {
    const leaf = { ...z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' }), $schema: undefined, description, apply_class: apply }
    return withProperty(schema, ['plugins', 'config', plugin, ...key.split('.')], leaf as SettingsSchema)
  }, base(file))
}

/** Every key of the schema. Pure. */
export function settingKeys (schema: SettingsSchema, path: readonly string[] = []): SettingKeys {
  const here: ReadonlyArray<readonly [string, ApplyClass]> =
    schema.apply_class === undefined ? [] : [[path.join('.'), schema.apply_class]]
  const below = Object.entries(schema.properties ?? {}).flatMap(([key, inner]) => [...settingKeys(inner, [...path, key])])
  return new Map([...here, ...below])
}

/** What a change of a key takes; null for one that the schema does not know. Pure. */
export function applyClassOf (keys: SettingKeys, key: string): ApplyClass | null {
  const path = key.split('.')
  for (let length = path.length; length > 0; length--) {
    const known = keys.get(path.slice(0, length).join('.'))
    if (known !== undefined) return known
  }
  return null
}

function withProperty (schema: SettingsSchema, [key, ...rest]: readonly string[], leaf: SettingsSchema): SettingsSchema {
  if (key === undefined) return leaf
  const inner = schema.properties?.[key] ?? { type: 'object' }
  return { ...schema, properties: { ...schema.properties, [key]: withProperty(inner, rest, leaf) } }
}
