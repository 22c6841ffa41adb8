import { svcError, type AdaptedAnswer, type CallAnswer, type DispatchService, type PluginCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import { readAll } from '../omni/ref.js'

const LONGEST_ANSWER_BYTES = 32 * 1024 * 1024

const rerankedSchema = z.looseObject({
  results: z.array(z.looseObject({ index: z.int().min(0), relevance_score: z.number() })),
  usage: z.looseObject({ total_tokens: z.int().optional(), prompt_tokens: z.int().optional() }).optional()
})
export type Reranked = z.output<typeof rerankedSchema>

export interface RerankQuestion {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  readonly top_n?: number | undefined
}

export type RerankAnswer = { readonly reranked: Reranked } | { readonly refused: AdaptedAnswer }

/** Asks for an order of documents. A refusal comes back as it is. */
export async function rerank (
  dispatch: DispatchService, question: RerankQuestion, call: Pick<PluginCall, 'requestId' | 'origin' | 'signal'>
): Promise<RerankAnswer> {
  const answer = await dispatch.call({ ...call, surface: 'rerank', path: '/rerank', body: Buffer.from(JSON.stringify(question)) })
  if (answer.status !== 200) return { refused: { status: answer.status, headers: answer.headers, body: answer.body } }
  const parsed = rerankedSchema.safeParse(await jsonOf(answer))
  const isWhole = parsed.success && parsed.data.results.every(({ index }) => index < question.documents.length)
  if (isWhole) return { reranked: parsed.data }
  throw svcError('dispatch.upstream_failed', 'the reranker answered in an unknown format')
}

async function jsonOf (answer: CallAnswer): Promise<unknown> {
  try {
    return JSON.parse((await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')) as unknown
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

export function json (body: object): AdaptedAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
}
