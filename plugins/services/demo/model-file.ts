import { randomBytes } from 'node:crypto'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes a file that is either absent or complete, and never replaces one. Returns false when there was one.
 * The folder is made when it is missing.
 */
export async function writeOnce (path: string, bytes: Buffer, signal: AbortSignal): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${randomBytes(6).toString('hex')}.part`
  try {
    const file = await open(draft, 'wx', 0o644)
    try {
      await file.writeFile(bytes, { signal })
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path) // unlike rename, it fails when the name is taken
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await unlink(draft).catch(() => undefined)
  }
}
