import { z } from 'zod'

const modelSchema = z.string().meta({ description: 'Slot name, model id, `svc/<slot>` or upstream model', pattern: '\\S' })
const MOST_DOCUMENTS = 10_000

export const rankBodySchema = z.looseObject({
  model: modelSchema.regex(/\S/, { error: 'is empty' }),
  query: z.string(),
  documents: z.array(z.string()).min(1).max(MOST_DOCUMENTS),
  top_n: z.int().min(1).nullish()
})

export const rankAnswerSchema = z.looseObject({
  id: z.string(),
  results: z.array(z.looseObject({ index: z.int(), relevance_score: z.number() })),
  meta: z.looseObject({}).optional()
})

const textsSchema = z.union([z.string(), z.array(z.string()).min(1).max(MOST_DOCUMENTS)])

export const scoreBodySchema = z.looseObject({
  model: modelSchema,
  text_1: textsSchema.meta({ description: 'One text, or as many as `text_2` has' }),
  text_2: textsSchema
})

export const scoreAnswerSchema = z.looseObject({
  id: z.string(),
  object: z.literal('list'),
  created: z.int(),
  model: z.string(),
  data: z.array(z.looseObject({ index: z.int(), object: z.literal('score'), score: z.number() }))
})
