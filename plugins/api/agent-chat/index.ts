import { join } from 'node:path'
import { core, definePlugin } from 'svc-gateway/plugin'
import { agentLifecycleRef } from '../../services/agents/ref.js'
import { Chats } from './chats.js'
import { SessionCookies } from './cookie.js'
import { chatRoutes } from './routes.js'
import { chatSockets } from './sockets.js'

/** `/api/agents/{agent}/session`, `events` and `submit`: pages talk to an agent that the gateway runs. */
export default definePlugin({
  name: 'api-agent-chat',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, lifecycle: agentLifecycleRef },
  register (ctx) {
    const { clock, lifecycle } = ctx.services
    const chats = new Chats(lifecycle, clock)
    const cookies = new SessionCookies(() => join(ctx.stateDir, 'secret'), clock)
    const deps = { chats, cookies, lifecycle }
    for (const route of [...chatRoutes(deps), ...chatSockets(deps)]) ctx.addRoute(route)
    ctx.onStop(() => chats.close())
  }
})
