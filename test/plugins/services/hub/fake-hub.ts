import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface RepoOptions {
  readonly files?: Readonly<Record<string, Buffer | string>>
  readonly gated?: false | 'auto' | 'manual'
  readonly isPrivate?: boolean
  readonly license?: string
  readonly tags?: readonly string[]
}

interface StoredFile {
  readonly path: string
  readonly bytes: Buffer
  readonly sha256: string
  readonly gitSha1: string
  /** Large objects lie in the storage, small files in the repository itself. */
  readonly isLarge: boolean
}

interface Repo extends Required<RepoOptions> {
  readonly id: string
  readonly commit: string
  readonly stored: ReadonlyMap<string, StoredFile>
}

/** What the hub or its storage does instead of its duty, for one matching request after the other. */
export type Fault =
  | { readonly kind: 'status', readonly status: number, readonly headers?: Readonly<Record<string, string>>, readonly body?: string }
  /** Breaks the connection after that many bytes of this answer. */
  | { readonly kind: 'cut', readonly after: number }
  /** Stays silent after that many bytes of this answer, until the client leaves. */
  | { readonly kind: 'stall', readonly after: number }
  /** Sends what was not asked for: the whole file, whatever the range. */
  | { readonly kind: 'no-range' }
  /** Other bytes of the same length. */
  | { readonly kind: 'corrupt' }
  /** Says that the file has another size, in every header, and sends that much. */
  | { readonly kind: 'size', readonly delta: number }
  | { readonly kind: 'redirect', readonly to: string, readonly status?: number }

export interface SeenRequest {
  readonly host: 'hub' | 'cdn'
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

interface Rule {
  readonly host: 'hub' | 'cdn'
  readonly path: string | RegExp
  readonly method: string | null
  readonly fault: Fault
  times: number
}

const SMALL = 1024
const PAGE = 3

/**
 * A model hub and, on another address, the storage that it redirects to, with the routes, headers and refusals of the
 * real one. Signed addresses of the storage are good once; the storage refuses a caller that brings the hub's token.
 */
export class FakeHub {
  readonly seen: SeenRequest[] = []
  /** Violations of the protocol that a real hub would not tell about. */
  readonly complaints: string[] = []
  /** Tokens of accounts that have access to everything. */
  readonly tokens = new Set(['hf_good'])
  /** Bytes of a chunk, and the pause between two of them. */
  pace: { readonly chunk: number, readonly ms: number } = { chunk: 64 * 1024, ms: 0 }
  readonly #repos = new Map<string, Repo>()
  readonly #signed = new Map<string, StoredFile>()
  readonly #served = new Map<string, number>()
  readonly #rules: Rule[] = []
  readonly #hub: Server
  readonly #cdn: Server
  #waiters: Array<() => void> = []

  private constructor () {
    this.#hub = createServer((request, response) => { void this.#serve('hub', request, response) })
    this.#cdn = createServer((request, response) => { void this.#serve('cdn', request, response) })
  }

  static async start (t: Pick<Test, 'teardown'>, host = '127.0.0.1'): Promise<FakeHub> {
    const fake = new FakeHub()
    for (const server of [fake.#hub, fake.#cdn]) {
      server.listen(0, host)
      await once(server, 'listening')
    }
    t.teardown(() => fake.close())
    return fake
  }

  get url (): string { return urlOf(this.#hub) }
  get cdnUrl (): string { return urlOf(this.#cdn) }

  async close (): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections()
      await new Promise(resolve => { server.close(resolve) })
    }
  }

  add (id: string, options: RepoOptions = {}): void {
    const { files = {}, gated = false, isPrivate = false, license = 'mit', tags = ['gguf'] } = options
    const stored = new Map(Object.entries(files).map(([path, content]) => [path, storedFile(path, Buffer.from(content))]))
    const commit = createHash('sha1').update(id).update([...stored.values()].map(file => file.sha256).join()).digest('hex')
    this.#repos.set(id, { id, files, gated, isPrivate, license, tags, commit, stored })
  }

  sha256 (id: string, path: string): string {
    return this.#repos.get(id)!.stored.get(path)!.sha256
  }

  /** For the next matching requests. A path as text must be within the request's path. */
  fail (host: 'hub' | 'cdn', path: string | RegExp, fault: Fault, times = 1, method: string | null = null): void {
    this.#rules.push({ host, path, fault, times, method })
  }

  /** Bytes of bodies of a file that were handed to the network, all requests together. */
  served (path: string): number {
    return this.#served.get(path) ?? 0
  }

  get servedInTotal (): number {
    return [...this.#served.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Resolves when so many bytes of a file were served. */
  async reaches (path: string, bytes: number): Promise<void> {
    while (this.served(path) < bytes) await new Promise<void>(resolve => { this.#waiters.push(resolve) })
  }

  /** Resolves with the next request that fits. */
  async request (host: 'hub' | 'cdn', path: string | RegExp, from = 0): Promise<SeenRequest> {
    for (;;) {
      const found = this.seen.slice(from).find(seen => seen.host === host && fits(path, seen.path))
      if (found !== undefined) return found
      await new Promise<void>(resolve => { this.#waiters.push(resolve) })
    }
  }

  requests (host: 'hub' | 'cdn', path: string | RegExp, method?: string): SeenRequest[] {
    return this.seen.filter(seen =>
      seen.host === host && fits(path, seen.path) && (method === undefined || seen.method === method))
  }

  #wake (): void {
    for (const wake of this.#waiters.splice(0)) wake()
  }

  async #serve (host: 'hub' | 'cdn', request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', urlOf(this.#hub))
    const path = decodeURIComponent(url.pathname)
    this.seen.push({ host, method: request.method ?? '', path: `${path}${url.search}`, headers: request.headers })
    this.#wake()
    const fault = this.#fault(host, request.method ?? '', path)
    if (fault?.kind === 'status') return refuse(response, fault.status, fault.body ?? 'no', fault.headers)
    if (fault?.kind === 'redirect') {
      response.writeHead(fault.status ?? 302, { location: fault.to }).end()
      return
    }
    if (host === 'cdn') return await this.#storage(url, request, response, fault)
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? null
    if (token !== null && !this.tokens.has(token)) return refuse(response, 401, 'Invalid credentials in Authorization header')
    if (path === '/api/models') return this.#search(url, response)
    const api = /^\/api\/models\/([^/]+\/[^/]+)(?:\/(revision|tree)\/([^/]+))?$/.exec(path)
    if (api !== null) return this.#api(api[1]!, api[2] ?? 'revision', api[3] ?? 'main', url, token, response)
    const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path)
    if (resolve !== null) return await this.#resolve(resolve[1]!, resolve[2]!, resolve[3]!, token, request, response, fault)
    refuse(response, 404, 'Sorry, we can\'t find the page you are looking for.')
  }

  #fault (host: 'hub' | 'cdn', method: string, path: string): Fault | null {
    const rule = this.#rules.find(candidate => candidate.host === host && candidate.times > 0 && fits(candidate.path, path) &&
      (candidate.method === null || candidate.method === method))
    if (rule === undefined) return null
    rule.times--
    return rule.fault
  }

  #repo (id: string, token: string | null, response: ServerResponse): Repo | null {
    const repo = this.#repos.get(id)
    if (repo !== undefined && (!repo.isPrivate || token !== null)) return repo
    refuse(response, token === null ? 401 : 404, 'Repository not found', { 'x-error-code': 'RepoNotFound', 'x-error-message': 'Repository not found' })
    return null
  }

  #api (id: string, kind: string, revision: string, url: URL, token: string | null, response: ServerResponse): void {
    const repo = this.#repo(id, token, response)
    if (repo === null) return
    if (revision !== 'main' && revision !== repo.commit) {
      return refuse(response, 404, `Invalid rev id: ${revision}`, { 'x-error-code': 'RevisionNotFound' })
    }
    const { commit, gated, isPrivate, tags, license, stored } = repo
    if (kind === 'revision') {
      return json(response, {
        _id: '1', id, modelId: id, sha: commit, private: isPrivate, gated, disabled: false, tags: [...tags, `license:${license}`],
        downloads: 7, likes: 3, cardData: { license }, siblings: [...stored.keys()].map(rfilename => ({ rfilename }))
      })
    }
    const from = Number(url.searchParams.get('cursor') ?? '0')
    const rows = [...stored.values()].slice(from, from + PAGE).map(file => ({
      type: 'file', oid: file.gitSha1, size: file.bytes.length, path: file.path,
      ...(file.isLarge ? { lfs: { oid: file.sha256, size: file.bytes.length, pointerSize: 134 } } : {})
    }))
    const next = `${this.url}/api/models/${id}/tree/${revision}?recursive=true&cursor=${from + PAGE}`
    const folders = from === 0 ? [{ type: 'directory', oid: 'a'.repeat(40), size: 0, path: 'folder' }] : []
    json(response, [...folders, ...rows], from + PAGE < stored.size ? { link: `<${next}>; rel="next"` } : {})
  }

  #search (url: URL, response: ServerResponse): void {
    const wanted = (url.searchParams.get('search') ?? '').toLowerCase()
    const rows = [...this.#repos.values()].filter(repo => repo.id.toLowerCase().includes(wanted) && !repo.isPrivate)
    json(response, rows.slice(0, Number(url.searchParams.get('limit') ?? '20')).map(({ id, gated }) => ({
      _id: '1', id, likes: 3, downloads: 7, gated, tags: [], pipeline_tag: 'text-generation', library_name: 'gguf', lastModified: '2026-01-01T00:00:00.000Z'
    })))
  }

  async #resolve (
    id: string, revision: string, path: string, token: string | null, request: IncomingMessage, response: ServerResponse,
    fault: Fault | null
  ): Promise<void> {
    const repo = this.#repo(id, token, response)
    if (repo === null) return
    if (revision !== 'main' && revision !== repo.commit) return refuse(response, 404, 'no such revision', { 'x-error-code': 'RevisionNotFound' })
    if (repo.gated !== false && token === null) {
      return refuse(response, 401, 'Access to model is restricted.', { 'x-error-code': 'GatedRepo', 'x-error-message': 'Access to model is restricted.' })
    }
    const file = repo.stored.get(path)
    if (file === undefined) return refuse(response, 404, 'Entry not found', { 'x-error-code': 'EntryNotFound' })
    if (!file.isLarge) return await this.#send(file, `"${file.gitSha1}"`, request, response, fault)
    const size = file.bytes.length + (fault?.kind === 'size' ? fault.delta : 0)
    const key = randomUUID()
    this.#signed.set(key, file)
    response.writeHead(302, {
      'location': `${this.cdnUrl}/blob/${encodeURIComponent(path)}?X-Amz-Signature=${key}`,
      'x-repo-commit': repo.commit,
      'x-linked-size': String(size),
      'x-linked-etag': `"${file.sha256}"`,
      'etag': `"${file.sha256}"`,
      'accept-ranges': 'bytes'
    }).end()
  }

  async #storage (url: URL, request: IncomingMessage, response: ServerResponse, fault: Fault | null): Promise<void> {
    if (request.headers.authorization !== undefined) {
      this.complaints.push(`the storage got the header authorization: ${request.headers.authorization}`)
      return refuse(response, 400, 'Only one auth mechanism allowed')
    }
    const key = url.searchParams.get('X-Amz-Signature') ?? ''
    const file = this.#signed.get(key)
    this.#signed.delete(key)
    if (file === undefined) return refuse(response, 403, 'Request has expired')
    await this.#send(file, `"cdn-${file.sha256.slice(0, 16)}"`, request, response, fault)
  }

  async #send (
    file: StoredFile, etag: string, request: IncomingMessage, response: ServerResponse, fault: Fault | null
  ): Promise<void> {
    const { headers } = request
    const delta = fault?.kind === 'size' ? fault.delta : 0
    const { bytes } = file
    const content = delta > 0 ? Buffer.concat([bytes, Buffer.alloc(delta)]) : bytes.subarray(0, bytes.length + delta)
    const match = /^bytes=(\d+)-$/.exec(headers.range ?? '')
    const changed = headers['if-range'] !== undefined && headers['if-range'] !== etag
    const from = match === null || changed || fault?.kind === 'no-range' ? 0 : Number(match[1])
    if (from >= content.length && from > 0) return refuse(response, 416, '', { 'content-range': `bytes */${content.length}` })
    response.writeHead(from === 0 ? 200 : 206, {
      'accept-ranges': 'bytes',
      etag,
      'content-type': 'application/octet-stream',
      'content-length': content.length - from,
      ...(from === 0 ? {} : { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` })
    })
    if (request.method === 'HEAD') {
      response.end()
      return
    }
    await this.#body(file.path, fault?.kind === 'corrupt' ? Buffer.from(content.map(byte => byte ^ 1)) : content, from, response, fault)
  }

  async #body (path: string, content: Buffer, from: number, response: ServerResponse, fault: Fault | null): Promise<void> {
    const end = fault?.kind === 'cut' || fault?.kind === 'stall' ? Math.min(content.length, from + fault.after) : content.length
    let gone = false
    response.once('close', () => { gone = true })
    for (let at = from; at < end && !gone;) {
      const chunk = content.subarray(at, Math.min(end, at + this.pace.chunk))
      at += chunk.length
      // it counts when the network has taken it: what waits in a buffer for a reader that left was never served
      await new Promise<void>(resolve => {
        response.once('close', resolve)
        response.write(chunk, error => {
          response.off('close', resolve)
          if (error == null) this.#served.set(path, this.served(path) + chunk.length)
          this.#wake()
          resolve()
        })
      })
      if (this.pace.ms > 0) await new Promise(resolve => { setTimeout(resolve, this.pace.ms) })
    }
    if (gone) return
    if (fault?.kind === 'cut') response.destroy()
    else if (fault?.kind !== 'stall') response.end()
  }
}

/** Bytes that tell where they belong, so that a piece in the wrong place does not go unseen. */
export function patternBytes (size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size)
  let state = seed >>> 0
  for (let i = 0; i + 4 <= size; i += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes.writeUInt32LE(state, i)
  }
  return bytes
}

export function sha256Of (bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function storedFile (path: string, bytes: Buffer): StoredFile {
  const gitSha1 = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
  return { path, bytes, sha256: sha256Of(bytes), gitSha1, isLarge: bytes.length > SMALL }
}

function fits (pattern: string | RegExp, path: string): boolean {
  return typeof pattern === 'string' ? path.includes(pattern) : pattern.test(path)
}

function refuse (
  response: ServerResponse, status: number, message: string, headers: Readonly<Record<string, string>> = {}
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error: message }))
}

function json (response: ServerResponse, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...headers }).end(JSON.stringify(value))
}

function urlOf (server: Server): string {
  const { address, port } = server.address() as AddressInfo
  return `http://${address}:${port}`
}
