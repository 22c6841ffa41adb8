import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../repository.js'

export const bundleFolder = join(root, 'dist', 'lib')
/** What starts the bundle, and the last file of it that is written. */
export const bundledProgram = join(bundleFolder, 'svc.cjs')

/** Whether the bundle is what the sources, the packages and the bundler would make now. */
export function isFresh (): boolean {
  const made = statSync(bundledProgram, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = ['kernel', 'plugins', 'cli', 'test/bundle'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true }).map(file => join(root, folder, String(file))))
  return [...sources, join(root, 'package.json'), join(root, 'package-lock.json')].every(file => statSync(file).mtimeMs < made)
}

let fresh: boolean | null = null

/** What ships of a module of the gateway that runs as a thread; the module itself if the bundle is older than the sources. */
export function shippedThread (module: URL): URL {
  const compiled = pathToFileURL(join(root, 'dist/')).href
  if (!module.href.startsWith(compiled)) return module
  const shipped = new URL(module.href.slice(compiled.length), pathToFileURL(`${bundleFolder}/`))
  return existsSync(shipped) && (fresh ??= isFresh()) ? shipped : module
}
