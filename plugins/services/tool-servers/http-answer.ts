import { Agent, request, type Dispatcher } from 'undici'
import type { Clock } from 'svc-gateway/plugin'
import { answerIn } from './first-event.js'
import { MAX_MESSAGE_BYTES } from './message-reader.js'

const CONNECT_MS = 10_000
/** For what comes after an answer: the connection is used again if the server ends the stream by then. */
const REST_MS = 2_000
const REST_BYTES = 64 * 1024

type Body = Dispatcher.ResponseData['body']

export interface HttpAsk {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly signal: AbortSignal | null
}

/** An answer whose body was not read yet. The caller reads or discards it. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly body: Body
}

/** HTTP to tool servers. No silence is too long for it: calls have limits of their own. */
export function createAgent (): Dispatcher {
  return new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 })
}

/** Follows no redirect. */
export async function askHttp (
  dispatcher: Dispatcher, url: string | URL, { method, headers, body, signal }: HttpAsk
): Promise<HttpAnswer> {
  try {
    const answer = await request(url, {
      method: method as Dispatcher.HttpMethod, headers: { ...headers, 'accept-encoding': 'identity' }, body, signal, dispatcher
    })
    return { status: answer.statusCode, headers: answer.headers, body: answer.body }
  } catch (error) {
    if (signal?.aborted === true) throw error
    // what the transport takes for a failure of the network
    throw new TypeError('fetch failed', { cause: error })
  }
}

/**
 * The JSON that answers a request, where it is all there is, or the first event of a stream: nothing that follows it is of
 * use. Null for any other answer, which is unread then.
 */
export async function jsonOf ({ status, headers, body }: HttpAnswer, clock: Clock): Promise<string | null> {
  if (status !== 200) return null
  const type = String(headers['content-type'])
  if (/^application\/json\s*(;|$)/i.test(type)) return (await whole(body)).toString('utf8')
  if (!isEvents(type)) return null
  const first = await firstOf(body)
  if (first === null) return null
  const json = answerIn(first)
  if (json === null) body.unshift(first)
  else discard(body, clock)
  return json
}

export function isEvents (contentType: unknown): boolean {
  return typeof contentType === 'string' && contentType.startsWith('text/event-stream')
}

export async function whole (body: Body): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_MESSAGE_BYTES) throw tooLarge()
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

/** Of an event stream, what is between two line ends is bounded, for the stream itself may go on for days. */
export async function* bounded (body: Body): AsyncGenerator<Buffer, void> {
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const end = chunk.lastIndexOf(0x0A)
    size = end < 0 ? size + chunk.length : chunk.length - end
    if (size > MAX_MESSAGE_BYTES) throw tooLarge()
    yield chunk
  }
}

/** Null at the end. What comes after it waits. */
function firstOf (body: Body): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    body.once('data', (chunk: Buffer) => {
      body.pause()
      resolve(chunk)
    })
    body.once('end', () => resolve(null))
    body.once('error', reject)
  })
}

function discard (body: Body, clock: Clock): void {
  const timer = clock.setTimer(REST_MS, () => body.destroy())
  let left = REST_BYTES
  body.once('close', () => timer.cancel())
  body.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) body.destroy()
  })
  body.resume()
}

function tooLarge (): Error {
  return new Error(`the answer is larger than ${MAX_MESSAGE_BYTES / 1024 / 1024} MiB`)
}
