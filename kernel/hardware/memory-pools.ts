import type { Clock } from '../contract/index.js'
import { createProbeFiles, type ProbeFiles } from './probe-files.js'
import { bytesToMib, parseMemInfo } from './proc-text.js'

/**
 * One pool of memory that engines live in: the host's, the video memory of one GPU, or the host memory that one GPU
 * may map (GTT). Sizes in MiB.
 */
export interface MemoryPool {
  readonly kind: 'ram' | 'vram' | 'gtt'
  /** PCI address of the GPU; empty for the host's memory. */
  readonly gpu: string
  readonly totalMb: number
  readonly availableMb: number
}

const READ_TIMEOUT_MS = 2_000

/**
 * What /proc/meminfo and AMD's driver in sysfs say at this moment; empty where they say nothing (other systems). Never
 * rejects; a driver that hangs costs two seconds.
 */
export async function readMemoryPools (clock: Clock, root = '/'): Promise<readonly MemoryPool[]> {
  const files = createProbeFiles(root, clock, READ_TIMEOUT_MS)
  try {
    const cards = (await files.list('/sys/class/drm')).filter(node => /^card\d+$/.test(node))
    const pools = await Promise.all([hostPool(files), ...cards.flatMap(card => [gpuPool(files, card, 'vram'), gpuPool(files, card, 'gtt')])])
    return pools.filter(pool => pool !== null)
  } finally {
    files.close()
  }
}

async function hostPool (files: ProbeFiles): Promise<MemoryPool | null> {
  const text = await files.text('/proc/meminfo')
  if (text === null || !/^MemAvailable:\s*\d/m.test(text)) return null
  const { total, available } = parseMemInfo(text)
  return { kind: 'ram', gpu: '', totalMb: total, availableMb: available }
}

async function gpuPool (files: ProbeFiles, card: string, kind: 'vram' | 'gtt'): Promise<MemoryPool | null> {
  const device = `/sys/class/drm/${card}/device`
  const [total, used, uevent] = await Promise.all([
    files.text(`${device}/mem_info_${kind}_total`), files.text(`${device}/mem_info_${kind}_used`), files.text(`${device}/uevent`)
  ])
  if (total === null || used === null || !/^\d+$/.test(total) || !/^\d+$/.test(used)) return null
  const totalMb = bytesToMib(total)
  const gpu = /^PCI_SLOT_NAME=(.+)$/m.exec(uevent ?? '')?.[1] ?? card
  return { kind, gpu, totalMb, availableMb: Math.max(0, totalMb - bytesToMib(used)) }
}
