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
  backends: z.array(z.string()).meta({ description: 'What the deprecated slot key `backend` may say' }),
  selectable_backends: z.array(z.string()).meta({ description: 'What POST /api/slots/{name}/backend takes' }),
  device_classes: z.array(deviceClassSchema),
  slot_types: z.array(slotTypeSchema),
  slot_states: z.array(slotStateSchema),
  slot_roles: z.array(z.enum(slotRoles)),
  speech_formats: z.array(z.enum(speechFormats)),
  runtime_families: z.array(z.string()).meta({ description: 'Of the providers that are loaded' }),
  model_capabilities: z.array(z.enum(modelCapabilities)),
  capability_aliases: z.record(z.string(), z.enum(modelCapabilities)),
  model_backends: z.array(z.string()).meta({ description: 'What `backends` of a model may name' }),
  curated_model_tags: z.array(z.string()),
  backend_to_device: toDevice,
  device_to_backend: z.record(z.string(), z.string()),
  device_default_profiles: z.record(z.string(), z.string()),
  default_providers: z.record(z.string(), z.record(z.string(), z.string().nullable()))
    .meta({ description: 'The provider of a slot that names none: by its type, then by its device, or `any` for a slot that names no device either' }),
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
  })).meta({ description: 'Loaded at this moment, third-party ones included' })
})
export type Enums = z.output<typeof enumsSchema>

/** `GET /api/meta/errors`. */
export const errorsSchema = z.strictObject({
  errors: z.array(z.strictObject({
    code: z.string(),
    status: z.int(),
    heals: z.boolean().meta({ description: 'It passes by itself as a rule: asking again later may help' }),
    when: z.string().meta({ description: 'The condition' }),
    plugin: z.string().nullable().meta({ description: 'Null for the gateway itself' })
  })).meta({ description: 'By code' })
})
