import type { RequestSummary, RequestSurface } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { requestsSchema } from './schemas.js'

/** Where clients ask for each surface. */
const paths: Readonly<Record<RequestSurface, string>> = {
  'chat': '/v1/chat/completions',
  'completions': '/v1/completions',
  'embeddings': '/v1/embeddings',
  'rerank': '/v1/rerankings',
  'transcription': '/v1/audio/transcriptions',
  'translation': '/v1/audio/translations',
  'speech': '/v1/audio/speech',
  'image': '/v1/images/generations',
  'image-edit': '/v1/images/edits',
  'image-variation': '/v1/images/variations',
  'fim': '/v1/fim/completions',
  'infill': '/infill',
  'tokenize': '/v1/tokenize',
  'detokenize': '/v1/detokenize',
  'score': '/v1/score',
  'moderation': '/v1/moderations',
  'responses': '/v1/responses',
  'input-tokens': '/v1/responses/input_tokens',
  'compact': '/v1/responses/compact',
  'messages': '/v1/messages',
  'count-tokens': '/v1/messages/count_tokens',
  'engine': '/upstream'
}

/** The answer of `/api/stats/requests`. Pure. */
export function requestStats (windowS: number, summary: RequestSummary): z.output<typeof requestsSchema> {
  const { requests, perMinute, p50Ms, p95Ms, surfaces, errors } = summary
  return {
    window_s: windowS,
    requests,
    req_per_min: Math.round(perMinute * 100) / 100,
    p50_ms: p50Ms === null ? null : Math.round(p50Ms),
    p95_ms: p95Ms === null ? null : Math.round(p95Ms),
    endpoints: surfaces.map(({ surface, count }) => ({ path: paths[surface], count })),
    errors
  }
}
