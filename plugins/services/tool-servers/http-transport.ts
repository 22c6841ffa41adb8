import { setMaxListeners } from 'node:events'
import { StreamableHTTPClientTransport, type JSONRPCMessage } from '@modelcontextprotocol/client'
import type { Dispatcher } from 'undici'
import type { Clock } from 'svc-gateway/plugin'
import { boundedFetch, responseOf } from './bounded-fetch.js'
import { isResult } from './first-event.js'
import { askHttp, jsonOf } from './http-answer.js'

const ACCEPT = 'application/json, text/event-stream'

export interface HttpTransportOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly dispatcher: Dispatcher
  readonly clock: Clock
}

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1]

/**
 * The protocol package's transport, with a shorter way for what most calls are: a request of the older revisions whose answer
 * comes at once. The web's requests, answers and streams, of which the package makes several for each call, cost as much as
 * all the rest of it. Any other answer is handed to the package as it came.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #options: HttpTransportOptions
  readonly #closing = new AbortController()
  /** Answers that the package goes on with, by the body of their request. */
  readonly #begun: Map<string, Response>

  constructor (options: HttpTransportOptions) {
    const begun = new Map<string, Response>()
    const fetch = boundedFetch(options.dispatcher)
    super(new URL(options.url), {
      requestInit: { headers: { ...options.headers } },
      fetch: async (input, init) => {
        const text = typeof init?.body === 'string' ? init.body : ''
        const answer = begun.get(text)
        begun.delete(text)
        return answer ?? await fetch(input, init)
      }
    })
    this.#options = options
    this.#begun = begun
    setMaxListeners(0, this.#closing.signal)
  }

  override async send (message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    if (!isPlainRequest(message, options)) return await super.send(message, options)
    const { dispatcher, url, headers, clock } = this.#options
    const { sessionId, protocolVersion } = this
    const body = JSON.stringify(message)
    try {
      const answer = await askHttp(dispatcher, url, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          'accept': ACCEPT,
          ...(sessionId === undefined ? {} : { 'mcp-session-id': sessionId }),
          ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion })
        },
        body,
        signal: this.#closing.signal
      })
      const json = await jsonOf(answer, clock)
      const value: unknown = json === null ? null : JSON.parse(json)
      if (isResult(value)) return this.onmessage?.(value as JSONRPCMessage)
      this.#begun.set(body, json === null ? await responseOf(answer) : Response.json(value))
    } catch (error) {
      this.onerror?.(error as Error)
      throw error
    }
    await super.send(message, options)
  }

  override async close (): Promise<void> {
    this.#closing.abort()
    await super.close()
  }
}

/** A request that says all in its body, but for the session. The newer revisions repeat their words in headers. */
function isPlainRequest (
  message: JSONRPCMessage | JSONRPCMessage[], { resumptionToken, headers, requestSignal }: NonNullable<SendOptions> = {}
): boolean {
  if (Array.isArray(message) || !('method' in message) || !('id' in message) || message.method === 'initialize') return false
  if (resumptionToken !== undefined || headers !== undefined || requestSignal !== undefined) return false
  const meta = message.params?._meta
  return meta === undefined || !Object.keys(meta).some(key => key.startsWith('io.modelcontextprotocol/'))
}
