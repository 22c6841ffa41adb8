import { randomBytes } from 'node:crypto'
import { constants, copyFile, link, lstat, mkdir, readdir, readlink, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hostPackage } from '../../config/package-root.js'
import { contentOf, filesOf, HOST_PACKAGE, type PackageSource } from './package-source.js'

const LOADER = 'loader.mjs'
const LOADER_CODE = 'export const load = name => import(name)\n'

/**
 * The copies of packages that plugins are imported from, `<plugins>/generations/<package>/<revision>`. Node keeps every
 * module under its address for as long as it runs, so code that changed needs another address: the whole package is
 * copied, and with it the packages it depends on. A copy serves one judgement: a package that is judged once more is
 * imported from another one.
 */
export class Generations {
  readonly #root: string
  /** Folders that were imported from by this process. */
  readonly #used = new Set<string>()

  constructor (home: string) {
    this.#root = join(home, 'generations')
  }

  /** The folder to import a package from, made when there is none. */
  async open (source: PackageSource): Promise<string> {
    for (let count = 1; ; count++) {
      const folder = join(this.#root, folderName(source.name), count === 1 ? source.revision : `${source.revision}-${count}`)
      if (this.#used.has(folder)) continue
      this.#used.add(folder)
      if (await isWhole(folder, source)) return folder
      await this.#make(folder, source)
      return folder
    }
  }

  /** Removes every copy that `isNeeded` does not keep, and what an earlier run left half made. */
  async sweep (isNeeded: (packageName: string, folder: string) => boolean): Promise<void> {
    for (const name of await readdir(this.#root).catch(() => [])) {
      const folder = join(this.#root, name)
      const copies = name.startsWith('.') ? [] : await readdir(folder).catch(() => [])
      const kept = copies.filter(copy => isNeeded(packageName(name), join(folder, copy)))
      for (const copy of copies) {
        if (!kept.includes(copy)) await rm(join(folder, copy), { recursive: true, force: true })
      }
      if (kept.length === 0) await rm(folder, { recursive: true, force: true })
    }
  }

  /** Complete or not there at all, whenever the process ends. */
  async #make (folder: string, source: PackageSource): Promise<void> {
    const draft = join(this.#root, `.${randomBytes(6).toString('hex')}`)
    const modules = join(draft, 'node_modules')
    try {
      await copyPackage(source.folder, join(modules, source.name))
      for (const dependency of source.dependencies) {
        const place = join(modules, dependency.place)
        await mkdir(dirname(place), { recursive: true })
        if (dependency.linked) await symlink(dependency.folder, place, 'dir')
        else await shareFiles(dependency.folder, place)
      }
      await symlink(hostPackage, join(modules, HOST_PACKAGE), 'dir')
      await writeFile(join(draft, LOADER), LOADER_CODE)
      await rm(folder, { recursive: true, force: true })
      await mkdir(dirname(folder), { recursive: true })
      await rename(draft, folder)
    } finally {
      await rm(draft, { recursive: true, force: true })
    }
  }
}

/** Imports a package by its name, as seen from a folder whose `node_modules` holds it. */
export async function importFrom (folder: string, name: string): Promise<unknown> {
  const loader = await import(pathToFileURL(join(folder, LOADER)).href) as { load: (name: string) => Promise<unknown> }
  return await loader.load(name)
}

/** A machine that lost its power may have kept the names of files without their bytes. */
async function isWhole (folder: string, { name, content }: PackageSource): Promise<boolean> {
  const there = await lstat(join(folder, LOADER)).catch(() => null)
  if (there === null || there.size !== LOADER_CODE.length) return false
  // another gateway made it, or this one before it moved: the plugin would get a contract of its own
  if (await readlink(join(folder, 'node_modules', HOST_PACKAGE)).catch(() => null) !== hostPackage) return false
  return await contentOf(join(folder, 'node_modules', name)).catch(() => null) === content
}

async function copyPackage (from: string, to: string): Promise<void> {
  await eachFile(from, to, undefined, (source, target) => copyFile(source, target, constants.COPYFILE_FICLONE))
}

/** The installer replaces files and never writes into them, so that hard links keep what they were made from. */
async function shareFiles (from: string, to: string): Promise<void> {
  await eachFile(from, to, new Set(['node_modules']), (source, target) =>
    link(source, target).catch(() => copyFile(source, target, constants.COPYFILE_FICLONE)))
}

async function eachFile (
  from: string, to: string, skipped: ReadonlySet<string> | undefined, put: (source: string, target: string) => Promise<void>
): Promise<void> {
  await mkdir(to, { recursive: true })
  const folders = new Set<string>([to])
  for (const path of await filesOf(from, skipped)) {
    const [source, target] = [join(from, path), join(to, path)]
    if (!folders.has(dirname(target))) await mkdir(dirname(target), { recursive: true })
    folders.add(dirname(target))
    if ((await lstat(source)).isSymbolicLink()) await followLink(source, target)
    else await put(source, target)
  }
}

async function followLink (source: string, target: string): Promise<void> {
  const real = await realpath(source).catch(() => null)
  if (real !== null) await symlink(real, target)
}

function folderName (name: string): string {
  return name.replace('/', '+')
}

function packageName (folder: string): string {
  return folder.replace('+', '/')
}
