import { request, type Dispatcher } from 'undici'
import { messageOf, type Upstream } from '../../contract/index.js'
import { VIA_HEADER } from '../requests/loop-guard.js'
import { upstreamTarget } from './upstream-auth.js'
import { MOST_MODELS, upstreamRowOf, type UpstreamRow } from './upstream-row.js'

export interface ListRequest {
  readonly upstream: Upstream
  readonly secret: (name: string) => string | undefined
  readonly dispatcher: (origin: string, connectTimeoutMs?: number) => Dispatcher
  /** Of every page. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** The gateways that the question came through, this one last. */
  readonly via: readonly string[]
}

/** `rows` null with an error, else a list without repeated ids; `status` null without an answer. */
export type ListAnswer =
  | { readonly rows: readonly UpstreamRow[], readonly status: number, readonly error: null }
  | { readonly rows: null, readonly status: number | null, readonly error: string }

interface Page {
  readonly status: number
  readonly rows: readonly UpstreamRow[]
  /** Id after which the next page begins; null when this is the last. */
  readonly after: string | null
}

interface Seen {
  readonly status: (status: number) => void
  bytes: number
}

/** Of all pages together. */
const LONGEST_LIST_BYTES = 8 * 1024 * 1024
const MOST_PAGES = 20

/** Asks an upstream for its models, page by page where it has pages. Never rejects. */
export async function fetchModels (asked: ListRequest): Promise<ListAnswer> {
  const rows = new Map<string, UpstreamRow>()
  let status: number | null = null
  const seen: Seen = { status: at => { status = at }, bytes: 0 }
  try {
    for (let [after, pages]: [string | null, number] = [null, 0]; pages < MOST_PAGES; pages++) {
      const page = await fetchPage(asked, after, seen)
      for (const row of page.rows) if (!rows.has(row.id) && rows.size < MOST_MODELS) rows.set(row.id, row)
      // a server that does not know the parameter gives the same page again
      if (page.after === null || page.after === after) break
      after = page.after
    }
    return { rows: [...rows.values()], status: 200, error: null }
  } catch (error) {
    return { rows: null, status, error: messageOf(error) }
  }
}

async function fetchPage (
  { upstream, secret, dispatcher, timeoutMs, signal, via }: ListRequest, after: string | null, told: Seen
): Promise<Page> {
  const { origin, path, headers, fallbackHeaders } = upstreamTarget(upstream, '/models', secret)
  const { connect_timeout_seconds: connect } = upstream
  const answer = await request(`${origin}${path}${paging(upstream, path, after)}`, {
    dispatcher: dispatcher(origin, connect === undefined ? undefined : connect * 1000),
    headers: ['accept', 'application/json', VIA_HEADER, via.join(', '), ...headers, ...fallbackHeaders],
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs
  })
  told.status(answer.statusCode)
  const chunks: Buffer[] = []
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    told.bytes += chunk.length
    if (told.bytes > LONGEST_LIST_BYTES) throw new Error('the model list is larger than 8 MiB')
    chunks.push(chunk)
  }
  if (answer.statusCode !== 200) throw new Error(`GET /models answered ${answer.statusCode}`)
  return pageOf(Buffer.concat(chunks).toString('utf8'))
}

/** Anthropic gives 20 models a page unless it is asked for more; no other has pages, and some refuse unknown parameters. */
function paging ({ auth_style: style }: Upstream, path: string, after: string | null): string {
  if (style !== 'anthropic' && after === null) return ''
  return `${path.includes('?') ? '&' : '?'}limit=1000${after === null ? '' : `&after_id=${encodeURIComponent(after)}`}`
}

/** Throws on anything but an OpenAI-shaped list. */
function pageOf (text: string): Page {
  const list = parsed(text) as { data?: unknown, has_more?: unknown, last_id?: unknown } | null
  const data = list?.data
  if (!Array.isArray(data)) throw new Error('the model list has no `data`')
  const rows = data.map(upstreamRowOf).filter(row => row !== null)
  const { has_more: more, last_id: last } = list!
  return { status: 200, rows, after: more === true && typeof last === 'string' ? last : null }
}

/** The parser's own words would quote what the upstream said. */
function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('the model list is not JSON')
  }
}
