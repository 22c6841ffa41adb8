import type { Core } from '../core.js'
import type { AbilityName } from '../messages.js'
import { normalized, type Vector } from './vector-table.js'

/** A model refused, or answered what cannot be used. */
export class ModelError extends Error {
  /** The same request fails in the same way. */
  readonly permanent: boolean

  constructor (message: string, permanent: boolean) {
    super(message)
    this.permanent = permanent
  }
}

const LONGEST_TOLD = 300

async function ask (core: Core, to: AbilityName, body: object, background: boolean, signal: AbortSignal): Promise<unknown> {
  const answer = await core.outside.run({ to, background, body: Buffer.from(JSON.stringify(body)) }, signal)
  const text = Buffer.from(answer.body.buffer, answer.body.byteOffset, answer.body.byteLength).toString('utf8')
  if (answer.status < 200 || answer.status > 299) {
    const permanent = answer.status >= 400 && answer.status < 500 && ![401, 403, 404, 408, 409, 429].includes(answer.status)
    throw new ModelError(`status ${answer.status}: ${text.slice(0, LONGEST_TOLD)}`, permanent)
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new ModelError('the answer is no JSON', false)
  }
}

/** What the vectors of the present model go by; null if nothing embeds. */
export function embedIdentity (core: Core): string | null {
  const { embed } = core.outside.abilities
  return embed.model === null ? null : embed.identity ?? embed.model
}

/** Models that refuse to answer vectors as base64. */
const numbersOnly = new WeakMap<Core, Set<string>>()

/** Vectors of these texts, in their order, each of length one. Throws `ModelError`, or why it was not answered. */
export async function embed (
  core: Core, texts: readonly string[], background: boolean, signal: AbortSignal
): Promise<readonly Vector[]> {
  const { model } = core.outside.abilities.embed
  const identity = embedIdentity(core) ?? ''
  const askFor = async (encoding: 'base64' | 'float'): Promise<readonly Vector[]> =>
    vectorsIn(await ask(core, 'embed', { model, input: texts, encoding_format: encoding }, background, signal), texts.length)
  let refusing = numbersOnly.get(core)
  if (refusing === undefined) numbersOnly.set(core, refusing = new Set())
  if (refusing.has(identity)) return await askFor('float')
  try {
    // a quarter of the bytes of numbers, and nothing to parse
    return await askFor('base64')
  } catch (error) {
    if (!(error instanceof ModelError) || !error.permanent) throw error
    const vectors = await askFor('float')
    refusing.add(identity)
    return vectors
  }
}

/** So many vectors, as numbers or as base64 of 32-bit floats: some servers answer numbers whatever they are asked for. */
function vectorsIn (answer: unknown, count: number): readonly Vector[] {
  const { data } = (answer ?? {}) as { readonly data?: unknown }
  if (!Array.isArray(data) || data.length !== count) {
    throw new ModelError(`${count} texts were not answered with as many vectors`, false)
  }
  const vectors: (Vector | null)[] = Array.from({ length: count }, () => null)
  for (const [at, item] of (data as { readonly index?: unknown, readonly embedding?: unknown }[]).entries()) {
    const index = typeof item?.index === 'number' ? item.index : at
    const numbers = numbersIn(item?.embedding)
    if (numbers !== null && vectors[index] === null) vectors[index] = normalized(numbers)
  }
  const dimensions = vectors[0]?.length
  if (vectors.some(vector => vector === null || vector.length !== dimensions)) {
    throw new ModelError('vectors that do not hold numbers, or differ in length', false)
  }
  return vectors as Vector[]
}

function numbersIn (embedding: unknown): ArrayLike<number> | null {
  if (Array.isArray(embedding)) return embedding as number[]
  if (typeof embedding !== 'string') return null
  const bytes = Buffer.from(embedding, 'base64')
  // floats stand at places that their length divides, which those of a pooled buffer need not
  return bytes.length % Float32Array.BYTES_PER_ELEMENT === 0 ? new Float32Array(new Uint8Array(bytes).buffer) : null
}

/** A score for each document. Throws where any is missing, twice there, or no number. */
export async function rerank (
  core: Core, query: string, documents: readonly string[], signal: AbortSignal
): Promise<readonly number[]> {
  const { model } = core.outside.abilities.rerank
  return scoresIn(await ask(core, 'rerank', rerankBody(model ?? '', query, documents), false, signal), documents.length)
}

/** What a reranker is asked. Pure. */
export function rerankBody (model: string, query: string, documents: readonly string[]): object {
  return { model, query, documents, top_n: documents.length }
}

/** The scores of so many documents, in their order. Throws `ModelError` where any is missing, twice there, or no number. Pure. */
export function scoresIn (answer: unknown, count: number): readonly number[] {
  const { results } = (answer ?? {}) as { readonly results?: unknown }
  if (!Array.isArray(results) || results.length !== count) throw new ModelError('some documents have no score', false)
  const scores: (number | null)[] = Array.from({ length: count }, () => null)
  for (const result of results as { readonly index?: unknown, readonly relevance_score?: unknown }[]) {
    const { index, relevance_score: score } = result ?? {}
    if (typeof index !== 'number' || scores[index] !== null) throw new ModelError('an index that no document has, or the same one twice', false)
    if (typeof score !== 'number' || !Number.isFinite(score)) throw new ModelError('a score that is not a number', false)
    scores[index] = score
  }
  return scores as number[]
}
