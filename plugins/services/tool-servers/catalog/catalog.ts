import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SerialQueue } from 'svc-gateway/plugin'
import { request, type Dispatcher } from 'undici'
import { z } from 'zod'
import { mcpError } from '../errors.js'
import type { CatalogItem } from '../ref.js'
import { ofRegistry, readRegistryServer } from '../resolve/manifest.js'
import { shippedCatalog } from './shipped.js'

const PAGE = 100
const MAX_PAGES = 500
const MAX_ITEMS = 20_000
const MAX_PAGE_BYTES = 8 * 1024 * 1024
const STALL_MS = 20_000

const itemSchema: z.ZodType<CatalogItem> = z.object({
  id: z.string(), name: z.string(), author: z.string(), verified: z.boolean(), description: z.string(), category: z.string(),
  spec: z.string(), homepage: z.string().nullable()
})
const pageSchema = z.looseObject({
  servers: z.array(z.unknown()),
  metadata: z.looseObject({ nextCursor: z.string().nullish(), next_cursor: z.string().nullish() }).catch({})
})

export interface CatalogDeps {
  readonly folder: () => string
  /** Base URL of a registry. */
  readonly registry: () => string
  readonly dispatcher: () => Dispatcher
}

/** What can be installed: the release's own list, and what a registry was last seen to have. */
export class Catalog {
  readonly #deps: CatalogDeps
  readonly #turns = new SerialQueue()
  #fetched: Promise<readonly CatalogItem[]> | null = null

  constructor (deps: CatalogDeps) {
    this.#deps = deps
  }

  /** The release's own first. */
  async items (): Promise<readonly CatalogItem[]> {
    this.#fetched ??= this.#read()
    const own = new Set(shippedCatalog.map(({ spec }) => spec))
    return [...shippedCatalog, ...(await this.#fetched).filter(({ spec }) => !own.has(spec))]
  }

  /** Reads the whole registry; what was known before stays when that fails. Resolves with how many there are. */
  refresh (signal: AbortSignal): Promise<number> {
    return this.#turns.run(async () => {
      const items = await this.#download(signal)
      const file = this.#file()
      await writeFile(`${file}.tmp`, JSON.stringify(items), { mode: 0o600 })
      await rename(`${file}.tmp`, file)
      this.#fetched = Promise.resolve(items)
      return items.length
    })
  }

  #file (): string {
    return join(this.#deps.folder(), 'catalog.json')
  }

  async #read (): Promise<readonly CatalogItem[]> {
    try {
      return z.array(itemSchema).parse(JSON.parse(await readFile(this.#file(), 'utf8')))
    } catch {
      return [] // none yet, or damaged: the next refresh writes it anew
    }
  }

  async #download (signal: AbortSignal): Promise<readonly CatalogItem[]> {
    const items = new Map<string, CatalogItem>()
    let cursor: string | null = null
    for (let page = 0; page < MAX_PAGES && items.size < MAX_ITEMS; page++) {
      const { servers, metadata } = await this.#page(cursor, signal)
      for (const row of servers) {
        const item = itemOf(row)
        if (item !== null) items.set(item.id, item)
      }
      const next = metadata.nextCursor ?? metadata.next_cursor ?? ''
      if (next === '' || next === cursor) break
      cursor = next
    }
    return [...items.values()].slice(0, MAX_ITEMS)
  }

  async #page (cursor: string | null, signal: AbortSignal): Promise<z.output<typeof pageSchema>> {
    const registry = this.#deps.registry()
    const url = new URL(`${registry.replace(/\/+$/, '')}/v0/servers`)
    url.searchParams.set('limit', String(PAGE))
    url.searchParams.set('version', 'latest')
    if (cursor !== null) url.searchParams.set('cursor', cursor)
    try {
      const { statusCode, body } = await request(url, {
        dispatcher: this.#deps.dispatcher(), signal, headersTimeout: STALL_MS, bodyTimeout: STALL_MS,
        headers: { 'accept': 'application/json', 'user-agent': 'svc-gateway' }
      })
      if (statusCode !== 200) {
        await body.dump({ limit: MAX_PAGE_BYTES }).catch(() => undefined)
        throw new Error(`it answers HTTP ${statusCode}`)
      }
      return pageSchema.parse(JSON.parse(await textOf(body)))
    } catch (error) {
      signal.throwIfAborted()
      const why = error instanceof z.ZodError || error instanceof SyntaxError ? 'its answer is not a page of a registry' : messageOf(error)
      throw mcpError('mcp.catalog_failed', `the registry at ${url.origin} cannot be read: ${why}; the previous entries stay`, {
        details: { registry: url.origin }, cause: error
      })
    }
  }
}

/** Null for what cannot be installed here, was taken back, or is an older version. Pure. */
function itemOf (row: unknown): CatalogItem | null {
  const wrapped = z.looseObject({ server: z.unknown(), _meta: z.unknown() }).safeParse(row).data
  const server = readRegistryServer(wrapped?.server ?? row)
  const official = officialOf(wrapped?._meta ?? (row as { _meta?: unknown } | null)?._meta)
  if (server === null || official.isLatest === false || (official.status ?? 'active') !== 'active') return null
  const manifest = ofRegistry(server)
  if (manifest === null) return null
  const { websiteUrl, repository } = server as { websiteUrl?: unknown, repository?: { url?: unknown } }
  const homepage = [websiteUrl, repository?.url].find(url => typeof url === 'string' && /^https?:/.test(url)) as string | undefined
  return {
    id: server.name.slice(0, 200),
    name: manifest.name,
    author: server.name.split('/')[0]!,
    verified: false,
    description: manifest.description.slice(0, 500),
    category: manifest.source_kind === 'http' ? 'remote' : 'registry',
    spec: manifest.spec,
    homepage: homepage ?? null
  }
}

const officialSchema = z.looseObject({ status: z.string().optional(), isLatest: z.boolean().optional() }).catch({})

function officialOf (meta: unknown): z.output<typeof officialSchema> {
  return officialSchema.parse((meta as Record<string, unknown> | null | undefined)?.['io.modelcontextprotocol.registry/official'])
}

async function textOf (body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_PAGE_BYTES) throw new Error(`a page is larger than ${MAX_PAGE_BYTES / 1024 / 1024} MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
