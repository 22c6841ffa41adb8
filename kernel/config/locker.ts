import { join } from 'node:path'
import type { Paths } from '../contract/index.js'

/**
 * Runs `work` while this process, and nothing else in it, holds the lock of `file`. Throws `config.locked` when another
 * process keeps it too long. kernel/state/file-lock.ts makes one; it is a parameter because config may not import state.
 * Not re-entrant.
 */
export type WithLock = <T>(file: string, work: () => Promise<T>) => Promise<T>

/** One coarse lock for every file under the configuration root. */
export function configLock ({ etc }: Pick<Paths, 'etc'>): string {
  return join(etc, '.config.lock')
}
