import { createReadStream, createWriteStream } from 'node:fs'
import { link, lstat, mkdir, open, readlink, rename, rm, rmdir, stat, symlink, unlink, utimes } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { messageOf } from 'svc-gateway/plugin'
import { modelsError } from './errors.js'
import { diskOf } from './folder-state.js'
import type { Migration, Plan } from './schemas.js'
import { filesBelow, movedPath, type StoreFile } from './tree.js'

const MIB = 1024 * 1024
const CHUNK_BYTES = 4 * MIB

export interface CopyProgress {
  readonly files: number
  readonly totalFiles: number
  readonly bytes: number
  readonly totalBytes: number
}

export async function planMigration (source: string, target: string): Promise<Plan> {
  const files = await filesBelow(source).catch((error: NodeJS.ErrnoException) => {
    // a store that was never used is empty
    if (error.code === 'ENOENT') return []
    throw failed(`the current store ${source} cannot be read: ${messageOf(error)}`, error)
  })
  return {
    source,
    target,
    files_count: files.length,
    size_bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    same_filesystem: files.length === 0 || await deviceOf(source) === await deviceOf(target)
  }
}

/**
 * Copies a store to another folder; on one file system as second names of the same files, which takes no time and no room.
 * The source stays whole until `removeSource`: whenever it ends, all files are where they were. What an earlier try has
 * copied already counts. Rejects with `models.store_migration_failed`.
 */
export async function copyStore (
  plan: Plan, signal: AbortSignal, progress: (at: CopyProgress) => void
): Promise<readonly StoreFile[]> {
  const { source, target } = plan
  try {
    const files = await filesBelow(source)
    await requireRoom(plan, files)
    const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    let bytes = 0
    for (const [i, file] of files.entries()) {
      signal.throwIfAborted()
      await mkdir(dirname(join(target, file.path)), { recursive: true })
      if (file.link) await copyLink(plan, file.path)
      else await copyFile(join(source, file.path), join(target, file.path), signal)
      bytes += file.sizeBytes
      progress({ files: i + 1, totalFiles: files.length, bytes, totalBytes })
    }
    return files
  } catch (error) {
    throw failed(`the models stay in ${source}: ${messageOf(error)}`, error)
  }
}

/** Removes what was copied. What cannot be removed is told, and does no harm. Never rejects. */
export async function removeSource ({ source, target }: Plan, files: readonly StoreFile[]): Promise<Migration> {
  const left: string[] = []
  for (const { path } of files) await unlink(join(source, path)).catch(() => left.push(join(source, path)))
  const folders = new Set(files.flatMap(({ path }) => parentsOf(path)))
  // the deepest first; one that is not empty stays
  for (const folder of [...folders].sort((a, b) => b.length - a.length)) await rmdir(join(source, folder)).catch(() => undefined)
  return { source, target, moved: files.length, failed: left }
}

async function requireRoom ({ source, target, same_filesystem: same }: Plan, files: readonly StoreFile[]): Promise<void> {
  if (same) return
  let needed = 0
  for (const { path, sizeBytes } of files) {
    const there = await stat(join(target, path)).catch(() => null)
    if (there?.size !== sizeBytes) needed += sizeBytes
  }
  const disk = await diskOf(target)
  if (disk === null || disk.freeMb * MIB > needed) return
  throw failed(`${Math.ceil(needed / MIB)} MiB of ${source} do not fit on the disk of ${target}, which has ${disk.freeMb} MiB left`)
}

/** A hard link where that works, else a copy that appears under its name only when it is whole. */
async function copyFile (from: string, to: string, signal: AbortSignal): Promise<void> {
  const stats = await stat(from)
  const there = await lstat(to).catch(() => null)
  if (there !== null) {
    const same = there.isFile() && there.size === stats.size
    if (same && (there.ino === stats.ino || Math.abs(there.mtimeMs - stats.mtimeMs) < 2)) return
    throw new Error(`${to} already exists and is another file; remove or rename it`)
  }
  if (await link(from, to).then(() => true, () => false)) return
  const part = join(dirname(to), `.${stats.ino}-${stats.size}.moving`)
  try {
    const pieces = { highWaterMark: CHUNK_BYTES }
    await pipeline(createReadStream(from, pieces), createWriteStream(part, pieces), { signal })
    await utimes(part, stats.atimeMs / 1000, stats.mtimeMs / 1000)
    await syncFile(part)
    await rename(part, to)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

async function copyLink ({ source, target }: Plan, path: string): Promise<void> {
  const to = join(target, path)
  const leads = await readlink(join(source, path))
  const next = isAbsolute(leads) ? movedPath(leads, source, target) : leads
  if (await readlink(to).catch(() => null) === next) return
  await symlink(next, to)
}

async function syncFile (path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

async function deviceOf (path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.dev ?? null
}

function parentsOf (path: string): string[] {
  const parent = dirname(path)
  return parent === '.' ? [] : [parent, ...parentsOf(parent)]
}

function failed (message: string, cause?: unknown): Error {
  return modelsError('models.store_migration_failed', message, cause === undefined ? {} : { cause })
}
