import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { EngineLog } from './log.js'
import { badRequest, loadingError, unknownRoute, WireError } from './wire-error.js'

/** Largest request body in bytes. */
const BODY_LIMIT = 64 * 1024 * 1024

/** Pooled clients keep connections for seconds; closing them sooner makes requests fail that had bad timing. */
const KEEP_ALIVE_MS = 75_000

export interface Call {
  readonly response: ServerResponse
  /** Aborts when the client is gone before its answer is complete, and when the engine stops. */
  readonly signal: AbortSignal
  /** Reads and parses the body; throws a `WireError`. */
  json (): Promise<unknown>
}

/** Returns the JSON answer, or null when it wrote to `call.response` itself. */
export type Handler = (call: Call) => unknown

export type Router = (method: string, path: string) => Handler | 'loading' | null

/** @param stopping aborts every request. */
export function createHttpServer (router: Router, stopping: AbortSignal, log: EngineLog): Server {
  setMaxListeners(0, stopping) // one for every open request
  const server = createServer((request, response) => void serve(router, request, response, stopping, log))
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.requestTimeout = 0
  return server
}

/** Never rejects. */
async function serve (
  router: Router, request: IncomingMessage, response: ServerResponse, stopping: AbortSignal, log: EngineLog
): Promise<void> {
  const startedAt = performance.now()
  const path = (request.url ?? '/').split('?', 1)[0]!
  const gone = new AbortController()
  const onStop = (): void => gone.abort(stopping.reason)
  stopping.addEventListener('abort', onStop, { once: true })
  response.once('close', () => {
    stopping.removeEventListener('abort', onStop)
    if (!response.writableFinished) gone.abort(new Error('the client is gone'))
    const outcome = response.writableFinished ? String(response.statusCode) : 'cancelled'
    // answered polls would drown the rest
    if (request.method !== 'GET' || outcome !== '200') log.info(`${request.method} ${path} ${outcome} ${Math.round(performance.now() - startedAt)} ms`)
  })
  const call: Call = { response, signal: gone.signal, json: () => readJson(request) }
  try {
    const handler = router(request.method ?? 'GET', path)
    if (handler === null) throw unknownRoute
    if (handler === 'loading') throw loadingError
    const answer: unknown = await handler(call)
    if (answer !== null) sendJson(response, 200, answer)
  } catch (error) {
    refuse(response, call.signal, error, log)
  }
}

function refuse (response: ServerResponse, signal: AbortSignal, error: unknown, log: EngineLog): void {
  if (signal.aborted) {
    response.destroy()
    return
  }
  const known = error instanceof WireError
    ? error
    : new WireError(500, 'server_error', error instanceof Error ? error.message : String(error))
  if (known.status === 500) log.error(`request failed: ${error instanceof Error ? error.stack ?? error.message : String(error)}`)
  // a stream that has begun ends with the error as its last event, and without [DONE]
  if (response.headersSent) response.end(`data: ${JSON.stringify(known)}\n\n`)
  else sendJson(response, known.status, known, known.status < 500 ? permanent : {})
}

/** Some clients ask again after a 4xx as well: what is refused as it stands is refused each time. */
const permanent = { 'x-should-retry': 'false' } as const

function sendJson (response: ServerResponse, status: number, answer: unknown, more: Readonly<Record<string, string>> = {}): void {
  const body = JSON.stringify(answer)
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...headers, ...more })
  response.end(body)
}

async function readJson (request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_LIMIT) throw new WireError(413, 'invalid_request_error', `the body is larger than ${BODY_LIMIT} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch (error) {
    throw badRequest(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}
