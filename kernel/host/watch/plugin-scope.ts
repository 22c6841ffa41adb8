import { AsyncLocalStorage } from 'node:async_hooks'
import type { PluginRecord } from '../record/record.js'
import type { Frame } from './loop-watch.js'
import { sourcePlace } from './source-place.js'

/**
 * Which plugin the running code belongs to, while plugins are brought up. Follows asynchronous work, so that a
 * unhandled rejection can be attributed to its plugin. Node pays for this with every promise and every
 * socket event of the process, so `leaveScopes` ends it once all plugins are up; from then on a stray failure is
 * laid at a plugin's door by the files in its stack (`blamedByStack`).
 */
const scope = new AsyncLocalStorage<string>()

export function inPlugin<T> (name: string, work: () => T): T {
  return scope.run(name, work)
}

/**
 * As `inPlugin`, for the steps in which a plugin only declares: import, register, mount. What ships with the gateway leaves
 * no asynchronous work behind there, so a start without packages is not followed before the start hooks.
 */
export function whileDeclaring<T> ({ name, candidate }: PluginRecord, work: () => T): T {
  return candidate.origin === 'builtin' ? work() : inPlugin(name, work)
}

export function currentPlugin (): string | null {
  return scope.getStore() ?? null
}

/** Everything is up: tracking ends until the next `inPlugin`. */
export function leaveScopes (): void {
  scope.disable()
}

/** The plugin whose files stand highest in the error's stack; null when none of them does. `roots`: name to folder. */
export function blamedByStack (error: unknown, roots: ReadonlyMap<string, string>): string | null {
  const stack = error instanceof Error ? error.stack ?? '' : ''
  for (const line of stack.split('\n')) {
    for (const [name, root] of roots) {
      if (line.includes(root)) return name
    }
  }
  return null
}

/**
 * The first of places in code that lies in a plugin, in its source where that is known; null when none does.
 * @param roots name to folder
 */
export function placeAmong (
  places: readonly Frame[], roots: ReadonlyMap<string, string>
): { readonly plugin: string, readonly place: string } | null {
  for (const { url, line, column } of places) {
    for (const [plugin, root] of roots) {
      const at = url.indexOf(root)
      if (at >= 0) return { plugin, place: sourcePlace(root, { file: url.slice(at + root.length), line, column }) }
    }
  }
  return null
}
