import { z } from 'zod'

const number = z.number().nullish()
const integer = z.int().nullish()
const tokens = z.array(z.int().min(0)).min(1)
const stopSchema = z.union([z.string(), z.array(z.string())], { error: 'must be a string or a list of strings' }).nullish()

/** Most tokens whose probabilities are told beside the one that was picked; what llama-server tells without a number. */
export const MOST_LOGPROBS = 20
const topLogprobs = z.int().min(0).max(MOST_LOGPROBS).nullish()

/** Most answers to one request, of all its prompts together. */
export const MOST_ANSWERS = 2048

/** Things that a caller must not believe to have, so they are refused instead of left out. */
const unsupported = z.unknown().refine(value => !value, {
  error: 'is not supported by the embedded engine; install llama-server to use it'
}).optional()

const generation = {
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(8, { error: 'must be at most 8: ask again for more answers' }).nullish(),
  stop: stopSchema,
  max_tokens: integer,
  max_completion_tokens: integer,
  n_predict: integer,
  seed: number,
  temperature: number,
  top_k: integer,
  top_p: number,
  min_p: number,
  repeat_penalty: number,
  repeat_last_n: integer,
  presence_penalty: number,
  frequency_penalty: number,
  logit_bias: z.union([
    z.record(z.string().regex(/^\d+$/, { error: 'keys must be token ids' }), z.number()),
    z.array(z.tuple([z.int().min(0), z.number()]))
  ], { error: 'must map token ids to numbers' }).nullish(),
  grammar: z.string().min(1).nullish(),
  json_schema: z.unknown().optional(),
  response_format: z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('text') }),
    z.looseObject({ type: z.literal('json_object'), schema: z.unknown().optional() }),
    z.looseObject({ type: z.literal('json_schema'), json_schema: z.looseObject({ schema: z.unknown().optional() }) })
  ], { error: 'must be of type text, json_object or json_schema' }).nullish()
}

export const generationSchema = z.looseObject(generation)
export type GenerationBody = z.output<typeof generationSchema>

const partSchema = z.looseObject({
  type: z.literal('text'),
  text: z.string()
})

const toolCallSchema = z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }) })

const messageSchema = z.looseObject({
  role: z.string().min(1),
  content: z.union([z.string(), z.array(partSchema)], {
    error: 'must be a string or a list of text parts; images need llama-server and a model with a projector'
  }).nullish(),
  tool_calls: z.array(toolCallSchema).nullish(),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish()
}).refine(message => message.role === 'assistant' || (message.content !== null && message.content !== undefined), {
  path: ['content'], error: 'is required in messages that are not from the assistant'
})
export type ChatMessage = z.output<typeof messageSchema>

/** A value of this shape exactly as it came: templates write objects in the order of their keys, which models were trained on. */
function asGiven<S extends z.ZodType> (schema: S): z.ZodOptional<z.ZodType<z.output<S>>> {
  const checked = z.unknown().superRefine((value, context) => {
    for (const { path, message } of schema.safeParse(value).error?.issues ?? []) context.addIssue({ code: 'custom', path, message })
  })
  return z.optional(checked as z.ZodType<z.output<S>>)
}

const toolSchema = z.looseObject({
  type: z.literal('function', { error: 'must be function' }),
  function: z.looseObject({ name: z.string().min(1).max(256), parameters: z.unknown().optional() })
})

const toolChoiceSchema = z.union([
  z.enum(['auto', 'none', 'required']),
  z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) })
], { error: 'must be auto, none, required, or name a function' })

export const chatSchema = z.looseObject({
  ...generation,
  messages: z.array(messageSchema, { error: issue => issue.input === undefined ? 'is required' : 'must be an array' }),
  tools: asGiven(z.array(toolSchema).nullish()),
  tool_choice: toolChoiceSchema.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: unsupported,
  function_call: unsupported,
  logprobs: z.boolean().nullish(),
  top_logprobs: topLogprobs,
  reasoning_format: z.enum(['none', 'auto', 'deepseek'], { error: 'must be none, auto or deepseek' }).nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
  add_generation_prompt: z.boolean().nullish()
}).refine(body => body.logprobs === true || (body.top_logprobs ?? null) === null, { path: ['top_logprobs'], error: 'requires logprobs to be set to true' })
  .refine(body => body.logprobs !== true || body.stream !== true || (body.tools ?? []).length === 0, {
    path: ['logprobs'], error: 'is not supported with tools and stream; ask without one of them'
  })
export type ChatBody = z.output<typeof chatSchema>

export const completionSchema = z.looseObject({
  ...generation,
  logprobs: z.union([z.boolean(), z.int().min(0).max(MOST_LOGPROBS)], { error: `must be a number from 0 to ${MOST_LOGPROBS}` }).nullish(),
  echo: unsupported,
  suffix: unsupported,
  best_of: z.int().max(1, { error: 'above 1 is not supported by the embedded engine; ask for several answers with n' }).nullish(),
  prompt: z.union([z.string(), tokens, z.array(z.union([z.string(), tokens])).min(1)], {
    error: issue => issue.input === undefined ? 'is required' : 'must be a string, a list of tokens, or a list of these'
  })
})
export type CompletionBody = z.output<typeof completionSchema>

export const embeddingsSchema = z.looseObject({
  input: z.union([z.string(), tokens, z.array(z.union([z.string(), tokens])).min(1)], {
    error: issue => issue.input === undefined ? 'is required' : 'must be a string, a list of tokens, or a list of these, and not be empty'
  }),
  encoding_format: z.enum(['float', 'base64']).nullish()
})

export const rerankSchema = z.looseObject({
  query: z.string(),
  documents: z.array(z.string()).min(1),
  top_n: z.int().min(1).nullish()
})

export const tokenizeSchema = z.looseObject({
  content: z.string(),
  add_special: z.boolean().nullish(),
  with_pieces: z.boolean().nullish()
})
export const detokenizeSchema = z.looseObject({ tokens: z.array(z.int().min(0)) })
