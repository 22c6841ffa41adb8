import { z } from 'zod'

const failureSchema = z.looseObject({
  code: z.string(),
  message: z.string(),
  attempts: z.number().optional(),
  log_tail: z.array(z.string()).default([])
})

const metadataSchema = z.looseObject({
  message: z.string().default(''),
  engine: z.string().nullish(),
  in_flight: z.number().default(0),
  waiting: z.number().default(0),
  failure: failureSchema.optional(),
  config_error: z.string().optional(),
  provider_gone: z.boolean().default(false),
  pending_model: z.string().optional(),
  pull_failed: z.string().optional(),
  file_problems: z.array(z.looseObject({ path: z.string(), message: z.string() })).default([])
})

/** Whose an engine is; loose, as everything that a newer gateway may say more of. */
export const aboutSchema = z.looseObject({
  license: z.string(),
  homepage: z.string(),
  image: z.looseObject({ license: z.string().optional(), homepage: z.string().optional() }).optional()
})

const text = z.string().nullish()

/**
 * A row of `GET /api/slots`, as far as it is shown: a slot, or an upstream among the slots. Loose, so that a newer or
 * older gateway can be looked at too.
 */
export const slotRecordSchema = z.looseObject({
  name: z.string(),
  kind: text,
  type: text,
  state: z.string(),
  enabled: z.boolean().default(true),
  default: z.boolean().default(false),
  pinned: z.boolean().default(false),
  port: z.number().nullish(),
  ports: z.record(z.string(), z.number()).default({}),
  device: text,
  backend: text,
  provider: text,
  profile: text,
  model_id: text,
  model_default: text,
  model: text,
  ctx_max: z.number().nullish(),
  idle_timeout_s: z.number().nullish(),
  llamacpp_args: z.union([z.string(), z.array(z.string())]).nullish(),
  runtime: text,
  image: text,
  actual_image: text,
  image_status: text,
  resolved_command: z.array(z.string()).nullish(),
  mem_mb: z.number().nullish(),
  url: text,
  served_by: text,
  replicas: z.array(z.looseObject({
    index: z.number(), state: z.string(), port: z.number().nullish(), in_flight: z.number().default(0), error: text
  })).default([]),
  replicas_ready: z.number().default(0),
  remote_error: text,
  about: aboutSchema.nullish(),
  config_drift: z.boolean().default(false),
  metrics: z.looseObject({ toks: z.number().nullish(), ttft: z.number().nullish() }).optional(),
  metadata: metadataSchema.prefault({}),
  fit_warning: text,
  findings: z.array(z.looseObject({ path: z.string(), message: z.string() })).default([])
})

export const slotListSchema = z.array(slotRecordSchema)
export type SlotRecord = z.output<typeof slotRecordSchema>

/** The model that is loaded, else the one that would be. */
export function modelOf (record: SlotRecord): string {
  return record.model_id ?? record.model_default ?? record.model ?? record.metadata.pending_model ?? ''
}

/** Ready for requests now or at once. */
export function isServing ({ state }: SlotRecord): boolean {
  return state === 'ready' || state === 'serving' || state === 'idle'
}
