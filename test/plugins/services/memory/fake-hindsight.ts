import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** A request as it came. */
export interface Seen {
  readonly method: string
  /** With its query, byte for byte. */
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

interface Unit {
  readonly id: string
  readonly text: string
  readonly document_id: string
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly mentioned_at: string
  state?: 'invalidated'
}

interface Bank {
  readonly units: Unit[]
  config: Record<string, unknown>
  readonly directives: Array<Record<string, unknown>>
}

/** What a gateway asks, whenever it likes, to know how its server is. */
const LOOKS = new Set(['/health', '/version', '/v1/default/banks?limit=1'])

type Answering = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void
type Row = Readonly<Record<string, unknown>>

/**
 * The wire of a Hindsight 1.1.0 without a model, as recorded of a real one: the shapes, statuses and odd corners that the
 * gateway depends on. It remembers words, not meanings.
 */
export class FakeHindsight {
  /** Without what a gateway asks to know how the server is, which comes at any time: `looks` has that. */
  readonly seen: Seen[] = []
  readonly looks: Seen[] = []
  readonly banks = new Map<string, Bank>()
  /** Other names of banks, as a server gives them to its own operators. */
  readonly aliases = new Map<string, string>()
  /** Ids of operations that failed, by bank, of those that have more than one. */
  readonly failed = new Map<string, readonly string[]>()
  /** Requests below /v1 need it. */
  key: string | null = null
  /** What to answer instead, by the address without its query. */
  readonly instead = new Map<string, Answering>()
  /** How many memories a recall has room for. */
  room = Infinity
  /** Told of a request before its body is read, by the address without its query. */
  readonly arriving = new Map<string, (request: IncomingMessage) => void>()
  readonly #left: string[] = []
  readonly #waiting: Array<() => void> = []
  readonly #operations = new Map<string, Row>()
  readonly #server: Server

  constructor () {
    this.#server = createServer((request, response) => { void this.#serve(request, response) })
  }

  get url (): string { return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` }

  /** What was seen, as `GET /v1/default/banks`. */
  get calls (): string[] { return this.seen.map(({ method, url }) => `${method} ${url}`) }

  /** Resolves when the client of a request has left before the answer; `POST /v1/...`. */
  async left (call: string): Promise<void> {
    while (!this.#left.includes(call)) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
  }

  async start (): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  async stop (): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  bank (id: string): Bank {
    const known = this.banks.get(id)
    if (known !== undefined) return known
    const config = Object.fromEntries(['skepticism', 'literalism', 'empathy'].map(trait => [`disposition_${trait}`, null]))
    const made: Bank = { units: [], config: { ...config, reflect_mission: null }, directives: [] }
    this.banks.set(id, made)
    return made
  }

  async #serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    this.arriving.get(request.url ?? '')?.(request)
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return this.#gone(request)
    }
    const body = Buffer.concat(chunks)
    const url = request.url ?? ''
    const list = LOOKS.has(url) ? this.looks : this.seen
    list.push({ method: request.method ?? '', url, headers: request.headers, body: body.toString('latin1') })
    response.on('close', () => { if (!response.writableFinished) this.#gone(request) })
    const path = url.split('?')[0]!
    const other = this.instead.get(path)
    if (other !== undefined) return other(request, response, body)
    if (path.startsWith('/v1') && this.key !== null && request.headers.authorization !== `Bearer ${this.key}`) {
      return json(response, 401, { detail: 'Authentication failed: Invalid API key' })
    }
    try {
      this.#answer(request, response, body, path)
    } catch (error) {
      json(response, 500, { detail: String(error) })
    }
  }

  #answer ({ method = '', url = '' }: IncomingMessage, response: ServerResponse, body: Buffer, path: string): void {
    const say = (status: number, value: unknown): void => json(response, status, value)
    if (path.length > 1 && path.endsWith('/')) return redirect(response, `${this.url}${path.slice(0, -1)}`)
    if (path === '/health') return say(200, { status: 'healthy', database: 'connected' })
    if (path === '/version') return say(200, { api_version: '1.1.0', features: { observations: true, mcp: true, file_upload_api: true } })
    const query = new URL(url, 'http://x').searchParams
    const [, , , what = '', id = '', ...rest] = path.split('/').map(decodeURIComponent)
    if (what === 'banks' && id === '') {
      const banks = [...this.banks].map(([bank_id, { units }]) => ({ bank_id, name: bank_id, disposition: disposition({}), mission: '', fact_count: units.length }))
      const { limit, offset, part } = pageOf(banks, query, 100)
      return say(200, { banks: part, total: banks.length, limit, offset })
    }
    if (what === 'files') return zip(response)
    if (what === 'chunks') return say(200, { chunk_id: id, document_id: 'd', bank_id: id.split('_d_')[0], chunk_index: 0, chunk_text: 'secret', created_at: '2026-01-01T00:00:00Z' })
    if (what !== 'banks') return say(404, { detail: 'Not Found' })
    const given = body.length > 0 && !rest.join('/').includes('files') ? JSON.parse(body.toString()) as Row : {}
    return this.#ofBank(say, `${method} ${rest.map((name, i) => i === 1 && ids.has(rest[0]!) && !words.has(name) ? ':id' : name).join('/')}`, { id, rest, query, given })
  }

  #ofBank (
    say: (status: number, value: unknown) => void, what: string,
    { id: name, rest, query, given }: { id: string, rest: string[], query: URLSearchParams, given: Row }
  ): void {
    const id = this.banks.has(name) ? name : this.aliases.get(name) ?? name
    const known = this.banks.get(id)
    const missing = (): void => say(404, { detail: `Bank '${id}' not found` })
    switch (what) {
      case 'PUT ': case 'PATCH ': {
        const bank = this.bank(id)
        if (given.reflect_mission !== undefined) bank.config.reflect_mission = given.reflect_mission
        return say(200, { bank_id: id, name: given.name ?? id, disposition: disposition({}), mission: given.reflect_mission ?? '', background: '' })
      }
      case 'DELETE ':
        this.banks.delete(id)
        return say(200, { success: true, message: `Bank '${id}' and all associated data deleted successfully`, deleted_count: known?.units.length ?? 0 })
      case 'POST memories': {
        if (!Array.isArray(given.items)) return say(422, { detail: [{ type: 'missing', loc: ['body', 'items'], msg: 'Field required', input: given }] })
        for (const item of given.items as Row[]) {
          const document_id = typeof item.document_id === 'string' ? item.document_id : randomUUID()
          const { units } = this.bank(id)
          if (item.update_mode !== 'append') units.splice(0, units.length, ...units.filter(unit => unit.document_id !== document_id))
          units.push({ id: randomUUID(), text: String(item.content), document_id, tags: (item.tags ?? []) as string[], metadata: (item.metadata ?? {}) as Record<string, string>, mentioned_at: String(item.timestamp ?? '2026-01-01T00:00:00+00:00') })
        }
        const isAsync = given.async === true
        return say(200, { success: true, bank_id: id, items_count: given.items.length, async: isAsync, operation_id: isAsync ? this.#operation('batch_retain', {}) : null, operation_ids: null, usage: null })
      }
      case 'POST memories/recall': {
        if (Array.isArray(given.tags) && Array.isArray(given.tag_groups)) {
          return say(422, { detail: [{ type: 'value_error', loc: ['body'], msg: 'Value error, \'tags\' and \'tag_groups\' are mutually exclusive. Use \'tag_groups\' for compound filtering.', input: given }] })
        }
        if (known === undefined) return missing()
        const asked = String(given.query).toLowerCase().split(/\W+/)
        const found = known.units.map(unit => ({ unit, score: asked.filter(word => word !== '' && unit.text.toLowerCase().includes(word)).length / asked.length }))
          .filter(({ unit, score }) => score > 0 && isMeant(unit, given)).sort((a, b) => b.score - a.score).slice(0, this.room)
        return say(200, { results: found.map(({ unit, score }) => ({ ...unit, type: 'world', entities: [], context: '', occurred_start: null, scores: { final: score } })), trace: null, entities: null, chunks: null })
      }
      case 'GET memories/list': {
        if (known === undefined) return missing()
        const [limit, offset] = [Number(query.get('limit') ?? 100), Number(query.get('offset') ?? 0)]
        const document = query.get('document_id')
        const tags = query.getAll('tags')
        const units = known.units.filter(({ document_id: of, state = 'valid', tags: has }) => (document === null || of === document) &&
          state === (query.get('state') ?? 'valid') && (tags.length === 0 || tags.some(tag => has.includes(tag))))
        const items = units.slice(offset, offset + limit).map(unit => ({ ...unit, fact_type: 'world', entities: '', date: unit.mentioned_at, state: unit.state ?? 'valid' }))
        return say(200, { items, total: units.length, limit, offset })
      }
      case 'GET memories/:id': {
        const unit = known?.units.find(one => one.id === rest[1])
        return unit === undefined ? say(404, { detail: `Memory unit '${rest[1]}' not found` }) : say(200, { ...unit, type: 'world' })
      }
      case 'PATCH memories/:id': {
        const unit = known?.units.find(one => one.id === rest[1])
        if (unit === undefined) return say(404, { detail: `Memory unit '${rest[1]}' not found` })
        if (given.state === 'invalidated') unit.state = given.state
        return say(200, { ...unit, type: 'world' })
      }
      case 'DELETE memories/:id': return say(405, { detail: 'Method Not Allowed' })
      case 'DELETE memories': {
        const count = known?.units.splice(0).length ?? 0
        return say(200, { success: true, message: `Cleared ${count} memory unit(s)`, deleted_count: count })
      }
      case 'GET documents/:id': {
        const units = known?.units.filter(one => one.document_id === rest[1]) ?? []
        if (units.length === 0) return say(404, { detail: 'Document not found' })
        const { mentioned_at: at } = units[0]!
        return say(200, {
          id: rest[1], bank_id: id, original_text: units.map(({ text }) => text).join('\n'), content_hash: '', created_at: at, updated_at: at,
          memory_unit_count: units.length, tags: [...new Set(units.flatMap(({ tags }) => tags))],
          document_metadata: {}, retain_params: {}
        })
      }
      case 'DELETE documents/:id': {
        const units = known?.units.filter(one => one.document_id === rest[1]) ?? []
        if (units.length === 0) return say(404, { detail: 'Document not found' })
        known!.units.splice(0, known!.units.length, ...known!.units.filter(one => one.document_id !== rest[1]))
        return say(200, { success: true, message: 'deleted', document_id: rest[1], memory_units_deleted: units.length })
      }
      case 'GET stats': return known === undefined
        ? missing()
        : say(200, { bank_id: id, total_nodes: known.units.length, total_links: 0, total_documents: known.units.length, nodes_by_fact_type: {}, links_by_link_type: {}, links_by_fact_type: {}, links_breakdown: {}, pending_operations: 1, failed_operations: 2, operations_by_status: { completed: 3, failed: 2, pending: 1 }, last_consolidated_at: '2026-11-22T17:46:12.233578+00:00' })
      case 'GET config': return known === undefined ? missing() : say(200, { bank_id: id, config: known.config, overrides: {} })
      case 'PATCH config':
        if (known === undefined) return missing()
        Object.assign(known.config, given.updates)
        return say(200, { bank_id: id, config: known.config, overrides: given.updates })
      case 'DELETE config': return known === undefined ? missing() : say(200, { bank_id: id, config: known.config, overrides: {} })
      case 'GET aliases': return say(200, { bank_id: id, aliases: [...this.aliases].filter(([, bank]) => bank === id).map(([alias]) => ({ alias, primary: false })) })
      case 'GET directives': return known === undefined ? missing() : say(200, { items: known.directives, total: known.directives.length, limit: 100, offset: 0 })
      case 'POST directives': {
        const directive = { id: randomUUID(), bank_id: id, ...given }
        this.bank(id).directives.push(directive)
        return say(200, directive)
      }
      case 'DELETE directives/:id': case 'DELETE mental-models/:id': return say(200, { status: 'deleted' })
      case 'POST reflect': return say(200, { text: 'Alice works at Acme Corp.', based_on: null, usage: null })
      case 'GET tags': {
        if (known === undefined) return missing()
        const [limit, offset] = [Number(query.get('limit') ?? 100), Number(query.get('offset') ?? 0)]
        const tags = [...new Set(known.units.flatMap(unit => unit.tags))]
        const items = tags.slice(offset, offset + limit).map(tag => ({ tag, count: 1 }))
        return say(200, { items, total: tags.length, limit, offset })
      }
      case 'GET profile': case 'PUT profile': return say(410, { detail: 'The bank profile endpoints have been removed.' })
      case 'GET document-transfer': return say(410, { detail: 'Use POST document-transfer/export.' })
      case 'POST document-transfer/export':
        return say(202, { operation_id: this.#operation('export_documents', { filename: `${id}-documents.zip`, download_url: `/v1/default/files/download/tenants/public/banks/${id}/exports/1/transfer.zip` }), status: 'pending' })
      case 'GET operations': if (this.failed.has(id)) {
        const failed = this.failed.get(id)!
        const { limit, offset, part } = pageOf(failed, query, 20)
        if (limit > 100) return say(422, { detail: [{ type: 'less_than_equal', loc: ['query', 'limit'], msg: 'Input should be less than or equal to 100', input: String(limit) }] })
        return say(200, { bank_id: id, total: failed.length, limit, offset, operations: part.map(id => ({ id, status: 'failed', operation_id: id })) })
      } else return say(200, { bank_id: id, total: 1, limit: 20, offset: 0, operations: [{ id: 'op-1', status: 'failed', operation_id: 'op-1' }] })
      case 'POST operations/:id/retry': if (this.failed.has(id)) {
        if (!this.failed.get(id)!.includes(rest[1]!)) return say(409, { detail: `Operation ${rest[1]} cannot be retried: status is 'pending'` })
        this.failed.set(id, this.failed.get(id)!.filter(one => one !== rest[1]))
        return say(200, { success: true, message: 'queued', operation_id: rest[1] })
      } else return say(200, { success: true, message: 'queued', operation_id: rest[1] })
      case 'DELETE operations/:id': return say(409, { detail: `Operation ${rest[1]} cannot be cancelled: status is 'completed'` })
      case 'GET operations/:id': return say(200, this.#operations.get(rest[1]!) ?? { operation_id: rest[1], status: 'not_found' })
      case 'POST files/retain': return say(200, { operation_ids: [randomUUID()] })
      case 'GET graph': return known === undefined ? missing() : say(200, graphOf(known.units, query))
      default: return say(404, { detail: 'Not Found' })
    }
  }

  #gone ({ method, url }: IncomingMessage): void {
    this.#left.push(`${method} ${url}`)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #operation (type: string, result: object): string {
    const id = randomUUID()
    this.#operations.set(id, { operation_id: id, status: 'completed', operation_type: type, id, task_type: type, result_metadata: result })
    return id
  }
}

const ids = new Set(['memories', 'documents', 'directives', 'mental-models', 'operations', 'entities'])
const words = new Set(['list', 'recall', 'graph'])

export async function fakeHindsight (t: Test): Promise<FakeHindsight> {
  const fake = await new FakeHindsight().start()
  t.teardown(() => fake.stop())
  return fake
}

function pageOf<T> (all: readonly T[], query: URLSearchParams, usual: number) {
  const [limit, offset] = [Number(query.get('limit') ?? usual), Number(query.get('offset') ?? 0)]
  return { limit, offset, part: all.slice(offset, offset + limit) }
}

function disposition (config: Row): object {
  return { skepticism: config.skepticism ?? 3, literalism: 3, empathy: 3 }
}

/** The tags of a recall. */
function isMeant ({ tags: has }: Pick<Unit, 'tags'>, { tags = [], tags_match: match = 'any', tag_groups: all = [] }: Row): boolean {
  const leaf = (tags: readonly string[], match: unknown): boolean => {
    if (match === 'exact') return tags.length === has.length && tags.every(tag => has.includes(tag))
    if (tags.length === 0 || (has.length === 0 && (match === 'any' || match === 'all'))) return true
    return String(match).startsWith('any') ? tags.some(tag => has.includes(tag)) : tags.every(tag => has.includes(tag))
  }
  const group = ({ tags, match = 'any_strict', and, or, not }: Row): boolean => {
    if (Array.isArray(tags)) return leaf(tags as string[], match)
    if (Array.isArray(and)) return (and as Row[]).every(group)
    return Array.isArray(or) ? (or as Row[]).some(group) : !group(not as Row)
  }
  return leaf(tags as string[], match) && (all as Row[]).every(group)
}

/** The newest that are asked for, as a chain: each memory leads to the next, and all to the first. */
function graphOf (all: readonly Unit[], query: URLSearchParams): object {
  const [document, q, limit] = [query.get('document_id'), query.get('q'), Number(query.get('limit') ?? 1000)]
  const meant = all.filter(({ document_id: of, text }) => of === (document ?? of) && text.includes(q ?? ''))
  const units = meant.slice(-limit)
  const edges = units.slice(1).flatMap((unit, i) => [[units[i]!.id, unit.id], ...i > 0 ? [[units[0]!.id, unit.id]] : []])
  return {
    nodes: units.map(({ id, text, mentioned_at: date }) => ({ data: { id, label: text.slice(0, 30), text, date, context: '', entities: '', color: '#90caf9' } })),
    edges: edges.map(([source, target], i) => ({ data: { id: `e${i}`, source, target, linkType: 'temporal', weight: 1, entityName: '' } })),
    table_rows: units.map(({ id, text }) => ({ id, text })),
    total_units: meant.length,
    limit
  }
}

function json (response: ServerResponse, status: number, value: unknown): void {
  const bytes = Buffer.from(JSON.stringify(value))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes)
}

function redirect (response: ServerResponse, location: string): void {
  response.writeHead(307, { location, 'content-length': 0 }).end()
}

function zip (response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename="x-documents.zip"' }).end('PK zip bytes')
}
