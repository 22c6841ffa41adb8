import { applyClasses, madeWhenRead, patchShape, type ConfigService, type SvcConfig } from 'svc-gateway/plugin'
import { z } from 'zod'

const keys = z.array(z.string())

export const applyPlanSchema = z.strictObject({
  live: keys.meta({ description: 'In force already' }),
  slot_restart: keys.meta({ description: 'Applies to engines that start from now on' }),
  gateway_restart: keys.meta({ description: 'Takes effect when the gateway starts again' }),
  unknown: keys.meta({ description: 'Kept in the file; unknown to the gateway' }),
  slots: z.array(z.string()).meta({ description: 'Slots whose engine was started with other settings' })
}).meta({ title: 'ApplyPlan' })

export const applyRegistrySchema = z.strictObject({
  apply_classes: z.array(z.enum(applyClasses)),
  registry: z.record(z.string(), z.strictObject({
    apply_class: z.enum(applyClasses),
    services: z.array(z.string()).meta({ description: 'What must be restarted' })
  }))
})

export const diagnosticsSchema = z.array(z.strictObject({
  file: z.string(),
  path: z.string(),
  message: z.string(),
  line: z.int().optional()
})).meta({ description: 'Problems in the files; the affected settings keep their last valid values' })

/** Of requests and answers that hold svc.toml. */
export interface SettingsSchemas {
  /** Effective values, defaults filled in; secrets are `***`. */
  readonly settings: z.ZodObject
  readonly saved: z.ZodObject
  readonly reloaded: z.ZodObject
  readonly patch: z.ZodType<Record<string, unknown>>
}

const servedSchema = z.strictObject({ host: z.string(), port: z.int() }).nullable()
  .meta({ description: 'Where this gateway listens, which may differ from `server`: by a command line option, or until a restart' })

const savedPart = z.strictObject({ apply_plan: applyPlanSchema, warnings: z.array(z.string()) })
const reloadedPart = z.strictObject({
  revision: z.int().meta({ description: 'Counts changes of the configuration' }),
  diagnostics: diagnosticsSchema,
  apply_plan: applyPlanSchema
})

export type Saved = SvcConfig & { readonly _svc: z.output<typeof savedPart> }
export type Reloaded = SvcConfig & { readonly _svc: z.output<typeof reloadedPart> }

/**
 * Each is made when it is first read, and kept.
 * @param file the schema of svc.toml, tables of plugins included
 */
export function schemasOf (file: ConfigService['schema']): SettingsSchemas {
  const made: Partial<Record<'settings' | 'saved' | 'reloaded', z.ZodObject>> = {}
  let patch: SettingsSchemas['patch'] | null = null
  return {
    get settings () {
      return made.settings ??= file.extend({ _svc: z.strictObject({ served: servedSchema }) }).meta({ title: 'Settings' })
    },
    get saved () { return made.saved ??= file.extend({ _svc: savedPart }) },
    get reloaded () { return made.reloaded ??= file.extend({ _svc: reloadedPart }) },
    // the config service checks a patch, together with what is there; here it is only described
    get patch () {
      return patch ??= z.record(z.string(), z.unknown()).meta(madeWhenRead(() => ({
        description: 'Tables merge, everything else replaces, null resets a key to its default',
        ...patchShape(file)
      })))
    }
  }
}

export const jsonSchemaSchema = z.looseObject({ properties: z.record(z.string(), z.looseObject({})) })
