import { core, definePlugin, defineRoute, httpMethods, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'

const ROOT = '/upstream/'

const paramsSchema = z.object({ '*': z.string().meta({ description: 'Slot or model, then the path of the engine', pattern: '^[^/\\s][^\\0]*$', examples: ['agent/health'] }) })
const bodySchema = z.unknown().meta({ type: 'string', format: 'binary', description: 'Whatever the engine takes' })

const engineAnswers = ([undefined, '2XX', '3XX'] as const).flatMap(status => ['application/octet-stream', '*/*'].map(type => ({
  type, description: 'Whatever the engine answers', ...(status === undefined ? {} : { status })
})))

/** `ANY /upstream/{slot or model}/*`: the engine itself, its page, its WebSockets and whatever `/v1` does not know of it. */
export default definePlugin({
  name: 'v1-passage',
  kind: 'routes',
  apiVersion: 1,
  requires: { config: core.config, dispatch: core.dispatch },
  register (ctx) {
    const { config, dispatch } = ctx.services
    for (const method of httpMethods) {
      ctx.addRoute(defineRoute({
        method,
        url: `${ROOT}*`,
        tag: 'Engines',
        summary: 'The engine of a slot itself: /upstream/{slot or model}/{path of the engine}',
        description: 'The slot is loaded if needed. Answers, streams and WebSockets pass unchanged. `[dispatcher] engine_passage` switches it off.',
        schema: { params: paramsSchema, ...(method === 'GET' ? {} : { body: bodySchema }) },
        consumes: 'application/octet-stream',
        produces: 'application/octet-stream',
        answers: engineAnswers,
        bodyKind: method === 'GET' ? 'none' : 'buffer',
        bodyLimit: config.snapshot.svc.server.v1_body_limit_bytes,
        handler: call => {
          const url = call.request.raw.url ?? ''
          const target = url.slice(url.indexOf(ROOT) + ROOT.length)
          return dispatch.engine(call as RouteCall<unknown, unknown, Buffer | undefined>, target)
        }
      }))
    }
  }
})
