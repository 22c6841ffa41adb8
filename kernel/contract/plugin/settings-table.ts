import type { z } from 'zod'
import { svcConfigSchema, type SvcConfig } from '../schemas/svc-config.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'

/**
 * A table of svc.toml that a plugin of the release owns. It is known before any plugin is loaded, and while the plugin is
 * switched off: read, checked, written and described as the gateway's own tables are. With the name of one of the gateway's
 * own tables it adds its keys to that one.
 */
export interface SettingsTable<S extends z.ZodObject = z.ZodObject> {
  readonly name: string
  /** Takes an empty table. Each key says its `description` and `apply_class`. */
  readonly schema: S
  /**
   * What no schema can tell of a change, asked before it is written and not of what files say already. Paths are below the
   * table. Pure.
   */
  problems? (change: SettingsChange<z.output<S>>): readonly SettingsProblem[]
}

export interface SettingsProblem {
  readonly path: readonly string[]
  readonly message: string
}

/** A change of a table, and what it may be judged by. */
export interface SettingsChange<T> {
  readonly next: T
  /** Null if svc.toml was never good. */
  readonly previous: T | null
  /** What was asked for, below the table. */
  readonly patch: Readonly<Record<string, unknown>>
  readonly slots: ReadonlyMap<string, NamedSlotConfig>
}

/** What a table says; its defaults where no gateway with this table read the file. */
export function settingsOf<S extends z.ZodObject> (svc: SvcConfig, { name, schema }: SettingsTable<S>): z.output<S> {
  const tables = svc as unknown as Readonly<Record<string, z.output<S> | undefined>>
  return tables[name] ?? schema.parse({})
}

/** Whether svc.toml has this table without any plugin. */
export function isOwnTable (name: string): boolean {
  return Object.hasOwn(svcConfigSchema.shape, name)
}

/** The schema of svc.toml with these tables in it. */
export function svcSchemaWith (tables: readonly SettingsTable[]): typeof svcConfigSchema {
  let all: z.ZodObject = svcConfigSchema
  for (const { name, schema } of tables) {
    const present = isOwnTable(name) ? (all.shape[name] as z.ZodPrefault<z.ZodObject>).unwrap() : null
    all = all.extend({ [name]: (present === null ? schema : present.extend(schema.shape)).prefault({}) })
  }
  return all as unknown as typeof svcConfigSchema
}
