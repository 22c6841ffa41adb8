import type { SlotConfig } from 'svc-gateway/plugin'
import { z } from 'zod'

export const flavours = ['speaches', 'whisper-cpp'] as const
export type Flavour = typeof flavours[number]

/** The `[options]` table of a slot. */
export const optionsSchema = z.strictObject({
  engine: z.enum(flavours).nullable().default(null)
    .meta({ description: 'speaches: models of the hub, streaming; whisper-cpp: one GGML file, GPU by Vulkan too; unset: the model decides' }),
  model: z.string().min(1).default('Systran/faster-whisper-small').meta({ description: 'Model of the hub for a slot without a model (speaches)' }),
  language: z.string().min(2).default('auto').meta({ description: 'Default language of requests (whisper-cpp)' }),
  convert: z.boolean().nullable().default(null)
    .meta({ description: 'Decode every format with ffmpeg (whisper-cpp); unset: in containers, whose image has it' })
})

export function optionsOf (slot: Pick<SlotConfig, 'options'>): z.output<typeof optionsSchema> {
  return optionsSchema.parse(slot.options)
}
