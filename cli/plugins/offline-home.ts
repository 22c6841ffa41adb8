import { mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { ConfigService, Logger, Paths } from '../../kernel/contract/index.js'
import { createConfigService } from '../../kernel/config/store.js'
import { linkHost, preparePluginHome } from '../../kernel/host/packages/plugin-home.js'
import { createWithLock } from '../../kernel/state/file-lock.js'
import { createSystemClock } from '../../kernel/state/system-clock.js'
import { settingsTables } from '../../plugins/index.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { requireHome } from '../offline/home/home-of.js'

/** A download may take a while; another change of the plugins waits for it. */
const WAIT_MS = 120_000

/**
 * The folders of a gateway, worked on from outside of it, whether it runs or not. The only place where the command line
 * touches the kernel's own code apart from `serve`.
 */
export class OfflineHome {
  readonly paths: Paths
  readonly #cli: Cli
  #config: ConfigService | null = null

  constructor (cli: Cli, paths: Paths) {
    this.#cli = cli
    this.paths = paths
  }

  /** Runs `work` while nothing else changes the plugins of this home. Rejects without a home, or when svc.toml is broken. */
  async exclusively<T> (work: () => Promise<T>): Promise<T> {
    await requireHome(this.paths)
    try {
      await this.#open()
      await mkdir(this.paths.plugins, { recursive: true })
    } catch (error) {
      throw notWritable(error, this.paths.plugins)
    }
    return await createWithLock({ text: 'svc plugin', waitMs: WAIT_MS })(join(this.paths.plugins, '.install.lock'), async () => {
      await preparePluginHome(this.paths.plugins)
      return await work()
    })
  }

  /** Names on the allow-list of svc.toml. */
  async allowed (): Promise<readonly string[]> {
    return (await this.#open()).snapshot.svc.plugins.allow
  }

  async allow (name: string): Promise<void> {
    const allow = await this.#freshList()
    if (!allow.includes(name)) await this.#write([...allow, name])
  }

  /** Whether it was there. */
  async disallow (name: string): Promise<boolean> {
    const allow = await this.#freshList()
    if (!allow.includes(name)) return false
    await this.#write(allow.filter(other => other !== name))
    return true
  }

  /**
   * Runs `work` of npm while the link that makes plugins find this gateway is out of its way: npm would look into the
   * gateway's own packages, and sweep the link away. Folders that `svc plugin dev` has linked stay linked, but for `removed`.
   */
  async withoutHost<T> (work: () => Promise<T>, removed: string | null = null): Promise<T> {
    const modules = join(this.paths.plugins, 'node_modules')
    const linked = (await linksIn(modules)).filter(({ name }) => name !== removed)
    try {
      await rm(join(modules, 'svc-gateway'), { recursive: true, force: true })
      return await work()
    } finally {
      await mkdir(modules, { recursive: true })
      await linkHost(modules)
      for (const { name, folder } of linked) {
        const link = join(modules, name)
        await mkdir(dirname(link), { recursive: true })
        // what was installed in its place stays
        await symlink(folder, link, 'dir').catch((error: NodeJS.ErrnoException) => { if (error.code !== 'EEXIST') throw error })
      }
    }
  }

  async #freshList (): Promise<readonly string[]> {
    return (await (await this.#open()).reload()).svc.plugins.allow
  }

  async #write (allow: readonly string[]): Promise<void> {
    await (await this.#open()).patchSvc({ plugins: { allow } })
  }

  async #open (): Promise<ConfigService> {
    const { env } = this.#cli
    return this.#config ??= await createConfigService({
      paths: this.paths, env, log: this.#log(), clock: createSystemClock(), withLock: createWithLock(), tables: settingsTables
    })
  }

  /** Problems of files that have nothing to do with plugins are for `svc status`; lost comments are for now. */
  #log (): Logger {
    const quiet = (): void => {}
    const warn = (fields: object | string, message?: string): void => {
      if (typeof fields === 'object' && 'reason' in fields) this.#cli.out.note(`Warning: svc.toml: ${message ?? ''}`)
    }
    return { debug: quiet, info: quiet, warn, error: quiet }
  }
}

interface LinkedFolder {
  readonly name: string
  readonly folder: string
}

/** Packages that are links, by their names. */
async function linksIn (modules: string): Promise<LinkedFolder[]> {
  const top = await readdir(modules, { withFileTypes: true })
  const scopes = top.filter(({ name }) => name.startsWith('@'))
  const scoped = await Promise.all(scopes.map(({ name }) => readdir(join(modules, name), { withFileTypes: true })))
  const entries = [...top, ...scoped.flat()].filter(entry => entry.isSymbolicLink())
  const links = entries.map(({ parentPath, name }) => join(parentPath, name))
  return await Promise.all(links.map(async link => ({ name: relative(modules, link), folder: await readlink(link) })))
}

function notWritable (error: unknown, folder: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error
  return new CliFailure(`${folder} cannot be written (${code})`, {
    cause: error, hints: ['Run it as the user of the gateway, or name another home with --home or SVC_HOME.']
  })
}
