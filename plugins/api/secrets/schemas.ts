import { z } from 'zod'

/** The route's own rules refuse a name or a value, so that the codes are those of the group. */
export const nameParamsSchema = z.strictObject({ name: z.string() })
export const valueBodySchema = z.strictObject({
  value: z.string().meta({ description: 'One line of printable characters', writeOnly: true })
})

export const secretListSchema = z.strictObject({
  secrets: z.array(z.strictObject({
    name: z.string(),
    set: z.literal(true),
    masked: z.string().meta({ description: 'Always eight bullets, whatever the value' }),
    updated_at: z.string().nullable().meta({ description: 'When the file was written last; ISO 8601 UTC' })
  })).meta({ description: 'By name' })
})
