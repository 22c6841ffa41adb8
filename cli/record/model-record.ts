import { z } from 'zod'

const text = z.string().nullish()

/** A row of `GET /api/models`, as far as it is shown; loose, so that a newer or older gateway can be looked at too. */
export const modelRecordSchema = z.looseObject({
  id: z.string(),
  name: text,
  path: text,
  type: text,
  upstream: text,
  owned_by: text,
  installed: z.boolean().default(false),
  size_bytes: z.number().nullish(),
  quant: text,
  license: text,
  capabilities: z.array(z.string()).default([]),
  backends: z.array(z.string()).default([]),
  tags: z.array(z.string()).default([]),
  hf_repo: text,
  hf_filename: text,
  mmproj: text,
  defaults: z.record(z.string(), z.unknown()).default({}),
  metadata: z.record(z.string(), z.unknown()).default({})
})

export type ModelRecord = z.output<typeof modelRecordSchema>

export const modelListSchema = z.looseObject({ models: z.array(modelRecordSchema) })
