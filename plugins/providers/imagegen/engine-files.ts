import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { inventoryKinds, type Inventory, type OutputImage } from './ref.js'

/** Folders below `models`, where the engine looks for each kind of model; some have an older name. */
const folders: Readonly<Record<typeof inventoryKinds[number], readonly string[]>> = {
  checkpoints: ['checkpoints'],
  diffusion: ['diffusion_models', 'unet'],
  loras: ['loras'],
  vae: ['vae'],
  controlnet: ['controlnet'],
  upscale: ['upscale_models'],
  text_encoders: ['text_encoders', 'clip']
}

const modelEndings = ['.safetensors', '.ckpt', '.pt', '.pt2', '.bin', '.pth', '.pkl', '.sft', '.gguf']
const contentTypes: Readonly<Record<string, string>> = {
  '.png': 'image/png', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg', '.webp': 'image/webp', '.gif': 'image/gif'
}

/** Of a file that the engine saved; null for what is no picture. */
export function pictureType (file: string): string | null {
  return contentTypes[extname(file).toLowerCase()] ?? null
}

/** Counts model files. A folder that is not there has none. */
export async function countModels (models: string): Promise<Inventory> {
  const counts = await Promise.all(inventoryKinds.map(async kind => {
    const files = (await Promise.all(folders[kind].map(folder => filesBelow(join(models, folder))))).flat()
    return [kind, files.filter(file => modelEndings.includes(extname(file).toLowerCase())).length] as const
  }))
  return Object.fromEntries(counts) as Inventory
}

/** The picture that was written last; null when there is none that can be read. */
export async function newestPicture (output: string): Promise<OutputImage | null> {
  const pictures = (await filesBelow(output)).filter(file => pictureType(file) !== null)
  const dated = await Promise.all(pictures.map(async file => ({ file, at: (await stat(file).catch(() => null))?.mtimeMs ?? 0 })))
  const newest = dated.sort((a, b) => b.at - a.at)[0]
  const bytes = newest === undefined ? null : await readFile(newest.file).catch(() => null)
  return bytes === null ? null : { bytes, contentType: pictureType(newest!.file)! }
}

async function filesBelow (folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter(entry => !entry.isDirectory()).map(entry => join(entry.parentPath, entry.name))
}
