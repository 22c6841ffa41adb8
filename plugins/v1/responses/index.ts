import { join } from 'node:path'
import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { Answering } from './answering.js'
import { responsesDialect } from './dialect.js'
import { BackgroundResponses } from './kept/background.js'
import { conversationRoutes } from './kept/conversation-routes.js'
import { responsesError } from './errors.js'
import { KeptFile } from './kept/kept-file.js'
import { KeptResponses } from './kept/kept-responses.js'
import { keptRoutes } from './kept/routes.js'
import { Readers } from './kept/readers.js'
import { keepingSchema } from './kept/settings.js'
import type { Kept } from './kept/told.js'
import { socketRoute } from './socket/route.js'
import {
  compactAnswerSchema, compactBodySchema, inputTokensAnswerSchema, inputTokensBodySchema, responsesAnswerSchema,
  responsesBodySchema
} from './schemas.js'

const FILE = 'responses.db'

/**
 * The Responses API. Where the slot's engine or the upstream speaks it, bytes pass both ways, streams included; everything
 * else is asked for a chat completion (over-chat.ts). What was answered is kept for requests that go on from it (kept/).
 */
export default definePlugin({
  name: 'v1-responses',
  kind: 'routes',
  apiVersion: 1,
  errors: responsesError,
  configSchema: keepingSchema,
  requires: { clock: core.clock, config: core.config, dispatch: core.dispatch, slots: core.slots },
  databases: [{ path: ({ own }) => join(own, FILE), upgrade: async path => (await KeptResponses.open(path, NO_LIMITS)).close() }],
  register (ctx) {
    const { config: settings, log } = ctx
    const { clock, config, dispatch, slots } = ctx.services
    const file = new KeptFile(join(ctx.stateDir, FILE), settings, clock, log)
    const readers = new Readers()
    let background: BackgroundResponses | null = null
    const open = async (): Promise<Kept> => {
      if (!settings.store) throw responsesError('responses.not_found', 'responses are not kept here: [plugins.config.v1-responses] store is off')
      const store = await file.open()
      return { store, background: background ??= new BackgroundResponses(dispatch, store, clock, log), readers }
    }
    const deps = { clock, config, dispatch, slots, log, file: settings.store ? file : null, open }
    const answering = new Answering(deps)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/responses',
      alsoAt: ['/responses'],
      tag: 'Responses',
      surface: 'responses',
      summary: 'A response of the Responses API, streaming or not',
      description: 'With `stream: true` the answer is `text/event-stream`, with the events of the Responses API.',
      schema: { body: responsesBodySchema, response: responsesAnswerSchema },
      answers: [{ type: 'text/event-stream' }],
      example: { model: 'agent', input: 'Say hello' },
      bodyKind: 'buffer',
      dialect: responsesDialect,
      handler: call => answering.answer(call)
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/responses/input_tokens',
      alsoAt: ['/responses/input_tokens'],
      tag: 'Responses',
      surface: 'input-tokens',
      summary: 'Token count of a Responses API request',
      description: 'Where the engine has no tokenizer to ask, the number is estimated, and the header `x-svc-estimate` says so.',
      schema: { body: inputTokensBodySchema, response: inputTokensAnswerSchema },
      example: { model: 'agent', input: 'Say hello' },
      bodyKind: 'buffer',
      dialect: responsesDialect,
      handler: call => answering.count(call)
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/responses/compact',
      alsoAt: ['/responses/compact'],
      tag: 'Responses',
      surface: 'compact',
      summary: 'A conversation compacted to the messages of its user and a summary by a model',
      description: 'The answer\'s `output` is the `input` of a request that continues from there.',
      schema: { body: compactBodySchema, response: compactAnswerSchema },
      example: { model: 'agent', input: [{ role: 'user', content: 'My name is Ada.' }, { role: 'assistant', content: 'Hello, Ada.' }] },
      bodyKind: 'buffer',
      dialect: responsesDialect,
      handler: call => answering.compact(call)
    }))
    ctx.addRoute(socketRoute(deps, standing => answering.options(standing)))
    for (const route of [...keptRoutes(open), ...conversationRoutes(open, clock)]) ctx.addRoute(route)
    ctx.onStart(() => file.start())
    ctx.onStop(async () => {
      background?.stop()
      await file.close()
    })
  }
})

const NO_LIMITS = { days: Infinity, responses: Infinity, bytes: Infinity }
