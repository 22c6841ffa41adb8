import { lstat, opendir, readFile, readlink, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf, shellText } from '../../../kernel/contract/index.js'

export const kinds = ['service', 'engine', 'file', 'image', 'configuration', 'data', 'user', 'release'] as const

/** One line of the list, and how it goes. Removing what is gone is no failure. */
export interface Thing {
  readonly kind: typeof kinds[number]
  readonly name: string
  readonly remove: () => Promise<void>
}

/** What stays, and why. */
export interface Kept { readonly name: string, readonly why: string }

export interface Found {
  /** In the order in which they go: what it takes to find the others goes after them. */
  readonly things: readonly Thing[]
  readonly kept: readonly Kept[]
}

export function merged (...all: readonly Found[]): Found {
  return { things: all.flatMap(({ things }) => things), kept: all.flatMap(({ kept }) => kept) }
}

export function fileThing (kind: Thing['kind'], path: string): Thing {
  const remove = (): Promise<void> => removeTree(path).catch((error: unknown) => {
    throw isForbidden(error) ? forbidden(path, error) : error
  })
  return { kind, name: path, remove }
}

/** A container whose program is another user leaves folders in which this one may remove nothing. */
function forbidden (path: string, error: unknown): Error {
  return new Error(`${messageOf(error)}; this user may not remove what is left: sudo ${shellText(['rm', '-rf', '--', path])}`)
}

function isForbidden (error: unknown): boolean {
  if (process.getuid?.() === 0) return false
  for (let at = error; at instanceof Error; at = at.cause) if (['EACCES', 'EPERM'].includes((at as NodeJS.ErrnoException).code ?? '')) return true
  return false
}

/** Removes a file, a link or a folder with all that is in it. A link is never followed; another file system stays, and fails. */
export async function removeTree (path: string): Promise<void> {
  const stats = await lstat(path).catch(unlessAbsent)
  if (stats === undefined) return
  if (!stats.isDirectory()) return await rm(path, { force: true })
  const above = await lstat(dirname(path))
  await removeFolder(path, stats.dev, above.dev)
}

async function removeBelow (path: string, allowed: number): Promise<void> {
  const { dev } = await lstat(path)
  await removeFolder(path, dev, allowed)
}

async function removeFolder (path: string, device: number, allowed: number): Promise<void> {
  if (device !== allowed) throw new Error(`${path} is another file system; unmount it first`)
  const failures: unknown[] = []
  for await (const entry of await opendir(path)) {
    const below = join(path, entry.name)
    const removing = entry.isDirectory() ? removeBelow(below, allowed) : rm(below, { force: true })
    await removing.catch((error: unknown) => { failures.push(error) })
  }
  const [first, ...more] = failures
  if (first !== undefined) throw new Error(more.length === 0 ? messageOf(first) : `${messageOf(first)}, and ${more.length} more`, { cause: first })
  await rmdir(path).catch(unlessAbsent)
}

/** Removes a folder, and those above it as far as they are empty. */
export async function removeEmpty (path: string, ...above: readonly string[]): Promise<void> {
  await rmdir(path).catch(unlessAbsent)
  for (const folder of above) {
    const gone = await rmdir(folder).then(() => true, (error: NodeJS.ErrnoException) => error.code === 'ENOENT')
    if (!gone) return
  }
}

/** Where a link leads; null for what is none. */
export async function targetOfLink (path: string): Promise<string | null> {
  const target = await readlink(path).catch(() => null)
  return target === null ? null : resolve(dirname(path), target)
}

/** A file that begins with a line of ours; null where it is not there. */
export async function isMarked (path: string, mark: string): Promise<boolean | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null ? null : text.split('\n').slice(0, 3).some(line => line.includes(mark))
}

function unlessAbsent (error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
