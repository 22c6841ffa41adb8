import { type Model, type ModelCapability } from 'svc-gateway/plugin'
import type { CuratedModel } from '../../library/ref.js'
import { modelError } from '../errors.js'
import type { PullRequest } from '../ref.js'

/** Where a model comes from, before the hub was asked. */
export interface PullSource {
  readonly modelId: string
  readonly repo: string
  /** Null leaves the choice to `quant`, or to what the repository has. */
  readonly file: string | null
  readonly quant: string | null
  readonly revision: string
  readonly mmproj: string | null
  /** Folder of the grouped layout; null for the flat one. */
  readonly capability: ModelCapability | null
  /** Folder below the image engine's models; empty for all others. */
  readonly imageFolder: string
  /** What the caller or the catalogue says it can do; the header tells the rest. */
  readonly capabilities: readonly ModelCapability[]
  readonly tags: readonly string[]
  readonly name: string
  readonly license: string
  /** For the event of its registration. */
  readonly origin: 'add-by-hf' | 'registry' | 'curated'
}

const REPO_ID = /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?::([\w.-]+))?$/

/** Whether the request, the registry row or the curated entry of that id says that it comes from the hub. Pure. */
export function isOfHub (request: PullRequest, row: Model | undefined, curated: CuratedModel | undefined): boolean {
  return (request.hf_repo ?? '') !== '' || (row !== undefined && row.hf_repo !== '') || curated !== undefined
}

/**
 * What the request says, else the registry row, else the curated entry of that id, else the id itself where it names a
 * repository of the hub (`owner/name` or `owner/name:Q4_K_M`). Throws `model.invalid_source`. Pure.
 */
export function sourceOf (request: PullRequest, row: Model | undefined, curated: CuratedModel | undefined): PullSource {
  const { model_id: modelId, hf_repo: repo, hf_filename: file, revision = 'main', mmproj_filename: mmproj = null } = request
  const common = { modelId, revision, quant: null, imageFolder: '', tags: [], name: '', license: '' }
  const asked = { capability: request.capability ?? null, capabilities: request.capabilities ?? [] }
  if (repo !== undefined && repo !== '') {
    return { ...common, ...asked, repo, file: orNull(file), mmproj, tags: ['user-added'], origin: 'add-by-hf' }
  }
  if (row !== undefined && row.hf_repo !== '') {
    return { ...common, ...asked, repo: row.hf_repo, file: orNull(file) ?? orNull(row.hf_filename), mmproj, origin: 'registry' }
  }
  if (curated !== undefined) return fromCurated(request, curated)
  const [, hubRepo, quant = null] = REPO_ID.exec(modelId) ?? []
  if (hubRepo !== undefined) return { ...common, ...asked, repo: hubRepo, quant, file: orNull(file), mmproj, tags: ['user-added'], origin: 'add-by-hf' }
  throw modelError('model.invalid_source',
    `no source is known for '${modelId}': name a repository with hf_repo and hf_filename, or pick a model of GET /api/models/catalogue`,
    { param: 'hf_repo', details: { model: modelId } })
}

function fromCurated (request: PullRequest, curated: CuratedModel): PullSource {
  const { capability } = curated
  return {
    modelId: request.model_id,
    repo: curated.hf_repo,
    file: orNull(request.hf_filename) ?? curated.hf_file,
    quant: null,
    revision: request.revision ?? 'main',
    mmproj: request.mmproj_filename ?? orNull(curated.mmproj_file),
    capability: request.capability ?? (capability === 'vision' ? 'chat' : capability),
    imageFolder: curated.comfyui_subdir,
    capabilities: request.capabilities ?? (capability === 'vision' ? ['chat', 'vision'] : [capability]),
    tags: ['curated', ...curated.tags],
    name: curated.display_name,
    license: curated.license,
    origin: 'curated'
  }
}

function orNull (text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text
}
