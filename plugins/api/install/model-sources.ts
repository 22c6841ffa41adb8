import { stat } from 'node:fs/promises'
import type { Model, ModelCapability } from 'svc-gateway/plugin'
import type { CuratedModel } from '../../services/library/ref.js'
import type { PullRequest } from '../../services/pull/ref.js'
import type { BundleModel } from './tiers.js'

/** A model that a slot may be made for. */
export interface InstallModel {
  readonly id: string
  readonly sizeBytes: number
  /** Tokens; 0 if unknown. */
  readonly contextLength: number
  /** Runtimes that run it, as registry rows name them; empty is any. */
  readonly runtimes: readonly string[]
  /** Name or path of its file. */
  readonly file: string
  /** Its file is here. */
  readonly installed: boolean
  /** How to get it. */
  readonly request: PullRequest
}

/** Unknown ids are left out. */
export type ModelIndex = ReadonlyMap<string, InstallModel>

export interface KnownModels {
  readonly registered: readonly Model[]
  readonly curated: readonly CuratedModel[]
  /** Of the manifests of tiers. */
  readonly bundled: readonly BundleModel[]
}

/** What is known under each id: a registered model whose file is there, else the manifest's, else the curated one. */
export async function indexModels (ids: Iterable<string>, { registered, curated, bundled }: KnownModels): Promise<ModelIndex> {
  const index = new Map<string, InstallModel>()
  for (const id of new Set(ids)) {
    const row = registered.find(model => model.id === id)
    const own = bundled.find(model => model.id === id)
    const known = curated.find(model => model.id === id)
    const isHere = row !== undefined && await isFile(row.path)
    if (row !== undefined && (isHere || (own === undefined && known === undefined))) index.set(id, fromRow(row, isHere))
    else if (own !== undefined) index.set(id, fromBundle(own))
    else if (known !== undefined) index.set(id, fromCurated(known))
  }
  return index
}

function fromRow (row: Model, installed: boolean): InstallModel {
  const length = row.metadata.context_length
  return {
    id: row.id,
    sizeBytes: row.size_bytes,
    contextLength: typeof length === 'number' ? length : row.defaults.context_size ?? 0,
    runtimes: row.backends,
    file: row.path,
    installed,
    request: { model_id: row.id }
  }
}

function fromCurated (model: CuratedModel): InstallModel {
  return {
    id: model.id,
    sizeBytes: bytesOf(model.size_gb),
    contextLength: model.context_length,
    runtimes: model.backend === '' ? [] : [model.backend],
    file: model.hf_file,
    installed: false,
    request: { model_id: model.id }
  }
}

function fromBundle (model: BundleModel): InstallModel {
  const capabilities: ModelCapability[] = model.capability === 'vision' ? ['chat', 'vision'] : [model.capability]
  return {
    id: model.id,
    sizeBytes: bytesOf(model.size_gb),
    contextLength: model.context_length,
    runtimes: [],
    file: model.hf_file,
    installed: false,
    request: {
      model_id: model.id,
      hf_repo: model.hf_repo,
      hf_filename: model.hf_file,
      capabilities,
      capability: model.capability === 'vision' ? 'chat' : model.capability,
      ...(model.mmproj_file === '' ? {} : { mmproj_filename: model.mmproj_file })
    }
  }
}

function bytesOf (gigabytes: number): number {
  return Math.round(gigabytes * 1e9)
}

async function isFile (path: string): Promise<boolean> {
  return await stat(path).then(stats => stats.isFile(), () => false)
}
