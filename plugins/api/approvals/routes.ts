import { defineRoute, sse, type ActivityLog, type AnyRoute, type SseEvent } from 'svc-gateway/plugin'
import type { Approval, ApprovalEvent, ApprovalInbox } from '../../services/approvals/ref.js'
import { approvalsError } from './errors.js'
import { answerSchema, denySchema, listQuerySchema, listSchema, paramsSchema } from './schemas.js'

export interface ApprovalServices {
  readonly activity: ActivityLog
  readonly inbox: ApprovalInbox
}

const tag = 'Approvals'

export function approvalRoutes ({ activity, inbox }: ApprovalServices): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals',
      tag,
      summary: 'Calls of gated tools that wait for an operator, and what became of earlier ones',
      schema: { querystring: listQuerySchema, response: listSchema },
      handler: ({ query: { state, ...query } }) => inbox.list({ ...query, state: state === 'all' ? undefined : state })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals/events',
      tag,
      summary: 'Approvals as they come and are decided',
      description: 'Frames are `{kind, entry}`: first a `snapshot` for each that is pending, then `enqueued`, `repeated`, `approved`, `denied`, `expired`, `executed`, `failed`. A reader that fell behind gets snapshots again.',
      produces: 'text/event-stream',
      handler: () => sse(signal => frames(inbox.follow(signal)))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals/:id',
      tag,
      summary: 'One approval, with its arguments and its result',
      tool: {
        name: 'approval_status',
        title: 'Approval status',
        description: 'Tells whether a call that waits for an operator was approved, and what it answered. Call it with the approval_id of a tool that answered pending_approval; only the operator can approve.',
        rename: { id: 'approval_id' },
        readOnly: true
      },
      schema: { params: paramsSchema, response: answerSchema },
      handler: ({ params: { id } }) => ({ approval: inbox.get(id) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agent/approvals/:id/approve',
      tag,
      summary: 'Approve a call and run it',
      description: 'Answers when the call has ended, `executed` or `failed`; it goes on when the client leaves. It runs once, whatever happens.',
      schema: { params: paramsSchema, response: answerSchema },
      handler: ({ params: { id }, actor, request, requestId }) => activity.audited({
        category: 'approval', action: 'approval.approve', target: id, actor, request_id: requestId
      }, async note => {
        if (namesAgent(request.headers['x-svc-agent'])) {
          throw approvalsError('approvals.operator_only', 'an agent cannot approve a call, its own or another\'s; an operator does, with `svc agent approvals approve` or in the dashboard', { details: { id } })
        }
        const approval = await inbox.approve(id, actor)
        note(noted(approval))
        return { approval }
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agent/approvals/:id/deny',
      tag,
      summary: 'Deny a call; it never runs',
      schema: { params: paramsSchema, body: denySchema, response: answerSchema },
      example: { reason: 'the disk is nearly full' },
      handler: ({ params: { id }, body: { reason }, actor, requestId }) => activity.audited({
        category: 'approval', action: 'approval.deny', target: id, actor, request_id: requestId
      }, async note => {
        const approval = inbox.deny(id, actor, reason)
        note(noted(approval))
        return { approval }
      })
    })
  ]
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

async function* frames (events: AsyncIterable<ApprovalEvent>): AsyncGenerator<SseEvent> {
  for await (const event of events) yield { data: event }
}
