import { access, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineModel, EngineModels } from 'svc-gateway/plugin'
import { fetchProgress } from './fetch-progress.js'
import { fetchContainer, fetchProcess } from './launch.js'
import { tableModels, type TableModel } from './model-table.js'

/** What the engine looks for to say that it has a model; downloads are done when the last of them is there. */
const FILES = ['config.json', 'model.q4nx', 'tokenizer.json']
const TAG = /^[a-z0-9][\w.-]*:[a-z0-9][\w.-]*$/
const SUFFIX = '-FLM'

const byTag = new Map(tableModels.map(model => [model.tag, model]))

/** `llama3.2-1b`, and `llama3.2` for the size that the engine takes: the first in the order of its list. */
const bySpelling = new Map([
  ...tableModels.map(({ tag }): [string, string] => [tag.replace(':', '-'), tag]),
  ...[...tableModels].sort((a, b) => a.tag < b.tag ? 1 : -1).map(({ tag }): [string, string] => [familyOf(tag), tag])
])

/** Models of the engine's own store. */
export const models: EngineModels = {
  source: 'flm',
  store: { folder: 'flm/models', variable: 'SVC_FLM_MODELS_DIR', setting: 'flm_store' },
  canonical,
  aliases: tag => [`${tag}${SUFFIX}`, `${tag.replace(':', '-')}${SUFFIX}`],
  contextSize: id => byTag.get(canonical(id) ?? '')?.contextSize ?? null,
  fetch: { containerSpec: fetchContainer, processSpec: fetchProcess, progress: fetchProgress },
  list
}

/**
 * The tag behind `llama3.2:1b`, `llama3.2-1b`, `llama3.2`, and each of them with `-FLM` at its end; case does not count. A
 * tag that is not in the table may be one of a newer engine, which refuses what it does not know. Pure.
 */
function canonical (id: string): string | null {
  const bare = id.toLowerCase().replace(/-flm$/, '')
  const known = byTag.has(bare) ? bare : bySpelling.get(bare)
  return known ?? (TAG.test(bare) ? bare : null)
}

/** Whether a model takes images; undefined for one that is not in the table. Pure. */
export function takesImages (id: string): boolean | undefined {
  return byTag.get(canonical(id) ?? '')?.capabilities.includes('vision')
}

async function list (store: string): Promise<EngineModel[]> {
  const folders = new Set(await readdir(store).catch(() => []))
  return await Promise.all(tableModels.map(model => entryOf(model, store, folders)))
}

async function entryOf (
  { tag, folder, capabilities, sizeBytes }: TableModel, store: string, folders: ReadonlySet<string>
): Promise<EngineModel> {
  if (!folders.has(folder)) return { id: tag, family: familyOf(tag), capabilities, sizeBytes, installed: false }
  const found = await Promise.all(FILES.map(file => access(join(store, folder, file)).then(() => true, () => false)))
  return { id: tag, family: familyOf(tag), capabilities, sizeBytes, installed: found.every(Boolean) }
}

function familyOf (tag: string): string {
  return tag.slice(0, tag.indexOf(':'))
}
