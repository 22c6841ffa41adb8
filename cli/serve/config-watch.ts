import { watch, type FSWatcher } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue, type Paths } from '../../kernel/contract/index.js'

export interface ConfigWatch {
  close (): void
}

/** Editors write a file in several steps; only the quiet after them counts. */
const QUIET_MS = 200

/**
 * Calls `changed` after files of the configuration have changed. Temporary files and locks, which start with a dot, do
 * not count. Calls never overlap; `failed` hears of those that reject.
 */
export async function watchConfig (
  paths: Pick<Paths, 'etc' | 'slots'>, changed: () => Promise<void>, failed: (error: unknown) => void
): Promise<ConfigWatch> {
  let timer: NodeJS.Timeout | null = null
  const calls = new SerialQueue()
  const touch = (_event: string, file: string | null): void => {
    if (file?.startsWith('.') === true) return
    if (timer !== null) clearTimeout(timer)
    timer = setTimeout(() => { calls.run(changed).catch(failed) }, QUIET_MS)
  }
  const folders = [paths.etc, paths.slots, join(paths.etc, 'engines')]
  const watchers: FSWatcher[] = []
  for (const folder of folders) {
    // a folder that is not there cannot be watched
    await mkdir(folder, { recursive: true })
    watchers.push(watch(folder, { persistent: false }, touch))
  }
  return {
    close () {
      if (timer !== null) clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
    }
  }
}
