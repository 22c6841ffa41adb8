import type { Core } from './core.js'
import { routes as bankRoutes } from './banks/routes.js'
import { routes as entityRoutes } from './memories/entity-routes.js'
import { routes as graphRoutes } from './memories/graph-routes.js'
import { routes as memoryRoutes } from './memories/routes.js'
import { routes as embeddingRoutes } from './embedding/routes.js'
import { routes as recallRoutes } from './recall/routes.js'
import { routes as retainRoutes } from './retain/routes.js'
import { routes as documentRoutes } from './documents/routes.js'
import { routes as knowledgeRoutes } from './knowledge/routes.js'
import { routes as observationRoutes } from './llm/observation-routes.js'
import { routes as previewRoutes } from './llm/preview-routes.js'
import { routes as reflectRoutes } from './llm/reflect-routes.js'
import { routes as directiveRoutes } from './models/directive-routes.js'
import { routes as mentalModelRoutes } from './models/mental-model-routes.js'
import { routes as operationRoutes } from './operations/routes.js'
import { routes as transferRoutes } from './transfer/routes.js'
import { routes as templateRoutes } from './transfer/template-routes.js'
import { bankOf } from './aliases/alias.js'
import { routes as aliasRoutes } from './aliases/routes.js'
import { routes as fileRoutes } from './files/routes.js'
import { routes as auditRoutes } from './records/audit-routes.js'
import { routes as callRoutes } from './records/call-routes.js'
import { routes as metricsRoutes } from './records/metrics-routes.js'
import { routes as webhookRoutes } from './webhooks/routes.js'
import { routes as serviceRoutes } from './wire/service-routes.js'
import { json, WireError, type WireAnswer, type WireRoute } from './wire/answer.js'

/** Every call of the wire. */
export const wireRoutes: readonly WireRoute[] = [
  ...serviceRoutes, ...bankRoutes,
  ...retainRoutes, ...recallRoutes, ...embeddingRoutes, ...memoryRoutes, ...graphRoutes, ...entityRoutes,
  ...operationRoutes, ...documentRoutes, ...directiveRoutes, ...mentalModelRoutes, ...knowledgeRoutes, ...templateRoutes,
  ...transferRoutes,
  ...reflectRoutes, ...observationRoutes, ...previewRoutes, ...fileRoutes, ...webhookRoutes, ...auditRoutes, ...callRoutes,
  ...metricsRoutes,
  ...aliasRoutes
]

export interface WireRequest {
  readonly method: string
  /** As the client sent it, percent-encoding included. */
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly signal: AbortSignal
}

/** With the names of its parameters, in their order. */
type NamedRoute = WireRoute & { readonly names: readonly string[] }

interface Branch {
  readonly fixed: Map<string, Branch>
  param: { readonly branch: Branch } | null
  /** By method; parameter names differ between routes of one path. */
  readonly routes: Map<string, NamedRoute>
  /** Takes the rest of the path. */
  readonly rest: Map<string, NamedRoute>
}

const root = branch()
for (const route of wireRoutes) {
  let at = root
  const named = { ...route, names: [...route.path.matchAll(/\{([a-z_]+)\*?\}/g)].map(([, name]) => name!) }
  for (const part of route.path.split('/').slice(1)) {
    if (part.endsWith('*}')) {
      at.rest.set(route.method, named)
    } else if (part.startsWith('{')) {
      at.param ??= { branch: branch() }
      at = at.param.branch
    } else {
      let next = at.fixed.get(part)
      if (next === undefined) at.fixed.set(part, next = branch())
      at = next
    }
  }
  if (!route.path.endsWith('*}')) at.routes.set(route.method, named)
}

function branch (): Branch {
  return { fixed: new Map(), param: null, routes: new Map(), rest: new Map() }
}

/** Answers one request. Rejects only with the reason of a signal that aborted, or a fault of the engine itself. */
export async function answerRequest (core: Core, request: WireRequest): Promise<WireAnswer> {
  const startedAt = core.now()
  const start = performance.now()
  const found = find(request)
  const isFound = !('answer' in found)
  if (isFound && found.params.bank_id !== undefined) {
    core.store.lookForOthers()
    found.params.bank_id = bankOf(core.store, found.params.bank_id)
  }
  const answer = isFound ? await handle(core, request, found) : found.answer
  const { route, params } = isFound ? { route: found.route.path, params: found.params } : { route: null, params: {} }
  for (const listener of core.hooks.answered) {
    listener({ method: request.method, route, params, status: answer.status, startedAt, durationMs: performance.now() - start })
  }
  return answer
}

interface Found {
  readonly route: WireRoute
  readonly params: Record<string, string>
}

function find (request: WireRequest): Found | { readonly answer: WireAnswer } {
  const { method, path, query, headers } = request
  if (path.length > 1 && path.endsWith('/')) {
    const bare = path.replace(/\/+$/, '')
    if (!('answer' in find({ ...request, path: bare }))) {
      const to = `http://${headers.host ?? 'localhost'}${bare}${query === '' ? '' : `?${query}`}`
      return { answer: { status: 307, headers: { location: to }, body: Buffer.alloc(0) } }
    }
    return { answer: notFound() }
  }
  const parts = path.split('/').slice(1).map(decoded)
  if (parts.includes(null)) return { answer: notFound() }
  const at = walk(root, parts as string[], [])
  if (at === null) return { answer: notFound() }
  const route = at.routes.get(method) ?? (method === 'HEAD' ? at.routes.get('GET') : undefined)
  if (route === undefined) {
    const allow = [...at.routes.keys()].join(', ')
    return { answer: json({ detail: 'Method Not Allowed' }, 405, { allow }) }
  }
  const params: Record<string, string> = {}
  route.names.forEach((name, i) => { params[name] = at.values[i]! })
  return { route, params }
}

interface Reached {
  readonly routes: Map<string, NamedRoute>
  readonly values: readonly string[]
}

/** Fixed parts win over parameters. An encoded slash is part of no name, but of the rest of a path it is. */
function walk (at: Branch, parts: readonly string[], values: readonly string[]): Reached | null {
  const [part, ...others] = parts
  if (part === undefined) return at.routes.size > 0 ? { routes: at.routes, values } : null
  const fixed = at.fixed.get(part)
  const through = fixed === undefined ? null : walk(fixed, others, values)
  if (through !== null) return through
  const along = at.param === null || part === '' || part.includes('/') ? null : walk(at.param.branch, others, [...values, part])
  if (along !== null) return along
  return at.rest.size > 0 ? { routes: at.rest, values: [...values, parts.join('/')] } : null
}

function decoded (part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}

function notFound (): WireAnswer {
  return json({ detail: 'Not Found' }, 404)
}

async function handle (core: Core, request: WireRequest, { route, params }: Found): Promise<WireAnswer> {
  const ignored = new Set<string>()
  const { headers, body, signal } = request
  let answer: WireAnswer
  try {
    answer = await route.handler({
      core, params, query: new URLSearchParams(request.query), headers, body, signal, ignored
    })
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    answer = json({ detail: error.detail }, error.status)
  }
  if (ignored.size === 0) return answer
  return { ...answer, headers: { ...answer.headers, 'x-ignored-params': ignoredNames(ignored) } }
}

const MOST_IGNORED = 20

/** A header holds plain ASCII. */
function ignoredNames (ignored: ReadonlySet<string>): string {
  return [...ignored].slice(0, MOST_IGNORED).map(name => name.slice(0, 100).replaceAll(/[^\x21-\x2b\x2d-\x7e]/g, '?')).join(',')
}
