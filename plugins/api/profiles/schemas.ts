import { documentedShape, madeWhenRead, NAME_PATTERN, nameSchema, profileSchema, slotTypeSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

/** The format of the envelope, not of the release. */
export const ENVELOPE_VERSION = 1
export const ENVELOPE_KIND = 'svc.profile'

/** Any text: a name that no profile can have is a profile that does not exist. */
export const nameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Profile name', pattern: NAME_PATTERN.source, examples: ['cpu-llm'] }) })

/** The same for what a built-in profile refuses. */
export const ownNameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Profile name', pattern: NAME_PATTERN.source, examples: ['my-cpu'] }) })

/** A profile, with what this gateway knows about it. */
export const profileItemSchema = z.strictObject({
  name: z.string(),
  ...profileSchema.shape,
  seed: z.boolean().meta({ description: 'Built in and immutable' }),
  resolved_flags: z.string().meta({ description: 'Includes those of multi-token prediction if the profile opts in' }),
  runtime_family: z.string().nullable(),
  supported_slot_types: z.array(slotTypeSchema),
  tps: z.number().nullable().meta({ description: 'Tokens per second, measured by the slots that use it; null if there are no measurements' }),
  rtf: z.number().nullable().meta({ description: 'Real-time factor of speech; always null, as it is not measured' }),
  used_by: z.array(z.string()).meta({ description: 'Slots' })
}).meta({ title: 'Profile' })

export const createBodySchema = z.strictObject({ name: nameSchema, ...profileSchema.shape })

const { shape } = profileSchema

/** Null keeps a field. */
export const patchBodySchema = z.strictObject({
  image: shape.image.nullish(),
  flags: shape.flags.unwrap().nullish(),
  mtp: shape.mtp.unwrap().nullish(),
  device_class: shape.device_class.unwrap().nullish(),
  backend: shape.backend.unwrap().nullish(),
  cloned_from: shape.cloned_from.unwrap().nullish(),
  intent: shape.intent.unwrap().nullish(),
  quant: shape.quant.unwrap().nullish()
})
export type ProfilePatch = z.output<typeof patchBodySchema>

/** `.svcprofile.json`. */
export const envelopeSchema = z.strictObject({
  kind: z.literal(ENVELOPE_KIND),
  schema_version: z.literal(ENVELOPE_VERSION),
  svc_version: z.string(),
  exported_at: z.string().meta({ description: 'ISO 8601 UTC' }),
  name: z.string(),
  checksum: z.string().meta({ description: 'sha256 over the canonical profile body' }),
  profile: profileSchema,
  omitted: z.array(z.string()).optional().meta({ description: 'Flags that were left out: secrets, and paths of this host' })
})

/** An envelope that comes in: unknown keys are ignored, and a missing checksum is not a wrong one. */
const incomingEnvelopeSchema = envelopeSchema.pick({ kind: true, schema_version: true, profile: true })
  .extend({ name: z.string().optional(), checksum: z.string().nullish() }).loose()

/** The envelope itself is checked with a code of its own. */
export const importBodySchema = z.strictObject({
  envelope: z.record(z.string(), z.unknown())
    .meta(madeWhenRead(() => ({ description: 'A `.svcprofile.json`', ...documentedShape(incomingEnvelopeSchema) }))),
  name: nameSchema.optional(),
  dry_run: z.boolean().default(false)
})

export const importReportSchema = z.strictObject({
  dry_run: z.literal(true),
  valid: z.boolean(),
  checksum_ok: z.boolean(),
  name: z.string().meta({ description: 'The requested one, else that of the envelope' }),
  schema_version: z.int(),
  collides: z.boolean().meta({ description: 'Whether the name is taken' })
})
export const importAnswerSchema = z.union([importReportSchema, profileItemSchema])
