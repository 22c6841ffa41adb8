import { request as httpRequest, type IncomingMessage } from 'node:http'
import { pause, type Clock } from 'svc-gateway/plugin'

export interface RowRequest {
  readonly baseUrl: string
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly requestId: string
  readonly agent: string | null
}

export interface RowAnswer {
  readonly status: number
  readonly requestId: string
  /** JSON, or the text of what is none. */
  readonly body: unknown
}

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
/** Waits until a request may be sent; what it resolves with says that it is over. */
export type TakeTurn = (body: Buffer) => Promise<() => void>
const AT_ONCE: TakeTurn = () => Promise.resolve(() => {})

/** A slot that cannot be had now may be had in a quarter of an hour; a failure that comes five times stays. */
const TRIES_BUSY = 20
const TRIES_FAILED = 5
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000

/**
 * One request of a batch, asked at the gateway's own door, so that it is answered as any client's is: translated, priced,
 * counted, cancelled. What passes by itself is tried again, a few times; a gateway that takes no connections is stopping, which
 * is no failure of the row. Each try waits for a turn of its own. Rejects when no answer came, or with the signal's reason.
 */
export async function askRow (clock: Clock, row: RowRequest, signal: AbortSignal, take = AT_ONCE): Promise<RowAnswer> {
  const body = Buffer.from(JSON.stringify(row.body))
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted()
    let failure: unknown = null
    let answer: Answer | null = null
    const release = await take(body)
    try {
      answer = await post(row, body, signal)
    } catch (error) {
      signal.throwIfAborted()
      failure = error
    } finally {
      release()
    }
    if ((failure as NodeJS.ErrnoException | null)?.code === 'ECONNREFUSED') {
      attempt = 0
      await pause(clock, FIRST_PAUSE_MS, signal)
      continue
    }
    const again = answer === null || mayPass(answer.head)
    const busy = answer?.head.statusCode === 503 || answer?.head.statusCode === 429
    if (!again || attempt === (busy ? TRIES_BUSY : TRIES_FAILED)) {
      if (answer === null) throw failure
      const id = answer.head.headers['x-request-id']
      return { status: answer.head.statusCode!, requestId: typeof id === 'string' ? id : row.requestId, body: parsed(answer.text) }
    }
    const asked = Number(answer?.head.headers['retry-after'] ?? 0) * 1000
    const wait = Math.max(asked > 0 ? asked : 0, FIRST_PAUSE_MS * 2 ** (attempt - 1))
    await pause(clock, Math.min(LONGEST_PAUSE_MS, wait), signal)
  }
}

function mayPass ({ statusCode, headers }: IncomingMessage): boolean {
  return headers['x-should-retry'] !== 'false' && [408, 429, 500, 502, 503, 504].includes(statusCode!)
}

interface Answer { readonly head: IncomingMessage, readonly text: string }

function post ({ baseUrl, path, requestId, agent }: RowRequest, body: Buffer, signal: AbortSignal): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    'x-request-id': requestId,
    'x-svc-priority': 'low',
    ...(agent === null ? {} : { 'x-svc-agent': agent })
  }
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${baseUrl}${path}`, { method: 'POST', headers, signal, agent: false }, head => {
      whole(head).then(text => { resolve({ head, text }) }, reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function whole (message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > LONGEST_ANSWER_BYTES) {
      message.destroy()
      throw new Error(`the answer is larger than ${LONGEST_ANSWER_BYTES} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
