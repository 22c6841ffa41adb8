import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes of GPU memory in use: VRAM, and system memory mapped for the GPU (GTT), over all cards. */
export interface GpuMemory {
  readonly vramUsed: number
  readonly gttUsed: number
}

/**
 * Reads the counters that AMD's driver keeps in sysfs; null where no card has them (other vendors, no GPU).
 * Never rejects.
 */
export async function readGpuMemory (root = '/'): Promise<GpuMemory | null> {
  const drm = join(root, 'sys/class/drm')
  const cards = (await readdir(drm).catch(() => [])).filter(name => /^card\d+$/.test(name))
  const used = await Promise.all(cards.map(async card => {
    const [vram, gtt] = await Promise.all(['mem_info_vram_used', 'mem_info_gtt_used'].map(name => readNumber(join(drm, card, 'device', name))))
    return { vram: vram!, gtt: gtt! }
  }))
  const known = used.filter(card => card.vram !== null || card.gtt !== null)
  if (known.length === 0) return null
  return {
    vramUsed: known.reduce((sum, card) => sum + (card.vram ?? 0), 0),
    gttUsed: known.reduce((sum, card) => sum + (card.gtt ?? 0), 0)
  }
}

async function readNumber (path: string): Promise<number | null> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return /^\d+\s*$/.test(text) ? Number(text) : null
}
