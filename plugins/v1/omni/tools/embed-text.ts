import { z } from 'zod'
import { askEngineJson } from '../engine-call.js'
import { defineOmniTool, slotFor, type OfferTool } from '../tool.js'

const answerSchema = z.looseObject({ data: z.array(z.looseObject({ embedding: z.array(z.number()) })) })
/** Numbers that a model is told; more would only fill its context. */
const MOST_NUMBERS = 256

/** Vectors of texts, and how alike the texts are. */
export const embedText: OfferTool = context => {
  const slot = slotFor(context.slots, 'embedding')
  return slot === null ? null : defineOmniTool({
    name: 'embed_text',
    description: 'Compare texts by meaning: their vectors, and for each pair how alike they are, from -1 to 1.',
    parameters: z.object({ input: z.array(z.string().min(1)).min(1).max(64).describe('The texts') }),
    run: async ({ input }, signal) => {
      const body = { model: slot.name, input, encoding_format: 'float' }
      const { data } = answerSchema.parse(await askEngineJson(context, 'embeddings', '/embeddings', body, signal))
      const vectors = data.map(({ embedding }) => embedding)
      const dimensions = vectors[0]?.length ?? 0
      const similarity = vectors.map(a => vectors.map(b => rounded(cosine(a, b))))
      const fits = vectors.length * dimensions <= MOST_NUMBERS
      return { told: { dimensions, similarity, ...fits ? { embeddings: vectors.map(vector => vector.map(rounded)) } : {} } }
    }
  })
}

function cosine (a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0)
  const length = Math.hypot(...a) * Math.hypot(...b)
  return length === 0 ? 0 : dot / length
}

function rounded (value: number): number {
  return Math.round(value * 1e4) / 1e4
}
