import { constants, type Stats } from 'node:fs'
import * as fsPromises from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { makeFolders } from './make-folders.js'
import { livenessOf, parseToken, uniqueToken } from './process-identity.js'

/** The file operations of a write; tests hand in ones that fail. */
export type FileOps = Pick<typeof fsPromises, 'mkdir' | 'open' | 'realpath' | 'rename' | 'link' | 'unlink' | 'stat'>

export interface WriteOptions {
  /** Mode of a file that is new; an existing one keeps its own. Default 0o644. */
  readonly mode?: number
  /** An existing file gets `mode` too. */
  readonly forceMode?: boolean
  /** Rejects with EEXIST when the file is there. */
  readonly exclusive?: boolean
  /** Folder for the temp file, of the same disk; default is that of the file, which is also taken where this one cannot be. */
  readonly tempFolder?: string | undefined
  /** Puts the file in the place of a symbolic link instead of writing to where that leads. */
  readonly replaceLink?: boolean
  readonly ops?: FileOps
}

/** How old a temp file of a process that cannot be judged from here must be before it counts as left behind. */
const FOREIGN_TEMP_AGE_MS = 10 * 60_000

/**
 * Writes a file so that a crash at any instant leaves the old content or the new, whole: temp file in
 * the same folder, fsync, rename, fsync of the folder. Follows a symbolic link to what it points at and keeps mode and
 * owner. Makes missing folders. Rejects with the error of the file system and leaves no temp file behind.
 */
export async function writeFileAtomic (path: string, content: string, options: WriteOptions = {}): Promise<void> {
  const ops = options.ops ?? fsPromises
  const target = options.replaceLink === true ? path : await realTarget(ops, path)
  const folder = dirname(target)
  // nothing is written, and the disk not waited for, where it would be in vain
  if (options.exclusive === true && await statOrNull(ops, target).catch(() => null) !== null) throw exists(target)
  await makeFolder(ops, folder)
  const tempFolder = options.tempFolder !== undefined && await makeFolder(ops, options.tempFolder).then(() => true, () => false)
    ? options.tempFolder : folder
  const temp = join(tempFolder, `.${basename(target)}.${uniqueToken()}.tmp`)
  try {
    await writeTemp(ops, temp, content, await statOrNull(ops, target), options)
    await (options.exclusive === true ? moveIfAbsent(ops, temp, target) : ops.rename(temp, target))
  } catch (error) {
    await ops.unlink(temp).catch(() => undefined)
    // another disk, or the empty folder was taken away
    const isElsewhere = ['EXDEV', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (tempFolder === folder || !isElsewhere) throw error
    return await writeFileAtomic(path, content, { ...options, tempFolder: undefined })
  }
  await syncFolder(ops, folder)
}

/** Removes a file for good, also across a power failure. Rejects with ENOENT when it is not there. */
export async function removeFile (path: string, ops: FileOps = fsPromises): Promise<void> {
  await ops.unlink(path)
  await syncFolder(ops, dirname(path))
}

/**
 * Removes the temp files in `folder` that dead writers left, or with `of` only those of that one file. Files of running
 * writers stay. Returns how many went; never rejects, since a temp file that stays does no harm. A change of several files
 * that was interrupted still needs its own: where those can lie, only `recoverHome` sweeps all.
 */
export async function sweepTempFiles (folder: string, nowMs: number, of?: string): Promise<number> {
  let removed = 0
  for (const name of await leftBehind(folder, nowMs)) {
    if (of !== undefined && !name.startsWith(`.${of}.`)) continue
    removed += await fsPromises.unlink(join(folder, name)).then(() => 1, () => 0)
  }
  return removed
}

/** Names of the temp files in `folder` whose writers are dead. Never rejects. */
export async function leftBehind (folder: string, nowMs: number): Promise<readonly string[]> {
  const names = await fsPromises.readdir(folder).catch(() => [])
  const found = await Promise.all(names.map(async name => await isLeftBehind(folder, name, nowMs) ? name : null))
  return found.filter(name => name !== null)
}

async function isLeftBehind (folder: string, name: string, nowMs: number): Promise<boolean> {
  const token = /^\..+\.([^.]+)\.tmp$/.exec(name)?.[1]
  const writer = token === undefined ? null : parseToken(token)
  if (writer === null) return false
  const liveness = livenessOf(writer)
  if (liveness !== 'unknown') return liveness === 'dead'
  const stats = await fsPromises.stat(join(folder, name)).catch(() => null)
  return stats !== null && nowMs - stats.mtimeMs > FOREIGN_TEMP_AGE_MS
}

/** A new file with this content, on disk when it resolves; with mode and owner of `old`, the file that it is to replace. */
export async function writeTemp (
  ops: FileOps, temp: string, content: string, old: Stats | null, options: WriteOptions
): Promise<void> {
  const { mode = 0o644, forceMode = false } = options
  const file = await ops.open(temp, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, old === null ? mode : 0o600)
  try {
    await file.writeFile(content)
    if (old !== null) {
      // only root may give files away; anyone else who may write here keeps the file under his own name
      await file.chown(old.uid, old.gid).catch(() => undefined)
      await file.chmod(forceMode ? mode : old.mode & 0o7777)
    }
    await file.sync()
  } finally {
    await file.close()
  }
}

function exists (target: string): Error {
  return Object.assign(new Error(`EEXIST: ${target}`), { code: 'EEXIST' })
}

async function moveIfAbsent (ops: FileOps, temp: string, target: string): Promise<void> {
  try {
    await ops.link(temp, target)
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    // no hard links here: the configuration lock has to keep other writers out between these two steps
    if (await statOrNull(ops, target) !== null) throw exists(target)
    await ops.rename(temp, target)
    return
  }
  await ops.unlink(temp)
}

/** Also syncs the folders that get a new entry, so that the file in them survives a power failure. */
export async function makeFolder (ops: FileOps, folder: string): Promise<void> {
  const first = await makeFolders(folder, { mkdir: ops.mkdir })
  if (first === undefined) return
  for (let made = folder; ; made = dirname(made)) {
    await syncFolder(ops, dirname(made))
    if (made === first || made === dirname(made)) return
  }
}

/** The path with symbolic links followed; of a file that is not there, the path itself. */
export async function realTarget (ops: FileOps, path: string): Promise<string> {
  try {
    return await ops.realpath(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path
    throw error
  }
}

export async function statOrNull (ops: FileOps, target: string): Promise<Stats | null> {
  try {
    return await ops.stat(target)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export async function syncFolder (ops: FileOps, folder: string): Promise<void> {
  const handle = await ops.open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } catch (error) {
    // some file systems cannot sync a folder; the rename itself has happened
    if (!['EINVAL', 'ENOTSUP', 'ENOSYS', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await handle.close()
  }
}
