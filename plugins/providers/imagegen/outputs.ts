import type { Clock } from 'svc-gateway/plugin'
import { readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** As many of the engine's own copies are kept, for those who look into its folder or its page. */
const KEPT = 100
/** Names that only this gateway's prompts have (`render.ts`). */
const OURS = /^svc-[0-9a-f]{12}_\d+_\.png$/

/** What a request gave the engine (`input-pictures.ts`), which takes it away again unless its gateway is killed. */
const OUR_INPUTS = /^svc-[0-9a-f]{12}-(image|mask)\.(png|jpeg|webp)$/
const NEEDED_MS = 24 * 3600_000

/**
 * Removes pictures that killed gateways left with the engine, when they are a day old: another gateway may use the folder. Never
 * rejects.
 */
export async function pruneInputs (folder: string, clock: Clock): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names) {
    if (!OUR_INPUTS.test(name)) continue
    const path = join(folder, name)
    await stat(path).then(async ({ mtimeMs }) => {
      if (clock.now() - mtimeMs > NEEDED_MS) await unlink(path)
    }).catch(() => {
      // a foreign file, or gone meanwhile
    })
  }
}

/**
 * Removes the oldest of the images that the engine saved for this gateway: their requests have been answered. Never
 * rejects; what may not be removed, or is on another host, stays.
 */
export async function pruneOutputs (folder: string, kept = KEPT): Promise<void> {
  try {
    const names = (await readdir(folder)).filter(name => OURS.test(name))
    if (names.length <= kept) return
    const files = await Promise.all(names.map(async name => ({ name, at: (await stat(join(folder, name))).mtimeMs })))
    const oldest = files.sort((a, b) => a.at - b.at).slice(0, files.length - kept)
    await Promise.all(oldest.map(({ name }) => unlink(join(folder, name))))
  } catch {
    // a foreign file, or gone meanwhile
  }
}
