import { mkdirSync } from 'node:fs'
import { mkdir, readFile, readlink, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '../../config/files/atomic-file.js'
import { hostPackage } from '../../config/package-root.js'

const LOADER = 'export const load = name => import(name)\n'
const MANIFEST = `${JSON.stringify({ name: 'svc-plugins', private: true, description: 'Plugins of an svc gateway; managed by `svc plugin`' }, null, 2)}\n`

/**
 * Makes the folder that third-party plugins are installed in, and links this gateway into it: so that
 * `svc-gateway/plugin` means one and the same module for the host and for every plugin.
 */
export async function preparePluginHome (home: string): Promise<void> {
  const modules = join(home, 'node_modules')
  await mkdir(modules, { recursive: true })
  const loader = join(home, 'loader.mjs')
  if (await readFile(loader, 'utf8').catch(() => null) !== LOADER) await writeFileAtomic(loader, LOADER)
  await writeFileAtomic(join(home, 'package.json'), MANIFEST, { exclusive: true }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
  await linkHost(modules)
}

/** What a plugin keeps, apart from its package, which comes and goes. Made here, and private. */
export function pluginFolder (stateDir: string, plugin: string): string {
  const folder = join(stateDir, 'plugin-state', plugin)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Installing packages may sweep the link away: it is set again after every change. */
export async function linkHost (modules: string): Promise<void> {
  const link = join(modules, 'svc-gateway')
  if (await readlink(link).catch(() => null) === hostPackage) return
  await rm(link, { recursive: true, force: true })
  await symlink(hostPackage, link, 'dir')
}
