import { defineRoute, jsonLines, type AnyRoute } from 'svc-gateway/plugin'
import { requestObject } from '../../v1/over-chat/ref.js'
import { isStream } from './body.js'
import { LINES, ollamaDialect } from './dialect.js'
import { ollamaError } from './errors.js'
import { copy, create, creationOf, remove, type ManageServices } from './manage.js'
import { pull, type PullServices } from './pull.js'
import { blobParamsSchema, copyBodySchema, createBodySchema, deleteBodySchema, progressSchema, pullBodySchema } from './schemas.js'

const shared = { tag: 'Ollama', bodyKind: 'buffer', dialect: ollamaDialect } as const
const lines = [{ type: LINES }]
const refused = { ...shared, bodyKind: 'none', method: 'POST', summary: 'Refused, with the alternative in svc' } as const

/** What changes the models that there are. */
export function manageRoutes (services: ManageServices & PullServices): AnyRoute[] {
  return [
    defineRoute({
      ...shared,
      method: 'POST',
      url: '/api/pull',
      summary: 'Pull a model, or follow its running pull, in the format of Ollama',
      schema: { body: pullBodySchema, response: progressSchema },
      answers: lines,
      example: { model: 'qwen3:4b' },
      handler: call => pull(services, call, requestObject(call.body))
    }),
    defineRoute({
      ...shared,
      method: 'POST',
      url: '/api/create',
      summary: 'Create another name for a model, or a slot for a model without one',
      schema: { body: createBodySchema, response: progressSchema },
      answers: lines,
      example: { model: 'mario', from: 'agent' },
      handler: async call => {
        const asked = requestObject(call.body)
        const creation = creationOf(services, asked)
        await create(services, call, creation)
        if (!isStream(asked)) return { status: 'success' }
        const made = 'alias' in creation ? `${creation.alias} is another name for ${creation.target}` : `slot ${creation.slot} is created`
        return jsonLines(async function* () {
          yield { status: made }
          yield { status: 'success' }
        })
      }
    }),
    defineRoute({
      ...shared,
      method: 'POST',
      url: '/api/copy',
      summary: 'Copy: create an alias',
      schema: { body: copyBodySchema },
      example: { source: 'agent', destination: 'gpt-4.1' },
      status: 200,
      handler: async call => copy(services, call, requestObject(call.body))
    }),
    defineRoute({
      ...shared,
      method: 'DELETE',
      url: '/api/delete',
      summary: 'Delete an alias, or a model that no slot uses; its file stays',
      schema: { body: deleteBodySchema },
      example: { model: 'gpt-4.1' },
      status: 200,
      handler: async call => remove(services, call, requestObject(call.body))
    }),
    defineRoute({
      ...refused,
      url: '/api/push',
      handler: () => { throw ollamaError('ollama.not_here', 'this gateway cannot push models: it has no registry') }
    }),
    defineRoute({
      ...refused,
      url: '/api/blobs/:digest',
      schema: { params: blobParamsSchema },
      handler: () => {
        throw ollamaError('ollama.not_here', 'this gateway does not accept model files: download them with `svc model pull`, then use /api/create')
      }
    })
  ]
}
