import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { svcError, type Logger, type WireDialect } from '../contract/index.js'
import type { BodyReads } from './body/body-reads.js'
import { createErrorHandler, sendError } from './error-handler.js'
import type { Guards } from './guard/guards.js'
import { FixedPaths } from './methods.js'
import { RefusalLog } from './guard/refusal-log.js'
import { requestIdOf } from './server/request-id.js'
import { schemaController } from './schema-compilers.js'

export interface AppOptions {
  readonly log: Logger
  readonly guards: Guards
  readonly bodies: BodyReads
  /** Methods that the path has, when it has any. */
  readonly methodsOf: (path: string) => readonly string[]
  /** How failures look at a path that has no route, because of what lies around it. */
  readonly dialectOf: (path: string) => WireDialect | undefined
  readonly isStopping: () => boolean
}

/** A bare instance with what every request shares: ids, guards, error envelope, buffers as bodies. */
export function createApp ({ log, guards, bodies, methodsOf, dialectOf, isStopping }: AppOptions): FastifyInstance {
  const handleError = createErrorHandler(log)
  const refused = new RefusalLog(log)
  const app = Fastify({
    logger: false,
    schemaController,
    // a URL that the router cannot read never reaches the hooks
    frameworkErrors: (error, request, reply) => {
      handleError(error, request, reply)
    },
    genReqId: requestIdOf,
    bodyLimit: 1024 * 1024,
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1024, ignoreDuplicateSlashes: true, ignoreTrailingSlash: true }
  })
  acceptAnyBody(app, bodies)
  app.setErrorHandler(handleError)
  const fixed = new FixedPaths()
  app.addHook('onRoute', ({ method, url }) => fixed.add(method, url))
  app.addHook('onRequest', (request, reply, done) => {
    const { headers, socket } = request.raw
    const { host, origin } = headers
    const hostRefusal = guards.host({ host, remote: socket.remoteAddress, path: request.url })
    if (hostRefusal !== null) {
      refused.host({ host, remote: socket.remoteAddress })
      return done(hostRefusal)
    }
    const site = headers['sec-fetch-site']
    if (origin !== undefined || site !== undefined) {
      const visit = { host, origin, site: typeof site === 'string' ? site : undefined, path: request.url.split('?', 1)[0]! }
      const verdict = guards.origin(visit)
      if ('refusal' in verdict) {
        // the page may read why, and a browser asks before it sends what will be refused
        if (origin !== undefined) allowOrigin(reply.raw, origin)
        if (request.method !== 'OPTIONS') {
          refused.origin(visit)
          return done(verdict.refusal)
        }
      } else if (verdict.allow !== null) {
        allowOrigin(reply.raw, verdict.allow)
      }
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
    if (methods.length > 0 && request.method === 'OPTIONS') {
      if (reply.raw.hasHeader('access-control-allow-origin')) {
        reply.raw.setHeader('access-control-allow-methods', [...methods, 'OPTIONS'].join(', '))
        reply.raw.setHeader('access-control-allow-headers', request.headers['access-control-request-headers'] ?? '*')
      }
      void reply.code(204).headers({ 'x-request-id': request.id, 'allow': [...methods, 'OPTIONS'].join(', ') }).send()
      return
    }
    const dialect = dialectOf(path)
    const shown = path.slice(0, 200)
    if (methods.length > 0) {
      void reply.header('allow', methods.join(', '))
      sendError(reply, svcError('system.http_405', `${shown} takes ${methods.join(', ')}, not ${request.method}`), request.id, dialect)
      return
    }
    const instead = methodsOf(`/v1${path}`).length > 0
      ? `the base URL of this API ends in /v1: did you mean /v1${shown}?`
      : 'GET /api/openapi.json lists all routes'
    sendError(reply, svcError('system.http_404', `no route ${request.method} ${shown}; ${instead}`), request.id, dialect)
  }
  app.setNotFoundHandler(notFound)
  return app
}

/** Bodies stay bytes: the routes decide what they are. For what goes through Fastify's cycle, which is the scopes of plugins. */
export function acceptAnyBody (app: FastifyInstance, bodies: BodyReads): void {
  app.removeAllContentTypeParsers()
  // the first for all that comes often: what only the second knows is looked up anew on every request
  app.addContentTypeParser(['application/json', '*'], (request, payload, done) => {
    bodies.read(payload, null, request.routeOptions.bodyLimit, (error, body) => {
      if (body !== null || error !== null) done(error, body ?? undefined)
    })
  })
}

/** What a page may read besides the body: SDKs and MCP clients look for these. */
const exposed = ['x-request-id', 'request-id', 'retry-after', 'x-should-retry', 'mcp-session-id'].join(', ')

function allowOrigin (raw: { setHeader (name: string, value: string): unknown }, origin: string): void {
  raw.setHeader('access-control-allow-origin', origin)
  raw.setHeader('access-control-expose-headers', exposed)
  raw.setHeader('vary', 'Origin')
}
