import { defineRoute, sse, type AnyRoute, type SseEvent } from 'svc-gateway/plugin'
import type { ApprovalEvent } from '../../services/approvals/ref.js'
import { approve, deny, readerOf, type ApprovalServices } from './decisions.js'
import { answerSchema, denySchema, listQuerySchema, listSchema, paramsSchema } from './schemas.js'

const tag = 'Approvals'

export function approvalRoutes (services: ApprovalServices): AnyRoute[] {
  const { inbox } = services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals',
      tag,
      summary: 'Pending calls of gated tools, and the outcomes of earlier ones',
      schema: { querystring: listQuerySchema, response: listSchema },
      handler: call => {
        const { state, ...query } = call.query
        return inbox.list({ ...query, state: state === 'all' ? undefined : state }, readerOf(call))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals/events',
      tag,
      summary: 'Stream of approvals as they arrive and are decided',
      description: 'Frames are `{kind, entry}`: first a `snapshot` of each pending one, then `enqueued`, `repeated`, `approved`, `denied`, `expired`, `executed`, `failed`. A reader that fell behind gets snapshots again.',
      produces: 'text/event-stream',
      handler: call => {
        const reader = readerOf(call)
        return sse(signal => frames(inbox.follow(reader, signal)))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agent/approvals/:id',
      tag,
      summary: 'One approval, with its arguments and its result',
      tool: {
        name: 'approval_status',
        title: 'Approval status',
        description: 'Reports whether a pending call was approved, and its result. Call it with the approval_id of a tool that answered pending_approval; only the operator can approve.',
        rename: { id: 'approval_id' },
        readOnly: true
      },
      schema: { params: paramsSchema, response: answerSchema },
      handler: call => ({ approval: inbox.get(call.params.id, readerOf(call)) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agent/approvals/:id/approve',
      tag,
      summary: 'Approve a call and run it',
      description: 'Answers when the call has ended, `executed` or `failed`; it continues if the client leaves. It runs at most once.',
      schema: { params: paramsSchema, response: answerSchema },
      handler: async call => ({ approval: await approve(services, call.params.id, call) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agent/approvals/:id/deny',
      tag,
      summary: 'Deny a call; it never runs',
      schema: { params: paramsSchema, body: denySchema, response: answerSchema },
      example: { reason: 'the disk is nearly full' },
      handler: async call => ({ approval: await deny(services, call.params.id, call, call.body.reason) })
    })
  ]
}

async function* frames (events: AsyncIterable<ApprovalEvent>): AsyncGenerator<SseEvent> {
  for await (const event of events) yield { data: event }
}
