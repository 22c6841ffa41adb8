import { spawn } from 'node:child_process'
import { access, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths } from '../../../kernel/contract/index.js'
import { makeFolders } from '../../../kernel/config/files/make-folders.js'
import { packageRoot } from '../../../kernel/config/package-root.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { libraryCheck } from '../../../plugins/providers/llm-server/embedded-engine.js'
import { PROGRAM_HINT } from '../../../plugins/providers/llm-server/words.js'
import { buildFor, EMBEDDED, installedFolder, LIBRARY, libraryGpus, libraryIn, type LibraryGpu } from '../../../plugins/providers/llm-server/ref.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { Npm } from '../../npm.js'

/** A download may take a while; another install waits for it. */
const WAIT_MS = 600_000
const LOOK_MS = 500
const USER_HINT = 'Run it as the user of the gateway, or name another home with --home or SVC_HOME.'

export interface InstalledEngine {
  readonly name: string
  readonly version: string
  /** Packages with builds of it, for the processor and perhaps a GPU. */
  readonly builds: readonly string[]
  readonly bytes: number
  readonly folder: string
}

export interface InstallOptions {
  readonly gpu: LibraryGpu | null
  /** Told twice a second how much is there. */
  readonly onProgress: (bytes: number) => void
}

/**
 * The engines below `<state>/engines`. One is put together in a folder beside its place and tried there, and takes its
 * place in one step: what was cut off is never taken for an engine, and the next call sweeps it.
 */
export class EngineStore {
  readonly #cli: Cli
  readonly #root: string
  readonly #folder: string

  constructor (cli: Cli, { state }: Pick<Paths, 'state'>) {
    this.#cli = cli
    this.#folder = installedFolder(state)
    this.#root = join(this.#folder, '..')
  }

  /** Null when it is not installed. */
  async find (): Promise<InstalledEngine | null> {
    if (!await isThere(libraryIn(this.#folder), this.#folder)) return null
    const version = await versionIn(join(this.#folder, 'node_modules', LIBRARY))
    const known = [null, ...libraryGpus].map(gpu => buildFor(process.platform, process.arch, gpu)).filter(build => build !== null)
    const found = await Promise.all(known.map(build => versionIn(join(this.#folder, 'node_modules', ...build.split('/')))))
    const builds = known.filter((_, i) => found[i] !== null)
    return { name: EMBEDDED, version: version ?? 'unknown', builds, bytes: await sizeOf(this.#folder), folder: this.#folder }
  }

  async install ({ gpu, onProgress }: InstallOptions): Promise<InstalledEngine> {
    const builds = buildsFor(gpu)
    const version = await libraryVersion()
    await this.#exclusively(async () => {
      const staging = await mkdtemp(join(this.#root, '.new-'))
      try {
        await writeFile(join(staging, 'package.json'), `${JSON.stringify({ name: `svc-engine-${EMBEDDED}`, private: true })}\n`)
        await this.#download(staging, [LIBRARY, ...builds].map(name => `${name}@${version}`), onProgress)
        await this.#tryOut(staging)
        await this.#swapIn(staging)
      } finally {
        await rm(staging, { recursive: true, force: true })
      }
    })
    return (await this.find())!
  }

  /** Whether it was there. */
  async remove (): Promise<boolean> {
    const found = await stat(this.#folder).catch(() => null)
    if (found === null) return false
    await this.#exclusively(async () => {
      const doomed = await mkdtemp(join(this.#root, '.old-'))
      await rename(this.#folder, join(doomed, EMBEDDED))
      await rm(doomed, { recursive: true, force: true })
    })
    return true
  }

  async #exclusively (work: () => Promise<void>): Promise<void> {
    try {
      await makeFolders(this.#root)
      await createWithLock({ text: 'svc engine', waitMs: WAIT_MS })(join(this.#root, '.install.lock'), async () => {
        await this.#sweep()
        await work()
      })
    } catch (error) {
      throw notWritable(error, this.#root)
    }
  }

  /** What an earlier call left that was killed. Its npm may still write there: what is left then is for the next call. */
  async #sweep (): Promise<void> {
    const names = await readdir(this.#root)
    const left = names.filter(name => name.startsWith('.new-') || name.startsWith('.old-'))
    await Promise.all(left.map(name => rm(join(this.#root, name), { recursive: true, force: true }).catch(() => undefined)))
  }

  async #download (staging: string, specs: readonly string[], onProgress: (bytes: number) => void): Promise<void> {
    let isLooking = false
    const look = async (): Promise<void> => {
      if (isLooking) return
      isLooking = true
      onProgress(await sizeOf(staging))
      isLooking = false
    }
    const timer = setInterval(() => { void look() }, LOOK_MS)
    try {
      await new Npm(staging, this.#cli.env, this.#cli.signal).installExactly(...specs)
    } finally {
      clearInterval(timer)
    }
  }

  /** Loads the library in a process of its own: a build that this system cannot run is known now and not at a slot's start. */
  async #tryOut (staging: string): Promise<void> {
    const child = spawn(process.execPath, [libraryCheck, libraryIn(staging)], { stdio: ['ignore', 'ignore', 'pipe'], signal: this.#cli.signal })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => { said = (said + chunk.toString('utf8')).slice(-4000) })
    const how = await new Promise<string>(resolve => {
      child.once('error', error => resolve(error.message))
      child.once('close', (code, signal) => resolve(signal ?? `exit code ${code ?? 'unknown'}`))
    })
    this.#cli.signal.throwIfAborted()
    if (how === 'exit code 0') return
    const reason = said.split('\n').find(line => /^\w*Error\b/.test(line.trim()) || line.trim().startsWith(`[${LIBRARY}]`))?.trim() ?? how
    throw new CliFailure(`the engine cannot run on this machine: ${reason}`, {
      hints: [`Nothing was installed. Use a container engine, or ${PROGRAM_HINT}.`]
    })
  }

  async #swapIn (staging: string): Promise<void> {
    const doomed = await mkdtemp(join(this.#root, '.old-'))
    await rename(this.#folder, join(doomed, EMBEDDED)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    await rename(staging, this.#folder)
    await rm(doomed, { recursive: true, force: true })
  }
}

function buildsFor (gpu: LibraryGpu | null): string[] {
  const { platform, arch } = process
  const own = buildFor(platform, arch, null)
  if (own === null) {
    throw new CliFailure(`there is no build of the embedded engine for ${platform} on ${arch}`, { hints: [`Use a container engine, or ${PROGRAM_HINT}.`] })
  }
  const beside = gpu === null ? null : buildFor(platform, arch, gpu)
  if (gpu !== null && beside === null) throw new CliFailure(`there is no ${gpu} build of the embedded engine for ${platform} on ${arch}`)
  return beside === null ? [own] : [own, beside]
}

/** The one that this release was tested with. */
async function libraryVersion (): Promise<string> {
  const { peerDependencies } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { peerDependencies: Record<string, string> }
  return peerDependencies[LIBRARY]!.replace(/^\D+/, '')
}

async function isThere (path: string, folder: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EPERM') return false
    throw new CliFailure(`${folder} cannot be read (${code})`, { cause: error, hints: [USER_HINT] })
  }
}

export function canRead (path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}

async function versionIn (folder: string): Promise<string | null> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => null)
  return text === null ? null : (JSON.parse(text) as { version?: string }).version ?? 'unknown'
}

/** Of all files below a folder. What goes away meanwhile does not count. */
async function sizeOf (folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(entries.map(async entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return await sizeOf(path)
    return entry.isFile() ? await stat(path).then(({ size }) => size, () => 0) : 0
  }))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function notWritable (error: unknown, folder: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error
  return new CliFailure(`${folder} cannot be written (${code})`, {
    cause: error, hints: [USER_HINT]
  })
}
