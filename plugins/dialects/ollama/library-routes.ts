import { defineRoute, handled, type AnyRoute, type Clock } from 'svc-gateway/plugin'
import { requestObject } from '../../v1/over-chat/ref.js'
import { modelIn } from './body.js'
import { ollamaDialect } from './dialect.js'
import { running, show, tags, type LibraryServices } from './library.js'
import { HOME } from './port.js'
import { runningSchema, showBodySchema, shownSchema, tagsSchema, versionSchema } from './schemas.js'

/** The release of Ollama whose API this is: clients refuse to work with an older one. */
const API_RELEASE = '0.12.11'
const shared = { tag: 'Ollama', dialect: ollamaDialect } as const

/** What there is. */
export function libraryRoutes (services: LibraryServices & { readonly clock: Clock }): AnyRoute[] {
  return [
    defineRoute({
      ...shared,
      method: 'GET',
      url: HOME,
      summary: 'Answer of Ollama at its root; `[dialects] ollama_port` serves it there',
      produces: 'text/plain',
      handler: ({ reply, requestId }) => {
        void reply.headers({ 'content-type': 'text/plain; charset=utf-8', 'x-request-id': requestId }).send('Ollama is running')
        return handled
      }
    }),
    defineRoute({
      ...shared,
      method: 'GET',
      url: '/api/version',
      summary: 'The Ollama release whose API this is',
      schema: { response: versionSchema },
      handler: () => ({ version: API_RELEASE })
    }),
    defineRoute({
      ...shared,
      method: 'GET',
      url: '/api/tags',
      summary: 'Available models, in the format of Ollama',
      schema: { response: tagsSchema },
      handler: call => tags(services, call)
    }),
    defineRoute({
      ...shared,
      method: 'GET',
      url: '/api/ps',
      summary: 'Loaded models, in the format of Ollama',
      schema: { response: runningSchema },
      handler: () => running(services, services.clock.now())
    }),
    defineRoute({
      ...shared,
      method: 'POST',
      url: '/api/show',
      summary: 'Details of a model, in the format of Ollama',
      schema: { body: showBodySchema, response: shownSchema },
      example: { model: 'agent' },
      bodyKind: 'buffer',
      handler: ({ body, signal }) => show(services, modelIn(requestObject(body)), signal)
    })
  ]
}
