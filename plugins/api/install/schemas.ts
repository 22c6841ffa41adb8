import { deviceSchema, hardwareSchema, modelCapabilities, nameSchema, MAX_SLOT_PORT, NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import { extensionKinds, extensionSkips } from './extensions.js'
import { skipReasons } from './plan.js'
import { slotKindNames } from './slot-kinds.js'

export const stateSchema = z.strictObject({
  first_run: z.boolean().meta({ description: 'True if there are no models and the first run has not been completed' }),
  has_models: z.boolean(),
  has_default_slot: z.boolean(),
  openwebui_running: z.boolean().meta({ description: 'It answers' }),
  sentinel_path: z.string(),
  extensions: z.array(z.string()).meta({ description: 'Services that can be installed here to run beside the gateway, by id' }),
  offers: z.array(z.strictObject({
    id: z.string(),
    kind: z.enum(extensionKinds),
    name: z.string(),
    description: z.string(),
    bytes: z.int().nullable().meta({ description: 'Disk space that it takes; null if unknown' }),
    licence: z.strictObject({ name: z.string(), note: z.string().nullable(), url: z.string().nullable() }),
    installed: z.boolean()
  })).meta({ description: 'The same, with further details' })
})

export const probeSchema = z.strictObject({
  hardware: hardwareSchema, path: z.string().meta({ description: 'File that stores the probe' })
})
export const completedSchema = z.strictObject({ first_run: z.literal(false), sentinel_path: z.string() })

export const curatedSchema = z.strictObject({
  models: z.array(z.strictObject({
    id: z.string(),
    display_name: z.string(),
    description: z.string(),
    family: z.string(),
    size_gb: z.number(),
    vram_gb_min: z.number(),
    license: z.string(),
    license_url: z.string(),
    hf_repo: z.string(),
    hf_file: z.string(),
    mmproj_file: z.string(),
    context_length: z.int(),
    recommended_slot: z.string(),
    tags: z.array(z.string()),
    notes: z.string(),
    capability: z.enum(modelCapabilities),
    backend: z.string(),
    model_class: z.string(),
    comfyui_subdir: z.string(),
    bundle_only: z.boolean(),
    installed: z.boolean().meta({ description: 'Whether the registry has it' }),
    fits: z.boolean().meta({ description: 'Whether it fits into some memory of this host' }),
    recommended: z.boolean().meta({ description: 'Whether the largest tier that fits this host uses it' })
  })),
  custom_allowed: z.literal(true)
})

const storageDir = z.string().min(1).meta({ description: 'Absolute path of the new model store', pattern: '^/' })
const extensionsSchema = z.record(z.string(), z.boolean()).meta({ description: 'What to set up beside the gateway, by id' })
const pull = z.boolean().default(true).meta({ description: 'Pull the models; false only creates the slots' })
const npuOptIn = z.boolean().default(false).meta({ description: 'Also create a slot on the NPU' })

export const applyBodySchema = z.strictObject({
  tier: z.string().meta({ description: 'Lite, Default, Pro or Max, in upper or lower case; `auto` uses the chat models of the largest that fits' }),
  storage_dir: storageDir.optional(),
  npu_opt_in: npuOptIn,
  overrides: z.record(nameSchema, z.strictObject({
    model_id: z.string().optional(), device: deviceSchema.nullable().optional(), profile: z.string().min(1).nullable().optional()
  })).default({}).meta({ description: 'Overrides by slot name' }),
  extensions: extensionsSchema.optional().meta({ description: 'Default: openwebui, comfyui and hermes for `auto`, else none; what comes from a registry is installed only if it is listed here' }),
  pull
})

export const selectionsBodySchema = z.strictObject({
  storage_dir: storageDir.optional(),
  slots: z.array(z.strictObject({
    capability: z.enum(slotKindNames),
    slot_name: nameSchema.optional().meta({ description: 'Default: the usual one of the capability' }),
    port: z.int().min(1024).max(MAX_SLOT_PORT).nullable().optional(),
    model_id: z.string().meta({ description: 'Empty if the slot has no model' }),
    device: deviceSchema.nullable().optional(),
    profile: z.string().min(1).nullable().optional()
  })).max(64),
  extensions: extensionsSchema.default({}),
  npu_opt_in: npuOptIn,
  pull
})

export const slotOutcomeSchema = z.strictObject({
  slot: z.string(),
  model_id: z.string(),
  created: z.boolean().meta({ description: 'Also false for a slot that already existed' }),
  device: deviceSchema.nullable(),
  profile: z.string().nullable(),
  pull_job_id: z.string().nullable(),
  skipped: z.enum(skipReasons).nullable(),
  detail: z.string().nullable().meta({ description: 'Why it was skipped' }),
  error: z.string().nullable().meta({ description: 'What went wrong with this slot alone' })
})
export type SlotOutcome = z.output<typeof slotOutcomeSchema>

const extensionOutcomeSchema = z.strictObject({
  ext_id: z.string(), installed: z.boolean(), skipped: z.enum(extensionSkips).nullable(), error: z.string().nullable(),
  job: z.string().nullable().meta({ description: 'Of an installation that is still running, such as that of an agent: GET /api/agents/{ext_id} shows the progress' })
})

const applied = {
  model_ids: z.array(z.string()).meta({ description: 'Models that slots got or wait for' }),
  slots: z.array(slotOutcomeSchema),
  extensions: z.array(extensionOutcomeSchema),
  warnings: z.array(z.string())
}
export const selectedSchema = z.strictObject(applied)
export type Selected = z.output<typeof selectedSchema>
export const appliedSchema = z.strictObject({
  tier: z.string(),
  ...applied,
  next: z.enum(['pull', 'done']).meta({ description: '`pull`: models are being downloaded; slots start when they are complete' })
})

export const nameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Slot name', pattern: NAME_PATTERN.source, examples: ['agent'] }) })
export const slotModelBodySchema = z.looseObject({ model_id: z.unknown().optional() }).meta({
  properties: { model_id: { type: 'string', minLength: 1, description: 'Saved as it is; nothing is loaded' } }, required: ['model_id']
})
export const slotModelSchema = z.strictObject({
  slot: z.string(), model_id: z.string(), path: z.string().meta({ description: 'The slot file' })
})

export const unitsSchema = z.strictObject({
  services: z.array(z.strictObject({ unit: z.string(), label: z.string(), active: z.boolean(), repairable: z.boolean() }))
})
export const unitParamsSchema = z.strictObject({ unit: z.string().meta({ description: 'Unit of GET /api/install/services', pattern: '^[A-Za-z0-9@_.:-]+$', examples: ['svc-openwebui.service'] }) })
export const repairedSchema = z.strictObject({
  unit: z.string(),
  active: z.boolean(),
  deferred: z.literal(true).optional().meta({ description: 'The gateway restarts itself after this answer' })
})
