import { svcError, type CallAnswer, type DispatchService, type PluginCall, type SurfaceName } from 'svc-gateway/plugin'

/** Largest answer that a tool takes in. */
const LONGEST_ANSWER_BYTES = 32 * 1024 * 1024
const LONGEST_ERROR_TEXT = 500

export interface Asking {
  readonly dispatch: DispatchService
  readonly requestId: string
  /** Headers of the client's request: what tools ask for is charged to its agent. */
  readonly origin: PluginCall['origin']
}

export interface EngineRequest {
  readonly surface: SurfaceName
  readonly path: string
  readonly body: Buffer
  readonly contentType?: string
  /** For bodies that are not JSON. */
  readonly model?: string
}

export interface EngineBytes {
  readonly bytes: Buffer
  readonly contentType: string
}

/** One call of a tool to an engine. Throws what the engine says when it refuses, shortened. */
export async function askEngine (
  { dispatch, requestId, origin }: Asking, request: EngineRequest, signal: AbortSignal
): Promise<EngineBytes> {
  const answer = await dispatch.call({ ...request, priority: 'normal', requestId, origin, signal })
  const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
  if (answer.status < 200 || answer.status > 299) throw new Error(`status ${answer.status}: ${errorText(bytes)}`)
  return { bytes, contentType: answer.headers['content-type'] ?? 'application/octet-stream' }
}

/** As above, for bodies and answers in JSON. */
export async function askEngineJson (
  asking: Asking, surface: SurfaceName, path: string, body: object, signal: AbortSignal
): Promise<unknown> {
  const { bytes } = await askEngine(asking, { surface, path, body: Buffer.from(JSON.stringify(body)) }, signal)
  return JSON.parse(bytes.toString('utf8')) as unknown
}

/** A whole body, up to a bound. */
export async function readAll ({ body }: CallAnswer, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limitBytes) throw svcError('dispatch.upstream_failed', `the answer of the engine is larger than ${limitBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function errorText (bytes: Buffer): string {
  const text = bytes.toString('utf8')
  try {
    const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown } | string }
    const message = typeof error === 'string' ? error : error?.message
    if (typeof message === 'string') return message.slice(0, LONGEST_ERROR_TEXT)
  } catch {
    // not JSON: told as it is
  }
  return text.slice(0, LONGEST_ERROR_TEXT)
}
