import { basename, dirname, extname, join } from 'node:path'

const SHARD = /^(.+)-(\d{5})-of-(\d{5})(\.[A-Za-z0-9]+)$/

export interface ShardName {
  readonly stem: string
  readonly part: number
  readonly parts: number
  readonly extension: string
}

/** A part of a split model, as llama.cpp names them: `name-00001-of-00003.gguf`. Null for anything else. Pure. */
export function shardOf (fileName: string): ShardName | null {
  const match = SHARD.exec(fileName)
  if (match === null) return null
  const [part, parts] = [Number(match[2]), Number(match[3])]
  return part >= 1 && part <= parts ? { stem: match[1]!, part, parts, extension: match[4]! } : null
}

export function shardName ({ stem, parts, extension }: Omit<ShardName, 'part'>, part: number): string {
  const five = (n: number): string => String(n).padStart(5, '0')
  return `${stem}-${five(part)}-of-${five(parts)}${extension}`
}

/** All parts of the model that a file belongs to, in order; just the file when it is whole. Pure. */
export function partsOf (path: string): readonly string[] {
  const shard = shardOf(basename(path))
  if (shard === null) return [path]
  return Array.from({ length: shard.parts }, (_, i) => join(dirname(path), shardName(shard, i + 1)))
}

/** Without extension and part number. Pure. */
export function stemOf (path: string): string {
  const name = basename(path)
  return shardOf(name)?.stem ?? basename(name, extname(name))
}

/** An id for a file: its own name, or its folder's where every file is called `model`. One word, as ids must be. Pure. */
export function idOf (path: string): string {
  const stem = stemOf(path)
  const named = /^model$/i.test(stem) ? basename(dirname(path)) : stem

  return named.replace(/[\s\0-\x1f\x7f]+/g, '-').slice(0, 256) || 'model'
}

export function isProjectorName (path: string): boolean {
  return /(^|[^a-z0-9])mmproj([^a-z0-9]|$)/i.test(basename(path))
}

/** The image engine's folders: only these hold models, the others what goes with one. Null for a path elsewhere. Pure. */
export function imageFolderOf (path: string): { readonly holdsModels: boolean } | null {
  const folder = /\/comfyui\/models\/([^/]+)\//i.exec(path)?.[1]?.toLowerCase()
  return folder === undefined ? null : { holdsModels: ['checkpoints', 'diffusion_models', 'unet'].includes(folder) }
}
