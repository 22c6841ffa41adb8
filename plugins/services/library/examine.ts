import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { messageOf, type ModelFiles } from 'svc-gateway/plugin'
import { z } from 'zod'
import { isProjectorName, partsOf, shardOf, stemOf } from './file-names.js'
import { resolved } from './model-walk.js'
import type { FoundFile } from './suggestion.js'

const metaSchema = z.looseObject({
  model_id: z.string().optional(),
  curated_id: z.string().optional(),
  license: z.string().optional(),
  hf_repo: z.string().optional(),
  hf_file: z.string().optional()
})

const MAX_META_BYTES = 64 * 1024

/** Looks at a file: its parts, its header, what lies beside it. Rejects only with the signal's reason. */
export async function examine (files: ModelFiles, path: string, signal: AbortSignal): Promise<FoundFile> {
  const parts = partsOf(path)
  const first = parts[0]!
  const sizes = await Promise.all(parts.map(part => stat(part).then(stats => stats.isFile() ? stats.size : null, () => null)))
  const missingParts = parts.filter((_, i) => sizes[i] === null)
  const isGguf = extname(first).toLowerCase() === '.gguf'
  const header = isGguf && sizes[0] !== null
    ? await files.inspect(first, signal).then(facts => ({ facts, damage: null }), (error: unknown) => {
        signal.throwIfAborted()
        return { facts: null, damage: messageOf(error) }
      })
    : { facts: null, damage: null }
  return {
    path: first,
    resolvedPath: await resolved(first),
    sizeBytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0),
    missingParts,
    ...header,
    guess: files.guess(basename(first)),
    projector: header.facts?.kind === 'model' ? await projectorBeside(first) : null,
    meta: await metaBeside(first)
  }
}

/** A projector in the model's own folder: one that carries its name, or the only one beside the only model. */
async function projectorBeside (path: string): Promise<string | null> {
  const folder = dirname(path)
  const names = (await readdir(folder).catch(() => [])).filter(name => extname(name).toLowerCase() === '.gguf')
  const projectors = names.filter(isProjectorName)
  const models = names.filter(name => !isProjectorName(name) && (shardOf(name)?.part ?? 1) === 1)
  const own = projectors.find(name => stemOf(name).toLowerCase().includes(bareName(path)))
  const only = projectors.length === 1 && models.length === 1 ? projectors[0] : undefined
  const name = own ?? only
  return name === undefined ? null : join(folder, name)
}

/** The name of a model without its quant, as its projector carries it. */
function bareName (path: string): string {
  return stemOf(path).toLowerCase().replace(/[-._](?:ud-)?(?:i?q\d|tq\d|bf16|f16|f32|mxfp4)[a-z0-9_]*$/, '')
}

/** Only a file that is alone in its folder is what `meta.json` is about. */
async function metaBeside (path: string): Promise<FoundFile['meta']> {
  const file = join(dirname(path), 'meta.json')
  const stats = await stat(file).catch(() => null)
  if (stats === null || stats.size > MAX_META_BYTES || !/^model$/i.test(stemOf(path))) return null
  const parsed = metaSchema.safeParse(await readFile(file, 'utf8').then(text => JSON.parse(text) as unknown).catch(() => null))
  if (!parsed.success) return null
  const { model_id: own, curated_id: curated, license, hf_repo: repo, hf_file: hubFile } = parsed.data
  const id = own ?? curated
  return {
    ...(id === undefined ? {} : { id }),
    ...(license === undefined ? {} : { license }),
    ...(repo === undefined ? {} : { repo }),
    ...(hubFile === undefined ? {} : { file: hubFile })
  }
}
