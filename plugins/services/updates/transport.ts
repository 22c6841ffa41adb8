import { request, type Dispatcher } from 'undici'
import { outwardConnections } from '../hub/ref.js'

const MOST_REDIRECTS = 5
const STALL_MS = 30_000
const CONNECT_MS = 15_000

/** What is here already, and which file it is the beginning of. */
export interface Held {
  readonly offset: number
  readonly etag: string | null
}

export interface Part {
  readonly status: number
  /** Bytes of the whole file; null if unknown. */
  readonly total: number | null
  readonly etag: string | null
  readonly body: AsyncIterable<Buffer>
}

/** HTTP towards channels of releases: redirects, a proxy where the environment names one. Closed with the plugin. */
export class ReleaseTransport {
  readonly #variable: (name: string) => string | undefined
  #dispatcher: Dispatcher | null = null

  constructor (variable: (name: string) => string | undefined) {
    this.#variable = variable
  }

  /** A short text. Rejects for what is longer, for any answer but 200, and with the signal's reason. */
  async text (url: URL, limitBytes: number, signal: AbortSignal): Promise<string> {
    const { statusCode: status, body } = await this.#get(url, {}, signal)
    if (status !== 200) {
      await body.dump().catch(() => undefined)
      throw new Error(`it answers ${status}`)
    }
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of body) {
      size += (chunk as Buffer).length
      if (size > limitBytes) throw new Error(`the answer is longer than ${limitBytes} bytes`)
      chunks.push(chunk as Buffer)
    }
    return Buffer.concat(chunks).toString('utf8')
  }

  /** A file from a byte on, if the server can and still has the same; else from its beginning (status 200). */
  async from (url: URL, { offset, etag }: Held, signal: AbortSignal): Promise<Part> {
    const headers = offset === 0 ? {} : { range: `bytes=${offset}-`, ...(etag === null ? {} : { 'if-range': etag }) }
    const { statusCode: status, headers: got, body } = await this.#get(url, headers, signal)
    const length = Number(got['content-length'])
    const [, first, , all] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(String(got['content-range'] ?? '')) ?? []
    const isPart = status === 206 && Number(first) === offset
    if (status !== 200 && !isPart) {
      await body.dump().catch(() => undefined)
      // what we hold is as long as the file, or longer: it is another one
      if (status === 416 && offset > 0) return await this.from(url, { offset: 0, etag: null }, signal)
      throw new Error(`${url.host} answers ${status}`)
    }
    return {
      status,
      total: isPart ? Number(all) : Number.isSafeInteger(length) ? length : null,
      etag: typeof got.etag === 'string' && !got.etag.startsWith('W/') ? got.etag : null,
      body
    }
  }

  async close (): Promise<void> {
    await this.#dispatcher?.destroy()
  }

  async #get (from: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    let url = from
    for (let hop = 0; ; hop++) {
      const answer = await request(url, {
        dispatcher: this.#dispatcher ??= outwardConnections(this.#variable, CONNECT_MS),
        signal, headersTimeout: STALL_MS, bodyTimeout: STALL_MS,
        headers: { 'user-agent': 'svc-gateway', 'accept-encoding': 'identity', ...headers }
      })
      const { location } = answer.headers
      if (answer.statusCode < 300 || answer.statusCode >= 400 || typeof location !== 'string') return answer
      await answer.body.dump().catch(() => undefined)
      const next = URL.canParse(location, url.href) ? new URL(location, url) : null
      if (hop === MOST_REDIRECTS) throw new Error(`${from.host} redirects in a circle`)
      // never from an encrypted connection to an open one, and never to anything but HTTP
      if (next === null || !(next.protocol === 'https:' || (next.protocol === 'http:' && url.protocol === 'http:'))) {
        throw new Error(`${url.host} redirects to an address that is not safe`)
      }
      url = next
    }
  }
}
