import { svcError, type DispatchService, type Interceptor, type SvcError } from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { refusalHeaders } from '../over-chat/ref.js'

const LONGEST_ANSWER_BYTES = 256 * 1024 * 1024
const BYTES_PER_NUMBER = 4

/**
 * Takes over requests for vectors of some length from a slot: engines pass over the length that they are asked for, and what a
 * client stores would have another. An answer of that length passes as it is, any other is refused by its name.
 */
export function lengthKept (dispatch: DispatchService): Interceptor {
  return ({ body, request, requestId }, options) => {
    const asked = askedIn(body)
    if (asked === null || dispatch.target(asked.model, 'embeddings', { body, surface: 'embeddings' })?.slot == null) return null
    const { headers: origin } = request
    return {
      stream: false,
      answer: async signal => {
        const answer = await dispatch.call({ ...options, body, requestId, origin, signal })
        const { status } = answer
        if (status !== 200) return { status, headers: refusalHeaders(answer.headers), body: answer.body }
        const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
        const length = lengthIn(bytes)
        if (length !== null && length !== asked.dimensions) throw otherLength(length)
        return { status, headers: { 'content-type': answer.headers['content-type'] ?? 'application/json' }, body: bytes }
      }
    }
  }
}

export function otherLength (length: number): SvcError {
  return svcError('validation.invalid', `'dimensions': this model returns vectors of ${length} numbers; omit it`, { param: 'dimensions' })
}

interface Asked {
  readonly model: string
  readonly dimensions: unknown
}

/** Null for a request that others judge. Pure. */
function askedIn (body: Buffer): Asked | null {
  try {
    const { model, dimensions } = JSON.parse(body.toString('utf8')) as Readonly<Record<string, unknown>>
    return typeof model === 'string' ? { model, dimensions } : null
  } catch {
    // what is wrong with it is said by the dispatcher
    return null
  }
}

/** How many numbers the first vector of an answer has; null if unknown. */
function lengthIn (bytes: Buffer): number | null {
  try {
    const { data } = JSON.parse(bytes.toString('utf8')) as { readonly data: ReadonlyArray<{ readonly embedding: unknown }> }
    const first = data[0]?.embedding
    if (Array.isArray(first)) return first.length
    return typeof first === 'string' ? Buffer.from(first, 'base64').length / BYTES_PER_NUMBER : null
  } catch {
    return null
  }
}
