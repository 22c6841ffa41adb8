import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CliFailure, usageFailure } from '../failure.js'

export type PackageSpec =
  /** A folder or a tarball on this machine; absolute. */
  | { readonly source: 'local', readonly path: string }
  | { readonly source: 'registry', readonly name: string, readonly spec: string }

const REGISTRY_SPEC = /^((?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*)(?:@([A-Za-z0-9.^~<>=*|+ -]+))?$/
const LOCAL_SPEC = /^(?:\.{1,2}(?:\/|$)|\/|~\/)|\.(?:tgz|tar\.gz)$|^[^@][^/]*\//

/** What to install: a path, a tarball, or a name with an optional version or tag. Nothing else: no repositories, no URLs. */
export async function parsePackageSpec (text: string, cwd: string): Promise<PackageSpec> {
  const isUrl = /^[a-z+]+:/i.test(text)
  if (!isUrl && LOCAL_SPEC.test(text)) return await localSpec(text.startsWith('~/') ? join(homedir(), text.slice(2)) : resolve(cwd, text))
  const [, name] = REGISTRY_SPEC.exec(text) ?? []
  if (name !== undefined) return { source: 'registry', name, spec: text }
  throw usageFailure(`'${text}' is neither a folder, a tarball, nor the name of a package`, [
    'Give ./folder, ./package.tgz, name or name@version.'
  ])
}

export function isPackageName (text: string): boolean {
  const match = REGISTRY_SPEC.exec(text)
  return match !== null && match[2] === undefined
}

async function localSpec (path: string): Promise<PackageSpec> {
  const stats = await stat(path).catch(() => null)
  if (stats === null) throw new CliFailure(`there is no folder or tarball at ${path}`)
  if (stats.isDirectory() && await stat(join(path, 'package.json')).catch(() => null) === null) {
    throw new CliFailure(`${path} has no package.json, so it is not a package`)
  }
  return { source: 'local', path }
}
