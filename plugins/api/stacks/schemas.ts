import { devices, documentedShape, launchNeeds, madeWhenRead, NAME_PATTERN } from 'svc-gateway/plugin'
import { z } from 'zod'
import { capabilityChildren, capabilitySelectionSchema } from '../../services/capabilities/ref.js'
import { STACK_VERSION, stackSchema } from '../../services/stack-catalog/ref.js'

export const ENVELOPE_KIND = 'svc.stack'

export const drifts = ['clean', 'degraded', 'modified', 'none'] as const

/** Any text: a slug that no stack can have is a stack that does not exist. */
export const slugParamsSchema = z.strictObject({ slug: z.string().meta({ description: 'Slug of the stack', pattern: NAME_PATTERN.source, examples: ['saber'] }) })

/** The same for what a built-in stack refuses. */
export const ownSlugParamsSchema = z.strictObject({ slug: z.string().meta({ description: 'Slug of the stack', pattern: NAME_PATTERN.source, examples: ['two-slots'] }) })

const driftSchema = z.enum(drifts).meta({ description: 'none: not the active one' })

const { shape } = stackSchema

/** A stack, with what this gateway knows about it. */
export const stackItemSchema = z.strictObject({
  slug: z.string(),
  ...shape,
  seed: z.boolean().meta({ description: 'Built in and immutable' }),
  active: z.boolean().meta({ description: 'Applied last' }),
  drift: driftSchema,
  lacks: z.array(z.enum(devices)).meta({ description: 'Devices of its rows that this host does not have' })
}).meta({ title: 'Stack' })

export const stackListSchema = z.strictObject({
  stacks: z.array(stackItemSchema),
  active: z.string().nullable().meta({ description: 'Slug of the stack that was applied last' }),
  drift: driftSchema
})

export const createBodySchema = z.strictObject({
  slug: z.string().meta({ description: 'An invalid slug has its own error code', pattern: NAME_PATTERN.source }),
  stack: stackSchema
})

export const snapshotBodySchema = z.strictObject({
  name: shape.name,
  description: shape.description,
  slug: z.string().meta({ pattern: NAME_PATTERN.source }).optional().meta({ description: 'Saves the stack under this slug; without one it is only returned' })
})
export const snapshotAnswerSchema = z.union([
  z.strictObject({ created: z.literal(false), stack: stackSchema }),
  z.strictObject({ created: z.literal(true), stack: stackItemSchema })
])

const flag = z.stringbool({ truthy: ['', 'true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'] })
export const applyQuerySchema = z.strictObject({
  dry_run: flag.default(false),
  force: flag.default(false).meta({ description: 'Even if a serving slot would not start again' })
})

const fieldChangeSchema = z.strictObject({
  key: z.string().meta({ description: 'Dotted key of the slot' }),
  before: z.unknown(),
  after: z.unknown()
})

export const slotChangeSchema = z.strictObject({
  slot: z.string(),
  before_model: z.string().nullable(),
  after_model: z.string().nullable(),
  changed: z.boolean(),
  fields: z.array(fieldChangeSchema)
})
export type SlotChangeView = z.output<typeof slotChangeSchema>

export const capabilityChangeSchema = z.strictObject({
  child: z.enum(capabilityChildren),
  slot: z.string().meta({ description: 'Slot that serves it' }),
  before: capabilitySelectionSchema.nullable(),
  after: capabilitySelectionSchema,
  changed: z.boolean()
})
export type CapabilityChangeView = z.output<typeof capabilityChangeSchema>

const problemSchema = z.strictObject({
  target: z.string().meta({ description: '`slot:<name>` or `capability:<child>`' }),
  error: z.string()
})
export type StackProblem = z.output<typeof problemSchema>

const troubleSchema = z.strictObject({
  slot: z.string(),
  what: z.enum(launchNeeds),
  message: z.string(),
  serves: z.boolean().meta({ description: 'The slot serves now, or would with its next request: applying is refused' })
})
export type SlotTrouble = z.output<typeof troubleSchema>

const planShape = {
  stack: z.string(),
  summary: z.array(z.string()),
  changes: z.array(slotChangeSchema),
  profiles: z.array(z.string()).meta({ description: 'Created from the copies in the stack' }),
  capabilities: z.array(capabilityChangeSchema),
  warnings: z.array(z.string()),
  troubles: z.array(troubleSchema).meta({ description: 'Why slots of the stack cannot start on this host' })
}

export const applyPreviewSchema = z.strictObject({
  ...planShape,
  dry_run: z.literal(true),
  creates: z.array(z.string()).meta({ description: 'Slots' }),
  unloads: z.array(z.string()).meta({ description: 'Running slots that are not in the stack' })
})

export const convergedSchema = z.strictObject({
  loaded: z.array(z.string()),
  swapped: z.array(z.string()),
  reloaded: z.array(z.string()),
  skipped: z.array(z.string()).meta({ description: 'Right already' }),
  unloaded: z.array(z.string()),
  capabilities_applied: z.array(z.string()),
  errors: z.array(problemSchema)
})
export type Converged = z.output<typeof convergedSchema>

export const applyReportSchema = z.strictObject({
  ...planShape,
  dry_run: z.literal(false),
  created: z.array(z.string()).meta({ description: 'Slots' }),
  converged: convergedSchema
}).meta({ title: 'StackApplyReport' })
export const applyAnswerSchema = z.union([applyPreviewSchema, applyReportSchema])

/** `.svcstack.json`. */
export const envelopeSchema = z.strictObject({
  kind: z.literal(ENVELOPE_KIND),
  schema_version: z.literal(STACK_VERSION),
  svc_version: z.string(),
  exported_at: z.string().meta({ description: 'ISO 8601 UTC' }),
  checksum: z.string().meta({ description: 'sha256 over the canonical stack body' }),
  stack: stackSchema,
  omitted: z.array(z.string()).optional().meta({ description: 'Parts that were left out: secrets, and paths of this host' })
})

/** An envelope that comes in: unknown keys are ignored, and a missing checksum is not a wrong one. */
const incomingEnvelopeSchema = envelopeSchema.pick({ kind: true, schema_version: true, stack: true })
  .extend({ checksum: z.string().nullish() }).loose()

/** The envelope itself is checked with a code of its own. */
export const importBodySchema = z.strictObject({
  envelope: z.record(z.string(), z.unknown())
    .meta(madeWhenRead(() => ({ description: 'A `.svcstack.json`', ...documentedShape(incomingEnvelopeSchema) }))),
  slug: z.string().meta({ pattern: NAME_PATTERN.source }).optional(),
  dry_run: z.boolean().default(false)
})

export const modelStatuses = ['present', 'pullable', 'unresolvable'] as const
export const resolutionSchema = z.strictObject({
  model_id: z.string(),
  status: z.enum(modelStatuses),
  hf_repo: z.string(),
  hf_filename: z.string()
})
export type ModelResolution = z.output<typeof resolutionSchema>

const modelsShape = {
  present: z.array(z.string()).meta({ description: 'Model ids' }),
  pullable: z.array(z.string()),
  unresolvable: z.array(z.string())
}
const profileFateSchema = z.strictObject({
  name: z.string(),
  status: z.enum(['created', 'local']).meta({ description: 'local: this host already has one of that name, which stays' })
})

export const importReportSchema = z.strictObject({
  dry_run: z.literal(true),
  valid: z.boolean(),
  checksum_ok: z.boolean(),
  name: z.string(),
  schema_version: z.int(),
  resolutions: z.array(resolutionSchema),
  ...modelsShape,
  profiles: z.array(profileFateSchema),
  collides: z.boolean().meta({ description: 'Whether the slug is taken' })
})
export const importedSchema = z.strictObject({
  dry_run: z.literal(false),
  stack: stackItemSchema,
  ...modelsShape,
  profiles: z.array(profileFateSchema)
})
export const importAnswerSchema = z.union([importReportSchema, importedSchema])
