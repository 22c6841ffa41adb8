import { deviceSchema, fitStatuses, modelCapabilities, slotStateSchema } from 'svc-gateway/plugin'
import { z } from 'zod'
import { capabilityChildren, capabilitySelectionSchema } from '../../services/capabilities/ref.js'

/** Any text: what is no capability is told with codes of its own. */
export const placeParamsSchema = z.strictObject({
  slot: z.string().meta({ description: 'Group', enum: ['embed', 'voice', 'img', 'vision'], examples: ['embed'] }),
  child: z.string().meta({ description: 'Capability of the group', enum: [...capabilityChildren], examples: ['embed'] })
})

export const hostBackendSchema = z.strictObject({
  id: deviceSchema,
  label: z.string(),
  short: z.string(),
  provider: z.string().nullable().meta({ description: 'Engine that runs there by default' }),
  multiplex: z.boolean().meta({ description: 'One process serves several capabilities' })
})

const catalogRowSchema = z.strictObject({
  id: z.string(),
  capabilities: z.array(z.enum(modelCapabilities)),
  size_gb: z.number().nullable().meta({ description: 'In 10^9 bytes; null if unknown' }),
  backends: z.array(z.strictObject({
    id: deviceSchema,
    provider: z.string(),
    downloaded: z.boolean(),
    pullable: z.boolean(),
    fit_status: z.enum(fitStatuses),
    fit_reasons: z.array(z.string()),
    profile: z.string().nullable(),
    runtime_family: z.string()
  }))
})
export type CatalogRow = z.output<typeof catalogRowSchema>

const selectionShape = {
  device: deviceSchema.nullable(),
  provider: z.string().nullable(),
  model: z.string().nullable(),
  enabled: z.boolean(),
  slot: z.string().meta({ description: 'Slot that serves it, or would serve it' }),
  status: slotStateSchema
}
export const selectionViewSchema = z.strictObject({
  ...selectionShape,
  backend: deviceSchema.nullable().meta({ description: 'Older name of device' })
})

export const capabilitiesSchema = z.strictObject({
  backends: z.array(hostBackendSchema),
  catalogs: z.record(z.string(), z.record(z.string(), z.array(catalogRowSchema))),
  selections: z.record(z.string(), z.record(z.string(), selectionViewSchema))
})

const { shape } = capabilitySelectionSchema

/** Unknown keys have a code of their own. */
export const selectBodySchema = z.looseObject({
  device: shape.device.unwrap().optional(),
  backend: z.string().nullish().meta({ description: 'Older name of device; also rocm, vulkan, cuda' }),
  provider: shape.provider.unwrap().optional(),
  model: shape.model.unwrap().optional(),
  enabled: z.boolean().optional()
}).meta({ additionalProperties: false })

export const selectedSchema = z.strictObject({
  ok: z.literal(true),
  selection: z.strictObject({ ...selectionShape, pending_reload: z.boolean().meta({ description: 'Until the NPU slot is reloaded' }) })
})

export const migrateBodySchema = z.strictObject({ dry_run: z.boolean().default(false) })

export const verdicts = ['empty', 'ok', 'illegal_backend', 'unknown_model'] as const

export const migrationSchema = z.strictObject({
  dry_run: z.boolean(),
  changed: z.int().meta({ description: 'Selections that were, or would be, changed' }),
  rows: z.array(z.strictObject({
    slot: z.string().meta({ description: 'Group' }),
    child: z.string(),
    model: z.string().nullable(),
    verdict: z.enum(verdicts),
    before: z.string().meta({ description: 'Device and engine' }),
    after: z.string(),
    reason: z.string()
  }))
})
