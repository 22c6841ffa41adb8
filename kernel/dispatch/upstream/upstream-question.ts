import { request, type Dispatcher } from 'undici'
import { within } from '../../async/waiting.js'
import { messageOf, type Upstream, type UpstreamReading } from '../../contract/index.js'
import { VIA_HEADER } from '../requests/loop-guard.js'
import { isClosed } from '../wire/closed-connection.js'
import { upstreamTarget, type UpstreamTarget } from './upstream-auth.js'

/** How the gateway itself asks an upstream for something, beside the requests of clients. */
export interface UpstreamQuestion {
  readonly upstream: Upstream
  readonly secret: (name: string) => string | undefined
  readonly dispatcher: (origin: string, connectTimeoutMs?: number) => Dispatcher
  /** Of every answer. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** The gateways that the question came through, this one last. */
  readonly via: readonly string[]
}

/** What is learnt while an upstream answers, and how its errors call what was asked for. */
export interface Told {
  readonly status: (status: number) => void
  /** Of all answers to one question together. */
  bytes: number
  readonly what: string
  readonly path: string
}

const LONGEST_ANSWER_BYTES = 8 * 1024 * 1024

/** The body of a 200. Throws for every other answer, and for one that is too long or late. */
export async function askUpstream (
  { upstream, dispatcher, timeoutMs, signal, via }: UpstreamQuestion, target: UpstreamTarget, told: Told
): Promise<string> {
  const { origin, path, headers, fallbackHeaders } = target
  const { connect_timeout_seconds: connect } = upstream
  let hasAnswered = false
  const ask = (): Promise<string> => within(signal, timeoutMs, async bound => {
    const answer = await request(`${origin}${path}`, {
      dispatcher: dispatcher(origin, connect === undefined ? undefined : connect * 1000),
      headers: ['accept', 'application/json', VIA_HEADER, via.join(', '), ...headers, ...fallbackHeaders],
      signal: bound,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs
    })
    hasAnswered = true
    return await read(answer, told)
  })
  // a server that closes a connection for its idleness may do so while it is asked: of a question it costs nothing to ask again
  return await ask().catch((error: unknown) => {
    if (hasAnswered || signal.aborted || !isClosed(error as Error)) throw error
    return ask()
  })
}

async function read ({ statusCode, body }: Dispatcher.ResponseData, told: Told): Promise<string> {
  told.status(statusCode)
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) {
    told.bytes += chunk.length
    if (told.bytes > LONGEST_ANSWER_BYTES) throw new Error(`${told.what} is larger than 8 MiB`)
    chunks.push(chunk)
  }
  if (statusCode !== 200) throw new Error(`GET ${told.path} answered ${statusCode}`)
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws in words of our own: the parser's would quote what the upstream said. */
export function parsedJson (text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${what} is not JSON`)
  }
}

/**
 * JSON of a path beside the `/v1` that the upstream's URL ends in. Never rejects.
 * @param path with its query
 */
export async function readUpstream (path: string, asked: UpstreamQuestion): Promise<UpstreamReading> {
  let status: number | null = null
  const told: Told = { status: at => { status = at }, bytes: 0, what: 'the answer', path: path.replace(/\?.*$/s, '') }
  try {
    const text = await askUpstream(asked, targetBeside(path, asked), told)
    return { ok: true, body: parsedJson(text, told.what) }
  } catch (error) {
    return { ok: false, status, error: messageOf(error) }
  }
}

function targetBeside (path: string, { upstream, secret }: UpstreamQuestion): UpstreamTarget {
  const base = new URL(upstream.url)
  base.pathname = base.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
  const [bare = '', query = ''] = path.split('?', 2)
  const target = upstreamTarget({ ...upstream, url: base.href }, bare, secret)
  return query === '' ? target : { ...target, path: `${target.path}${target.path.includes('?') ? '&' : '?'}${query}` }
}
