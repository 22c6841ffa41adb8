import { svcError, type AdaptedAnswer, type AdaptRequest } from 'svc-gateway/plugin'
import { z } from 'zod'
import { engineFailure } from './engine-failure.js'

const PATH = '/v1/embeddings'

const requestSchema = z.looseObject({ encoding_format: z.enum(['float', 'base64']).optional(), dimensions: z.int().optional() })
const vectorsSchema = z.looseObject({ data: z.array(z.looseObject({ embedding: z.array(z.number()) })) })

/**
 * The engine answers with numbers whatever encoding is asked for, and with status 200 when it fails. The wire format knows
 * better: `encoding_format: "base64"` is little-endian 32-bit floats, and is what the usual clients ask for.
 */
export async function adaptEmbeddings ({ body, client, signal }: AdaptRequest): Promise<AdaptedAnswer> {
  const asked = requestOf(body)
  if (asked.dimensions !== undefined) {
    throw svcError('validation.invalid', 'this model has a fixed vector length; omit `dimensions`', { param: 'dimensions' })
  }
  const response = await client.request({ method: 'POST', path: PATH, headers: { 'content-type': 'application/json' }, body, signal })
  const json = await response.json().catch(() => null)
  const vectors = vectorsSchema.safeParse(json)
  if (response.status !== 200 || !vectors.success) {
    throw engineFailure(json) ?? svcError('dispatch.upstream_failed', `the engine answered ${response.status} without vectors`)
  }
  const answer = asked.encoding_format === 'base64'
    ? { ...vectors.data, data: vectors.data.data.map(row => ({ ...row, embedding: base64Of(row.embedding) })) }
    : vectors.data
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(answer)) }
}

function requestOf (body: Buffer): z.output<typeof requestSchema> {
  let asked: unknown
  try {
    asked = JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw svcError('request.invalid_json', 'the body is not valid JSON', { cause: error })
  }
  const parsed = requestSchema.safeParse(asked)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]!
  throw svcError('validation.invalid', `${path.join('.')} ${message}`, { param: path.join('.') })
}

function base64Of (vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}
