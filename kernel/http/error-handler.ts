import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { errorEnvelope, isSvcError, retryHeader, svcError, type Logger, type SvcError, type WireDialect } from '../contract/index.js'
import { leftRequest } from '../dispatch/answer/client-gone.js'
import { bodyTooLarge } from './body/body-errors.js'

/**
 * Answers every failure of a route in the one envelope, or as its dialect has it. What we did not expect
 * stays in the log.
 */
export function createErrorHandler (log: Logger, dialect?: WireDialect) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const known = toSvcError(error)
    if (request.raw.readableAborted || leftRequest(error) !== null) log.debug({ request_id: request.id, url: pathOf(request) }, 'the client left before its request was complete or answered')
    else if (known === null) log.error({ request_id: request.id, method: request.method, url: pathOf(request), err: error }, 'request failed')
    sendError(reply, known ?? svcError('system.internal', `internal error; see the log, request id ${request.id}`), request.id, dialect)
  }
}

/** Without the query, which may hold a key: for logs. */
export function pathOf ({ url }: Pick<FastifyRequest, 'url'>): string {
  return url.split('?', 1)[0]!
}

export function sendError (reply: FastifyReply, error: SvcError, requestId: string, dialect?: WireDialect): void {
  const again = retryHeader(error)
  if (again !== null) void reply.header(again[0], again[1])
  if (error.status === 413 || error.status === 408) void reply.header('connection', 'close')
  if (dialect?.requestIdHeader !== undefined) void reply.header(dialect.requestIdHeader, requestId)
  const failure = (dialect?.failure ?? errorEnvelope)(error, requestId)
  void reply.code(error.status).header('x-request-id', requestId).header('content-type', 'application/json; charset=utf-8').send(failure)
}

function toSvcError (error: FastifyError): SvcError | null {
  if (isSvcError(error)) return error
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge()
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return svcError('request.unsupported_media_type', error.message, { cause: error })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return svcError('validation.invalid', error.message, { cause: error, details: { fields: [] } })
    default:
      return null
  }
}
