import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ModelRegistry } from 'svc-gateway/plugin'
import type { HubClient } from '../../hub/ref.js'
import type { ModelLibrary } from '../../library/ref.js'
import { chooseFiles } from './choice.js'
import { parentOf, placesOf } from './destination.js'
import { pullError } from '../errors.js'
import { partKey } from '../file/part-file.js'
import type { HubRecord, RecordFile } from '../record.js'
import type { PullRequest } from '../ref.js'
import { sourceOf } from './source.js'

export interface PlanDeps {
  readonly hub: HubClient
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  /** Id of this home: two that share a store do not share part files. */
  readonly instance: string
  /** Where the image engine looks for its models, unless a request says otherwise. */
  readonly imageModels: string
}

/** Asks the hub and decides everything about a pull. Throws whatever makes it impossible. */
export async function planPull (
  { hub, library, models, instance, imageModels }: PlanDeps, request: PullRequest, signal: AbortSignal
): Promise<HubRecord> {
  const { model_id: id } = request
  const source = sourceOf(request, models.get(id), library.curated.find(model => model.id === id))
  const repo = await hub.repo(source.repo, { revision: source.revision, signal })
  const chosen = chooseFiles(source, repo)
  const [first] = chosen
  // whether we may have it, and whether the hub is of one mind about it, is known before anything is promised
  const head = await hub.head({ repo: repo.id, commit: repo.commit, path: first!.file.path }, signal)
  const differs = (head.size !== null && head.size !== first!.file.size) ||
    (head.sha256 !== null && first!.file.sha256 !== null && head.sha256 !== first!.file.sha256)
  if (differs) {
    throw pullError('pull.size_mismatch', `${hub.endpoint} contradicts itself about ${first!.file.path}: ${first!.file.size} bytes in the listing, ${head.size ?? 'another content'} in the file`,
      { details: { repo: repo.id, path: first!.file.path, expected: first!.file.size, got: head.size } })
  }
  const { store } = models
  const root = source.imageFolder === '' ? store : request.image_models ?? imageModels
  const places = placesOf(source, chosen, await readdir(join(root, parentOf(source))).catch(() => []))
  const files: RecordFile[] = []
  for (const [i, { file, kind }] of chosen.entries()) {
    const dest = join(root, places[i]!)
    const { size, sha256, gitSha1 } = file
    files.push({
      hf_filename: file.path, kind, dest, size, sha256, gitSha1, checked: null,
      staging: await stagingFor(store, dest), key: partKey(instance, dest, file)
    })
  }
  return {
    repo: repo.id,
    commit: repo.commit,
    files,
    capabilities: [...source.capabilities],
    tags: [...source.tags],
    name: source.name,
    license: source.license === '' ? repo.license ?? '' : source.license,
    origin: source.origin,
    meta: source.capability === null || source.imageFolder !== '' ? null : { folder: dirname(files[0]!.dest), capability: source.capability },
    errorCode: null,
    bytes: 0
  }
}

/** `<store>/.tmp`, so that a complete part only has to be renamed; where the target is another disk, a folder on that one. */
async function stagingFor (store: string, dest: string): Promise<string> {
  const [own, target] = await Promise.all([deviceOf(store), deviceOf(dirname(dest))])
  return own === target ? join(store, '.tmp') : join(dirname(dest), '.tmp')
}

async function deviceOf (path: string): Promise<number> {
  for (let at = path; ; at = dirname(at)) {
    const stats = await stat(at).catch(() => null)
    if (stats !== null) return stats.dev
    if (at === dirname(at)) return 0
  }
}
