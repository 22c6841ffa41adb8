import { core, definePlugin } from 'svc-gateway/plugin'
import { approvalsRef } from '../../services/approvals/ref.js'
import { approvalsError } from './errors.js'
import { pageRoutes } from './page-routes.js'
import { approvalRoutes } from './routes.js'

/** `/api/agent/approvals`: the inbox of calls that an operator has to approve. */
export default definePlugin({
  name: 'api-approvals',
  kind: 'routes',
  apiVersion: 1,
  errors: approvalsError,
  requires: { activity: core.activity, clock: core.clock, inbox: approvalsRef },
  register (ctx) {
    for (const route of [...approvalRoutes(ctx.services), ...pageRoutes(ctx.services)]) ctx.addRoute(route)
  }
})
