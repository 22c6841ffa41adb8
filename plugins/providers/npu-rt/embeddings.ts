import { svcError, type AdaptedAnswer, type AdaptRequest } from 'svc-gateway/plugin'
import { z } from 'zod'

const PATH = '/v1/embeddings'

const requestSchema = z.looseObject({ encoding_format: z.enum(['float', 'base64']).optional(), dimensions: z.int().optional() })
const vectorsSchema = z.looseObject({ data: z.array(z.looseObject({ embedding: z.array(z.number()) })) })
const failureSchema = z.looseObject({ error: z.union([z.string(), z.looseObject({ message: z.string() })]) })

/**
 * The engine answers with numbers whatever encoding is asked for, and with status 200 when it fails. The wire format knows
 * better: `encoding_format: "base64"` is little-endian 32-bit floats, and is what the usual clients ask for.
 */
export async function adaptEmbeddings ({ body, client, slot, signal }: AdaptRequest): Promise<AdaptedAnswer> {
  const asked = requestSchema.parse(JSON.parse(body.toString('utf8')))
  if (asked.dimensions !== undefined) {
    throw svcError('validation.invalid', 'this model has vectors of one length; leave `dimensions` out', { param: 'dimensions' })
  }
  const response = await client.request({ method: 'POST', path: PATH, headers: { 'content-type': 'application/json' }, body, signal })
  const json = await response.json().catch(() => null)
  const vectors = vectorsSchema.safeParse(json)
  if (response.status !== 200 || !vectors.success) throw failure(slot.name, response.status, json)
  const answer = asked.encoding_format === 'base64'
    ? { ...vectors.data, data: vectors.data.data.map(row => ({ ...row, embedding: base64Of(row.embedding) })) }
    : vectors.data
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(answer)) }
}

function base64Of (vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}

function failure (slot: string, status: number, json: unknown): Error {
  const told = failureSchema.safeParse(json)
  const message = !told.success ? `it answered ${status} without vectors` : typeof told.data.error === 'string' ? told.data.error : told.data.error.message
  return svcError('dispatch.upstream_failed', `slot '${slot}': ${message}`, { details: { slot, status_code: status } })
}
