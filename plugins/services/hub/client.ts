import { type Clock } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { hfError } from './errors.js'
import { escapedPath, repoOfUrl, requireRepoId, requireRevision } from './names.js'
import type { HubClient, HubDownload, HubFile, HubFileRef } from './ref.js'
import { repoSchema, searchSchema, treeSchema } from './schemas.js'
import { beginning, HubTransport, readText, type HubAnswer, type HubSettings } from './transport.js'

const ASK_MS = 15_000
const SEARCH_MS = 5_000
const MAX_JSON_BYTES = 32 * 1024 * 1024
const MAX_README_BYTES = 64 * 1024
/** A repository with more files than this is no place for models. */
const MAX_FILES = 20_000

export interface HubClientOptions {
  readonly clock: Clock
  /** Asked at every call: a token that was just set counts at once. */
  readonly settings: () => HubSettings
  /** A variable of api.env or the environment: for proxies. */
  readonly setting: (name: string) => string | undefined
}

interface Page<S extends z.ZodType> { readonly value: z.output<S>, readonly answer: HubAnswer }

export type ClosableHubClient = HubClient & { close (): Promise<void> }

/** The hub's HTTP API, as its own clients use it. */
export function createHubClient ({ clock, settings, setting }: HubClientOptions): ClosableHubClient {
  const transport = new HubTransport(settings, clock, setting)

  async function json<S extends z.ZodType> (
    url: string, schema: S, repo: string | null, signal: AbortSignal, stallMs = ASK_MS
  ): Promise<Page<S>> {
    const answer = await transport.call({ method: 'GET', url, signal, stallMs, repo, path: null })
    const checked = schema.safeParse(parsed(await readText(answer, MAX_JSON_BYTES).catch(error => { throw odd(url, error) })))
    if (!checked.success) throw odd(url, checked.error)
    return { value: checked.data, answer }
  }

  function odd (url: string, cause: unknown): Error {
    return hfError('hf.upstream_error', `${settings().endpoint} answers ${url.split('?', 1)[0]!} unlike the API of the hub; check HF_ENDPOINT`, { cause })
  }

  async function tree (repo: string, commit: string, signal: AbortSignal): Promise<readonly HubFile[]> {
    const files: HubFile[] = []
    let url: string | null = `/api/models/${repo}/tree/${commit}?recursive=true`
    while (url !== null) {
      const { value, answer }: Page<typeof treeSchema> = await json(url, treeSchema, repo, signal)
      files.push(...value.filter(({ type }) => type === 'file').map(fileOf))
      if (files.length > MAX_FILES) throw hfError('hf.bad_request', `${repo} has more than ${MAX_FILES} files`, { param: 'hf_repo' })
      url = nextPage(answer)
    }
    return files
  }

  return {
    get endpoint () { return settings().endpoint },
    get hasToken () { return settings().token !== null },
    close: () => transport.close(),
    locate: url => repoOfUrl(url, settings().endpoint),

    async repo (id, { revision = 'main', signal }) {
      const repo = requireRepoId(id)
      const { value } = await json(`/api/models/${repo}/revision/${encodeURIComponent(requireRevision(revision))}`, repoSchema, repo, signal)
      const { sha: commit, gated, tags, cardData } = value
      const license = cardData?.license ?? tags.find(tag => tag.startsWith('license:'))?.slice('license:'.length) ?? null
      return { id: value.id, commit, gated, license, tags, files: await tree(value.id, commit, signal) }
    },

    async readme (id, signal) {
      const repo = requireRepoId(id)
      const url = `/${repo}/resolve/main/README.md`
      const answer = await transport.call({ method: 'GET', url, signal, stallMs: ASK_MS, repo, path: 'README.md', accept: [404] })
      const text = await beginning(answer, MAX_README_BYTES)
      return answer.statusCode === 404 ? null : text.replace(/^\uFEFF?---\r?\n[^]*?\r?\n---\r?\n/, '').trim()
    },

    async head (file, signal) {
      const linked = { size: null as number | null, sha256: null as string | null }
      await transport.call({
        ...callOf(file), method: 'HEAD', signal, stallMs: ASK_MS, onRedirect: answer => {
          linked.size = numberIn(answer, 'x-linked-size')
          linked.sha256 = sha256In(answer)
          // within the hub it is another name of the repository; to elsewhere, it is the file
          return linked.size !== null || linked.sha256 !== null
        }
      })
      return linked
    },

    async open (file, { from, etag, stallMs, signal }): Promise<HubDownload> {
      const range = from === 0 ? {} : { range: `bytes=${from}-`, ...(etag === null ? {} : { 'if-range': etag }) }
      const answer = await transport.call({ ...callOf(file), method: 'GET', signal, stallMs, headers: range, accept: [416] })
      const { statusCode: status, headers, body } = answer
      const strong = typeof headers.etag === 'string' && !headers.etag.startsWith('W/') ? headers.etag : null
      if (status === 416) {
        await body.dump({ limit: 4096 }).catch(() => undefined)
        throw hfError('hf.upstream_error', `the storage behind ${settings().endpoint} has nothing at byte ${from} of ${file.path}`, { details: { status } })
      }
      const sent = status === 206 ? contentRange(headers['content-range']) : null
      return { from: sent?.from ?? 0, size: sent === null ? numberIn(answer, 'content-length') : sent.size, etag: strong, body }
    },

    async search (query, { limit, type, signal }) {
      const parameters = new URLSearchParams({ search: query, limit: String(limit), sort: 'downloads', direction: '-1', full: 'true' })
      if (type !== undefined) parameters.set(type === 'gguf' ? 'filter' : 'pipeline_tag', type)
      const { value } = await json(`/api/models?${parameters.toString()}`, searchSchema, null, signal, SEARCH_MS)
      return value.slice(0, limit).map(row => ({
        id: row.id,
        downloads: row.downloads,
        likes: row.likes,
        gated: row.gated,
        pipeline_tag: row.pipeline_tag ?? null,
        library: row.library_name ?? null,
        last_modified: row.lastModified ?? null
      }))
    }
  }
}

function callOf ({ repo, commit, path }: HubFileRef): { readonly url: string, readonly repo: string, readonly path: string } {
  return { url: `/${requireRepoId(repo)}/resolve/${requireRevision(commit)}/${escapedPath(path)}`, repo, path }
}

function fileOf ({ path, size, oid, lfs }: z.output<typeof treeSchema>[number]): HubFile {
  const sha256 = lfs?.oid.replace(/^sha256:/, '').toLowerCase() ?? null
  return {
    path,
    size: lfs?.size ?? size,
    sha256: sha256 !== null && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : null,
    gitSha1: lfs == null && /^[0-9a-f]{40}$/.test(oid) ? oid : null
  }
}

/** The hub's pages are linked as RFC 8288 says. */
function nextPage ({ headers }: HubAnswer): string | null {
  const link = typeof headers.link === 'string' ? headers.link : ''
  return /<([^<>]+)>\s*;\s*rel="?next"?/.exec(link)?.[1] ?? null
}

function numberIn ({ headers }: HubAnswer, name: string): number | null {
  const value = headers[name]
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null
}

function sha256In ({ headers }: HubAnswer): string | null {
  const value = headers['x-linked-etag']
  const hex = typeof value === 'string' ? value.replace(/^W\/|"/g, '').toLowerCase() : ''
  return /^[0-9a-f]{64}$/.test(hex) ? hex : null
}

function contentRange (value: string | string[] | undefined): { readonly from: number, readonly size: number | null } | null {
  const match = typeof value === 'string' ? /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(value) : null
  return match === null ? null : { from: Number(match[1]), size: match[2] === '*' ? null : Number(match[2]) }
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
