import { z } from 'zod'

export const SECRET_NAME = /^[A-Z][A-Z0-9_]{0,63}$/

/** No control characters, and none that cannot be seen: what is pasted has them by mistake. */
export const SECRET_VALUE = /^[^\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*$/

/** The route's own rules refuse a name or a value, so that the codes are those of the group. */
export const nameParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Name of the environment variable', pattern: SECRET_NAME.source, examples: ['HF_TOKEN'] }) })
export const valueBodySchema = z.strictObject({
  value: z.string().meta({ description: 'One line of printable characters', minLength: 1, maxLength: 8192, pattern: SECRET_VALUE.source, writeOnly: true }),
  upstreams: z.array(z.string().min(1).max(64)).max(200).optional()
    .meta({ description: 'Upstreams that may send it: those that already use this variable, at an address that is in no template' })
})

export const secretListSchema = z.strictObject({
  secrets: z.array(z.strictObject({
    name: z.string(),
    set: z.literal(true),
    masked: z.string().meta({ description: 'Always eight bullets' }),
    updated_at: z.string().nullable().meta({ description: 'Last change of the file; ISO 8601 UTC' })
  })).meta({ description: 'By name' })
})
