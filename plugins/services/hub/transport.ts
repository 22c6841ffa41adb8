import { messageOf, type Clock } from 'svc-gateway/plugin'
import { request, type Dispatcher } from 'undici'
import { outwardConnections } from './connections.js'
import { hfError } from './errors.js'
import { refusalError, unreachable } from './hub-errors.js'

export interface HubSettings {
  /** Origin and, for mirrors below a path, that path; no slash at the end. */
  readonly endpoint: string
  readonly token: string | null
}

export interface HubCall {
  readonly method: 'GET' | 'HEAD'
  /** Below the endpoint, or a whole address that the hub gave. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Longest silence in headers or body. */
  readonly stallMs: number
  /** What it is about, for errors. */
  readonly repo: string | null
  readonly path: string | null
  /** Answers besides 2xx that the caller looks at itself. */
  readonly accept?: readonly number[]
  /** Called with the hub's own answer when it sends the caller elsewhere; true ends the call there. */
  readonly onRedirect?: (answer: HubAnswer) => boolean
}

export type HubAnswer = Dispatcher.ResponseData

const MAX_REDIRECTS = 6
const CONNECT_MS = 30_000
const MAX_ERROR_BYTES = 4096

/** One HTTP exchange with the hub and the hosts that it redirects to. Closed with the plugin. */
export class HubTransport {
  readonly #settings: () => HubSettings
  readonly #clock: Clock
  readonly #setting: (name: string) => string | undefined
  #dispatcher: Dispatcher | null = null

  constructor (settings: () => HubSettings, clock: Clock, setting: (name: string) => string | undefined) {
    this.#settings = settings
    this.#clock = clock
    this.#setting = setting
  }

  /** The last answer of the chain. Rejects as `HubClient` says. */
  async call (call: HubCall): Promise<HubAnswer> {
    const { endpoint, token } = this.#settings()
    const home = new URL(endpoint)
    let url = call.url.includes('://') ? new URL(call.url) : new URL(`${endpoint}${call.url}`)
    for (let hop = 0; ; hop++) {
      const answer = await this.#exchange(call, url, url.origin === home.origin ? token : null)
      const { statusCode: status } = answer
      const target = status >= 300 && status < 400 ? targetOf(answer, url) : null
      if (target === null) {
        if ((status >= 200 && status < 300) || call.accept?.includes(status) === true) return answer
        throw await this.#refused(call, answer, url.origin === home.origin)
      }
      if (url.origin === home.origin && call.onRedirect?.(answer) === true) {
        await drained(answer)
        return answer
      }
      await drained(answer)
      if (hop === MAX_REDIRECTS) throw hfError('hf.upstream_error', `${endpoint} redirects in a circle`, { details: { endpoint } })
      if (!isSafe(url, target)) throw hfError('hf.upstream_error', `${endpoint} redirects to ${target.protocol}//${target.host}, which is not safe`, { details: { endpoint } })
      url = target
    }
  }

  async close (): Promise<void> {
    await this.#dispatcher?.destroy()
  }

  async #exchange (call: HubCall, url: URL, token: string | null): Promise<HubAnswer> {
    const { endpoint } = this.#settings()
    try {
      return await request(url, {
        method: call.method,
        dispatcher: this.#dispatcher ??= outwardConnections(this.#setting, CONNECT_MS),
        signal: call.signal,
        headersTimeout: call.stallMs,
        bodyTimeout: call.stallMs,
        headers: {
          'user-agent': 'svc-gateway',
          'accept-encoding': 'identity',
          ...call.headers,
          ...(token === null ? {} : { authorization: `Bearer ${token}` })
        }
      })
    } catch (error) {
      call.signal.throwIfAborted()
      throw unreachable(url.origin === new URL(endpoint).origin ? endpoint : url.origin, error)
    }
  }

  /** A refusal of another host says nothing about the repository: its address was good for a while only. */
  async #refused (call: HubCall, answer: HubAnswer, isHome: boolean): Promise<Error> {
    const { endpoint, token } = this.#settings()
    const { statusCode: status, headers } = answer
    const text = await beginning(answer)
    const now = this.#clock.now()
    if (!isHome && status !== 429 && status !== 503) {
      return hfError('hf.upstream_error', `the storage behind ${endpoint} answers ${status}`, { details: { status } })
    }
    return refusalError({ endpoint, hasToken: token !== null, repo: call.repo, path: call.path, now }, { status, headers, text })
  }
}

export async function readText (answer: HubAnswer, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer.body) {
    size += (chunk as Buffer).length
    if (size > limit) throw new Error(`the answer is longer than ${limit} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** At most `limit` bytes of the body; the rest is not read. */
export async function beginning ({ body }: HubAnswer, limit = MAX_ERROR_BYTES): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size >= limit) break
    }
  } catch (error) {
    return messageOf(error)
  }
  return Buffer.concat(chunks).subarray(0, limit).toString('utf8')
}

async function drained (answer: HubAnswer): Promise<void> {
  await answer.body.dump({ limit: MAX_ERROR_BYTES }).catch(() => undefined)
}

function targetOf ({ headers }: HubAnswer, from: URL): URL | null {
  const { location } = headers
  return typeof location === 'string' && URL.canParse(location, from.href) ? new URL(location, from) : null
}

/** Never from an encrypted connection to an open one, and never to anything but HTTP. */
function isSafe (from: URL, to: URL): boolean {
  return to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:')
}
