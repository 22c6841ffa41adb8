import {
  deviceClassSchema, deviceSchema, exclusivities, modelCapabilities, slotRoles, slotStateSchema, slotTypeSchema, speechFormats
} from 'svc-gateway/plugin'
import { z } from 'zod'

const toDevice = z.record(z.string(), deviceSchema)

/** `GET /api/meta/enums`. */
export const enumsSchema = z.strictObject({
  devices: z.array(z.strictObject({
    id: deviceSchema,
    label: z.string(),
    device_class: deviceClassSchema,
    default_profile: z.string(),
    legacy_backend: z.string(),
    recommended: z.boolean(),
    description: z.string()
  })),
  backends: z.array(z.string()).meta({ description: 'Values of the deprecated slot key `backend`' }),
  selectable_backends: z.array(z.string()).meta({ description: 'Values for POST /api/slots/{name}/backend' }),
  device_classes: z.array(deviceClassSchema),
  slot_types: z.array(slotTypeSchema),
  slot_states: z.array(slotStateSchema),
  slot_roles: z.array(z.enum(slotRoles)),
  speech_formats: z.array(z.enum(speechFormats)),
  runtime_families: z.array(z.string()).meta({ description: 'From the loaded providers' }),
  model_capabilities: z.array(z.enum(modelCapabilities)),
  capability_aliases: z.record(z.string(), z.enum(modelCapabilities)),
  model_backends: z.array(z.string()).meta({ description: 'Values for `backends` of a model' }),
  curated_model_tags: z.array(z.string()),
  backend_to_device: toDevice,
  device_to_backend: z.record(z.string(), z.string()),
  device_default_profiles: z.record(z.string(), z.string()),
  default_providers: z.record(z.string(), z.record(z.string(), z.string().nullable()))
    .meta({ description: 'Default provider of a slot: by its type, then by its device, or `any` for a slot without a device' }),
  provider_aliases: z.record(z.string(), z.string()).meta({ description: 'Other names of providers' }),
  providers: z.array(z.strictObject({
    name: z.string(),
    title: z.string(),
    family: z.string(),
    devices: z.array(deviceSchema),
    slot_types: z.array(slotTypeSchema),
    needs_model: z.boolean(),
    exclusivity: z.enum(exclusivities),
    cli: z.boolean().meta({ description: 'Offered by `svc slot create --provider`' })
  })).meta({ description: 'Currently loaded, including third-party ones' })
})
export type Enums = z.output<typeof enumsSchema>

/** `GET /api/meta/errors`. */
export const errorsSchema = z.strictObject({
  errors: z.array(z.strictObject({
    code: z.string(),
    status: z.int(),
    heals: z.boolean().meta({ description: 'Usually temporary: a later retry may succeed' }),
    when: z.string().meta({ description: 'The condition' }),
    plugin: z.string().nullable().meta({ description: 'Null for the gateway itself' })
  })).meta({ description: 'By code' })
})
