import { defineRoute, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import type { PlanCall } from '../../services/board/ref.js'
import { audited, revisionOf, tagged, type BoardApi } from './board-call.js'
import { boardQuerySchema, taskParamsSchema, taskSchema } from './schemas.js'
import { moreTools } from './tools.js'

const tag = 'Board'
const schema = { params: taskParamsSchema, querystring: boardQuerySchema, response: taskSchema }
const rules = 'Asks the model of `orchestrator_profile`. Nothing changes until its complete answer is valid, or if the task was changed in the meantime or the client leaves. `undo` reverts it.'

/** A model makes tasks ready to be worked at. */
export function planRoutes (api: BoardApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/specify',
      tag,
      summary: 'Let a model write a detailed description of a task',
      description: `Title and body are rewritten, and a task in \`triage\` goes to \`todo\`. ${rules}`,
      schema,
      tool: moreTools.specify,
      handler: call => audited(api, call, 'task.specify', call.params.id, async board =>
        tagged(call, await board.plans.specify(board.slugOf(call.query.board), call.params.id, planCall(call))))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/decompose',
      tag,
      summary: 'Let a model split a task into parts that it depends on',
      description: `Parts without dependencies are \`ready\`, unless \`auto_promote_children\` is off. ${rules}`,
      schema,
      tool: moreTools.decompose,
      handler: call => audited(api, call, 'task.decompose', call.params.id, async board =>
        tagged(call, await board.plans.decompose(board.slugOf(call.query.board), call.params.id, planCall(call))))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/undo',
      tag,
      summary: 'Undo the last specify or decompose of a task',
      description: 'Restores its text and lane, and deletes its parts. Refused if one of them has changed since.',
      schema,
      handler: call => audited(api, call, 'task.undo', call.params.id, board =>
        tagged(call, board.plans.undo(board.slugOf(call.query.board), call.params.id, call.actor)))
    })
  ]
}

function planCall (call: Pick<RouteCall, 'actor' | 'requestId' | 'signal' | 'request' | 'reply'>): PlanCall {
  const { actor, requestId, signal, request } = call
  return { actor, requestId, origin: request.headers, signal, revision: revisionOf(call) }
}
