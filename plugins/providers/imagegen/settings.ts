import type { ApplyClass, SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'

const about: { readonly description: string, readonly apply_class: ApplyClass } = {
  description: 'Remove text metadata from the images that /v1/images returns; the engine embeds its workflow and the prompt',
  apply_class: 'live'
}

const imagesSchema = z.strictObject({ strip_metadata: z.boolean().default(true).meta(about) })

/** `[images]` of svc.toml. */
export const imageSettings: SettingsTable<typeof imagesSchema> = { name: 'images', schema: imagesSchema }
