import { randomUUID } from 'node:crypto'
import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { cohereDialect } from './dialect.js'
import { json, rerank } from './reranked.js'
import { rankAnswerSchema, rankBodySchema, scoreAnswerSchema, scoreBodySchema } from './schemas.js'
import { scoresOverRerank } from './score.js'

/** Reranking in the words of `/v2/rerank`, and scores of pairs. */
export default definePlugin({
  name: 'v1-scores',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, dispatch: core.dispatch },
  register (ctx) {
    const { clock, dispatch } = ctx.services
    const otherwise = scoresOverRerank(dispatch, clock)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v2/rerank',
      tag: 'Embeddings and reranking',
      summary: 'Documents ordered by how well they answer a query, in Cohere\'s format',
      schema: { body: rankBodySchema, response: rankAnswerSchema },
      example: { model: 'rerank', query: 'What is a panda?', documents: ['A bear', 'A city'], top_n: 1 },
      dialect: cohereDialect,
      handler: call => {
        const { model, query, documents, top_n: top = null } = call.body
        const { requestId, request: { headers: origin } } = call
        return dispatch.compose(call, { surface: 'rerank', model, stream: false, dialect: cohereDialect }, async signal => {
          const question = { ...call.body, model, query, documents, top_n: top ?? undefined }
          const answer = await rerank(dispatch, question, { requestId, origin, signal })
          if ('refused' in answer) return answer.refused
          const results = answer.reranked.results
            .map(({ index, relevance_score: score }) => ({ index, relevance_score: score }))
            .sort((a, b) => b.relevance_score - a.relevance_score)
          return json({
            id: randomUUID(),
            results: top === null ? results : results.slice(0, top),
            meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } }
          })
        })
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/score',
      alsoAt: ['/score'],
      tag: 'Embeddings and reranking',
      summary: 'How well texts match, pair by pair',
      schema: { body: scoreBodySchema, response: scoreAnswerSchema },
      example: { model: 'rerank', text_1: 'What is a panda?', text_2: ['A bear', 'A city'] },
      bodyKind: 'buffer',
      handler: call => dispatch.forward(call, { surface: 'score', path: '/score', otherwise })
    }))
  }
})
