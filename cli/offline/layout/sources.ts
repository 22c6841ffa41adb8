import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'

/** Folders of hub caches: their files are links into a store of their own, made anew at will. */
const caches: ReadonlySet<string> = new Set(['hub', 'huggingface', '.cache', 'blobs'])
const extensions: ReadonlySet<string> = new Set(['.gguf', '.safetensors', '.bin', '.onnx', '.pt', '.pth', '.ckpt'])
const MAX_DEPTH = 10

/**
 * Models below the old root, relative to it, sorted: files, and folders that are models, which all are in `collections`.
 * Changes nothing there.
 */
export async function modelsBelow (root: string, collections: ReadonlySet<string>): Promise<readonly string[]> {
  const found: string[] = []
  await walk({ root, collections, found }, '', MAX_DEPTH)
  return found.sort()
}

interface Walk { readonly root: string, readonly collections: ReadonlySet<string>, readonly found: string[] }

async function walk (of: Walk, folder: string, depth: number): Promise<void> {
  const { root, collections, found } = of
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (folder === '' && error.code !== 'ENOENT') throw error
    return []
  })
  const isCollection = collections.has(folder.slice(folder.lastIndexOf('/') + 1))
  for (const entry of entries) {
    if (entry.name.startsWith('.') || entry.name.startsWith('models--') || caches.has(entry.name)) continue
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (isCollection) found.push(path)
    else if (entry.isDirectory() && depth > 0) await walk(of, path, depth - 1)
    else if (extensions.has(extname(entry.name).toLowerCase()) && await isFile(join(root, path))) found.push(path)
  }
}

/** Links to files count: they were put there deliberately. */
async function isFile (path: string): Promise<boolean> {
  return await stat(path).then(stats => stats.isFile(), () => false)
}
