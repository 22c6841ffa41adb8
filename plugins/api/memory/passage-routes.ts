import { defineRoute, httpMethods, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { tag } from './bank-routes.js'
import { passageDialect } from './dialect.js'
import { passOn, PASSAGE, type PassageDeps } from './passage.js'

const paramsSchema = z.object({ '*': z.string().meta({ description: 'Path at the engine', pattern: '^[A-Za-z0-9][A-Za-z0-9/_-]*$', examples: ['v1/default/banks', 'version'] }) })
const bodySchema = z.unknown().meta({ type: 'string', format: 'binary', description: 'Request for the engine' })
const answers = ([undefined, '2XX', '3XX'] as const).flatMap(status => ['application/octet-stream', '*/*'].map(type => ({
  type, description: 'Answer of the engine', ...(status === undefined ? {} : { status })
})))

/** `/api/memory/hindsight/*`: the address for clients of Hindsight, unmodified. */
export function passageRoutes (deps: PassageDeps): AnyRoute[] {
  return httpMethods.map(method => defineRoute({
    method,
    url: `${PASSAGE}/*`,
    tag,
    dialect: passageDialect,
    summary: 'The Hindsight API of the active engine',
    description: 'The base URL for clients of Hindsight. Paths, queries, bodies and answers are passed through unchanged. With `X-svc-Agent`, only the banks of that agent.',
    schema: { params: paramsSchema, ...(method === 'GET' ? {} : { body: bodySchema }) },
    consumes: 'application/octet-stream',
    produces: 'application/octet-stream',
    answers,
    bodyKind: method === 'GET' ? 'none' : 'stream',
    handler: call => passOn(deps, call as unknown as RouteCall<unknown, unknown, Readable | undefined>)
  }))
}
