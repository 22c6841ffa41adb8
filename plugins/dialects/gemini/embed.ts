import type { AdaptedAnswer, DispatchService, RouteCall } from 'svc-gateway/plugin'
import { isObject, leaveStrangers, malformed, objectsIn, untranslatable, warningHeader, type Json } from '../../v1/over-chat/ref.js'
import { askVectors } from '../../v1/vectors/ref.js'
import { camelCase, member } from './members.js'

const requestKeys: ReadonlySet<string> = new Set(['model', 'content', 'outputDimensionality'])
const batchKeys: ReadonlySet<string> = new Set(['requests'])
const contentKeys: ReadonlySet<string> = new Set(['role', 'parts'])
const partKeys: ReadonlySet<string> = new Set(['text'])
const JSON_TYPE = { 'content-type': 'application/json' }

export interface EmbedAsk extends Texts {
  readonly model: string
  readonly isBatch: boolean
}

export interface Texts {
  readonly texts: readonly string[]
  readonly dimensions: unknown
  /** What was left out, for people. */
  readonly warnings: readonly string[]
}

/** The texts of `embedContent` or `batchEmbedContents`. Throws `validation.invalid`. Pure. */
export function textsOf (asked: Json, isBatch: boolean): Texts {
  const requests = isBatch ? objectsIn(asked.requests, 'requests') : [asked]
  const warnings: string[] = []
  const at = isBatch ? 'requests.*.' : ''
  if (isBatch) leaveStrangers(asked, batchKeys, '', warnings, camelCase)
  for (const request of requests) leaveStrangers(request, requestKeys, at.slice(0, -1), warnings, camelCase)
  const sizes = new Set(requests.map(request => member(request, 'outputDimensionality')))
  if (sizes.size > 1) throw untranslatable('requests', 'vectors of several lengths at once')
  const texts = requests.map((request, i) =>
    textOf(request.content, isBatch ? `requests.${i}.content` : 'content', `${at}content`, warnings))
  return { texts, dimensions: [...sizes][0], warnings }
}

/** @param place where such contents stand, without numbers */
function textOf (content: unknown, at: string, place: string, warnings: string[]): string {
  if (!isObject(content)) throw malformed(at, 'must be an object with parts')
  leaveStrangers(content, contentKeys, place, warnings, camelCase)
  return objectsIn(content.parts, `${at}.parts`).map((part, i) => {
    leaveStrangers(part, partKeys, `${place}.parts.*`, warnings, camelCase)
    if (typeof part.text !== 'string') throw untranslatable(`${at}.parts.${i}`, 'content other than text')
    return part.text
  }).join('\n')
}

/** Asks for the vectors and tells them as the API does. A refusal of the engine comes back as it is. */
export async function embed (
  dispatch: DispatchService, { requestId, request }: Pick<RouteCall, 'requestId' | 'request'>,
  { model, texts, dimensions, isBatch, warnings }: EmbedAsk, signal: AbortSignal
): Promise<AdaptedAnswer> {
  if (texts.length === 0) return { status: 200, headers: JSON_TYPE, body: Buffer.from('{"embeddings":[]}') }
  const found = await askVectors(dispatch, { model, texts, dimensions, requestId, origin: request.headers, signal })
  if ('refusal' in found) return found.refusal
  const said = found.vectors.map(values => ({ values }))
  const told = isBatch ? { embeddings: said } : { embedding: said[0] }
  return { status: 200, headers: { ...JSON_TYPE, ...warningHeader(warnings) }, body: Buffer.from(JSON.stringify(told)) }
}
