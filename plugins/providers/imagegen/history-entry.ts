import { z } from 'zod'

const imageFileSchema = z.looseObject({ filename: z.string(), subfolder: z.string().default(''), type: z.string().default('output') })
export type ImageFile = z.output<typeof imageFileSchema>

export const historyEntrySchema = z.looseObject({
  outputs: z.record(z.string(), z.looseObject({ images: z.array(imageFileSchema).optional() })).default({}),
  /** Null in old releases, where an entry alone says that it is over. */
  status: z.looseObject({
    status_str: z.string(),
    completed: z.boolean(),
    messages: z.array(z.tuple([z.string(), z.looseObject({})])).default([])
  }).nullish()
})

export type HistoryEntry = z.output<typeof historyEntrySchema>
