import { z } from 'zod'

const modelName = z.string().meta({ description: 'Slot name, model id, alias or upstream model; the tag `:latest` is ignored', pattern: '\\S' })
const stream = z.boolean().optional().meta({ description: 'False for one object; by default one line of JSON per piece' })
const keepAlive = z.union([z.string(), z.number()]).optional()
  .meta({ description: 'How long the model stays after the request: seconds, or a duration such as `5m`; 0 unloads, -1 keeps' })
const options = z.looseObject({}).optional().meta({ description: '`num_predict`, `temperature`, `top_k`, `top_p`, `min_p`, `stop`, `seed` and more' })
const format = z.union([z.literal('json'), z.looseObject({})]).optional().meta({ description: '`json`, or a JSON schema' })
const think = z.union([z.boolean(), z.enum(['low', 'medium', 'high'])]).optional()
const images = z.array(z.string()).optional().meta({ description: 'Pictures in base64' })
const spoken = {
  model: modelName,
  stream,
  keep_alive: keepAlive,
  options,
  format,
  think,
  logprobs: z.boolean().optional(),
  top_logprobs: z.int().optional()
}

export const chatBodySchema = z.looseObject({
  ...spoken,
  messages: z.array(z.looseObject({ role: z.enum(['system', 'user', 'assistant', 'tool']), content: z.string().optional(), images }))
    .optional().meta({ description: 'Without any, the model is loaded, or with `keep_alive: 0` unloaded' }),
  tools: z.array(z.looseObject({})).optional()
})

export const generateBodySchema = z.looseObject({
  ...spoken,
  prompt: z.string().optional(),
  suffix: z.string().optional(),
  system: z.string().optional(),
  raw: z.boolean().optional().meta({ description: 'The prompt goes to the model unchanged, without its template' }),
  images
})

const ending = {
  model: z.string(),
  created_at: z.string(),
  done: z.boolean(),
  done_reason: z.string().optional(),
  total_duration: z.int().optional().meta({ description: 'Durations are in nanoseconds' }),
  load_duration: z.int().optional(),
  prompt_eval_count: z.int().optional(),
  prompt_eval_duration: z.int().optional(),
  eval_count: z.int().optional(),
  eval_duration: z.int().optional()
}
export const chatAnswerSchema = z.looseObject({ ...ending, message: z.looseObject({ role: z.literal('assistant'), content: z.string() }) })
export const generateAnswerSchema = z.looseObject({ ...ending, response: z.string() })

export const embedBodySchema = z.looseObject({
  model: modelName,
  input: z.union([z.string(), z.array(z.string())]).nullish(),
  dimensions: z.int().optional(),
  keep_alive: keepAlive,
  options
})
const vector = z.array(z.number())
export const embedAnswerSchema = z.looseObject({ model: z.string(), embeddings: z.array(vector), prompt_eval_count: z.int() })
export const oldEmbedBodySchema = z.looseObject({
  model: modelName, prompt: z.string().nullish(), keep_alive: keepAlive, options
})
export const oldEmbedAnswerSchema = z.strictObject({ embedding: vector })

const details = z.strictObject({
  parent_model: z.string(),
  format: z.string(),
  family: z.string(),
  families: z.array(z.string()),
  parameter_size: z.string(),
  quantization_level: z.string()
})
const listed = { name: z.string(), model: z.string(), size: z.int(), digest: z.string(), details }
export const tagsSchema = z.strictObject({ models: z.array(z.strictObject({ ...listed, modified_at: z.string() })) })
export const runningSchema = z.strictObject({
  models: z.array(z.strictObject({ ...listed, expires_at: z.string(), size_vram: z.int(), context_length: z.int() }))
})
export const showBodySchema = z.looseObject({ model: modelName })
export const shownSchema = z.strictObject({
  license: z.string().optional(),
  modelfile: z.string(),
  parameters: z.string(),
  template: z.string(),
  details,
  model_info: z.record(z.string(), z.unknown()),
  capabilities: z.array(z.string()),
  modified_at: z.string()
})
export const versionSchema = z.strictObject({ version: z.string() })
export const pullBodySchema = z.looseObject({ model: modelName, stream })
export const progressSchema = z.looseObject({ status: z.string() })
export const createBodySchema = z.looseObject({
  model: modelName,
  from: z.string().optional(),
  modelfile: z.string().optional(),
  parameters: z.looseObject({}).optional(),
  stream
})
export const copyBodySchema = z.looseObject({ source: z.string(), destination: z.string() })
export const deleteBodySchema = z.looseObject({ model: modelName })
export const blobParamsSchema = z.strictObject({
  digest: z.string().meta({ description: 'Hash of a file', pattern: '^\\S+$', examples: ['sha256:29fdb92e57cf0827ded04ae6461b5931d01fa595843f55d36f5b275a52087dd2'] })
})
