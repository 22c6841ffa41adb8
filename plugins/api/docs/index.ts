import { core, definePlugin, defineRoute, handled, jsonAnswer } from 'svc-gateway/plugin'
import { documentSchema } from './schemas.js'

/** `/api/openapi.json` and a page that shows it. The page needs nothing from anywhere else. */
export default definePlugin({
  name: 'api-docs',
  kind: 'routes',
  apiVersion: 1,
  requires: { openapi: core.openapi },
  register (ctx) {
    const { openapi } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/openapi.json',
      tag: 'Gateway',
      summary: 'The OpenAPI document of every route that is mounted',
      schema: { response: documentSchema },
      handler: () => jsonAnswer(openapi.json())
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/docs',
      tag: 'Gateway',
      summary: 'This document as a page',
      produces: 'text/html',
      handler: async ({ reply, requestId }) => {
        const { contentPolicy, page } = await import('./page.js')
        void reply.headers({
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': contentPolicy,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
          'x-request-id': requestId
        }).send(page)
        return handled
      }
    }))
  }
})
