import type { Call } from './http-server.js'
import type { RankEngine } from './rank-engine.js'
import { embeddingsSchema, rerankSchema } from './requests.js'
import type { VectorEngine } from './vector-engine.js'
import { parseBody } from './wire-error.js'

export async function embeddings (engine: VectorEngine, call: Call): Promise<object> {
  const body = parseBody(embeddingsSchema, await call.json())
  const { input } = body
  const one = typeof input === 'string' || input.every(item => typeof item === 'number')
  const results = await engine.embed(one ? [input as string | number[]] : input as string[], call.signal)
  const tokens = results.reduce((sum, result) => sum + result.tokens, 0)
  const base64 = body.encoding_format === 'base64'
  return {
    model: engine.args.alias,
    object: 'list',
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    data: results.map(({ vector }, index) => ({
      embedding: base64 ? base64Of(vector) : vector,
      index,
      object: 'embedding',
      ...base64 ? { encoding_format: 'base64' } : {}
    }))
  }
}

export async function rerank (engine: RankEngine, call: Call): Promise<object> {
  const body = parseBody(rerankSchema, await call.json())
  const { scores, tokens } = await engine.rank(body.query, body.documents, call.signal)
  const results = scores.map((score, index) => ({ index, relevance_score: score }))
    .sort((a, b) => b.relevance_score - a.relevance_score)
  return {
    model: engine.args.alias,
    object: 'list',
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    results: results.slice(0, body.top_n ?? results.length)
  }
}

/** Little-endian 32-bit floats, as clients of this format decode them. */
function base64Of (vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((value, i) => bytes.writeFloatLE(value, i * 4))
  return bytes.toString('base64')
}
