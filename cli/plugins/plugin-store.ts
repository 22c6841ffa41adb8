import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { CliFailure } from '../failure.js'
import type { Npm } from '../npm.js'
import { readPackageManifest, type PackageManifest } from './package-manifest.js'
import type { PackageSpec } from './package-spec.js'

export interface StoredPackage {
  readonly name: string
  readonly version: string
  readonly kind: string | null
  /** As the lock file has it: `sha512-...`. */
  readonly integrity: string | null
}

const packedSchema = z.looseObject({ name: z.string(), version: z.string(), filename: z.string(), integrity: z.string() })
const homeSchema = z.looseObject({ dependencies: z.record(z.string(), z.string()).default({}) })
const lockedSchema = z.looseObject({ integrity: z.string().optional() })
const lockSchema = z.looseObject({ packages: z.record(z.string(), lockedSchema).default({}) })

/** The files that say what is installed. */
const RECORDS = ['package.json', 'package-lock.json'] as const

/**
 * The packages under `<state>/plugins`. Folders are packed first and their tarballs kept here: a copy is installed, never
 * a link, and it can be installed again when the folder is gone.
 */
export class PluginStore {
  readonly #folder: string
  readonly #npm: Npm

  constructor (folder: string, npm: Npm) {
    this.#folder = folder
    this.#npm = npm
  }

  /** Null when it is not installed. */
  async find (name: string): Promise<StoredPackage | null> {
    const manifest = await readPackageManifest(this.#folderOf(name))
    if (manifest === null) return null
    const lock = lockSchema.safeParse(await this.#json('package-lock.json'))
    const { version, kind } = manifest
    return { name, version, kind, integrity: lock.data?.packages[`node_modules/${name}`]?.integrity ?? null }
  }

  async list (): Promise<StoredPackage[]> {
    const home = homeSchema.safeParse(await this.#json('package.json'))
    const found = await Promise.all(Object.keys(home.data?.dependencies ?? {}).sort().map(name => this.find(name)))
    return found.filter(each => each !== null)
  }

  /** Installs a plugin. What turns out to be none is taken out again, and what it replaced is put back. */
  async add (spec: PackageSpec): Promise<StoredPackage> {
    const before = await Promise.all(RECORDS.map(file => readFile(join(this.#folder, file), 'utf8').catch(() => null)))
    const { name, install } = spec.source === 'registry' ? { name: spec.name, install: spec.spec } : await this.#pack(spec.path)
    await this.#npm.install(install)
    const manifest = await readPackageManifest(this.#folderOf(name))
    if (manifest?.problem !== null) {
      await Promise.all(RECORDS.map((file, i) => this.#restore(file, before[i]!)))
      await this.#npm.install()
    }
    await this.#sweepTarballs(name)
    if (manifest?.problem !== null) throw refusal(name, manifest)
    return (await this.find(name))!
  }

  async remove (name: string): Promise<void> {
    await this.#npm.uninstall(name)
    await this.#sweepTarballs(name)
  }

  #folderOf (name: string): string {
    return join(this.#folder, 'node_modules', name)
  }

  /** The file name carries the content: a changed folder of the same version is another tarball, so npm takes it. */
  async #pack (path: string): Promise<{ name: string, install: string }> {
    // a folder that is no plugin need not be packed
    const manifest = await readPackageManifest(path)
    if (manifest !== null && manifest.problem !== null) throw refusal(manifest.name, manifest)
    const staging = await mkdtemp(join(this.#folder, '.pack-'))
    try {
      const { name, version, filename, integrity } = packedSchema.parse(await this.#npm.pack(path, staging))
      const tarball = `${version}-${createHash('sha256').update(integrity).digest('hex').slice(0, 12)}.tgz`
      await mkdir(join(this.#folder, tarballsOf(name)), { recursive: true })
      // older releases of npm tell the name of a scoped package's file as if it were in a folder
      await rename(join(staging, filename.replace(/^@/, '').replaceAll('/', '-')), join(this.#folder, tarballsOf(name), tarball))
      return { name, install: `./${tarballsOf(name)}/${tarball}` }
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }

  /** Removes the tarballs of a package that it is not installed from. */
  async #sweepTarballs (name: string): Promise<void> {
    const used = homeSchema.safeParse(await this.#json('package.json')).data?.dependencies[name] ?? ''
    const folder = join(this.#folder, tarballsOf(name))
    const files = await readdir(folder).catch(() => [])
    const unused = files.filter(file => !used.endsWith(`/${file}`))
    await Promise.all(unused.map(file => rm(join(folder, file), { force: true })))
    if (unused.length === files.length) await rm(folder, { recursive: true, force: true })
  }

  async #restore (file: string, content: string | null): Promise<void> {
    const path = join(this.#folder, file)
    if (content === null) await rm(path, { force: true })
    else await writeFile(path, content)
  }

  async #json (file: string): Promise<unknown> {
    const text = await readFile(join(this.#folder, file), 'utf8').catch(() => 'null')
    return JSON.parse(text)
  }
}

function tarballsOf (name: string): string {
  return `packages/${name}`
}

function refusal (name: string, manifest: PackageManifest | null): CliFailure {
  return new CliFailure(`package '${name}' ${manifest?.problem ?? 'has no package.json'}; it was not installed`)
}
