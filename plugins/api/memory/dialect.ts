import { errorEnvelope, type SvcError, type WireDialect } from 'svc-gateway/plugin'

/** The same where the engine's own refusals pass as they come. */
export const passageDialect: WireDialect = {
  failureSchema: {
    title: 'HindsightFailure',
    type: 'object',
    description: 'The error envelope of the gateway with an added `detail`, or the error of the engine, which has only `detail`',
    properties: { detail: {}, error: { type: 'object', additionalProperties: true } },
    additionalProperties: true
  },
  failure: (error, requestId) => dialect.failure(error, requestId)
}

/** The envelope of errors with a `detail` beside it, which is what Hindsight's clients print. */
export const dialect: WireDialect = {
  failureSchema: {
    title: 'MemoryFailure',
    type: 'object',
    required: ['error', 'detail'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'type', 'param', 'details', 'request_id'],
        properties: {
          code: { type: 'string' },
          message: { type: 'string' },
          type: { type: 'string' },
          param: { type: ['string', 'null'] },
          details: { type: 'object', additionalProperties: true },
          request_id: { type: 'string' }
        }
      },
      detail: { description: 'Message of the engine: a text, or a list of the problems of the request' }
    }
  },
  failure: (error: SvcError, requestId: string) => ({
    ...errorEnvelope(error, requestId), detail: error.details.detail ?? error.message
  })
}
