import { readdir, rmdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** How long what a failed pull left is kept for another try. */
const KEEP_MS = 24 * 60 * 60_000

/** Removes old part files that no unfinished job waits for. Never rejects: what stays costs space and nothing else. */
export async function sweepStaging (store: string, waiting: ReadonlySet<string>, nowMs: number): Promise<void> {
  const folder = join(store, '.tmp')
  for (const name of await readdir(folder).catch(() => [])) {
    const key = /^([0-9a-f]{24})\.(?:part|json|json\.tmp|json\.[0-9a-f]{8}\.tmp)$/.exec(name)?.[1]
    if (key === undefined || waiting.has(key)) continue
    const stats = await stat(join(folder, name)).catch(() => null)
    if (stats !== null && nowMs - stats.mtimeMs > KEEP_MS) await unlink(join(folder, name)).catch(() => undefined)
  }
  await rmdir(folder).catch(() => undefined)
}
