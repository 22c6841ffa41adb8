import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { EmbeddedEngine } from './launch.js'
import { installedFolder, LIBRARY } from './ref.js'

/** Set where the bundle is made, which lies one folder deeper than what the compiler writes. */
declare const SVC_BUNDLED: true | undefined

/**
 * Where the embedded engine is, and where its library may be: next to the gateway, as in a checkout, or in the state
 * folder. Without the former it names the place where `npm install` would put it, so installing it needs no restart.
 */
export function locateEmbeddedEngine (state: string): EmbeddedEngine {
  let library: string | null = null
  return {
    main: programAt('./embedded/main.js'),
    // to look for a package takes longer than all else that a plugin does at a start, and the first engine is when it matters
    get library () { return library ??= ownLibrary() },
    installed: installedFolder(state)
  }
}

/** The program that tells whether this machine runs a library. */
export const libraryCheck = programAt('./embedded/check-library.js')

function programAt (path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

export function ownLibrary (): string {
  try {
    return createRequire(import.meta.url).resolve(LIBRARY)
  } catch {
    const root = new URL(typeof SVC_BUNDLED === 'undefined' ? '../../../..' : '../../../../..', import.meta.url)
    return fileURLToPath(new URL(`./node_modules/${LIBRARY}/dist/index.js`, root))
  }
}
