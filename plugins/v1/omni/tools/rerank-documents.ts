import { z } from 'zod'
import { askEngineJson } from '../engine-call.js'
import { defineOmniTool, slotFor, type OfferTool } from '../tool.js'

const answerSchema = z.looseObject({ results: z.array(z.looseObject({ index: z.int(), relevance_score: z.number() })) })

/** Documents in the order in which they answer a query. */
export const rerankDocuments: OfferTool = context => {
  const slot = slotFor(context.slots, 'reranking')
  return slot === null ? null : defineOmniTool({
    name: 'rerank_documents',
    description: 'Order documents by how well they answer a query, best first.',
    parameters: z.object({
      query: z.string().min(1),
      documents: z.array(z.string().min(1)).min(1),
      top_n: z.int().min(1).optional().describe('How many to return')
    }),
    run: async ({ query, documents, top_n }, signal) => {
      const body = { model: slot.name, query, documents, top_n }
      const { results } = answerSchema.parse(await askEngineJson(context, 'rerank', '/rerank', body, signal))
      const named = results.map(({ index, relevance_score }) => ({ index, relevance_score, document: documents[index] }))
      return { told: { results: named } }
    }
  })
}
