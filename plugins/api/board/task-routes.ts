import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { boardError } from '../../services/board/ref.js'
import { audited, revisionOf, tagged, type BoardApi } from './board-call.js'
import {
  answerSchema, boardQuerySchema, bulkSchema, commentSchema, lanesQuerySchema, lanesSchema, linkQuerySchema, linkSchema,
  newTaskSchema, okSchema, patchSchema, reassignSchema, taskParamsSchema, taskSchema, updatedSchema
} from './schemas.js'
import { boardTools, moreTools } from './tools.js'

const tag = 'Board'
const bodyError = boardError.kind('board.invalid_body')

export function taskRoutes (api: BoardApi): AnyRoute[] {
  const { board: service } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/board',
      tag,
      summary: 'The tasks of a board by lane',
      description: 'Within a lane the highest priority comes first, then the oldest.',
      schema: { querystring: lanesQuerySchema, response: lanesSchema },
      tool: boardTools.list,
      handler: async ({ query }) => {
        const board = await service.open()
        return { lanes: board.lanes(board.slugOf(query.board), query.include_archived === true) }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks',
      tag,
      summary: 'Add a task',
      description: 'It starts in `triage` unless `status` is set.',
      schema: { querystring: boardQuerySchema, body: newTaskSchema, response: answerSchema },
      bodyError,
      example: { title: 'Write the release notes', body: 'What changed since 1.4', priority: 1 },
      tool: boardTools.add,
      handler: call => audited(api, call, 'task.create', call.body.title, board => {
        const task = board.create(board.slugOf(call.query.board), call.body, call.actor)
        return { task: tagged(call, task) }
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/bulk',
      tag,
      summary: 'Change many tasks in the same way, all or none',
      schema: { querystring: boardQuerySchema, body: bulkSchema, response: updatedSchema },
      bodyError,
      example: { ids: ['t_0123abcd'], status: 'archived' },
      handler: call => {
        const { query, body: { ids, ...patch }, actor } = call
        return audited(api, call, 'task.bulk', `${ids.length} tasks`, board => ({ updated: board.changeAll(board.slugOf(query.board), ids, patch, actor) }))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/tasks/:id',
      tag,
      summary: 'One task, with its comments, events and runs',
      description: 'The ETag is its revision; PATCH and DELETE take it as If-Match.',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, response: taskSchema },
      tool: boardTools.task,
      handler: async call => {
        const board = await service.open()
        return tagged(call, board.task(board.slugOf(call.query.board), call.params.id))
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/board/tasks/:id',
      tag,
      summary: 'Change a task, or move it to another lane',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, body: patchSchema, response: taskSchema },
      bodyError,
      example: { status: 'ready', assignee: 'hermes' },
      tool: boardTools.update,
      handler: call => audited(api, call, 'task.update', call.params.id, board =>
        tagged(call, board.change(board.slugOf(call.query.board), call.params.id, call.body, call.actor, revisionOf(call))))
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/board/tasks/:id',
      tag,
      summary: 'Delete a task for good',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, response: okSchema },
      handler: call => audited(api, call, 'task.delete', call.params.id, board => {
        board.remove(board.slugOf(call.query.board), call.params.id, call.actor, revisionOf(call))
        return { ok: true as const }
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/comments',
      tag,
      summary: 'Comment on a task',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, body: commentSchema, response: taskSchema },
      bodyError,
      example: { body: 'The tests pass now.' },
      tool: boardTools.comment,
      handler: call => {
        const { params: { id }, query, body: { author = call.actor, body } } = call
        return audited(api, call, 'task.comment', id, board => tagged(call, board.comment(board.slugOf(query.board), id, author, body)))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/tasks/:id/reassign',
      tag,
      summary: 'Assign a task to an agent or person; null unassigns it',
      schema: { params: taskParamsSchema, querystring: boardQuerySchema, body: reassignSchema, response: taskSchema },
      bodyError,
      example: { assignee: 'hermes' },
      handler: call => audited(api, call, 'task.reassign', call.params.id, board => {
        const { params: { id }, query, body, body: { assignee = body.profile } } = call
        if (assignee === undefined) {
          throw boardError('board.invalid_body', '`assignee` or `profile` is the new assignee; null unassigns the task', { param: 'assignee' })
        }
        return tagged(call, board.change(board.slugOf(query.board), id, { ...body, assignee }, call.actor, revisionOf(call)))
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/links',
      tag,
      summary: 'Make a task depend on another one',
      schema: { querystring: boardQuerySchema, body: linkSchema, response: okSchema },
      bodyError,
      example: { parent_id: 't_0123abcd', child_id: 't_4567cdef' },
      tool: boardTools.link,
      handler: call => {
        const { query, body: { parent_id: parent, child_id: child } } = call
        return audited(api, call, 'link.create', child, board => {
          board.link(board.slugOf(query.board), parent, child)
          return { ok: true as const }
        })
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/board/links',
      tag,
      summary: 'Take a dependency away',
      schema: { querystring: boardQuerySchema.extend(linkQuerySchema.shape), response: okSchema },
      tool: moreTools.unlink,
      handler: call => {
        const { board: slug, parent_id: parent, child_id: child } = call.query
        return audited(api, call, 'link.delete', child, board => {
          board.unlink(board.slugOf(slug), parent, child)
          return { ok: true as const }
        })
      }
    })
  ]
}
