import { defineRoute, handled, pause, type AnyRoute, type Clock, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import { approve, deny, readerOf, type ApprovalServices } from './decisions.js'
import { approvalsError } from './errors.js'
import { approvalPage, pageHeaders } from './page.js'
import { decisionSchema, paramsSchema } from './schemas.js'

/** How long the page waits for the end of a call. It looks again by itself. */
const PATIENCE_MS = 1_000

/** The page that a client sends its user to. */
export function pageRoutes (services: ApprovalServices & { readonly clock: Clock }): AnyRoute[] {
  const { inbox, clock } = services
  const url = '/api/agent/approvals/:id/page'
  const shown = (id: string, call: Pick<RouteCall, 'actor' | 'reply' | 'request' | 'requestId'>): typeof handled => {
    const page = approvalPage(inbox.get(id, readerOf(call)))
    void call.reply.headers({ ...pageHeaders, 'x-request-id': call.requestId }).send(page)
    return handled
  }
  return [
    defineRoute({
      method: 'GET',
      url,
      tag: 'Approvals',
      summary: 'One approval as a page, to approve or deny it',
      produces: 'text/html',
      schema: { params: paramsSchema },
      handler: call => shown(call.params.id, call)
    }),
    defineRoute({
      method: 'POST',
      url,
      tag: 'Approvals',
      summary: 'Form of the page: approve or deny a call',
      description: 'Answers with the updated page. An approved call runs in the background.',
      bodyKind: 'buffer',
      bodyLimit: 16 * 1024,
      consumes: 'application/x-www-form-urlencoded',
      produces: 'text/html',
      schema: { params: paramsSchema, body: decisionSchema },
      example: { decision: 'deny', reason: 'the disk is nearly full' },
      handler: async call => {
        const { id } = call.params
        const read = decisionSchema.safeParse(Object.fromEntries(new URLSearchParams(call.body.toString('utf8'))))
        if (!read.success) throw approvalsError('approvals.no_decision', `invalid decision: ${z.prettifyError(read.error)}`)
        const { decision, reason } = read.data
        const done = decision === 'approve' ? approve(services, id, call) : deny(services, id, call, reason === '' ? undefined : reason)
        await Promise.race([done, pause(clock, PATIENCE_MS)]).catch((error: unknown) => {
          // the page says what was decided before
          if ((error as { code?: unknown }).code !== 'approvals.already_resolved') throw error
        })
        done.catch(() => undefined)
        return shown(id, call)
      }
    })
  ]
}
