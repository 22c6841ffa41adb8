import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'

/** Folders of hub caches: their files are links into a store of their own, made anew at will. */
const caches: ReadonlySet<string> = new Set(['hub', 'huggingface', '.cache', 'blobs'])
/** Folders in which every entry is a model of its own, whatever it is made of. */
const collections: ReadonlySet<string> = new Set(['flm-ubuntu', 'moonshine_voice', 'voices'])
const extensions: ReadonlySet<string> = new Set(['.gguf', '.safetensors', '.bin', '.onnx', '.pt', '.pth', '.ckpt'])
const MAX_DEPTH = 10

/** Models below the old root, relative to it, sorted: files, and folders that are models. Changes nothing there. */
export async function modelsBelow (root: string): Promise<readonly string[]> {
  const found: string[] = []
  await walk(root, '', MAX_DEPTH, found)
  return found.sort()
}

async function walk (root: string, folder: string, depth: number, found: string[]): Promise<void> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (folder === '' && error.code !== 'ENOENT') throw error
    return []
  })
  const isCollection = collections.has(folder.slice(folder.lastIndexOf('/') + 1))
  for (const entry of entries) {
    if (entry.name.startsWith('.') || entry.name.startsWith('models--') || caches.has(entry.name)) continue
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (isCollection) found.push(path)
    else if (entry.isDirectory() && depth > 0) await walk(root, path, depth - 1, found)
    else if (extensions.has(extname(entry.name).toLowerCase()) && await isFile(join(root, path))) found.push(path)
  }
}

/** Links to files count: they were put there deliberately. */
async function isFile (path: string): Promise<boolean> {
  return await stat(path).then(stats => stats.isFile(), () => false)
}
