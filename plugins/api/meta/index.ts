import { core, definePlugin, defineRoute, handled } from 'svc-gateway/plugin'
import { enumsDocument, enumsTag, namesTag } from './enums.js'
import { enumsSchema } from './schemas.js'

/** `/api/meta`: the vocabularies that dashboards and scripts build on. */
export default definePlugin({
  name: 'api-meta',
  kind: 'routes',
  apiVersion: 1,
  requires: { info: core.info, providers: core.providers },
  register (ctx) {
    const { info, providers } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/meta/enums',
      tag: 'Status',
      summary: 'Devices, slot types, capabilities and their translations',
      description: 'May be cached for an hour; the ETag changes with the release and with the providers that are loaded.',
      schema: { response: enumsSchema },
      answers: [{ status: 304, description: 'Unchanged' }],
      handler: ({ request, reply, requestId }) => {
        const document = enumsDocument(providers)
        const tag = enumsTag(info.version, document)
        void reply.headers({ 'etag': tag, 'cache-control': 'public, max-age=3600' })
        if (!namesTag(request.headers['if-none-match'], tag)) return document
        void reply.code(304).header('x-request-id', requestId).send()
        return handled
      }
    }))
  }
})
