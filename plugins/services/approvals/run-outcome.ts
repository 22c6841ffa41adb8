import { shownMessage, type ApprovalError, type SvcError, type ToolContent, type ToolOutcome } from 'svc-gateway/plugin'
import { approvalsError } from './errors.js'
import type { Approval } from './ref.js'

/** How an approved call ended. */
export type RunOutcome =
  | { readonly kind: 'done', readonly value: unknown }
  | { readonly kind: 'failed', readonly error: ApprovalError }

/** What an operator and the agent are told of a call that ran. Pure. */
export function runOutcome (outcome: ToolOutcome): RunOutcome {
  switch (outcome.kind) {
    case 'done': return outcome
    case 'content': return contentOutcome(outcome.content)
    case 'failed': return { kind: 'failed', error: { code: outcome.error.code, message: outcome.error.message } }
    case 'pending': throw new TypeError('an approved call asked for an approval')
  }
}

function contentOutcome ({ content, structuredContent, isError }: ToolContent): RunOutcome {
  if (isError !== true) return { kind: 'done', value: structuredContent ?? { content } }
  const texts = content.map(part => (part as { text?: unknown }).text).filter(text => typeof text === 'string')
  return { kind: 'failed', error: { code: 'mcp.tool_failed', message: shownMessage(texts.join('\n') || 'the tool failed without a message') } }
}

/**
 * What the agent that asked is told once its call is over. Pure.
 * @param errorOf the error of a code that was kept, with the status of its table
 */
export function toolOutcome (
  { state, tool, result, error, reason }: Approval, errorOf: (code: string, message: string) => SvcError
): ToolOutcome {
  if (state === 'executed') return { kind: 'done', value: result }
  if (state === 'denied') {
    return failed(approvalsError('approvals.denied', `an operator denied the call of ${tool}${reason === null ? '' : `: ${reason}`}`))
  }
  if (state === 'expired') return failed(approvalsError('approvals.expired', `no operator decided on the call of ${tool} in time`))
  const { code, message } = error ?? { code: 'system.internal', message: 'the call failed' }
  return failed(errorOf(code, message))
}

function failed (error: SvcError): ToolOutcome {
  return { kind: 'failed', error }
}
