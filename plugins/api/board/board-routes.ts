import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { boardError } from '../../services/board/ref.js'
import { audited, type BoardApi } from './board-call.js'
import {
  boardParamsSchema, boardPatchSchema, boardQuerySchema, boardSchema, boardsSchema, diagnosticsSchema, newBoardSchema, okSchema,
  statsSchema, switchedSchema
} from './schemas.js'

const tag = 'Board'
const bodyError = boardError.kind('board.invalid_body')

export function boardRoutes (api: BoardApi): AnyRoute[] {
  const { board: service } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/board/boards',
      tag,
      summary: 'The boards',
      schema: { response: boardsSchema },
      handler: async () => (await service.open()).boards()
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/boards',
      tag,
      summary: 'Make a board',
      schema: { body: newBoardSchema, response: boardSchema },
      bodyError,
      example: { slug: 'garden', name: 'The garden' },
      handler: call => {
        const { slug, ...words } = call.body
        if (slug === undefined) throw boardError('board.slug_required', 'a board needs a `slug`, its name in URLs', { param: 'slug' })
        return audited(api, call, 'board.create', slug, board => board.createBoard(slug, words))
      }
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/board/boards/:slug',
      tag,
      summary: 'Change the name and description of a board',
      schema: { params: boardParamsSchema, body: boardPatchSchema, response: boardSchema },
      bodyError,
      example: { desc: 'Everything that grows' },
      handler: call => audited(api, call, 'board.update', call.params.slug, board => board.changeBoard(call.params.slug, call.body))
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/board/boards/:slug',
      tag,
      summary: 'Delete a board with all its tasks; the default one stays',
      schema: { params: boardParamsSchema, response: okSchema },
      handler: call => audited(api, call, 'board.delete', call.params.slug, board => {
        board.deleteBoard(call.params.slug)
        return { ok: true as const }
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/board/boards/:slug/switch',
      tag,
      summary: 'Make a board the current one, which calls without a board use',
      schema: { params: boardParamsSchema, response: switchedSchema },
      handler: call => audited(api, call, 'board.switch', call.params.slug, board => {
        board.switchBoard(call.params.slug)
        return { ok: true as const, slug: call.params.slug, current: call.params.slug }
      })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/stats',
      tag,
      summary: 'Number of tasks of a board by lane',
      schema: { querystring: boardQuerySchema, response: statsSchema },
      handler: async ({ query }) => {
        const board = await service.open()
        return board.stats(board.slugOf(query.board))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/board/diagnostics',
      tag,
      summary: 'State of the board',
      schema: { response: diagnosticsSchema },
      handler: async () => {
        const board = await service.open()
        const stats = board.boards().map(({ slug }) => board.stats(slug))
        const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)
        return {
          ok: true, store: 'libsql', boards: stats.length, cards: sum(stats.map(({ total }) => total)), blocked: sum(stats.map(each => each.by_status.blocked ?? 0))
        }
      }
    })
  ]
}
