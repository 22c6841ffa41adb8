import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { packageRoot } from '../../kernel/config/package-root.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { readPackageManifest } from './package-manifest.js'

/**
 * Makes `svc-gateway` in the package's `node_modules` this gateway, so that an author compiles and tests against what the
 * plugin will run in, without installing the gateway once more. A copy that npm installed there is left alone.
 */
export async function linkGateway (folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  const link = join(modules, 'svc-gateway')
  const there = await lstat(link).catch(() => null)
  if (there !== null && !there.isSymbolicLink()) return
  if (there !== null && await readlink(link) === packageRoot) return
  await rm(link, { force: true })
  await mkdir(modules, { recursive: true })
  await symlink(packageRoot, link, 'dir')
}

export async function linkCommand (cli: Cli, text: string): Promise<void> {
  const folder = resolve(cli.process.cwd(), text)
  if (await readPackageManifest(folder) === null) throw new CliFailure(`${folder} has no package.json, so it is not a package`)
  await linkGateway(folder)
  cli.out.line(`svc-gateway in ${join(folder, 'node_modules')} is ${packageRoot}.`)
}
