import { hfError, type HubFile, type HubRepo } from '../../hub/ref.js'
import { modelError } from '../errors.js'
import type { PullFileKind } from '../ref.js'
import type { PullSource } from './source.js'

export interface ChosenFile {
  readonly file: HubFile
  readonly kind: PullFileKind
}

const SHARD = /^(.+)-(\d{5})-of-(\d{5})(\.[A-Za-z0-9]+)$/
const DEFAULT_QUANT = 'Q4_K_M'
/** A projector is small: the more exact one is worth it. */
const projectorOrder = ['F16', 'BF16', 'Q8_0', 'F32']

/**
 * The files of a repository that make up what is pulled: all parts of a split model in order, then the projector. Throws
 * `model.invalid_source` when that is not one model, `hf.file_not_found` when it is not there. Pure.
 */
export function chooseFiles (source: PullSource, repo: HubRepo): readonly ChosenFile[] {
  const path = source.file ?? defaultFile(source, repo)
  const model = partPaths(path).map(part => ({ file: fileOf(repo, part), kind: 'model' as const }))
  const projector = source.mmproj ?? (source.capabilities.includes('vision') ? bestProjector(repo, path) : null)
  return projector === null ? model : [...model, { file: fileOf(repo, projector), kind: 'mmproj' }]
}

function fileOf (repo: HubRepo, path: string): HubFile {
  const file = repo.files.find(candidate => candidate.path === path)
  if (file !== undefined) return file
  throw hfError('hf.file_not_found', `${repo.id} has no file ${path}; POST /api/models/inspect lists what it has`,
    { param: 'hf_filename', details: { repo: repo.id, path } })
}

/** Every part of the split model that a file belongs to. */
function partPaths (path: string): readonly string[] {
  const match = SHARD.exec(path)
  if (match === null) return [path]
  const [, stem, , parts, extension] = match
  return Array.from({ length: Number(parts) }, (_, i) => `${stem!}-${String(i + 1).padStart(5, '0')}-of-${parts!}${extension!}`)
}

function defaultFile ({ quant, modelId }: PullSource, repo: HubRepo): string {
  const models = repo.files.map(({ path }) => path).filter(path => /\.gguf$/i.test(path) && !isProjector(path) && isFirst(path)).sort()
  const wanted = models.filter(path => hasQuant(path, quant ?? DEFAULT_QUANT))
  if (wanted.length === 1) return wanted[0]!
  if (quant === null && models.length === 1) return models[0]!
  const why = models.length === 0 ? 'no GGUF file' : quant !== null && wanted.length === 0 ? `no ${quant}` : 'more than one model'
  throw modelError('model.invalid_source', `${repo.id} has ${why}${models.length === 0 ? '' : `; name one of its files as hf_filename: ${models.slice(0, 30).join(', ')}`}`,
    { param: 'hf_filename', details: { model: modelId, repo: repo.id, files: models } })
}

/** A projector in the model's own folder of the repository, else anywhere in it. */
function bestProjector (repo: HubRepo, modelPath: string): string | null {
  const all = repo.files.map(({ path }) => path).filter(path => /\.gguf$/i.test(path) && isProjector(path))
  const beside = all.filter(path => folderOf(path) === folderOf(modelPath))
  const found = beside.length > 0 ? beside : all
  return projectorOrder.flatMap(quant => found.filter(path => hasQuant(path, quant)))[0] ?? found[0] ?? null
}

function hasQuant (path: string, quant: string): boolean {
  const escaped = quant.replace(/[^A-Za-z0-9_]/g, '\\$&')
  return new RegExp(`(^|[-._/])${escaped}(?=[-._]|$)`, 'i').test(path)
}

function isProjector (path: string): boolean {
  return /(^|[^a-z0-9])mmproj([^a-z0-9]|$)/i.test(path.slice(path.lastIndexOf('/') + 1))
}

function isFirst (path: string): boolean {
  const match = SHARD.exec(path)
  return match === null || Number(match[2]) === 1
}

function folderOf (path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
