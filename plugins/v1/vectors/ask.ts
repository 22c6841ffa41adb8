import { svcError, type AdaptedAnswer, type CallAnswer, type DispatchService, type PluginCall } from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { refusalHeaders } from '../over-chat/ref.js'
import { otherLength } from './dimensions.js'

const LONGEST_ANSWER_BYTES = 256 * 1024 * 1024

export interface Vectors {
  /** In the order of the texts. */
  readonly vectors: readonly unknown[]
  /** Tokens of the texts; 0 if unknown. */
  readonly tokens: number
}

export interface VectorsAsk extends Pick<PluginCall, 'requestId' | 'origin' | 'signal'> {
  readonly model: string
  readonly texts: readonly unknown[]
  /** Length of a vector; null or undefined leaves it to the model. */
  readonly dimensions: unknown
}

/**
 * Asks for embeddings, for other formats to tell. A refusal of the engine comes back as it is. Throws `validation.invalid` where
 * they have another length than the one that was asked for.
 */
export async function askVectors (
  dispatch: DispatchService, { model, texts, dimensions, ...call }: VectorsAsk
): Promise<Vectors | { readonly refusal: AdaptedAnswer }> {
  const body = { model, input: texts, encoding_format: 'float', ...dimensions == null ? {} : { dimensions } }
  const answer = await dispatch.call({ ...call, surface: 'embeddings', path: '/embeddings', body: Buffer.from(JSON.stringify(body)) })
  const { status } = answer
  if (status < 200 || status > 299) return { refusal: { status, headers: refusalHeaders(answer.headers), body: answer.body } }
  const found = await vectorsIn(answer, texts.length)
  const [first] = found.vectors
  if (dimensions != null && Array.isArray(first) && first.length !== dimensions) throw otherLength(first.length)
  return found
}

interface Told {
  readonly data: ReadonlyArray<{ readonly index?: unknown, readonly embedding: unknown }>
  readonly usage?: { readonly prompt_tokens?: unknown }
}

/** Throws for an answer that has another number of vectors. */
async function vectorsIn (answer: CallAnswer, count: number): Promise<Vectors> {
  const text = (await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')
  const vectors: unknown[] = []
  let tokens: unknown = 0
  try {
    const { data, usage } = JSON.parse(text) as Told
    for (const [i, { index, embedding }] of data.entries()) {
      if (Array.isArray(embedding)) vectors[typeof index === 'number' && index < count ? index : i] = embedding
    }
    tokens = usage?.prompt_tokens
  } catch {
    // told below
  }
  if (vectors.length !== count || vectors.includes(undefined)) {
    throw svcError('dispatch.upstream_failed', 'the engine answered with something that is not a list of embeddings')
  }
  return { vectors, tokens: typeof tokens === 'number' && tokens > 0 ? Math.floor(tokens) : 0 }
}
