import { randomUUID } from 'node:crypto'
import { svcError, type Clock, type DispatchService, type Otherwise } from 'svc-gateway/plugin'
import { bodyObject } from '../over-chat/ref.js'
import { json, rerank } from './reranked.js'
import { scoreBodySchema } from './schemas.js'

/** Pairs of many texts each are a question each. */
const MOST_QUESTIONS = 256

interface Question { readonly query: string, readonly documents: readonly string[] }

/** How alike texts are, by a reranker: the first one asks, the others are its documents. */
export function scoresOverRerank (dispatch: DispatchService, clock: Clock): Otherwise {
  return {
    surface: 'rerank',
    take ({ body, requestId, headers: origin }) {
      const parsed = scoreBodySchema.safeParse(bodyObject(body))
      if (!parsed.success) throw wrong(parsed.error.issues[0]!.path.join('.'), 'must be a text or a list of texts')
      const { model, text_1: first, text_2: second } = parsed.data
      const questions = questionsOf(first, second)
      return {
        stream: false,
        answer: async signal => {
          const scores: number[] = []
          let tokens = 0
          for (const { query, documents } of questions) {
            const answer = await rerank(dispatch, { model, query, documents }, { requestId, origin, signal })
            if ('refused' in answer) return answer.refused
            const found = new Array<number>(documents.length)
            for (const { index, relevance_score: score } of answer.reranked.results) found[index] = score
            // any number would be a lie: rerankers differ in what is a bad score
            if (found.includes(undefined!)) throw svcError('dispatch.upstream_failed', 'the reranker left out documents')
            scores.push(...found)
            tokens += answer.reranked.usage?.total_tokens ?? 0
          }
          return json({
            id: `score-${randomUUID().replaceAll('-', '')}`,
            object: 'list',
            created: Math.floor(clock.now() / 1000),
            model,
            data: scores.map((score, index) => ({ index, object: 'score', score })),
            usage: { prompt_tokens: tokens, total_tokens: tokens }
          })
        }
      }
    }
  }
}

/** Throws `validation.invalid`. Pure. */
export function questionsOf (first: string | readonly string[], second: string | readonly string[]): readonly Question[] {
  const [queries, documents] = [[first].flat(), [second].flat()] as [string[], string[]]
  if (queries.length === 1) return [{ query: queries[0]!, documents }]
  if (queries.length !== documents.length) {
    throw wrong('text_1', `has ${queries.length} texts and text_2 ${documents.length}: give one, or as many as text_2 has`)
  }
  if (queries.length > MOST_QUESTIONS) throw wrong('text_1', `has more than ${MOST_QUESTIONS} texts; split the request`)
  return queries.map((query, n) => ({ query, documents: [documents[n]!] }))
}

function wrong (field: string, problem: string): Error {
  return svcError('validation.invalid', `${field} ${problem}`, { param: field, details: { fields: [{ path: field, message: problem }] } })
}
