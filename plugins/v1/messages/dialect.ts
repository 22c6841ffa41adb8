import { errorEnvelope, type SvcError, type WireDialect } from 'svc-gateway/plugin'

/** What the Messages API calls each kind of failure; anything else is an `api_error`. */
const types: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'invalid_request_error',
  413: 'request_too_large',
  415: 'invalid_request_error',
  421: 'invalid_request_error',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  501: 'invalid_request_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error'
}

interface Failure {
  readonly type: 'error'
  readonly error: { readonly type: string, readonly message: string, readonly [key: string]: unknown }
  readonly request_id: string
}

/**
 * The error shape of the Messages API: `{ type: 'error', error: { type, message }, request_id }`. The gateway's own
 * failures keep their `code` and `details` beside these.
 */
export const messagesDialect: WireDialect = {
  failureSchema: {
    title: 'MessagesError',
    type: 'object',
    required: ['type', 'error'],
    properties: {
      type: { const: 'error' },
      error: {
        type: 'object',
        required: ['type', 'message'],
        properties: { type: { type: 'string' }, message: { type: 'string' }, code: { type: 'string' } },
        additionalProperties: true
      },
      request_id: { type: 'string' }
    },
    additionalProperties: true
  },
  failure: (error: SvcError, requestId): Failure => {
    const { code, message, details } = errorEnvelope(error, requestId).error
    return { type: 'error', error: { type: typeOf(error.status), message, code, details }, request_id: requestId }
  },
  upstreamFailure: (status, body, requestId): Failure | null => isFailure(body)
    ? null
    : { type: 'error', error: { type: typeOf(status), message: messageIn(body) ?? `the engine answered ${status}` }, request_id: requestId },
  failureEvent: failure => ({ event: 'error', data: failure }),
  ping: 'event: ping\ndata: {"type": "ping"}\n\n',
  requestIdHeader: 'request-id'
}

function typeOf (status: number): string {
  return types[status] ?? 'api_error'
}

function isFailure (body: object | null): boolean {
  return body !== null && 'type' in body && body.type === 'error'
}

/** The text of an error body as the engines of this field word it: `{ error: { message } }` or `{ error: text }`. */
function messageIn (body: object | null): string | null {
  const error = (body as { readonly error?: unknown } | null)?.error
  if (typeof error === 'string') return error
  const message = (error as { readonly message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message : null
}
