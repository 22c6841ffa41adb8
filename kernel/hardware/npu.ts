import type { GpuInfo } from '../contract/index.js'
import type { ProbeFiles } from './probe-files.js'
import { parseUevent } from './proc-text.js'

/** AMD's XDNA is the one that the `npu` device means; accelerators of other makers are not reported. */
export async function probeNpu (files: ProbeFiles, gpus: readonly GpuInfo[]): Promise<Record<string, unknown>> {
  for (const node of await files.list('/sys/class/accel')) {
    const device = `/sys/class/accel/${node}/device`
    const driver = parseUevent(await files.text(`${device}/uevent`) ?? '').get('DRIVER')
    if (driver !== 'amdxdna') continue
    const reachable = await files.exists(`/dev/accel/${node}`)
    return {
      present: true,
      vendor: 'amd',
      name: await files.text(`${device}/vbnv`) ?? 'AMD XDNA NPU',
      driver,
      accel_path: reachable ? `/dev/accel/${node}` : '',
      render_path: companion(gpus)?.drm_path ?? ''
    }
  }
  return {}
}

/** The graphics of the NPU's own processor, never a card beside it; an old driver does not say which GPU that is. */
function companion (gpus: readonly GpuInfo[]): GpuInfo | undefined {
  const amd = gpus.filter(gpu => gpu.vendor === 'amd')
  return amd.find(gpu => gpu.integrated) ?? (amd.length === 1 ? amd[0] : undefined)
}
