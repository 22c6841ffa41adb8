import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import { pipeline } from 'node:stream/promises'
import type { z } from 'zod'
import { ApiFailure, connectionFailure, oddAnswer, parseBase, timeoutFailure } from './api-failure.js'
import { readServerEvents, type ServerEvent } from './sse-reader.js'
import { DEFAULT_BASE } from './target.js'

export const DEFAULT_TIMEOUT_MS = 10_000

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the base, starting with a slash; names in it are escaped with `pathOf`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: unknown
  /** Until the answer is complete; null for what takes as long as it takes. Streams never have one. */
  readonly timeoutMs?: number | null
  /** Cancels this call alone. */
  readonly signal?: AbortSignal
}

/** A body that is read while it is sent. */
export interface StreamedBody {
  readonly type: string
  readonly bytes: number
  readonly body: AsyncIterable<Buffer>
}

/**
 * The gateway over HTTP. Node's own client: it sets no limit on how long an engine may think, and costs nothing to load.
 * Rejects with an `ApiFailure` for a refusal, a `CliFailure` where no answer came, and the signal's reason when it aborts;
 * the request is then gone from the wire.
 */
export class ApiClient {
  /** Without credentials, for people. */
  readonly base: string
  readonly #url: URL
  readonly #signal: AbortSignal

  constructor (base: string, signal: AbortSignal) {
    this.#url = parseBase(base === '' ? DEFAULT_BASE : base)
    this.base = `${this.#url.origin}${this.#prefix}`
    this.#signal = signal
  }

  /** The same gateway, for calls that another signal ends. */
  under (signal: AbortSignal): ApiClient {
    return new ApiClient(this.#url.href, signal)
  }

  /** The answer, checked. An empty one is `null`. */
  async call<S extends z.ZodType> (call: ApiCall, schema: S): Promise<z.output<S>> {
    const checked = schema.safeParse(await this.raw(call))
    if (checked.success) return checked.data
    const { path, message } = checked.error.issues[0]!
    throw oddAnswer(this.#name(call), `unexpected answer: ${path.map(String).join('.') || 'body'}: ${message}`)
  }

  /** The answer as it came. */
  async raw (call: ApiCall): Promise<unknown> {
    const timeoutMs = call.timeoutMs === undefined ? DEFAULT_TIMEOUT_MS : call.timeoutMs
    const late = new AbortController()
    const timer = timeoutMs === null ? undefined : setTimeout(() => late.abort(), timeoutMs)
    try {
      const response = await this.#send(call, late.signal)
      const text = await readText(response)
      if (!isOk(response)) throw this.#refusal(call, response, text)
      if (text === '') return null
      return JSON.parse(text) as unknown
    } catch (error) {
      if (error instanceof SyntaxError) throw oddAnswer(this.#name(call), 'the answer is not JSON')
      throw this.#explain(call, error, timeoutMs === null ? null : { signal: late.signal, ms: timeoutMs })
    } finally {
      clearTimeout(timer)
    }
  }

  /** The body of an answer as it comes, for what is no JSON. */
  async open (call: ApiCall): Promise<http.IncomingMessage> {
    try {
      const response = await this.#send(call, null)
      if (!isOk(response)) throw this.#refusal(call, response, await readText(response))
      return response
    } catch (error) {
      throw this.#explain(call, error, null)
    }
  }

  /** As `raw`, with a body of another type that is sent as it is read. */
  async send (call: ApiCall, content: StreamedBody): Promise<unknown> {
    try {
      const response = await this.#send(call, null, content)
      const text = await readText(response)
      if (!isOk(response)) throw this.#refusal(call, response, text)
      return JSON.parse(text) as unknown
    } catch (error) {
      if (error instanceof SyntaxError) throw oddAnswer(this.#name(call), 'the answer is not JSON')
      throw this.#explain(call, error, null)
    }
  }

  /** Events as they come. Leaving the loop closes the connection. */
  async* events (call: ApiCall): AsyncGenerator<ServerEvent> {
    let response: http.IncomingMessage | null = null
    try {
      response = await this.#send(call, null)
      if (!isOk(response)) throw this.#refusal(call, response, await readText(response))
      if (!(response.headers['content-type'] ?? '').startsWith('text/event-stream')) {
        throw oddAnswer(this.#name(call), 'the answer is not an event stream')
      }
      yield* readServerEvents(response)
    } catch (error) {
      throw this.#explain(call, error, null)
    } finally {
      response?.destroy()
    }
  }

  async #send (call: ApiCall, timeout: AbortSignal | null, content?: StreamedBody): Promise<http.IncomingMessage> {
    const signals = [this.#signal, timeout, call.signal].filter(signal => signal != null)
    const signal = AbortSignal.any(signals)
    signal.throwIfAborted()
    const { protocol, hostname, port, username, password } = this.#url
    const body = call.body === undefined ? null : Buffer.from(JSON.stringify(call.body))
    const request = (protocol === 'https:' ? https : http).request({
      protocol,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: this.#path(call),
      method: call.method ?? 'GET',
      signal,
      ...(username === '' ? {} : { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
      headers: {
        'accept': 'application/json, text/event-stream',
        'x-svc-client': 'cli',
        ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
        ...(content === undefined ? {} : { 'content-type': content.type, 'content-length': content.bytes })
      }
    })
    const answered = once(request, 'response') as Promise<[http.IncomingMessage]>
    if (content === undefined) request.end(body)
    // a gateway that refuses early closes the connection; its answer says why
    else pipeline(content.body, request).catch((error: Error) => request.destroy(error))
    const [response] = await answered
    // an error after the response is told by the response itself
    request.on('error', () => {})
    return response
  }

  get #prefix (): string { return this.#url.pathname.replace(/(?<!\/)\/+$/, '') }

  #path ({ path, query = {} }: ApiCall): string {
    const parameters = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
    const search = parameters.toString()
    return `${this.#prefix}${path}${search === '' ? '' : `?${search}`}`
  }

  #name ({ method = 'GET', path }: ApiCall): string {
    return `${method} ${this.base}${path}`
  }

  /** Engines speak their own words on `/v1`, and the gateway passes them on. */
  #refusal (call: ApiCall, { statusCode = 0 }: http.IncomingMessage, body: string): ApiFailure {
    return new ApiFailure(this.#name(call), statusCode, body, call.path.startsWith('/api/') ? this.base : null)
  }

  #explain (call: ApiCall, error: unknown, timeout: { readonly signal: AbortSignal, readonly ms: number } | null): unknown {
    if (this.#signal.aborted) return this.#signal.reason
    if (call.signal?.aborted === true) return call.signal.reason
    if (timeout?.signal.aborted === true) return timeoutFailure(this.#name(call), timeout.ms)
    const isOurs = !(error instanceof Error) || !('code' in error) || error instanceof ApiFailure
    return isOurs ? error : connectionFailure(this.#name(call), this.base, error)
  }
}

/** A path with names in it: `pathOf`/api/slots/${name}/state``. */
export function pathOf (parts: TemplateStringsArray, ...names: readonly string[]): string {
  return parts.reduce((path, part, i) => path + encodeURIComponent(names[i - 1]!) + part)
}

function isOk ({ statusCode }: http.IncomingMessage): boolean {
  return statusCode !== undefined && statusCode >= 200 && statusCode < 300
}

async function readText (response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
