import { madeWhenRead, patchShape, type modelsSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

/** The route says what is wrong with one that is not. */
const absolute = z.string().min(1).meta({ description: 'Absolute path', pattern: '^/' })
const mb = z.int().nullable()

export const folderStateSchema = z.strictObject({
  path: z.string(),
  exists: z.boolean(),
  is_directory: z.boolean(),
  readable: z.boolean(),
  writable: z.boolean(),
  files_count: z.int(),
  size_bytes: z.int(),
  free_mb: mb,
  total_mb: mb
})
export type FolderState = z.output<typeof folderStateSchema>

export const storeSchema = z.strictObject({
  store: z.string().meta({ description: '`[models] store` as configured; empty if unset' }),
  effective: z.string().meta({ description: 'Folder of the models' }),
  fallback_active: z.boolean().meta({ description: 'Whether something other than `store` applies: the environment, the deprecated key, or the default' }),
  pull_root_legacy: z.string().nullable(),
  current_state: folderStateSchema,
  suggestions: z.array(z.strictObject({ path: z.string(), free_mb: z.int(), total_mb: z.int() }))
    .meta({ description: 'Other file systems with free space, the largest first' })
})

export const storeBodySchema = z.strictObject({
  path: absolute,
  migrate: z.boolean().default(false).meta({ description: 'Move the models of the current store' }),
  keep: z.boolean().default(false).meta({ description: 'Leave the models of the current store where they are' })
})
export const migrateBodySchema = z.strictObject({ path: absolute })

export const planSchema = z.strictObject({
  source: z.string(),
  target: z.string(),
  files_count: z.int(),
  size_bytes: z.int(),
  same_filesystem: z.boolean()
})
export type Plan = z.output<typeof planSchema>

const migrationSchema = z.strictObject({
  source: z.string(),
  target: z.string(),
  moved: z.int(),
  failed: z.array(z.string()).meta({ description: 'Files that were copied but could not be removed from the current store' })
})
export type Migration = z.output<typeof migrationSchema>

export const scanSchema = z.strictObject({
  added: z.array(z.string()),
  skipped: z.array(z.strictObject({ path: z.string(), reason: z.string() })),
  scanned_roots: z.array(z.string())
})

/** What tells of `[models]`, whose keys are the gateway's and those that plugins add. */
export interface SectionSchemas {
  readonly section: typeof modelsSchema
  readonly changed: ReturnType<typeof changedSchema>
  readonly saved: ReturnType<typeof savedSchema>
  readonly patch: z.ZodType<Record<string, unknown>>
}

export function sectionSchemas (section: typeof modelsSchema): SectionSchemas {
  return {
    section,
    changed: changedSchema(section),
    saved: savedSchema(section),
    // the config service checks a patch, together with what is there; here it is only described
    patch: z.record(z.string(), z.unknown()).meta(madeWhenRead(() => ({
      description: 'Omitted keys stay; null resets a key to its default',
      ...patchShape(section)
    })))
  }
}

function savedSchema (section: typeof modelsSchema) {
  return section.extend({ scan: scanSchema })
}

function changedSchema (section: typeof modelsSchema) {
  return z.discriminatedUnion('status', [
    z.strictObject({ status: z.literal('needs_migration'), plan: planSchema, state: folderStateSchema }),
    z.strictObject({
      status: z.literal('ok'), config: section, state: folderStateSchema, migration: migrationSchema.nullable(), scan: scanSchema
    })
  ])
}
