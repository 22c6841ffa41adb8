import { z } from 'zod'

export const responsesBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', minLength: 1 }),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish().meta({ description: 'Whether the response is kept; true where nothing is said' }),
  previous_response_id: z.string().nullish().meta({ description: 'A kept response that this one goes on from' }),
  background: z.boolean().nullish().meta({ description: 'Answer at once, with a response to be asked for until it is complete; not with `stream`' })
})

/** What engines answer; it is documented and passed on as it comes. */
export const responsesAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().meta({ description: 'Epoch seconds' }),
  model: z.string(),
  status: z.string(),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }).nullish()
})

/** What is kept, as it was answered. */
export const keptAnswerSchema = z.looseObject({ id: z.string(), object: z.literal('response'), output: z.array(z.looseObject({})) })

export const responseParamsSchema = z.strictObject({
  id: z.string().min(1).max(200).meta({ description: 'Id of a response', pattern: '^\\S+$', examples: ['resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0'] })
})

export const retrieveQuerySchema = z.looseObject({
  stream: z.string().optional().meta({ description: 'Not supported: the kept response is answered whole' })
})

export const itemsQuerySchema = z.looseObject({
  order: z.enum(['asc', 'desc']).default('desc').meta({ description: 'By age' }),
  limit: z.coerce.number().int().min(1).max(100).default(20).meta({ description: 'How many at most' }),
  after: z.string().max(200).optional().meta({ description: 'Id of the item that the list goes on behind' })
})

export const itemListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(z.looseObject({})),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean()
})

export const deletedSchema = z.strictObject({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) })
