import type { z } from 'zod'

/** A refusal in llama-server's words: `{ error: { code, message, type } }`. `code` is the HTTP status. */
export class WireError extends Error {
  constructor (
    readonly status: number, readonly type: string, message: string, readonly extra: Readonly<Record<string, unknown>> = {}
  ) {
    super(message)
    this.name = 'WireError'
  }

  toJSON (): object {
    return { error: { code: this.status, message: this.message, type: this.type, ...this.extra } }
  }
}

export function badRequest (message: string): WireError {
  return new WireError(400, 'invalid_request_error', message)
}

/** An input that can never fit. The status is 400, so that no client tries again. */
export function tooLong (tokens: number, limit: number): WireError {
  return new WireError(400, 'exceed_context_size_error',
    `request (${tokens} tokens) exceeds the available context size (${limit} tokens), try increasing it: context_size in [model] of the slot`,
    { n_prompt_tokens: tokens, n_ctx: limit })
}

export function notSupported (what: string, flag: string): WireError {
  return new WireError(501, 'not_supported_error', `This server does not support ${what}. Start it with \`${flag}\``)
}

export const loadingError = new WireError(503, 'unavailable_error', 'Loading model')
export const unknownRoute = new WireError(404, 'not_found_error', 'File Not Found')

/** Parses a body, or throws a `WireError` that names the first field at fault. */
export function parseBody<S extends z.ZodType> (schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const path = issue!.path.map(String).join('.')
  throw badRequest(path === '' ? issue!.message : `Field '${path}': ${issue!.message}`)
}
