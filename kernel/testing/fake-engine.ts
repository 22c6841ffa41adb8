import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** What the engine does with one request, decided by the test. Times in milliseconds of the real clock. */
export interface EngineScript {
  /** Wait before the head of the answer. Infinity never answers. */
  readonly headAfterMs?: number
  /** Comes before the head too. */
  readonly after?: Promise<void>
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Pieces of the body, written one by one. */
  readonly chunks?: readonly (string | Buffer)[]
  /** Pause between pieces. */
  readonly everyMs?: number
  /** Breaks the connection after this many pieces. */
  readonly dieAfter?: number
  /** Stops writing after this many pieces and keeps the connection. */
  readonly hangAfter?: number
}

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Resolves when the connection of this request is gone or its answer is complete. */
  readonly closed: Promise<'finished' | 'aborted'>
}

export interface FakeEngine {
  readonly host: string
  readonly port: number
  readonly origin: string
  /** Every request but health checks, in order. */
  readonly requests: readonly SeenRequest[]
  /** Requests that are not over yet. */
  readonly active: number
  /** Answers from now on; a function looks at the request. */
  answer (script: EngineScript | ((request: SeenRequest) => EngineScript | Promise<EngineScript>)): void
  /**
   * From now on requests go to the listener, unread: for a test that decides how a body is read. They are not among
   * `requests`. Null goes back to scripts.
   */
  take (listener: ((request: IncomingMessage, response: ServerResponse) => void) | null): void
  /** From now on WebSockets are the listener's; without one, a request for a WebSocket is a request like any other. */
  takeUpgrades (listener: (request: IncomingMessage, socket: Socket) => void): void
  /** What `GET /health` answers. */
  health (status: number): void
  /** Resolves with the n-th request (from 0) as soon as it has come. */
  request (n: number): Promise<SeenRequest>
  /** Drops the requests that were seen, which count from 0 again: a test of hours would keep them all. */
  forget (): void
  /** Breaks every connection and goes on listening. */
  cut (): void
  /** Breaks every connection, as a crash does, and stops listening. */
  crash (): Promise<void>
  close (): Promise<void>
}

const chatChunk = (delta: object, finish: string | null): string => `data: ${JSON.stringify({
  id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 1, model: 'fake', choices: [{ index: 0, delta, finish_reason: finish }]
})}\n\n`

/** A whole streamed chat answer, piece by piece, as text engines word it. */
export function chatStream (words: readonly string[]): string[] {
  return [
    chatChunk({ role: 'assistant', content: null }, null),
    ...words.map(content => chatChunk({ content }, null)),
    chatChunk({}, 'stop'),
    'data: [DONE]\n\n'
  ]
}

export function chatAnswer (content: string): string {
  return JSON.stringify({
    id: 'chatcmpl-fake',
    object: 'chat.completion',
    created: 1,
    model: 'fake',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  })
}

/**
 * An engine on a real socket of this machine that does what a test tells it: slow, silent, cut off, wrong. By
 * default it answers chat requests in OpenAI's wire format, and speech requests with a sound of four bytes.
 * @param host where it listens; its `origin` is for this machine
 */
export async function createFakeEngine (port = 0, host = '127.0.0.1'): Promise<FakeEngine> {
  const requests: SeenRequest[] = []
  const waiting: Array<() => void> = []
  const sockets = new Set<Socket>()
  let active = 0
  let healthStatus = 200
  let listener: ((request: IncomingMessage, response: ServerResponse) => void) | null = null
  let script: (request: SeenRequest) => EngineScript | Promise<EngineScript> = defaultScript

  const server: Server = createServer((req, res) => {
    if (req.url === '/health') {
      res.writeHead(healthStatus, { 'content-type': 'application/json' }).end('{"status":"ok"}')
      return
    }
    if (listener !== null) listener(req, res)
    else void handle(req, res)
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })

  async function handle (req: IncomingMessage, res: ServerResponse): Promise<void> {
    active++
    const closed = new Promise<'finished' | 'aborted'>(resolve => {
      res.on('close', () => {
        active--
        resolve(res.writableFinished ? 'finished' : 'aborted')
      })
    })
    const chunks: Buffer[] = []
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer)
    } catch {
      // the client left while it sent its body
      return
    }
    const { method = '', url = '', headers } = req
    const seen: SeenRequest = { method, url, headers, body: Buffer.concat(chunks), closed }
    requests.push(seen)
    for (const wake of waiting.splice(0)) wake()
    await play(await script(seen), res)
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const at = (server.address() as AddressInfo).port
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async (): Promise<void> => {
    cut()
    await new Promise<void>(resolve => { server.close(() => resolve()) })
  }
  return {
    host: '127.0.0.1',
    port: at,
    origin: `http://127.0.0.1:${at}`,
    requests,
    get active () { return active },
    answer: next => { script = typeof next === 'function' ? next : () => next },
    take: next => { listener = next },
    takeUpgrades: next => { server.on('upgrade', (request, socket) => next(request, socket as Socket)) },
    health: status => { healthStatus = status },
    request: async n => {
      while (requests.length <= n) await new Promise<void>(resolve => { waiting.push(resolve) })
      return requests[n]!
    },
    forget: () => { requests.length = 0 },
    cut,
    crash: close,
    close
  }
}

function defaultScript (request: SeenRequest): EngineScript {
  if (request.url.endsWith('/audio/speech')) return { headers: { 'content-type': 'audio/wav' }, chunks: ['RIFF'] }
  return request.body.includes('"stream":true')
    ? { headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(['Hello', ' there']) }
    : { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer('Hello there')] }
}

async function play (script: EngineScript, res: ServerResponse): Promise<void> {
  const { headAfterMs = 0, status = 200, headers = {}, chunks = [], everyMs = 0 } = script
  const { dieAfter = Infinity, hangAfter = Infinity } = script
  const gone = new Promise<void>(resolve => { res.on('close', resolve) })
  if (headAfterMs === Infinity) return
  if (headAfterMs > 0) await Promise.race([delay(headAfterMs), gone])
  if (script.after !== undefined) await Promise.race([script.after, gone])
  if (res.destroyed) return
  res.writeHead(status, headers)
  res.flushHeaders()
  await new Promise(resolve => { setImmediate(resolve) })
  for (const [i, chunk] of chunks.entries()) {
    if (i >= hangAfter || i >= dieAfter) break
    if (i > 0 && everyMs > 0) await Promise.race([delay(everyMs), gone])
    if (res.destroyed) return
    // a slow client slows the engine down, and what was written is on its way before anything breaks
    const isLast = i + 1 >= Math.min(dieAfter, chunks.length)
    const written = new Promise<void>(resolve => { res.write(chunk, () => resolve()) })
    if (isLast || res.writableNeedDrain) await Promise.race([written, gone])
  }
  if (hangAfter <= chunks.length) return
  if (dieAfter <= chunks.length) res.destroy()
  else res.end()
}

function delay (ms: number): Promise<void> {
  return new Promise(resolve => { setTimeout(resolve, ms) })
}
