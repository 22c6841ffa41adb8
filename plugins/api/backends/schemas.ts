import { deviceSchema, devices, NAME_PATTERN, slotStateSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

export const backendSchema = z.strictObject({
  id: deviceSchema,
  label: z.string(),
  short: z.string(),
  provider: z.string().nullable(),
  multiplex: z.boolean(),
  hardware: z.string().meta({ description: 'Name of the device as it was probed' }),
  driver: z.string(),
  state: z.enum(['ready', 'offline']).meta({ description: 'offline: the plugin of its engine is not active' }),
  memUsedMb: z.int().nullable().meta({ description: 'MiB; null if unknown' }),
  memTotalMb: z.int().nullable(),
  totalReqPerSec: z.number().meta({ description: 'Of its slots, on average since each was loaded' }),
  loaded: z.array(z.strictObject({
    slot: z.string().nullable().meta({ description: 'Group of the capability that the slot serves; null for a slot of its own' }),
    child: z.string().nullable(),
    slotName: z.string(),
    modelId: z.string().nullable(),
    sizeMb: z.int().nullable(),
    source: z.enum(['capability', 'slot'])
  }))
})
export type Backend = z.output<typeof backendSchema>

export const idParamsSchema = z.strictObject({ id: z.string().meta({ description: 'Backend id', enum: [...devices], examples: ['cpu'] }) })

/** What is missing is told with codes of its own. */
export const loadBodySchema = z.strictObject({ model_id: z.string().meta({ minLength: 1 }).optional() }).meta({ required: ['model_id'] })
export const unloadBodySchema = z.strictObject({ slot_name: z.string().meta({ pattern: NAME_PATTERN.source }).optional() }).meta({ required: ['slot_name'] })

export const loadedSchema = z.strictObject({
  slot: z.string(),
  state: slotStateSchema,
  port: z.int().nullable(),
  model_id: z.string().nullable(),
  backend: z.literal('npu'),
  provider: z.string(),
  created: z.boolean()
})
export const unloadedSchema = z.strictObject({ ok: z.literal(true), slot: z.string() })
