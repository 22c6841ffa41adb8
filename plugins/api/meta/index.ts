import { core, definePlugin, defineRoute, errorCodes, handled, type ErrorRow } from 'svc-gateway/plugin'
import { enumsDocument, enumsTag, namesTag } from './enums.js'
import { enumsSchema, errorsSchema } from './schemas.js'

/** `/api/meta`: the vocabularies that dashboards and scripts build on. */
export default definePlugin({
  name: 'api-meta',
  kind: 'routes',
  apiVersion: 1,
  requires: { info: core.info, plugins: core.plugins, providers: core.providers },
  register (ctx) {
    const { info, plugins, providers } = ctx.services
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
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/meta/errors',
      tag: 'Status',
      summary: 'Every error code, with its status and plugin',
      description: 'The codes of `error.code` in answers: those of the gateway itself and of the plugins that are loaded. Codes of engines and upstreams are passed through.',
      schema: { response: errorsSchema },
      handler: () => {
        const own = Object.entries<ErrorRow>(errorCodes).map(([code, row]) => ({ code, ...row, plugin: null }))
        return {
          errors: [...own, ...plugins.errors()]
            .map(({ code, status, when, heals = false, plugin }) => ({ code, status, heals, when, plugin }))
            .sort((a, b) => a.code < b.code ? -1 : 1)
        }
      }
    }))
  }
})
