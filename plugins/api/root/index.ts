import { core, definePlugin, defineRoute, handled, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import { frontPage } from './page.js'

const frontSchema = z.strictObject({
  name: z.string(),
  version: z.string(),
  base_url: z.string().meta({ description: 'Base URL for clients' }),
  docs: z.string(),
  openapi: z.string(),
  models: z.string(),
  status: z.string(),
  health: z.string()
})

/** The page at the bare address: where everything is. */
export default definePlugin({
  name: 'api-root',
  kind: 'routes',
  apiVersion: 1,
  requires: { info: core.info },
  register (ctx) {
    const { info } = ctx.services
    const front = (): z.output<typeof frontSchema> => ({
      name: info.name,
      version: info.version,
      base_url: '/v1',
      docs: '/api/docs',
      openapi: '/api/openapi.json',
      models: '/v1/models',
      status: '/api/status',
      health: '/api/health'
    })
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/',
      tag: 'Gateway',
      summary: 'Entry point: a page for browsers, JSON for other clients',
      schema: { response: frontSchema },
      answers: [{ type: 'text/html' }],
      handler: call => asksForPage(call) ? sendPage(call, frontPage(front())) : front()
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/openapi.json',
      tag: 'Gateway',
      summary: 'Redirects to the OpenAPI document',
      status: 302,
      handler: ({ reply, requestId }) => {
        void reply.code(302).headers({ 'location': 'api/openapi.json', 'x-request-id': requestId }).send()
        return handled
      }
    }))
  }
})

const contentPolicy = ['default-src \'none\'', 'style-src \'unsafe-inline\'', 'frame-ancestors \'none\''].join('; ')

/** Programs that take anything get JSON, as the document promises first. */
function asksForPage ({ request: { headers: { accept = '' } } }: RouteCall): boolean {
  return accept.includes('text/html')
}

function sendPage ({ reply, requestId }: RouteCall, page: string): typeof handled {
  void reply.headers({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentPolicy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-request-id': requestId
  }).send(page)
  return handled
}
