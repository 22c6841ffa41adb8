import { modelCapabilities } from 'svc-gateway/plugin'
import { z } from 'zod'

export const swapStatusSchema = z.strictObject({
  in_progress: z.boolean().meta({ description: 'Whether an engine on the NPU is starting or stopping' }),
  from_model: z.string().nullable().meta({ description: 'Previous model; null if none' }),
  to_model: z.string().nullable().meta({ description: 'Next model; null if it is not starting yet' })
})
export type SwapStatus = z.output<typeof swapStatusSchema>

export const occupancyStates = ['serving', 'ready', 'loaded', 'idle', 'offline'] as const

const columns = (description: string): z.ZodInt => z.int().min(0).meta({ description })

export const occupancySchema = z.strictObject({
  present: z.boolean(),
  rows: z.int().meta({ description: 'Geometry of the NPU: rows and columns of tiles' }),
  cols: z.int(),
  tiles: z.int(),
  tops_peak: z.int().nullable().meta({ description: 'Of the generation that has this geometry; null for another' }),
  cols_total: columns('Columns of the NPU of this host; 0 if there is none'),
  cols_used: columns('Columns in use by engines'),
  columns_available: columns('Columns that are free'),
  serving: z.boolean().meta({ description: 'Whether a request is being processed' }),
  single_tenant: z.boolean().meta({ description: 'Whether one engine uses the whole NPU' }),
  slots: z.array(z.strictObject({
    name: z.string(),
    model: z.string().nullable(),
    state: z.enum(occupancyStates).meta({ description: '`loaded`: its engine is running but not yet healthy' }),
    cols: columns('Columns that its engine uses; slots of one engine share them'),
    gb: z.number().meta({ description: 'Size of its model while loaded; decimal gigabytes, 0 if unknown' })
  }))
})
export type Occupancy = z.output<typeof occupancySchema>

export const engineModelsSchema = z.strictObject({
  models: z.array(z.strictObject({
    model: z.string().meta({ description: 'Name at the engine; value for `[model] default` of a slot' }),
    installed: z.boolean(),
    capabilities: z.array(z.enum(modelCapabilities)),
    family: z.string(),
    size_gb: z.number().meta({ description: 'Download size; decimal gigabytes' })
  }))
})
