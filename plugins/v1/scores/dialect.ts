import type { SvcError, WireDialect } from 'svc-gateway/plugin'

interface Failure {
  readonly id: string
  readonly message: string
  readonly code?: string
}

/** The error shape of Cohere's API: `{ id, message }`. The gateway's own code stands beside them. */
export const cohereDialect: WireDialect = {
  failureSchema: {
    title: 'CohereError',
    type: 'object',
    required: ['message'],
    properties: { id: { type: 'string' }, message: { type: 'string' }, code: { type: 'string' } },
    additionalProperties: true
  },
  failure: ({ code, message }: SvcError, requestId): Failure => ({ id: requestId, message, code }),
  upstreamFailure: (status, body, requestId): Failure | null => messageIn(body, 'message') === null
    ? { id: requestId, message: messageIn(body, 'error') ?? `the engine answered ${status}` }
    : null
}

function messageIn (body: object | null, key: 'message' | 'error'): string | null {
  const said = (body as Readonly<Record<string, unknown>> | null)?.[key]
  if (typeof said === 'string') return said
  const message = key === 'error' ? (said as { readonly message?: unknown } | null | undefined)?.message : null
  return typeof message === 'string' ? message : null
}
