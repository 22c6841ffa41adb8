import { core, definePlugin, defineRoute, sse } from 'svc-gateway/plugin'
import { approvalsRef } from '../../services/approvals/ref.js'
import { boardError, boardRef } from '../../services/board/ref.js'
import { chatTurn } from './chat-turn.js'
import { chatSchema } from './schemas.js'

/** `/api/board/chat`: a model that looks after the board, with the tools of the board and of the gateway. */
export default definePlugin({
  name: 'api-board-chat',
  kind: 'routes',
  apiVersion: 1,
  requires: {
    activity: core.activity, clock: core.clock, dispatch: core.dispatch, tools: core.tools, board: boardRef, inbox: approvalsRef
  },
  register (ctx) {
    const { services } = ctx
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/board/chat',
      tag: 'Board',
      summary: 'Let a model manage the board',
      description: 'Frames are `token {text}`, `thinking {text}`, `tool_call {id, name, arguments}`, `tool_result {id, name, result}`, `error {message}`, and `done` at the end, each with its `type`. The model gets at most eight turns of 300 seconds each. A gated tool waits up to 300 seconds for an operator, with comment lines every 15 seconds. If the client leaves, everything is cancelled.',
      produces: 'text/event-stream',
      schema: { body: chatSchema },
      bodyError: boardError.kind('board.invalid_body'),
      example: { messages: [{ role: 'user', content: 'What is blocked, and why?' }] },
      handler: async call => {
        const { messages, board: slug, model } = call.body
        const board = await services.board.open()
        const request = {
          messages, call, board: board.slugOf(slug), model: model ?? board.orchestration().orchestrator_profile ?? 'svc/agent'
        }
        return sse(signal => chatTurn(services, request, signal))
      }
    }))
  }
})
