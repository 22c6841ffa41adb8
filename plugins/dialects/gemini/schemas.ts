import { z } from 'zod'

const part = z.looseObject({})

/**
 * Of `generateContent`, `streamGenerateContent` and `countTokens`; `embedContent` takes `content`, `batchEmbedContents`
 * `requests`. Members are taken in Google's other spelling too: `system_instruction`.
 */
export const askBodySchema = z.looseObject({
  contents: z.array(z.looseObject({ role: z.string().optional(), parts: z.array(part).optional() })).optional()
    .meta({ description: 'The conversation; for embeddings `content` or `requests` instead' }),
  systemInstruction: z.looseObject({ parts: z.array(part).optional() }).optional(),
  tools: z.array(z.looseObject({})).optional().meta({ description: '`functionDeclarations`; others are ignored with a warning' }),
  toolConfig: z.looseObject({}).optional(),
  generationConfig: z.looseObject({}).optional()
}).meta({ title: 'GenerateContentRequest' })

export const askParamsSchema = z.strictObject({
  '*': z.string().min(1).meta({
    description: 'Model and method: `agent:generateContent`, `:streamGenerateContent`, `:countTokens`, `:embedContent` or `:batchEmbedContents`',
    pattern: '^\\S+:[A-Za-z]+$',
    examples: ['agent:generateContent']
  })
})
export const askQuerySchema = z.looseObject({
  alt: z.string().optional().meta({ description: '`sse` for a stream of events; otherwise a stream is a JSON list' }),
  key: z.string().optional().meta({ description: 'Accepted and ignored' })
})

const candidate = z.looseObject({
  content: z.looseObject({ role: z.literal('model'), parts: z.array(z.looseObject({})) }),
  finishReason: z.string().optional(),
  index: z.int()
})
const answer = z.looseObject({ candidates: z.array(candidate), modelVersion: z.string(), responseId: z.string() })
const values = z.looseObject({ values: z.array(z.number()) })
export const askAnswerSchema = z.union([
  answer,
  z.array(z.union([answer, z.looseObject({ error: z.looseObject({}) })])),
  z.strictObject({ totalTokens: z.int() }),
  z.strictObject({ embedding: values }),
  z.strictObject({ embeddings: z.array(values) })
])

export const modelSchema = z.strictObject({
  name: z.string(),
  version: z.string(),
  displayName: z.string(),
  description: z.string(),
  inputTokenLimit: z.int().optional(),
  outputTokenLimit: z.int().optional(),
  supportedGenerationMethods: z.array(z.string())
})
export const modelListSchema = z.strictObject({ models: z.array(modelSchema), nextPageToken: z.string().optional() })
export const modelParamsSchema = z.strictObject({
  '*': z.string().min(1).meta({ description: 'Model id', pattern: '^\\S+$', examples: ['agent'] })
})
export const listQuerySchema = z.looseObject({
  pageSize: z.coerce.number().int().min(1).max(1000).default(50),
  pageToken: z.string().optional().meta({ description: '`nextPageToken` of the previous page' })
})
