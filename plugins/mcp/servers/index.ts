import { core, definePlugin } from 'svc-gateway/plugin'
import { ApprovalPage } from './approval-page.js'
import { mcpError } from './errors.js'
import { LegacyLeg } from './legacy-leg.js'
import { Methods } from './methods.js'
import { ModernLeg } from './modern-leg.js'
import { serverRoutes } from './routes.js'
import { SoftSessions } from './soft-sessions.js'

/** Changes that come together are told once. */
const TOLD_AFTER_MS = 50

/** `/mcp/<server>`: every tool server of the gateway, for clients of all revisions of the protocol. */
export default definePlugin({
  name: 'mcp-servers',
  kind: ['mcp', 'routes'],
  apiVersion: 1,
  errors: mcpError,
  requires: { tools: core.tools, clock: core.clock, info: core.info, plugins: core.plugins },
  register (ctx) {
    const { tools, clock, plugins, info: { version } } = ctx.services
    const page = new ApprovalPage({ tools, plugins, clock, table: ctx.table })
    const methods = new Methods({ tools, clock, page })
    const sessions = new SoftSessions()
    const failed = (error: unknown, requestId: string): void =>
      ctx.log.debug({ request_id: requestId, err: error }, 'a request of a tool client failed')
    const legacy = new LegacyLeg({ methods, sessions, clock, version, failed })
    const modern = new ModernLeg({ methods, version, serverOf: id => tools.server(id), failed })
    for (const route of serverRoutes({ tools, legacy, modern })) ctx.addRoute(route)

    let isTelling = false
    tools.onChange(() => {
      if (isTelling) return
      isTelling = true
      clock.setTimer(TOLD_AFTER_MS, () => {
        isTelling = false
        modern.tell()
        // a server without listeners is not asked: the first question for tools makes the schemas of all
        for (const id of sessions.heardServers) {
          const parts = tools.server(id)?.parts
          if (parts === undefined) continue
          sessions.tell(id, 'notifications/tools/list_changed')
          if (parts.resources === true) sessions.tell(id, 'notifications/resources/list_changed')
          if (parts.prompts === true) sessions.tell(id, 'notifications/prompts/list_changed')
        }
      })
    })
    ctx.addHealth(() => ({ servers: tools.servers().map(({ id }) => id), ...sessions.sizes }))
    ctx.onStop(async () => {
      sessions.endAll()
      await modern.close()
    })
  }
})
