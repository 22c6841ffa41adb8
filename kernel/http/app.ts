import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { svcError, type Logger } from '../contract/index.js'
import { createErrorHandler, sendError } from './error-handler.js'
import type { Guards } from './guards.js'
import { FixedPaths } from './methods.js'
import { requestIdOf } from './request-id.js'

export interface AppOptions {
  readonly log: Logger
  readonly guards: Guards
  /** Methods that the path has, when it has any. */
  readonly methodsOf: (path: string) => readonly string[]
  readonly isStopping: () => boolean
}

/** A bare instance with what every request shares: ids, guards, error envelope, buffers as bodies. */
export function createApp ({ log, guards, methodsOf, isStopping }: AppOptions): FastifyInstance {
  const handleError = createErrorHandler(log)
  const app = Fastify({
    logger: false,
    // a URL that the router cannot read never reaches the hooks
    frameworkErrors: (error, request, reply) => {
      handleError(error, request, reply)
    },
    genReqId: requestIdOf,
    bodyLimit: 1024 * 1024,
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1024, ignoreDuplicateSlashes: true }
  })
  acceptAnyBody(app)
  app.setErrorHandler(handleError)
  const fixed = new FixedPaths()
  app.addHook('onRoute', ({ method, url }) => fixed.add(method, url))
  app.addHook('onRequest', (request, reply, done) => {
    const { headers } = request.raw
    const refusal = guards.host(headers.host)
    if (refusal !== null) return done(refusal)
    if (headers.origin !== undefined) {
      const verdict = guards.origin(headers.origin, headers.host)
      if ('refusal' in verdict) return done(verdict.refusal)
      if (verdict.allow !== null) allowOrigin(reply.raw, verdict.allow)
    }
    if (isStopping()) {
      reply.raw.setHeader('connection', 'close')
      return done(svcError('gateway.stopping', 'the gateway is shutting down', { details: { retry_after_s: 5 } }))
    }
    // before anything is read: a body that no route wants need not be one that can be read
    if (request.is404 || fixed.isMistaken(request.routeOptions.url, request.method, request.url)) notFound(request, reply)
    else done()
  })
  const notFound = (request: FastifyRequest, reply: FastifyReply): void => {
    const path = request.url.split('?', 1)[0]!
    const methods = methodsOf(path)
    if (methods.length > 0 && request.method === 'OPTIONS' && reply.raw.hasHeader('access-control-allow-origin')) {
      reply.raw.setHeader('access-control-allow-methods', [...methods, 'OPTIONS'].join(', '))
      reply.raw.setHeader('access-control-allow-headers', request.headers['access-control-request-headers'] ?? '*')
      void reply.code(204).header('x-request-id', request.id).send()
      return
    }
    if (methods.length > 0) {
      void reply.header('allow', methods.join(', '))
      sendError(reply, svcError('system.http_405', `${path} takes ${methods.join(', ')}, not ${request.method}`), request.id)
      return
    }
    sendError(reply, svcError('system.http_404', `nothing is at ${request.method} ${path}; GET /api/openapi.json lists what there is`), request.id)
  }
  app.setNotFoundHandler(notFound)
  return app
}

/** Bodies stay bytes: the routes decide what they are. */
export function acceptAnyBody (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  // the first for all that comes often: what only the second knows is looked up anew on every request
  app.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

function allowOrigin (raw: { setHeader (name: string, value: string): unknown }, origin: string): void {
  raw.setHeader('access-control-allow-origin', origin)
  raw.setHeader('access-control-expose-headers', 'x-request-id, retry-after')
  raw.setHeader('vary', 'Origin')
}
