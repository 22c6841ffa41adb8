import type { GpuInfo } from '../contract/index.js'
import type { NvidiaGpu } from './nvidia-smi.js'
import { pciName } from './pci-names.js'
import type { ProbeFiles } from './probe-files.js'
import { bytesToMib, parseUevent } from './proc-text.js'

export interface GpuFacts {
  readonly gpus: readonly GpuInfo[]
  /** MiB of system memory that the first AMD GPU may map. */
  readonly gttMb: number
  /** The first AMD GPU is part of the processor and has no memory of its own. */
  readonly integratedAmd: boolean
  /** An NVIDIA GPU that has no memory of its own: its tool tells no size. */
  readonly unifiedNvidia: boolean
}

interface Found {
  readonly gpu: GpuInfo
  readonly gttMb: number
  readonly integrated: boolean
}

const vendors: Readonly<Record<string, GpuInfo['vendor']>> = { '1002': 'amd', '10de': 'nvidia', '8086': 'intel' }
const vendorTitles: Readonly<Record<GpuInfo['vendor'], string>> = { amd: 'AMD', nvidia: 'NVIDIA', intel: 'Intel', unknown: 'Unknown' }

/** Display adapters of virtual machines and test drivers: they have render nodes, and nothing behind them that computes. */
const virtualDrivers = new Set([
  'virtio_gpu', 'virtio-pci', 'vgem', 'vkms', 'bochs-drm', 'cirrus', 'qxl', 'vmwgfx', 'vboxvideo', 'simple-framebuffer', 'hyperv_drm',
  'ast', 'mgag200'
])

/**
 * GPUs in the order of their PCI addresses; `index` counts per vendor, as the runtimes of the vendors do.
 * @param askNvidia called where files show NVIDIA's driver, or that of WSL: they tell no sizes
 */
export async function probeGpus (files: ProbeFiles, askNvidia: () => Promise<readonly NvidiaGpu[] | null>): Promise<GpuFacts> {
  const nodes = await files.list('/sys/class/drm')
  const cards = nodes.filter(node => /^card\d+$/.test(node))
  const renders = await renderNodes(files, nodes.filter(node => /^renderD\d+$/.test(node)))
  const found = (await Promise.all(cards.map(card => probeCard(files, card, renders)))).filter(item => item !== null)
  const listed = [...found, ...await probeNvidia(files, new Set(found.map(item => item.gpu.pci_id)))]
  const isNvidia = listed.some(({ gpu }) => gpu.driver === 'nvidia') || await files.exists('/dev/dxg')
  const told = isNvidia ? await askNvidia() ?? [] : []
  const all = withTold(listed, told).sort((a, b) => a.gpu.pci_id < b.gpu.pci_id ? -1 : 1)
  const amd = all.find(item => item.gpu.vendor === 'amd')
  return {
    gpus: all.map(({ gpu }, i) => ({ ...gpu, index: all.slice(0, i).filter(other => other.gpu.vendor === gpu.vendor).length })),
    gttMb: amd?.gttMb ?? 0,
    integratedAmd: amd?.integrated ?? false,
    unifiedNvidia: told.length > 0 && told.every(gpu => gpu.memoryTotalMb === null)
  }
}

/** NVIDIA's tool knows the sizes, and under WSL it is the only one who knows of the GPUs at all. */
function withTold (listed: readonly Found[], told: readonly NvidiaGpu[]): Found[] {
  const known = listed.map(item => {
    const own = told.find(gpu => gpu.pciId === item.gpu.pci_id)
    return own === undefined ? item : { ...item, gpu: { ...item.gpu, name: own.name, vram_mb: own.memoryTotalMb ?? 0 } }
  })
  const more = told.filter(gpu => !listed.some(item => item.gpu.pci_id === gpu.pciId))
  return [...known, ...more.map(gpu => nvidiaFound(gpu.pciId, gpu.name, gpu.memoryTotalMb ?? 0))]
}

/** Render nodes that this process could open, by the device they belong to. */
async function renderNodes (files: ProbeFiles, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const pairs = await Promise.all(names.map(async name => {
    const device = await deviceId(files, `/sys/class/drm/${name}`)
    return device !== null && await files.exists(`/dev/dri/${name}`) ? [device, `/dev/dri/${name}`] as const : null
  }))
  return new Map(pairs.filter(pair => pair !== null))
}

async function deviceId (files: ProbeFiles, node: string): Promise<string | null> {
  const uevent = parseUevent(await files.text(`${node}/device/uevent`) ?? '')
  return uevent.get('PCI_SLOT_NAME') ?? uevent.get('OF_FULLNAME') ?? null
}

async function probeCard (files: ProbeFiles, card: string, renders: ReadonlyMap<string, string>): Promise<Found | null> {
  const device = `/sys/class/drm/${card}/device`
  const uevent = parseUevent(await files.text(`${device}/uevent`) ?? '')
  const driver = uevent.get('DRIVER') ?? ''
  if (driver === '' || virtualDrivers.has(driver)) return null
  const vendorId = hexId(await files.text(`${device}/vendor`))
  const vendor = vendors[vendorId] ?? 'unknown'
  const id = uevent.get('PCI_SLOT_NAME') ?? uevent.get('OF_FULLNAME') ?? card
  const drmPath = renders.get(id) ?? ''
  return {
    gpu: {
      vendor,
      index: 0,
      name: await gpuName(files, device, vendorId, vendor),
      vram_mb: bytesToMib(await files.text(`${device}/mem_info_vram_total`)),
      pci_id: id,
      driver,
      drm_path: drmPath,
      compute_capable: await canCompute(files, driver),
      vulkan_capable: drmPath !== ''
    },
    gttMb: bytesToMib(await files.text(`${device}/mem_info_gtt_total`)),
    integrated: vendor === 'amd' && await isApu(files, device)
  }
}

/** ROCm needs the kernel's compute interface; NVIDIA's own driver brings CUDA. */
async function canCompute (files: ProbeFiles, driver: string): Promise<boolean> {
  if (driver === 'amdgpu') return await files.exists('/dev/kfd')
  return driver === 'nvidia'
}

/** The format of the metrics tells: 1 is a card, 2 and 3 are processors with graphics. */
async function isApu (files: ProbeFiles, device: string): Promise<boolean> {
  const header = await files.bytes(`${device}/gpu_metrics`, 4)
  return header !== null && header.length === 4 && header[2]! >= 2
}

async function gpuName (files: ProbeFiles, device: string, vendorId: string, vendor: GpuInfo['vendor']): Promise<string> {
  const product = await files.text(`${device}/product_name`)
  if (product !== null && product !== '') return product
  const deviceId = hexId(await files.text(`${device}/device`))
  if (vendorId === '') return `${vendorTitles[vendor]} GPU`
  return await pciName(files, vendorId, deviceId) ?? `${vendorTitles[vendor]} GPU ${vendorId}:${deviceId}`
}

/** NVIDIA's driver need not have a DRM node; it always tells its GPUs below /proc. */
async function probeNvidia (files: ProbeFiles, known: ReadonlySet<string>): Promise<readonly Found[]> {
  const slots = (await files.list('/proc/driver/nvidia/gpus')).filter(slot => !known.has(slot))
  return await Promise.all(slots.map(async slot => {
    const information = await files.text(`/proc/driver/nvidia/gpus/${slot}/information`) ?? ''
    return nvidiaFound(slot, /^Model:\s*(.+)$/m.exec(information)?.[1]?.trim() ?? 'NVIDIA GPU', 0)
  }))
}

function nvidiaFound (pciId: string, name: string, vramMb: number): Found {
  return {
    gpu: {
      vendor: 'nvidia',
      index: 0,
      name,
      vram_mb: vramMb,
      pci_id: pciId,
      driver: 'nvidia',
      drm_path: '',
      compute_capable: true,
      vulkan_capable: false
    },
    gttMb: 0,
    integrated: false
  }
}

function hexId (text: string | null): string {
  return text === null ? '' : text.replace(/^0x/, '').toLowerCase()
}
