import { hardwareSchema, mainGpuOf, rankGpus, type Clock, type GpuInfo, type HardwareInfo } from '../contract/index.js'
import { probeCgroupMax } from './cgroup.js'
import { probeGpus } from './gpus.js'
import { probeHost, withSystemFallback } from './host.js'
import { probeNpu } from './npu.js'
import type { NvidiaReader } from './nvidia-smi.js'
import { platformOf } from './platform.js'
import { createProbeFiles } from './probe-files.js'

export interface ProbeOptions {
  /** `/`, or a recorded tree. */
  readonly root: string
  readonly clock: Clock
  /** The file system whose free space counts: where models are stored. */
  readonly diskPath: string
  readonly timeoutMs?: number
  /** Asked where files show an NVIDIA GPU; default is none. */
  readonly nvidia?: NvidiaReader
}

const TIMEOUT_MS = 3000

/**
 * What this machine is, from /proc, /sys, /dev and /etc. Never rejects and takes at most
 * `timeoutMs` (3000); what cannot be told stays at the schema's default.
 */
export async function probeHardware (options: ProbeOptions): Promise<HardwareInfo> {
  const { root, clock, diskPath, nvidia, timeoutMs = TIMEOUT_MS } = options
  const files = createProbeFiles(root, clock, timeoutMs)
  const patience = new AbortController()
  const limit = clock.setTimer(timeoutMs, () => patience.abort())
  try {
    const [host, cards, cgroup, free] = await Promise.all([
      probeHost(files),
      probeGpus(files, async () => await nvidia?.(patience.signal) ?? null),
      probeCgroupMax(files),
      files.diskFree(diskPath)
    ])
    const { virtual, container, dmi, ...plain } = root === '/' ? withSystemFallback(host) : host
    const gpus = cards.map(gpu => sharesAll(gpu) ? { ...gpu, gtt_mb: plain.ram_mb } : gpu)
    const shared = rankGpus(gpus.filter(gpu => gpu.integrated))[0]
    return hardwareSchema.parse({
      ...plain,
      unified_memory_mb: shared?.gtt_mb ?? 0,
      disk_free_mb: Math.floor((free ?? 0) / 1024 ** 2),
      gpus,
      npu: await probeNpu(files, gpus),
      cgroup_max_mb: cgroup,
      probed_at: new Date(clock.now()).toISOString(),
      platform: platformOf({ cpuModel: plain.cpu_model, osRelease: plain.kernel, virtual, dmi, container, gpus }),
      extra: { gtt_total_mb: mainGpuOf(gpus)?.gtt_mb ?? 0, container, virtual }
    })
  } finally {
    limit.cancel()
    files.close()
  }
}

/** NVIDIA's integrated parts may map all of the host's memory; their driver has no file that says so. */
function sharesAll ({ vendor, integrated }: GpuInfo): boolean {
  return vendor === 'nvidia' && integrated
}
