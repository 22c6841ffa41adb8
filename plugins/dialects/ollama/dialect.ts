import type { SvcError, WireDialect } from 'svc-gateway/plugin'

export const LINES = 'application/x-ndjson'

interface Failure { readonly error: string }

/** Failures of Ollama's API: `{ "error": "text" }`. */
export const ollamaDialect: WireDialect = {
  failureSchema: {
    title: 'OllamaError', type: 'object', required: ['error'], properties: { error: { type: 'string' } }, additionalProperties: true
  },
  failure: (error: SvcError): Failure => ({ error: error.message }),
  upstreamFailure: (status, body): Failure | null => isFailure(body) ? null : { error: messageIn(body) ?? `the engine answered ${status}` }
}

/**
 * The same where the answer is a stream of JSON, a line each. A sign of life is a space: it becomes part of the next line, which
 * stays JSON, where an empty line would not be.
 */
export const linesDialect: WireDialect = {
  ...ollamaDialect, stream: { contentType: LINES, ping: ' ', failure: failure => `${JSON.stringify(failure)}\n` }
}

function isFailure (body: object | null): boolean {
  return body !== null && 'error' in body && typeof body.error === 'string'
}

/** The text of an error body as the engines of this field word it. */
function messageIn (body: object | null): string | null {
  const error = (body as { readonly error?: unknown } | null)?.error
  const message = (error as { readonly message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message : null
}
