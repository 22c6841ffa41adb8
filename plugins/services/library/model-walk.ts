import { opendir, realpath, stat } from 'node:fs/promises'
import { extname, join, relative, resolve } from 'node:path'
import { isProjectorName, shardOf } from './file-names.js'

const MAX_DEPTH = 10
const MAX_ENTRIES = 200_000

export interface WalkOptions {
  readonly extensions: readonly string[]
  readonly recursive: boolean
  readonly signal: AbortSignal
  /** Asked again and again: when it says so, what was found until then is all. */
  readonly isOver?: () => boolean
}

/** The places to walk so that none is walked twice: spelled in one way, links followed, those inside of another left out. */
export async function distinctPlaces (paths: readonly string[], recursive: boolean): Promise<readonly string[]> {
  const real = [...new Set(await Promise.all(paths.map(path => resolved(resolve(path)))))]
  if (!recursive) return real
  return real.filter(path => !real.some(other => other !== path && isInside(path, other)))
}

function isInside (path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '' && way !== '..' && !way.startsWith('../')
}

/**
 * Model files at or below a path, sorted, parts of a split model as their first. Leaves out what is hidden (unfinished
 * downloads are) and projectors beside their models. Follows links to files, as hub caches are made of, but not to
 * folders, which may lead in a circle. A folder that cannot be read is passed over; a path that is not there gives nothing.
 */
export async function modelFilesIn (path: string, options: WalkOptions): Promise<readonly string[]> {
  const stats = await stat(path).catch(() => null)
  if (stats === null) return []
  if (stats.isFile()) return [path]
  const found: string[] = []
  const budget = { entries: MAX_ENTRIES }
  await walk(path, options, options.recursive ? MAX_DEPTH : 0, budget, found)
  return found.sort()
}

async function walk (
  folder: string, options: WalkOptions, depth: number, budget: { entries: number }, found: string[]
): Promise<void> {
  const folders: string[] = []
  try {
    for await (const entry of await opendir(folder)) {
      options.signal.throwIfAborted()
      if (--budget.entries < 0 || options.isOver?.() === true) return
      if (entry.name.startsWith('.')) continue
      const path = join(folder, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (isCandidate(entry.name, options.extensions) && (entry.isFile() || await leadsToFile(path))) found.push(path)
    }
  } catch {
    options.signal.throwIfAborted()
  }
  if (depth === 0) return
  for (const inner of folders) await walk(inner, options, depth - 1, budget, found)
}

function isCandidate (name: string, extensions: readonly string[]): boolean {
  return extensions.includes(extname(name).toLowerCase()) && !isProjectorName(name) && (shardOf(name)?.part ?? 1) === 1
}

async function leadsToFile (path: string): Promise<boolean> {
  return await stat(path).then(stats => stats.isFile(), () => false)
}

/** Where a path really leads; itself when it leads nowhere. */
export async function resolved (path: string): Promise<string> {
  return await realpath(path).catch(() => path)
}
