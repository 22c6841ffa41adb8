import { join } from 'node:path'
import { messageOf, type Logger, type Model, type ModelCapability, type ModelRegistry, type NewModelRow } from 'svc-gateway/plugin'
import type { ModelLibrary, ModelSuggestion } from '../../library/ref.js'
import type { HubRecord } from '../record.js'

export interface RegisterDeps {
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly log: Logger
}

/** Registers a model whose files are complete, with what its header tells; what an operator wrote into its row before stays. */
export async function registerPulled (
  { library, models, log }: RegisterDeps, modelId: string, record: HubRecord, signal: AbortSignal
): Promise<void> {
  const path = record.files[0]!.dest
  // weights without a header that we can read are weights anyway
  const seen = await library.describe(path, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    log.warn({ model: modelId, path, err: error }, `the header of a pulled file cannot be read: ${messageOf(error)}`)
    return null
  })
  if (seen !== null && seen.problem !== null) log.warn({ model: modelId, path }, `a pulled file is suspect: ${seen.problem}`)
  await library.register(modelId, pulledRow(record, seen, models.get(modelId)), { source: record.origin, overwrite: true })
}

/** Pure. */
export function pulledRow (record: HubRecord, seen: ModelSuggestion | null, before: Model | undefined): NewModelRow {
  const { files, repo, tags, capabilities, name, license } = record
  const projector = files.find(file => file.kind === 'mmproj')?.dest ?? seen?.row.mmproj ?? null
  const found = seen?.row ?? { path: files[0]!.dest }
  const able = capabilities.length > 0 ? capabilities : withVision(found.capabilities ?? [], projector)
  return {
    ...found,
    path: files[0]!.dest,
    size_bytes: files.filter(file => file.kind === 'model').reduce((sum, file) => sum + file.size, 0),
    name: kept(before?.name, name !== '' ? name : found.name ?? ''),
    license: kept(before?.license === 'unknown' ? '' : before?.license, license !== '' ? license : found.license ?? ''),
    capabilities: keptList(before?.capabilities, able),
    tags: [...new Set([...before?.tags ?? [], ...tags, ...found.tags ?? []])],
    backends: keptList(before?.backends, found.backends ?? []),
    hf_repo: repo,
    hf_filename: files[0]!.hf_filename,
    ...(projector === null ? {} : { mmproj: projector }),
    ...(before === undefined ? {} : { defaults: before.defaults }),
    metadata: {
      ...before?.metadata,
      ...found.metadata,
      revision: record.commit,
      ...(files[0]!.sha256 === null ? {} : { sha256: files[0]!.checked })
    }
  }
}

/** `meta.json` in a folder whose files are all called `model` says what they are. */
export async function writeMeta (
  models: Pick<ModelRegistry, 'writeFile'>, modelId: string, record: HubRecord, quant: string
): Promise<void> {
  if (record.meta === null) return
  const [first] = record.files
  const meta = {
    model_id: modelId,
    curated_id: record.origin === 'curated' ? modelId : null,
    hf_repo: record.repo,
    hf_file: first!.hf_filename,
    revision: record.commit,
    sha256: first!.checked,
    size_bytes: record.files.filter(file => file.kind === 'model').reduce((sum, file) => sum + file.size, 0),
    quant: quant === '' ? null : quant,
    capability: record.meta.capability,
    license: record.license === '' ? null : record.license
  }
  const known = Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== null))
  await models.writeFile(join(record.meta.folder, 'meta.json'), `${JSON.stringify(known, null, 2)}\n`)
}

function withVision (capabilities: readonly ModelCapability[], projector: string | null): ModelCapability[] {
  return projector === null || capabilities.includes('vision') || !capabilities.includes('chat') ? [...capabilities] : [...capabilities, 'vision']
}

function kept (before: string | undefined, now: string): string {
  return before === undefined || before === '' ? now : before
}

function keptList<T> (before: readonly T[] | undefined, now: readonly T[]): T[] {
  return before === undefined || before.length === 0 ? [...now] : [...before]
}
