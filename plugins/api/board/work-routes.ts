import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { boardError, type Board } from '../../services/board/ref.js'
import { audited, tagged, type BoardApi } from './board-call.js'
import { boardQuerySchema, taskParamsSchema, taskSchema } from './schemas.js'
import { moreTools } from './tools.js'
import {
  agentParamsSchema, agentSchema, agentsSchema, assigneesSchema, configSchema, dispatchedSchema, dispatchQuerySchema, labelSchema,
  logQuerySchema, orchestrationPatchSchema,
  orchestrationSchema, runAnswerSchema, runParamsSchema, workersSchema
} from './work-schemas.js'

const tag = 'Board'

export function workRoutes (api: BoardApi): AnyRoute[] {
  const { board: service } = api
  return [
    defineRoute({
      method: 'POST',
      url: '/api/board/dispatch',
      tag,
      summary: 'Hand ready tasks to agents now',
      description: 'This also happens automatically: on every change, and every `tick_interval` seconds.',
      schema: { querystring: dispatchQuerySchema, response: dispatchedSchema },
      tool: moreTools.dispatch,
      handler: call => audited(api, call, 'work.dispatch', 'all', ({ work }) => ({ dispatched: work.dispatch(call.query.max ?? Infinity) }))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/reclaim',
      tag,
      summary: 'Stop the agent of a task and make the task ready again',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, response: taskSchema },
      handler: call => audited(api, call, 'task.reclaim', call.params.id, async board =>
        tagged(call, await board.work.reclaim(board.slugOf(call.query.board), call.params.id)))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/tasks/:id/log',
      tag,
      summary: 'Output of the last agent of a task',
      produces: 'text/plain',
      schema: { params: taskParamsSchema, querystring: logQuerySchema },
      handler: async call => {
        const { params: { id }, query: { board: slug, tail }, reply } = call
        const board = await service.open()
        const text = board.work.log(board.slugOf(slug), id)
        void reply.type('text/plain; charset=utf-8')
        return tail === undefined ? text : text.split('\n').slice(-tail - 1).join('\n')
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/runs/:id',
      tag,
      summary: 'One attempt of an agent',
      schema: { params: runParamsSchema, querystring: boardQuerySchema, response: runAnswerSchema },
      handler: async ({ params: { id }, query }) => {
        const board = await service.open()
        return board.work.run(board.slugOf(query.board), id)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/workers/active',
      tag,
      summary: 'Tasks that agents are working on',
      schema: { response: workersSchema },
      handler: async () => (await service.open()).work.active().map(worker => ({ ...worker, status: 'running' as const }))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/profiles',
      tag,
      summary: 'Agents that can be given tasks, with the number that each has',
      schema: { querystring: boardQuerySchema, response: agentsSchema },
      tool: moreTools.agents,
      handler: async ({ query }) => {
        const board = await service.open()
        return agentsOf(board, board.slugOf(query.board))
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/board/profiles/:name',
      tag,
      summary: 'Change the name of an agent on the board',
      schema: { params: agentParamsSchema, querystring: boardQuerySchema, body: labelSchema, response: agentSchema },
      bodyError: boardError.kind('board.invalid_body'),
      example: { label: 'The painter' },
      handler: call => audited(api, call, 'profile.update', call.params.name, board => {
        const { params: { name }, query, body: { label } } = call
        const slug = board.slugOf(query.board)
        board.work.label(name, label)
        return agentsOf(board, slug).find(({ id }) => id === name)!
      })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/assignees',
      tag,
      summary: 'Agents and people that have, or can be given, tasks',
      schema: { querystring: boardQuerySchema, response: assigneesSchema },
      tool: moreTools.assignees,
      handler: async ({ query }) => {
        const board = await service.open()
        const known = board.work.agents().map(({ id }) => id)
        return [...new Set([...known, ...Object.keys(board.assignees(board.slugOf(query.board)))])].toSorted()
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/config',
      tag,
      summary: 'How tasks are assigned to agents: `[plugins.config.board]`',
      schema: { response: configSchema },
      handler: async () => ({ ...(await service.open()).work.settings })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/orchestration',
      tag,
      summary: 'Automation settings for tasks',
      schema: { response: orchestrationSchema },
      tool: moreTools.orchestration,
      handler: async () => {
        const board = await service.open()
        return { ...board.orchestration(), ...board.work.settings }
      }
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/board/orchestration',
      tag,
      summary: 'Change the automation settings for tasks',
      schema: { body: orchestrationPatchSchema, response: orchestrationSchema },
      bodyError: boardError.kind('board.invalid_body'),
      example: { default_assignee: 'hermes' },
      tool: moreTools.orchestrate,
      handler: call => audited(api, call, 'orchestration.update', 'orchestration', board =>
        ({ ...board.setOrchestration(call.body), ...board.work.settings }))
    })
  ]
}

function agentsOf (board: Board, slug: string): Array<{ readonly id: string, readonly label: string, readonly count: number }> {
  const counts = board.assignees(slug)
  return board.work.agents().map(({ id, label }) => ({ id, label, count: counts[id] ?? 0 }))
}
