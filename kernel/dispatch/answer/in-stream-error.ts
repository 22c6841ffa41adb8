import { errorEnvelope, svcError, type SvcError, type WireDialect } from '../../contract/index.js'

/** How most of `/v1` speaks: OpenAI's wire format with the error envelope. */
export const plainDialect: WireDialect = { failure: errorEnvelope }

/**
 * What a stream that failed ends with: the error envelope as an event, and no `[DONE]` after it, or what its own form has.
 * @param begun whether some of the answer is out
 */
export function errorEvent (error: SvcError, requestId: string, dialect: WireDialect = plainDialect, begun = false): Buffer {
  return eventOf(dialect.failure(error, requestId), dialect, begun)
}

/**
 * An upstream's plain answer on a stream that is already open. An error body of the upstream's own keeps its
 * shape on one line; anything else is told in the envelope.
 */
export function eventOfUpstreamError (
  status: number, body: Buffer, requestId: string, dialect: WireDialect = plainDialect
): Buffer {
  const error = svcError('dispatch.upstream_failed', `the engine answered ${status} instead of a stream`, { details: { status } })
  return eventOf(reworded(status, body, requestId, dialect) ?? parsedObject(body) ?? dialect.failure(error, requestId), dialect)
}

/** An upstream's refusal in the words of the route; null when it may stay as it is. */
export function reworded (status: number, body: Buffer, requestId: string, dialect: WireDialect): object | null {
  return dialect.upstreamFailure?.(status, parsedObject(body), requestId) ?? null
}

function eventOf (failure: object, { failureEvent, stream }: WireDialect, begun = false): Buffer {
  if (stream !== undefined) return Buffer.from(stream.failure(failure, begun))
  if (failureEvent === undefined) return Buffer.from(`data: ${JSON.stringify(failure)}\n\n`)
  const { event, data } = failureEvent(failure)
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}

function parsedObject (body: Buffer): object | null {
  try {
    const parsed = JSON.parse(body.toString('utf8')) as unknown
    return typeof parsed === 'object' ? parsed : null
  } catch {
    return null
  }
}
