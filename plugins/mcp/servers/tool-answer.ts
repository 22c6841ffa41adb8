import { type SvcError, type ToolOutcome } from 'svc-gateway/plugin'
import { INVALID_PARAMS, RpcError } from './rpc.js'

/**
 * The result of a call in the words of the protocol: JSON as text, and as data only where the tool declares its shape. An
 * error comes as text alone: clients hold data against that shape, and would show their complaint in place of the error.
 */
export function toolAnswer (outcome: ToolOutcome, { hasShape }: { readonly hasShape: boolean }): object {
  switch (outcome.kind) {
    case 'content': return outcome.content
    case 'pending': return text({ status: 'pending_approval', approval_id: outcome.approvalId })
    case 'failed': return failed(outcome.error)
    case 'done': {
      const { value } = outcome
      const answer = text(value)
      return hasShape && typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...answer, structuredContent: value } : answer
    }
  }
}

function failed (error: SvcError): object {
  const { code, status, message, param, details } = error
  if (code === 'mcp.unknown_tool') throw new RpcError(INVALID_PARAMS, message, { code })
  const about = { code, message, ...(param === null ? {} : { param }), ...(Object.keys(details).length === 0 ? {} : { details }) }
  return { ...text({ status: 'error', http_status: status, error: about }), isError: true }
}

/** Without indentation, which costs a model a quarter more tokens. */
function text (value: unknown): { readonly content: readonly object[] } {
  return { content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value ?? null) }] }
}
