import { createServiceRef } from 'svc-gateway/plugin'

export { outwardConnections } from './connections.js'
export { hfError } from './errors.js'

/** A file of a repository at one commit. Sizes in bytes, hashes in hex. */
export interface HubFile {
  /** With slashes, relative to the repository's root. */
  readonly path: string
  readonly size: number
  /** Of the content; null for small files that are not kept as large objects. */
  readonly sha256: string | null
  /** Git's id of a small file: SHA-1 over `blob <size>\0` and the content. Null for large objects. */
  readonly gitSha1: string | null
}

export interface HubRepo {
  readonly id: string
  /** Full commit id that `files` belong to, so that a later request gets the same bytes. */
  readonly commit: string
  /** Whether its licence has to be accepted first, by a click or by its owner. */
  readonly gated: boolean
  readonly license: string | null
  readonly tags: readonly string[]
  readonly files: readonly HubFile[]
}

export interface HubFileRef {
  readonly repo: string
  readonly commit: string
  readonly path: string
}

/** What the hub says about a file before any of it is sent. */
export interface HubFileHead {
  /** Null when the hub does not say. */
  readonly size: number | null
  readonly sha256: string | null
}

export interface HubDownload {
  /** Where the bytes begin: what was asked for, or 0 when the server sends the whole file instead. */
  readonly from: number
  /** Size of the whole file by the one who sends it; null when it does not say. */
  readonly size: number | null
  /** Names this content at the one who sends it, for the next `If-Range`; null when it is weak or missing. */
  readonly etag: string | null
  readonly body: AsyncIterable<Buffer>
}

export interface HubSearchRow {
  readonly id: string
  readonly downloads: number
  readonly likes: number
  readonly gated: boolean
  readonly pipeline_tag: string | null
  readonly library: string | null
  readonly last_modified: string | null
}

export interface OpenOptions {
  readonly from: number
  /** Of the bytes that are there already: other content is then sent from its beginning. */
  readonly etag: string | null
  readonly stallMs: number
  readonly signal: AbortSignal
}

export interface SearchOptions {
  readonly limit: number
  /** `gguf`, or a task of the hub. */
  readonly type?: string
  readonly signal: AbortSignal
}

/**
 * The model hub at HF_ENDPOINT. The token (HF_TOKEN, else HUGGING_FACE_HUB_TOKEN) goes to that origin and to no other,
 * whatever redirects say. Every call honours its signal and rejects with `hf.bad_request` (what was asked for cannot
 * exist), `hf.repo_not_found`, `hf.file_not_found`, `hf.gated`, `hf.token_rejected`, `hf.rate_limited` (with
 * `details.retry_after_s` when the hub gave a time), `hf.unreachable` or `hf.upstream_error`.
 */
export interface HubClient {
  readonly endpoint: string
  readonly hasToken: boolean
  /** The repository, and perhaps the file, that an address leads to; null for an address of another site. Pure. */
  locate (url: string): { readonly repo: string, readonly path: string | null } | null
  /** A repository with all its files. `revision` is a branch, tag or commit; default `main`. */
  repo (id: string, options: { readonly revision?: string, readonly signal: AbortSignal }): Promise<HubRepo>
  /** README.md without its front matter; null when there is none. At most 64 KiB of it. */
  readme (repo: string, signal: AbortSignal): Promise<string | null>
  /** Asks whether the file may be had, without getting it. */
  head (file: HubFileRef, signal: AbortSignal): Promise<HubFileHead>
  /**
   * Opens a file at a byte. The body must be read to its end or left; it fails when the server breaks off or stays
   * silent for longer than `stallMs`.
   */
  open (file: HubFileRef, options: OpenOptions): Promise<HubDownload>
  search (query: string, options: SearchOptions): Promise<readonly HubSearchRow[]>
}

export const hubRef = createServiceRef<HubClient>('hub.client')
