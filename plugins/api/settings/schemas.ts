import { applyClasses, madeWhenRead, patchShape, svcConfigSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

const keys = z.array(z.string())

export const applyPlanSchema = z.strictObject({
  live: keys.meta({ description: 'In force already' }),
  slot_restart: keys.meta({ description: 'Takes effect for engines that start from now on' }),
  gateway_restart: keys.meta({ description: 'Takes effect when the gateway starts again' }),
  unknown: keys.meta({ description: 'Kept in the file; the gateway does not know them' }),
  slots: z.array(z.string()).meta({ description: 'Slots whose engine was started from other settings' })
}).meta({ title: 'ApplyPlan' })

export const applyRegistrySchema = z.strictObject({
  apply_classes: z.array(z.enum(applyClasses)),
  registry: z.record(z.string(), z.strictObject({
    apply_class: z.enum(applyClasses),
    services: z.array(z.string()).meta({ description: 'What has to be started again' })
  }))
})

export const diagnosticsSchema = z.array(z.strictObject({
  file: z.string(),
  path: z.string(),
  message: z.string(),
  line: z.int().optional()
})).meta({ description: 'What is wrong in the files; what they concern keeps its last good value' })

/** Effective values, defaults filled in; secrets are `***`. */
export const settingsSchema = svcConfigSchema.extend({
  _svc: z.strictObject({
    served: z.strictObject({ host: z.string(), port: z.int() }).nullable()
      .meta({ description: 'Where this gateway listens, which may be elsewhere than `server` says: it was started so, or that takes a restart' })
  })
}).meta({ title: 'Settings' })

export const savedSchema = svcConfigSchema.extend({
  _svc: z.strictObject({ apply_plan: applyPlanSchema, warnings: z.array(z.string()) })
})

export const reloadedSchema = svcConfigSchema.extend({
  _svc: z.strictObject({
    revision: z.int().meta({ description: 'Counts changes of the configuration; the same when nothing changed' }),
    diagnostics: diagnosticsSchema,
    apply_plan: applyPlanSchema
  })
})

/** The config service checks a patch, together with what is there; here it is only described. */
export const patchSchema = z.record(z.string(), z.unknown()).meta(madeWhenRead(() => ({
  description: 'Tables merge, everything else replaces, null takes a key back to its default',
  ...patchShape(svcConfigSchema)
})))

export const jsonSchemaSchema = z.looseObject({ properties: z.record(z.string(), z.looseObject({})) })
