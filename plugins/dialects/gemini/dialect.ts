import { retryAfterS, type SvcError, type WireDialect } from 'svc-gateway/plugin'

/** What Google's APIs call each kind of failure; anything else is `INTERNAL`, or below 500 `INVALID_ARGUMENT`. */
const words: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED'
}

interface Failure {
  readonly error: {
    readonly code: number
    readonly message: string
    readonly status: string
    readonly details?: readonly object[]
  }
}

/** The error shape of Google's APIs. The gateway's own code is the `reason` in `details`. */
export const geminiDialect: WireDialect = {
  failureSchema: {
    title: 'GeminiError',
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'status'],
        properties: {
          code: { type: 'integer' }, message: { type: 'string' }, status: { type: 'string' }, details: { type: 'array', items: { type: 'object' } }
        },
        additionalProperties: true
      }
    },
    additionalProperties: true
  },
  failure: (error: SvcError): Failure => {
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', 'reason': error.code, 'domain': 'svc' }
    const after = retryAfterS(error)
    const retry = after === null ? [] : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': `${after}s` }]
    return { error: { code: error.status, message: error.message, status: wordOf(error.status), details: [info, ...retry] } }
  },
  upstreamFailure: (status, body): Failure | null => isFailure(body)
    ? null
    : { error: { code: status, message: messageIn(body) ?? `the engine answered ${status}`, status: wordOf(status) } }
}

/** The same where a stream is one JSON list, which a failure closes. */
export const listDialect: WireDialect = {
  ...geminiDialect,
  stream: {
    contentType: 'application/json',
    ping: '\n',
    failure: (failure, begun) => `${begun ? ',\n' : '['}${JSON.stringify(failure)}]\n`
  }
}

function wordOf (status: number): string {
  return words[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL')
}

function isFailure (body: object | null): boolean {
  const error = (body as { readonly error?: { readonly status?: unknown, readonly code?: unknown } | null } | null)?.error
  return typeof error === 'object' && error !== null && typeof error.status === 'string' && typeof error.code === 'number'
}

/** The text of an error body as the engines of this field word it: `{ error: { message } }` or `{ error: text }`. */
function messageIn (body: object | null): string | null {
  const error = (body as { readonly error?: unknown } | null)?.error
  if (typeof error === 'string') return error
  const message = (error as { readonly message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message : null
}
