import { messageOf, type Upstream } from '../../contract/index.js'
import { upstreamTarget } from './upstream-auth.js'
import { askUpstream, parsedJson, type Told, type UpstreamQuestion } from './upstream-question.js'
import { MOST_MODELS, upstreamRowOf, type UpstreamRow } from './upstream-row.js'

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

const MOST_PAGES = 20

/** Asks an upstream for its models, page by page where it has pages. Never rejects. */
export async function fetchModels (asked: UpstreamQuestion): Promise<ListAnswer> {
  const rows = new Map<string, UpstreamRow>()
  let status: number | null = null
  const told: Told = { status: at => { status = at }, bytes: 0, what: 'the model list', path: '/models' }
  try {
    for (let [after, pages]: [string | null, number] = [null, 0]; pages < MOST_PAGES; pages++) {
      const page = await fetchPage(asked, after, told)
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

async function fetchPage (asked: UpstreamQuestion, after: string | null, told: Told): Promise<Page> {
  const { upstream, secret } = asked
  const target = upstreamTarget(upstream, '/models', secret)
  const text = await askUpstream(asked, { ...target, path: `${target.path}${paging(upstream, target.path, after)}` }, told)
  return pageOf(parsedJson(text, 'the model list'))
}

/** Anthropic gives 20 models a page unless it is asked for more; no other has pages, and some refuse unknown parameters. */
function paging ({ auth_style: style }: Upstream, path: string, after: string | null): string {
  if (style !== 'anthropic' && after === null) return ''
  return `${path.includes('?') ? '&' : '?'}limit=1000${after === null ? '' : `&after_id=${encodeURIComponent(after)}`}`
}

/** Throws on anything but an OpenAI-shaped list. */
function pageOf (answer: unknown): Page {
  const list = answer as { data?: unknown, has_more?: unknown, last_id?: unknown } | null
  const data = list?.data
  if (!Array.isArray(data)) throw new Error('the model list has no `data`')
  const rows = data.map(upstreamRowOf).filter(row => row !== null)
  const { has_more: more, last_id: last } = list!
  return { status: 200, rows, after: more === true && typeof last === 'string' ? last : null }
}
