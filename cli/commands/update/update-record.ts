import { z } from 'zod'

export const updateStateSchema = z.looseObject({
  installation: z.looseObject({ kind: z.string(), advice: z.string().nullable() })
})

export const updateCheckSchema = z.looseObject({
  current: z.string(),
  latest: z.string(),
  channel: z.string(),
  update_available: z.boolean(),
  blocked: z.string().nullable(),
  manifest: z.looseObject({ released_at: z.string().optional(), notes_url: z.string().optional() })
})
export type UpdateCheck = z.output<typeof updateCheckSchema>
