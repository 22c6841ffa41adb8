import { z } from 'zod'

export const responsesBodySchema = z.looseObject({
  model: z.string().meta({ description: 'Slot name, model id, `svc/<role>` or upstream model', minLength: 1 }),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish().meta({ description: 'Whether the response is kept; true by default' }),
  previous_response_id: z.string().nullish().meta({ description: 'A kept response to continue from' }),
  conversation: z.union([z.string(), z.looseObject({ id: z.string() })]).nullish().meta({
    description: 'A kept conversation to continue; the request and its answer are added to it'
  }),
  background: z.boolean().nullish().meta({ description: 'Answer at once, with a response to poll until it is complete; with `stream`, its events; it goes on if the client disconnects' })
})

const usageSchema = z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() })

const { model, input, instructions, previous_response_id: previous, conversation } = responsesBodySchema.shape

export const compactBodySchema = z.looseObject({ model, input: input.nullish(), instructions, previous_response_id: previous })

export const compactAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response.compaction'),
  created_at: z.number().meta({ description: 'Epoch seconds' }),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: usageSchema
})

export const inputTokensBodySchema = z.looseObject({
  model, input: input.nullish(), instructions, previous_response_id: previous,
  conversation: conversation.meta({ description: 'A kept conversation that precedes the request' })
})

export const inputTokensAnswerSchema = z.looseObject({ object: z.literal('response.input_tokens'), input_tokens: z.int() })

/** What engines answer; it is documented and passed on as it comes. */
export const responsesAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().meta({ description: 'Epoch seconds' }),
  model: z.string(),
  status: z.string(),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: usageSchema.nullish()
})

/** What is kept, as it was answered. */
export const keptAnswerSchema = z.looseObject({ id: z.string(), object: z.literal('response'), output: z.array(z.looseObject({})) })

export const responseParamsSchema = z.strictObject({
  id: z.string().min(1).max(200).meta({ description: 'Id of a response', pattern: '^\\S+$', examples: ['resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0'] })
})

/** What `Number` would read as well (`''`, `0x3`, `1e3`) is no number of an event. */
function decimalOnly (value: unknown): unknown {
  return typeof value === 'string' && !/^-?\d+$/.test(value) ? NaN : value
}

export const retrieveQuerySchema = z.looseObject({
  stream: z.stringbool().optional().meta({ description: 'Stream its events instead of the response itself; those of an unfinished response end with it' }),
  starting_after: z.preprocess(decimalOnly, z.coerce.number().int().min(0)).optional().meta({
    description: 'Together with `stream`: the `sequence_number` to continue after'
  })
})

export const itemsQuerySchema = z.looseObject({
  order: z.enum(['asc', 'desc']).default('desc').meta({ description: 'By age' }),
  limit: z.coerce.number().int().min(1).max(100).default(20).meta({ description: 'Maximum number of items' }),
  after: z.string().max(200).optional().meta({ description: 'Id of the item after which the list continues' })
})

export const itemListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(z.looseObject({})),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean()
})

export const deletedSchema = z.strictObject({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) })

const metadataSchema = z.record(z.string().max(64), z.string().max(512)).refine(pairs => Object.keys(pairs).length <= 16, 'may have 16 keys at most')
const itemsSchema = z.array(z.looseObject({})).max(20)

export const conversationBodySchema = z.looseObject({
  items: itemsSchema.nullish().meta({ description: 'The conversation so far, at most 20 items' }),
  metadata: metadataSchema.nullish().meta({ description: 'At most 16 values of at most 512 characters, with keys of at most 64' })
})

export const conversationUpdateSchema = z.looseObject({ metadata: metadataSchema.nullable() })

export const conversationItemsBodySchema = z.looseObject({ items: itemsSchema.min(1) })

export const conversationParamsSchema = z.strictObject({
  id: z.string().min(1).max(200).meta({
    description: 'Id of a conversation', pattern: '^\\S+$', examples: ['conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0']
  })
})

export const conversationItemParamsSchema = conversationParamsSchema.extend({
  item: z.string().min(1).max(200).meta({
    description: 'Id of an item', pattern: '^\\S+$', examples: ['msg_0f1e2d3c4b5a69788796a5b4c3d2e1f0']
  })
})

export const conversationSchema = z.strictObject({
  id: z.string(), object: z.literal('conversation'), created_at: z.number().meta({ description: 'Epoch seconds' }), metadata: z.record(z.string(), z.string())
})

export const conversationItemSchema = z.looseObject({ id: z.string(), type: z.string() })

export const deletedConversationSchema = z.strictObject({ id: z.string(), object: z.literal('conversation.deleted'), deleted: z.literal(true) })
