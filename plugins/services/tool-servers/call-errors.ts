import { isSvcError, messageOf, svcError, type CleanText, type SvcError } from 'svc-gateway/plugin'
import { mcpError } from './errors.js'
import { NotPublicError } from './resolve/public-addresses.js'

/** Of a server's own words. */
const MOST_SAID = 16_384

interface SdkFailure {
  readonly code?: unknown
  readonly status?: unknown
  readonly data?: unknown
}

/**
 * A failure of the SDK's, or of a server, in the gateway's words. Pure.
 * @param clean what a server says may repeat the secret that it was given
 */
export function callError (id: string, what: string, error: unknown, clean: CleanText): SvcError {
  if (isSvcError(error)) return error
  const { code, status, data } = (typeof error === 'object' && error !== null ? error : {}) as SdkFailure
  const message = clean(messageOf(error).slice(0, MOST_SAID))
  const options = { details: { id }, cause: error }
  if (dataCode(data) === 'mcp.answer_too_large') return mcpError('mcp.answer_too_large', `${what} of tool server ${id}: ${message}`, options)
  if (code === 'REQUEST_TIMEOUT') {
    return mcpError('mcp.call_timeout', `${what} of tool server ${id} was silent for longer than its call_timeout_s, and was cancelled`, options)
  }
  if (code === 'UNSUPPORTED_RESULT_TYPE' || code === -32021) {
    return mcpError('mcp.input_required', `${what} of tool server ${id} asks its caller for input, which is not passed on`, options)
  }
  if (status === 401 || status === 403) {
    return mcpError('mcp.server_refused', `tool server ${id} refuses the gateway (HTTP ${status}): bind its token with secrets.Authorization`, options)
  }
  // the server's own answer
  if (typeof code === 'number') return svcError('mcp.tool_failed', `${what} of tool server ${id} failed: ${message}`, { ...options, details: { id, rpc_code: code } })
  const root = rootOf(error)
  if (root instanceof NotPublicError) {
    return mcpError('mcp.server_failed', `tool server ${id} cannot be reached: ${root.message}; PATCH /api/mcp/${id}/config with network "any" allows any address`, options)
  }
  return mcpError('mcp.server_ended', `tool server ${id} cannot be reached: ${clean(messageOf(root).slice(0, MOST_SAID))}`, options)
}

/** Whether the connection is over with such a failure, and has to be made anew. Pure. */
export function endsConnection (error: unknown): boolean {
  const { code, status } = (typeof error === 'object' && error !== null ? error : {}) as SdkFailure
  if (typeof status === 'number') return status === 404 || status === 401 || status === 403 || status >= 500
  return typeof code !== 'number' && code !== 'REQUEST_TIMEOUT' && code !== 'UNSUPPORTED_RESULT_TYPE' && code !== 'INVALID_RESULT'
}

/** The server knows the session no more, so it has done nothing: asking again is safe. Pure. */
export function isLostSession (error: unknown): boolean {
  return (error as SdkFailure | null)?.status === 404
}

function dataCode (data: unknown): unknown {
  return typeof data === 'object' && data !== null ? (data as { code?: unknown }).code : undefined
}

/** What undici hides behind `fetch failed`. */
function rootOf (error: unknown): unknown {
  let deepest = error
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause
  return deepest
}
