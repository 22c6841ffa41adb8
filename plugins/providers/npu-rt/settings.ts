import type { ApplyClass, SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'

const about: { readonly description: string, readonly apply_class: ApplyClass } = {
  description: 'Folder of the models of the NPU runtime', apply_class: 'slot-restart'
}

const storeSchema = z.strictObject({
  flm_store: z.union([z.literal(''), z.string().startsWith('/', { error: 'must be an absolute path' })]).default('').meta(about)
})

/** What `[models]` of svc.toml says of the engine's own store. */
export const storeSettings: SettingsTable<typeof storeSchema> = { name: 'models', schema: storeSchema }
