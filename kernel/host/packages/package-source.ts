import { createHash } from 'node:crypto'
import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { z } from 'zod'

/** A package that a plugin needs to run, where it was found. */
interface Dependency {
  /** Real path of its folder. */
  readonly folder: string
  /** Path below `node_modules` at which the plugin finds it. */
  readonly place: string
  /** It lies outside the plugin home and is linked, not copied. */
  readonly linked: boolean
}

/** A package in the plugin home as it is at one moment. */
export interface PackageSource {
  readonly name: string
  /** Real path: that of the author's own folder for a linked package. */
  readonly folder: string
  readonly dependencies: readonly Dependency[]
  /** Digest of the package's own files. */
  readonly content: string
  /** Digest of everything that the package runs with: its own files and the packages it depends on. */
  readonly revision: string
}

/** Name of the host, which every plugin finds by itself. */
export const HOST_PACKAGE = 'svc-gateway'

const dependencyTable = z.record(z.string(), z.unknown()).optional()
const dependenciesSchema = z.looseObject({ dependencies: dependencyTable, optionalDependencies: dependencyTable })

const FOREIGN_FOLDERS = new Set(['node_modules', '.git'])

/** Looks at an installed or linked package and what it depends on. Rejects when its folder cannot be read. */
export async function readPackageSource (home: string, name: string): Promise<PackageSource> {
  const modules = await realpath(join(home, 'node_modules'))
  const folder = await realpath(join(modules, name))
  const isLinked = !folder.startsWith(modules + sep)
  const dependencies = isLinked ? await directDependencies(folder) : await allDependencies(modules, folder)
  const content = await contentOf(folder)
  const revision = createHash('sha256').update(content)
  for (const dependency of dependencies) revision.update(`\0${dependency.place}\0${await stampOf(dependency.folder)}`)
  return { name, folder, dependencies, content, revision: revision.digest('hex').slice(0, 16) }
}

/** Paths of a package's own files, relative to its folder and sorted; symbolic links count as files. */
export async function filesOf (folder: string, skipped: ReadonlySet<string> = FOREIGN_FOLDERS): Promise<string[]> {
  const found: string[] = []
  const visit = async (below: string): Promise<void> => {
    const entries = await readdir(join(folder, below), { withFileTypes: true })
    for (const entry of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
      const path = join(below, entry.name)
      if (entry.isDirectory()) {
        if (!skipped.has(entry.name)) await visit(path)
      } else if (entry.isFile() || entry.isSymbolicLink()) {
        found.push(path)
      }
    }
  }
  await visit('')
  return found
}

/** Digest of the names and the bytes of a package's own files. */
export async function contentOf (folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const path of await filesOf(folder)) {
    // a link may lead to a folder, or nowhere
    const bytes = await readFile(join(folder, path)).catch(() => '')
    hash.update(`${path}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('hex')
}

/** Changes when a dependency is installed anew; its code is not read. */
async function stampOf (folder: string): Promise<string> {
  const file = join(folder, 'package.json')
  const [text, { ino, mtimeMs }] = await Promise.all([readFile(file, 'utf8'), lstat(file)])
  return `${ino} ${mtimeMs} ${text}`
}

/** An author's folder has its own `node_modules`, which stays where it is. */
async function directDependencies (folder: string): Promise<Dependency[]> {
  const found: Dependency[] = []
  for (const name of await dependencyNames(folder)) {
    const at = await findUpwards(folder, name, sep)
    if (at !== null) found.push({ folder: await realpath(at), place: name, linked: true })
  }
  return found
}

/** Everything below the plugin home that the package reaches, directly or through others. */
async function allDependencies (modules: string, folder: string): Promise<Dependency[]> {
  const found = new Map<string, Dependency>()
  const queue = [folder]
  for (const from of queue) {
    for (const name of await dependencyNames(from)) {
      const at = await findUpwards(from, name, modules)
      if (at === null || found.has(at)) continue
      const real = await realpath(at)
      const linked = real !== at
      found.set(at, { folder: real, place: relative(modules, at), linked })
      if (!linked) queue.push(at)
    }
  }
  return [...found.values()].sort((a, b) => a.place < b.place ? -1 : 1)
}

async function dependencyNames (folder: string): Promise<string[]> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}')
  const { data } = dependenciesSchema.safeParse(parseJson(text))
  const names = Object.keys({ ...data?.dependencies, ...data?.optionalDependencies })
  return names.filter(name => name !== HOST_PACKAGE)
}

/** Undefined for what is no JSON. */
export function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Where Node would find a package: the nearest `node_modules` from `folder` up to `last`. */
async function findUpwards (folder: string, name: string, last: string): Promise<string | null> {
  for (let at = folder; ; at = join(at, '..')) {
    const candidate = at.endsWith(`${sep}node_modules`) ? join(at, name) : join(at, 'node_modules', name)
    if (await lstat(join(candidate, 'package.json')).catch(() => null) !== null) return candidate
    if (at === last || at === sep) return null
  }
}
