import type { GpuInfo } from '../contract/index.js'
import type { NvidiaGpu } from './nvidia-smi.js'
import { pciName } from './pci-names.js'
import type { ProbeFiles } from './probe-files.js'
import { bytesToMib, parseUevent } from './proc-text.js'

const vendors: Readonly<Record<string, GpuInfo['vendor']>> = { '1002': 'amd', '10de': 'nvidia', '8086': 'intel' }
const vendorTitles: Readonly<Record<GpuInfo['vendor'], string>> = { amd: 'AMD', nvidia: 'NVIDIA', intel: 'Intel', unknown: 'Unknown' }

/** Where Intel's processors have their graphics; a card of Intel is elsewhere. */
const INTEL_GRAPHICS = '0000:00:02.0'

/** Display adapters of virtual machines and test drivers: they have render nodes, and nothing behind them that computes. */
const virtualDrivers = new Set([
  'virtio_gpu', 'virtio-pci', 'vgem', 'vkms', 'bochs-drm', 'cirrus', 'qxl', 'vmwgfx', 'vboxvideo', 'simple-framebuffer', 'hyperv_drm',
  'ast', 'mgag200'
])

/**
 * GPUs in the order of their PCI addresses; `index` counts per vendor, as the runtimes of the vendors do.
 * @param askNvidia called where files show NVIDIA's driver, or that of WSL: they tell no sizes
 */
export async function probeGpus (
  files: ProbeFiles, askNvidia: () => Promise<readonly NvidiaGpu[] | null>
): Promise<readonly GpuInfo[]> {
  const nodes = await files.list('/sys/class/drm')
  const cards = nodes.filter(node => /^card\d+$/.test(node))
  const renders = await renderNodes(files, nodes.filter(node => /^renderD\d+$/.test(node)))
  const found = (await Promise.all(cards.map(card => probeCard(files, card, renders)))).filter(item => item !== null)
  const listed = [...found, ...await probeNvidia(files, new Set(found.map(gpu => gpu.pci_id)))]
  const isNvidia = listed.some(gpu => gpu.driver === 'nvidia') || await files.exists('/dev/dxg')
  const told = isNvidia ? await askNvidia() ?? [] : []
  const all = withTold(listed, told).sort((a, b) => a.pci_id < b.pci_id ? -1 : 1)
  return all.map((gpu, i) => ({ ...gpu, index: all.slice(0, i).filter(other => other.vendor === gpu.vendor).length }))
}

/** NVIDIA's tool knows the sizes, and under WSL it is the only one who knows of the GPUs at all. */
function withTold (listed: readonly GpuInfo[], told: readonly NvidiaGpu[]): GpuInfo[] {
  const known = listed.map(gpu => {
    const own = told.find(({ pciId }) => pciId === gpu.pci_id)
    return own === undefined ? gpu : { ...gpu, name: own.name, ...memoryOf(own) }
  })
  const more = told.filter(({ pciId }) => !listed.some(gpu => gpu.pci_id === pciId))
  return [...known, ...more.map(gpu => ({ ...nvidiaGpu(gpu.pciId, gpu.name), ...memoryOf(gpu) }))]
}

/** The tool tells no size of a part that works in the host's memory. */
function memoryOf ({ memoryTotalMb: mb }: NvidiaGpu): Pick<GpuInfo, 'vram_mb' | 'integrated'> {
  return { vram_mb: mb ?? 0, integrated: mb === null }
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

async function probeCard (files: ProbeFiles, card: string, renders: ReadonlyMap<string, string>): Promise<GpuInfo | null> {
  const device = `/sys/class/drm/${card}/device`
  const uevent = parseUevent(await files.text(`${device}/uevent`) ?? '')
  const driver = uevent.get('DRIVER') ?? ''
  if (driver === '' || virtualDrivers.has(driver)) return null
  const vendorId = hexId(await files.text(`${device}/vendor`))
  const vendor = vendors[vendorId] ?? 'unknown'
  const id = uevent.get('PCI_SLOT_NAME') ?? uevent.get('OF_FULLNAME') ?? card
  const drmPath = renders.get(id) ?? ''
  return {
    vendor,
    index: 0,
    name: await gpuName(files, device, vendorId, vendor),
    vram_mb: bytesToMib(await files.text(`${device}/mem_info_vram_total`)),
    gtt_mb: bytesToMib(await files.text(`${device}/mem_info_gtt_total`)),
    integrated: vendor === 'intel' ? id === INTEL_GRAPHICS : vendor === 'amd' && await isApu(files, device),
    pci_id: id,
    driver,
    drm_path: drmPath,
    compute_capable: await canCompute(files, driver),
    vulkan_capable: drmPath !== ''
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
async function probeNvidia (files: ProbeFiles, known: ReadonlySet<string>): Promise<readonly GpuInfo[]> {
  const slots = (await files.list('/proc/driver/nvidia/gpus')).filter(slot => !known.has(slot))
  return await Promise.all(slots.map(async slot => {
    const information = await files.text(`/proc/driver/nvidia/gpus/${slot}/information`) ?? ''
    return nvidiaGpu(slot, /^Model:\s*(.+)$/m.exec(information)?.[1]?.trim() ?? 'NVIDIA GPU')
  }))
}

function nvidiaGpu (pciId: string, name: string): GpuInfo {
  return {
    vendor: 'nvidia',
    index: 0,
    name,
    vram_mb: 0,
    gtt_mb: 0,
    integrated: false,
    pci_id: pciId,
    driver: 'nvidia',
    drm_path: '',
    compute_capable: true,
    vulkan_capable: false
  }
}

function hexId (text: string | null): string {
  return text === null ? '' : text.replace(/^0x/, '').toLowerCase()
}
