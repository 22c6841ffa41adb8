import { z } from 'zod'

const text = z.string().nullish()

/** A row of `GET /api/profiles`, as far as it is shown. */
export const profileRecordSchema = z.looseObject({
  name: z.string(),
  image: z.string(),
  flags: z.string().default(''),
  resolved_flags: z.string().default(''),
  mtp: z.boolean().default(false),
  device_class: z.string(),
  backend: text,
  cloned_from: text,
  intent: z.string().default(''),
  quant: z.string().default(''),
  seed: z.boolean().default(false),
  tps: z.number().nullish(),
  used_by: z.array(z.string()).default([])
})
export type ProfileRecord = z.output<typeof profileRecordSchema>
