import { core, definePlugin } from 'svc-gateway/plugin'
import { boardRef } from '../../services/board/ref.js'
import { boardRoutes } from './board-routes.js'
import { eventSocket } from './event-socket.js'
import { planRoutes } from './plan-routes.js'
import { taskRoutes } from './task-routes.js'
import { workRoutes } from './work-routes.js'

/** `/api/board`: tasks, boards, and what happens to them. */
export default definePlugin({
  name: 'api-board',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, tools: core.tools, board: boardRef },
  register (ctx) {
    for (const make of [taskRoutes, boardRoutes, workRoutes, planRoutes]) make(ctx.services).forEach(route => ctx.addRoute(route))
    ctx.addRoute(eventSocket(ctx.services))
    ctx.services.tools.addServer({
      id: 'board',
      title: 'svc board',
      description: 'Further tools of the task board, besides those of svc admin',
      exposure: { direct: true, all: false, chats: true }
    })
  }
})
