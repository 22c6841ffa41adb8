import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { lengthKept } from './dimensions.js'
import { embeddingsAnswerSchema, embeddingsBodySchema, rerankAnswerSchema, rerankBodySchema } from './schemas.js'

/**
 * Embeddings and reranking. Bodies pass as they come: batches, token arrays and `encoding_format` are the engine's business; a
 * length of vectors is held (dimensions.ts). Both names of reranking are one path to the same engines; upstreams know it as
 * `/rerank`.
 */
export default definePlugin({
  name: 'v1-vectors',
  kind: 'routes',
  apiVersion: 1,
  requires: { dispatch: core.dispatch },
  register (ctx) {
    const { dispatch } = ctx.services
    let stop = (): void => {}
    ctx.onStart(() => {
      stop = dispatch.intercept('embeddings', 'dimensions', lengthKept(dispatch))
    })
    ctx.onStop(() => stop())
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/embeddings',
      alsoAt: ['/embeddings'],
      tag: 'Embeddings and reranking',
      surface: 'embeddings',
      summary: 'Vectors of texts',
      schema: { body: embeddingsBodySchema, response: embeddingsAnswerSchema },
      example: { model: 'embed', input: ['a text', 'another one'] },
      bodyKind: 'buffer',
      handler: call => dispatch.forward(call, { surface: 'embeddings', path: '/embeddings' })
    }))
    for (const [url, alsoAt] of [['/v1/rerankings', []], ['/v1/rerank', ['/rerank', '/reranking', '/v1/reranking']]] as const) {
      ctx.addRoute(defineRoute({
        method: 'POST',
        url,
        alsoAt,
        tag: 'Embeddings and reranking',
        surface: 'rerank',
        summary: 'Documents ordered by how well they answer a query',
        schema: { body: rerankBodySchema, response: rerankAnswerSchema },
        example: { model: 'rerank', query: 'What is a panda?', documents: ['A bear', 'A city'] },
        bodyKind: 'buffer',
        handler: call => dispatch.forward(call, { surface: 'rerank', path: '/rerank' })
      }))
    }
  }
})
