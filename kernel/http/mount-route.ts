import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { z } from 'zod'
import {
  handled, isJsonAnswer, isSse, isWebSocket, jsonExcess, SvcError, svcError, type AnyRoute, type BodyKind, type Clock,
  type ErrorCode, type ErrorKind, type Logger, type RouteSchema
} from '../contract/index.js'
import { withoutMark } from '../dispatch/body/json-scan.js'
import type { BodyReads } from './body/body-reads.js'
import { answerCheck } from './openapi/answer-check.js'
import { isInference } from './openapi/openapi-groups.js'
import { createErrorHandler, pathOf } from './error-handler.js'
import { Call } from './route-call.js'
import { bodyKindOf, checkPart } from './openapi/route-input.js'
import { sendSse, streamType, type OpenStreams } from './stream/sse-reply.js'
import { checkHandshake } from './stream/web-sockets.js'

export interface MountDeps {
  readonly log: Logger
  readonly clock: Clock
  readonly streams: OpenStreams
  readonly bodies: BodyReads
  readonly limits: () => { readonly api: number, readonly v1: number }
  /** Checks every answer against its schema and fails the request when it does not fit: for tests. */
  readonly checkAnswers: boolean
}

/** Whether requests may pass: null yes, a promise of the verdict when that is not settled yet. */
export type Gate = () => Promise<SvcError | null> | null

const EMPTY: Readonly<Record<never, never>> = Object.freeze({})

/**
 * Puts a route, which is data, on a Fastify scope whose bodies arrive as buffers.
 * @param gone aborts when the plugin of the route goes
 */
export function mountRoute (app: FastifyInstance, route: AnyRoute, deps: MountDeps, gate: Gate, gone: AbortSignal): void {
  const { schema = {} } = route
  const partOf = (part: keyof RouteSchema): z.ZodType | undefined => {
    const value = schema[part]
    if (value === undefined || typeof (value as Partial<z.ZodType>).safeParse === 'function') return value
    throw new TypeError(`schema.${part} of ${route.method} ${route.url} is not a zod schema`)
  }
  for (const [part, { get }] of Object.entries(Object.getOwnPropertyDescriptors(schema))) {
    if (get === undefined) partOf(part as keyof RouteSchema)
  }
  const kind = bodyKindOf(route)
  const limits = deps.limits()
  const bodyLimit = route.bodyLimit ?? (isInference(route) ? limits.v1 : limits.api)
  const run = (request: FastifyRequest, reply: FastifyReply, raw: unknown): unknown => {
    if (route.webSocket !== undefined) checkHandshake(request.raw, reply)
    const [paramsSchema, querystring] = [partOf('params'), partOf('querystring')]
    const params = paramsSchema === undefined ? EMPTY : checkPart(paramsSchema, request.params, 'the path')
    const query = querystring === undefined ? EMPTY : checkPart(querystring, request.query, 'the query', route.queryError)
    const body = kind === 'stream' ? raw : readBody(kind, kind === 'json' ? partOf('body') : undefined, raw, route)
    return route.handler(new Call(request, reply, deps.log, params, query, body) as never)
  }
  // no promise unless there is something to wait for: an inference request is handed over in one go
  const checked = deps.checkAnswers ? answerCheck(route, deps.log) : null
  const serve: Serve = (request, reply, raw) => {
    checked?.(reply.raw)
    const verdict = gate()
    const result = verdict === null ? run(request, reply, raw) : passed(verdict).then(() => run(request, reply, raw))
    if (result === handled) return
    if (!(result instanceof Promise)) return answer(route, deps, request, reply, result, gone)
    return result.then((value: unknown) => answer(route, deps, request, reply, value, gone))
  }
  for (const url of [route.url, ...route.alsoAt ?? []]) {
    app.route({
      // one route for both costs a start less than one for each; Node sends no body to a HEAD
      method: route.method === 'GET' ? ['GET', 'HEAD'] : route.method,
      exposeHeadRoute: false,
      url,
      ...(route.dialect === undefined ? {} : { errorHandler: createErrorHandler(deps.log, route.dialect) }),
      bodyLimit,
      ...hook(kind, serve, bodyLimit, deps),
      handler: (request, reply) => serve(request, reply, request.body)
    })
  }
}

type Serve = (request: FastifyRequest, reply: FastifyReply, raw: unknown) => Promise<FastifyReply> | undefined

/**
 * Serves a route whose handler wants the body, past Fastify's parsers: they keep an asynchronous resource for each
 * body, which costs an inference request as much as all of its routing. Such a hook never goes on, so what comes after
 * it in Fastify's cycle does not run.
 */
function hook (kind: BodyKind, serve: Serve, limit: number, { bodies, log }: MountDeps): { onRequest?: onRequestHookHandler } {
  if (kind === 'none') return {}
  const give = (request: FastifyRequest, reply: FastifyReply, body: unknown): void => {
    try {
      serve(request, reply, body)?.catch((failure: unknown) => { reply.send(failure) })
    } catch (failure) {
      reply.send(failure)
    }
  }
  if (kind === 'stream') return { onRequest: (request, reply) => give(request, reply, request.raw) }
  return {
    onRequest: (request, reply) => {
      bodies.read(request.raw, reply.raw, limit, (error, body) => {
        if (body !== null) give(request, reply, body)
        else if (error !== null) reply.send(error)
        else log.debug({ request_id: request.id, url: pathOf(request) }, 'the client left before its request was complete')
      })
    }
  }
}

async function passed (verdict: Promise<SvcError | null>): Promise<void> {
  const refusal = await verdict
  if (refusal !== null) throw refusal
}

async function answer (
  route: AnyRoute, deps: MountDeps, request: FastifyRequest, reply: FastifyReply, result: unknown, gone: AbortSignal
): Promise<FastifyReply> {
  if (result === handled || reply.sent) return reply
  if (route.webSocket !== undefined && isWebSocket(result)) {
    await deps.streams.sockets.accept({ request, reply, route, bounds: route.webSocket, serve: result.serve, gone }, deps)
    return reply
  }
  if (isSse(result) && request.method === 'HEAD') {
    // an answer without a body has to end, or the next request on the connection waits for it for ever
    return reply.headers({ 'x-request-id': request.id, 'content-type': streamType(result) }).send()
  }
  if (isSse(result)) {
    reply.hijack()
    await sendSse(reply.raw, result, request.id, route.dialect === undefined ? deps : { ...deps, failure: route.dialect.failure })
    return reply
  }
  void reply.header('x-request-id', request.id)
  if (result === undefined) return reply.code(route.status ?? 204).send()
  const isText = isJsonAnswer(result)
  if (deps.checkAnswers && route.schema?.response !== undefined) {
    checkAnswer(route, isText ? JSON.parse(result.json.toString()) : result)
  }
  if (isText) void reply.type('application/json; charset=utf-8')
  return reply.code(route.status ?? reply.statusCode).send(isText ? result.json : result)
}

function readBody (
  kind: BodyKind, schema: z.ZodType | undefined, raw: unknown, { bodyError, unreadableBody }: Pick<AnyRoute, 'bodyError' | 'unreadableBody'>
): unknown {
  if (kind === 'none') return undefined
  const bytes = Buffer.isBuffer(raw) ? raw : Buffer.alloc(0)
  if (kind === 'buffer') return bytes
  const body = parseJson(bytes, unreadableBody)
  return schema === undefined ? body : checkPart(schema, body, 'the body', bodyError)
}

/** An empty body counts as an empty object: what is required is then told by name. */
function parseJson (body: Buffer, unreadable?: ErrorKind): unknown {
  const bytes = withoutMark(body)
  if (bytes.length === 0) return {}
  const excess = jsonExcess(bytes)
  if (excess !== null) throw excess
  let parsed: unknown
  try {
    parsed = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw unread('request.invalid_json', 'the body is not valid JSON', unreadable, error)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw unread('request.not_an_object', 'the body is JSON but not an object', unreadable)
  }
  return parsed
}

function unread (code: ErrorCode, message: string, own?: ErrorKind, cause?: unknown): SvcError {
  return own === undefined ? svcError(code, message, { cause }) : new SvcError(own.code, own.status, message, { cause })
}

function checkAnswer (route: AnyRoute, result: unknown): void {
  const checked = route.schema!.response!.safeParse(JSON.parse(JSON.stringify(result)))
  if (!checked.success) throw new Error(`answer of ${route.method} ${route.url} does not fit its schema: ${z.prettifyError(checked.error)}`)
}
