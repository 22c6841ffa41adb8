import type { ActivityLog, RouteCall } from 'svc-gateway/plugin'
import type { Approval, ApprovalInbox, ApprovalReader } from '../../services/approvals/ref.js'
import { approvalsError } from './errors.js'

export interface ApprovalServices {
  readonly activity: ActivityLog
  readonly inbox: ApprovalInbox
}

type Call = Pick<RouteCall, 'actor' | 'request' | 'requestId'>

/** Runs the call that waits, and writes down who approved it. Resolves when it has ended. Rejects where an agent asks. */
export function approve (
  { activity, inbox }: ApprovalServices, id: string, { actor, request, requestId }: Call
): Promise<Approval> {
  const row = { category: 'approval', action: 'approval.approve', target: id, actor, request_id: requestId }
  return activity.audited(row, async note => {
    if (namesAgent(request.headers['x-svc-agent'])) {
      throw approvalsError('approvals.operator_only', 'an agent cannot approve a call, its own or another\'s; an operator does, with `svc agent approvals approve` or in the dashboard', { details: { id } })
    }
    const approval = await inbox.approve(id, actor)
    note(noted(approval))
    return approval
  })
}

export function deny (
  { activity, inbox }: ApprovalServices, id: string, { actor, requestId }: Call, reason: string | undefined
): Promise<Approval> {
  const row = { category: 'approval', action: 'approval.deny', target: id, actor, request_id: requestId }
  return activity.audited(row, async note => {
    const approval = inbox.deny(id, actor, reason)
    note(noted(approval))
    return approval
  })
}

/** An agent by its header, or by its name where it called the route as a tool, which has no headers. */
export function readerOf ({ actor, request }: Pick<RouteCall, 'actor' | 'request'>): ApprovalReader {
  return actor.startsWith('mcp:') || namesAgent(request.headers['x-svc-agent']) ? 'agent' : 'operator'
}

/** Whatever it names: an agent that is spelled in a way that no agent can be is no operator either. */
function namesAgent (header: string | readonly string[] | undefined): boolean {
  return header !== undefined && String(header).trim() !== ''
}

interface Noted {
  readonly message: string
  readonly after: unknown
}

function noted ({ tool, server, args, client_id: client, state, error, reason }: Approval): Noted {
  return { message: `${tool} for ${client}: ${state}`, after: { server, tool, args, client_id: client, state, error, reason } }
}
