import type { AdaptedAnswer, DispatchService, RouteCall } from 'svc-gateway/plugin'
import { isObject, malformed, objectsIn, untranslatable, type Json } from '../../v1/over-chat/ref.js'
import { askVectors } from '../../v1/vectors/ref.js'
import { member } from './members.js'

const JSON_TYPE = { 'content-type': 'application/json' }

export interface EmbedAsk extends Texts {
  readonly model: string
  readonly isBatch: boolean
}

export interface Texts {
  readonly texts: readonly string[]
  readonly dimensions: unknown
}

/** The texts of `embedContent` or `batchEmbedContents`. Throws `validation.invalid`. Pure. */
export function textsOf (asked: Json, isBatch: boolean): Texts {
  const requests = isBatch ? objectsIn(asked.requests, 'requests') : [asked]
  const sizes = new Set(requests.map(request => member(request, 'outputDimensionality')))
  if (sizes.size > 1) throw untranslatable('requests', 'vectors of several lengths at once')
  return { texts: requests.map((request, i) => textOf(request.content, isBatch ? `requests.${i}.content` : 'content')), dimensions: [...sizes][0] }
}

function textOf (content: unknown, at: string): string {
  if (!isObject(content)) throw malformed(at, 'must be an object with parts')
  return objectsIn(content.parts, `${at}.parts`).map((part, i) => {
    if (typeof part.text !== 'string') throw untranslatable(`${at}.parts.${i}`, 'what is no text')
    return part.text
  }).join('\n')
}

/** Asks for the vectors and tells them as the API does. A refusal of the engine comes back as it is. */
export async function embed (
  dispatch: DispatchService, { requestId, request }: Pick<RouteCall, 'requestId' | 'request'>,
  { model, texts, dimensions, isBatch }: EmbedAsk, signal: AbortSignal
): Promise<AdaptedAnswer> {
  if (texts.length === 0) return { status: 200, headers: JSON_TYPE, body: Buffer.from('{"embeddings":[]}') }
  const found = await askVectors(dispatch, { model, texts, dimensions, requestId, origin: request.headers, signal })
  if ('refusal' in found) return found.refusal
  const said = found.vectors.map(values => ({ values }))
  const told = isBatch ? { embeddings: said } : { embedding: said[0] }
  return { status: 200, headers: JSON_TYPE, body: Buffer.from(JSON.stringify(told)) }
}
