import { messageOf, type Clock } from 'svc-gateway/plugin'
import type WebSocket from 'ws'
import { agentError } from '../../services/agents/ref.js'
import { Coalescer, type AgentEvent } from './coalesce.js'
import { OpenQuestions } from './open-questions.js'

/** The first session of an agent that has just started takes up to 12 s. */
const ANSWER_MS = 20_000
const OPEN_MS = 5_000
const LARGEST_MESSAGE = 16 * 1024 * 1024

interface Waiting {
  readonly method: string
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

type Listener = (event: AgentEvent) => void

/**
 * One JSON-RPC socket to an agent. Events of a session come only on the socket that made it, so all that one browser does goes
 * over one.
 */
export class AgentLink {
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners = new Set<Listener>()
  readonly #coalescer: Coalescer
  readonly questions = new OpenQuestions()
  /** Aborts when the socket has closed, with why. */
  readonly #closed = new AbortController()
  #last = 0

  private constructor (socket: WebSocket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
    this.#coalescer = new Coalescer(clock, event => this.#guarded(() => this.#listeners.forEach(listener => listener(event))))
    socket.on('message', data => this.#guarded(() => this.#hear(data)))
    socket.on('close', code => this.#end(`the agent closed the connection (${code})`))
    socket.on('error', error => this.#end(messageOf(error)))
  }

  /** Rejects with `agent.unreachable`. */
  static async open (url: URL, clock: Clock): Promise<AgentLink> {
    const { WebSocket: Socket } = await import('ws')
    const socket = new Socket(url, { followRedirects: false, maxPayload: LARGEST_MESSAGE, handshakeTimeout: OPEN_MS })
    const link = new AgentLink(socket, clock)
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve)
      const failed = (): void => reject(agentError('agent.unreachable', `the agent cannot be reached: ${link.reason}`))
      link.closed.addEventListener('abort', failed, { once: true })
    })
    return link
  }

  get closed (): AbortSignal { return this.#closed.signal }

  /** Why it has closed. */
  get reason (): string { return messageOf(this.closed.reason) }

  /** Rejects with `agent.unreachable`, or with `agent.refused` where the agent answers with an error. */
  async call (method: string, params: object): Promise<unknown> {
    if (this.closed.aborted) throw agentError('agent.unreachable', `the agent is gone: ${this.reason}`)
    const id = ++this.#last
    const answer = new Promise<unknown>((resolve, reject) => { this.#waiting.set(id, { method, resolve, reject }) })
    const late = this.#clock.setTimer(ANSWER_MS, () => {
      this.#waiting.get(id)?.reject(agentError('agent.unreachable', `the agent did not answer ${method} within ${ANSWER_MS / 1000} s`))
    })
    try {
      this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      return await answer
    } finally {
      late.cancel()
      this.#waiting.delete(id)
    }
  }

  /** Events from now on, after what the agent still waits for. Returns what ends it. */
  follow (listener: Listener): () => void {
    for (const event of this.questions.events) listener(event)
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  close (why = 'the connection is no longer used'): void {
    this.#socket.terminate()
    this.#end(why)
  }

  /** A message that cannot be handled, such as one nested too deep to be written out, ends this connection and nothing else. */
  #guarded (work: () => void): void {
    try {
      work()
    } catch (error) {
      this.close(`the agent sent a message that cannot be passed on: ${messageOf(error)}`)
    }
  }

  #hear (data: WebSocket.RawData): void {
    const message = parsed(data)
    if (message === null) return
    if (message.method === 'event') {
      const event = eventOf(message.params)
      if (event === null) return
      this.#coalescer.push(this.questions.take(event))
      if (this.questions.isFull) this.close('the agent has too many open questions')
      return
    }
    const waiting = this.#waiting.get(message.id as number)
    if (waiting === undefined) return
    // agents of the first JSON-RPC say with every answer that it has no error
    if (message.error === undefined || message.error === null) return waiting.resolve(message.result)
    const { code = null, message: said = 'it gives no reason' } = message.error as { code?: unknown, message?: unknown }
    const why = typeof said === 'string' ? said : JSON.stringify(said)
    waiting.reject(agentError('agent.refused', `the agent refused ${waiting.method}: ${why.slice(0, 300)}`, { details: { code } }))
  }

  #end (why: string): void {
    if (this.closed.aborted) return
    this.#coalescer.flush()
    this.#closed.abort(new Error(why))
    for (const { reject } of this.#waiting.values()) reject(agentError('agent.unreachable', `the agent is gone: ${why}`))
  }
}

type Message = Readonly<Partial<Record<'id' | 'method' | 'params' | 'result' | 'error', unknown>>>

function parsed (data: WebSocket.RawData): Message | null {
  try {
    const value: unknown = JSON.parse(Buffer.isBuffer(data) ? data.toString() : '')
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

function eventOf (params: unknown): AgentEvent | null {
  if (typeof params !== 'object' || params === null) return null
  const { type, session_id: session, payload } = params as Readonly<Record<string, unknown>>
  if (typeof type !== 'string') return null
  return {
    type,
    session_id: typeof session === 'string' ? session : null,
    payload: typeof payload === 'object' && payload !== null ? payload as AgentEvent['payload'] : {}
  }
}
