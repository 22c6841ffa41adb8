import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface StoreFile {
  /** Below the root. */
  readonly path: string
  readonly link: boolean
  readonly sizeBytes: number
}

/** Made by file systems, not by us. */
const notOurs = new Set(['lost+found', '.Trash-0', '.snapshots'])

/** Every file and symbolic link below a folder, sorted; links are not followed. Rejects when a folder cannot be read. */
export async function filesBelow (root: string, below = ''): Promise<StoreFile[]> {
  const files: StoreFile[] = []
  for await (const entry of await opendir(join(root, below))) {
    const path = join(below, entry.name)
    if (notOurs.has(path)) continue
    if (entry.isDirectory()) files.push(...await filesBelow(root, path))
    else if (entry.isSymbolicLink()) files.push({ path, link: true, sizeBytes: 0 })
    else if (entry.isFile()) files.push({ path, link: false, sizeBytes: (await stat(join(root, path))).size })
  }
  return files.sort((a, b) => a.path < b.path ? -1 : 1)
}

/** Whether a path is the folder or lies in it. Pure. */
export function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

/** The path as it is once the folder has moved; itself when it was not in it. Pure. */
export function movedPath (path: string, source: string, target: string): string {
  return isWithin(path, source) ? join(target, path.slice(source.length)) : path
}

/** As `movedPath`, for every text in a value. Pure. */
export function movedPaths (value: unknown, source: string, target: string): unknown {
  if (typeof value === 'string') return movedPath(value, source, target)
  if (Array.isArray(value)) return value.map(item => movedPaths(item, source, target))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, movedPaths(item, source, target)]))
}
