import * as fsPromises from 'node:fs/promises'
import { dirname } from 'node:path'

export interface MakeFoldersOptions {
  /** Mode of the folders that are new. */
  readonly mode?: number
  /** Tests hand in one that fails. */
  readonly mkdir?: typeof fsPromises.mkdir
}

/**
 * Makes a folder with what is missing above it. Resolves with the uppermost that is new; undefined when all are there. Node's
 * own `recursive` spins for ever where nothing can be made, as below /proc, and tells the wrong reason on a read-only disk.
 * Rejects with the error of the file system for the first folder that cannot be made.
 */
export async function makeFolders (path: string, options: MakeFoldersOptions = {}): Promise<string | undefined> {
  const { mode, mkdir = fsPromises.mkdir } = options
  const make = (): Promise<boolean> => mkdir(path, { mode }).then(() => true, async (error: unknown) => {
    if (['EEXIST', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '') && await isFolder(path)) return false
    throw error
  })
  try {
    return await make() ? path : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error
  }
  const first = await makeFolders(dirname(path), options)
  return await make() ? first ?? path : first
}

function isFolder (path: string): Promise<boolean> {
  return fsPromises.stat(path).then(stats => stats.isDirectory(), () => false)
}
