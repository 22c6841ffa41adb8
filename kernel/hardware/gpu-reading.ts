import type { GpuInfo, GpuReading } from '../contract/index.js'
import { milliDegrees } from './cpu-load.js'
import type { NvidiaGpu } from './nvidia-smi.js'
import type { ProbeFiles } from './probe-files.js'
import { parseUevent } from './proc-text.js'
import { numberBetween } from './sensor-value.js'

const MIB = 1024 * 1024
const MOST_BYTES = 2 ** 53
const MOST_MICROWATTS = 5_000_000_000
const MOST_MHZ = 20_000

type Sensors = Omit<GpuReading, 'vendor' | 'index' | 'name' | 'pci_id'>

const nothing: Sensors = {
  util: null,
  util_is_forced_high: false,
  vram_used_mb: null,
  vram_total_mb: null,
  gtt_used_mb: null,
  gtt_total_mb: null,
  clock_mhz: null,
  temp_c: null,
  power_w: null
}

/** What the drivers tell of the probed GPUs. NVIDIA's tool has the last word on its own. */
export async function readGpus (
  files: ProbeFiles, gpus: readonly GpuInfo[], nvidia: readonly NvidiaGpu[]
): Promise<readonly GpuReading[]> {
  const cards = await cardsById(files)
  return await Promise.all(gpus.map(async gpu => {
    const { vendor, index, name, pci_id: pciId } = gpu
    const card = cards.get(pciId)
    const own = card === undefined ? nothing : await readCard(files, card)
    const told = nvidia.find(other => other.pciId === pciId)
    return { vendor, index, name, pci_id: pciId, ...own, ...(told === undefined ? {} : nvidiaSensors(told)) }
  }))
}

async function cardsById (files: ProbeFiles): Promise<ReadonlyMap<string, string>> {
  const cards = (await files.list('/sys/class/drm')).filter(node => /^card\d+$/.test(node))
  const pairs = await Promise.all(cards.map(async card => {
    const uevent = parseUevent(await files.text(`/sys/class/drm/${card}/device/uevent`) ?? '')
    return [uevent.get('PCI_SLOT_NAME') ?? uevent.get('OF_FULLNAME') ?? card, card] as const
  }))
  return new Map(pairs)
}

function nvidiaSensors (gpu: NvidiaGpu): Partial<Sensors> {
  return {
    util: gpu.util,
    vram_used_mb: gpu.memoryUsedMb,
    vram_total_mb: gpu.memoryTotalMb,
    clock_mhz: gpu.clockMhz,
    temp_c: gpu.tempC,
    power_w: gpu.powerW
  }
}

async function readCard (files: ProbeFiles, card: string): Promise<Sensors> {
  const node = `/sys/class/drm/${card}`
  const device = `${node}/device`
  const [chip] = await files.list(`${device}/hwmon`)
  const sensor = async (name: string): Promise<string | null> =>
    chip === undefined ? null : await files.text(`${device}/hwmon/${chip}/${name}`)
  const memory = async (name: string): Promise<number | null> =>
    mib(numberBetween(await files.text(`${device}/mem_info_${name}`), 0, MOST_BYTES))
  const [busy, level, vramUsed, vramTotal, gttUsed, gttTotal, clock, temp, power] = await Promise.all([
    files.text(`${device}/gpu_busy_percent`), files.text(`${device}/power_dpm_force_performance_level`),
    memory('vram_used'), memory('vram_total'), memory('gtt_used'), memory('gtt_total'),
    readClock(files, node, sensor), sensor('temp1_input'), readPower(sensor)
  ])
  const percent = numberBetween(busy, 0, 100)
  return {
    util: percent === null ? null : percent / 100,
    util_is_forced_high: level === 'high' || level === 'profile_peak',
    vram_used_mb: vramUsed,
    vram_total_mb: vramTotal,
    gtt_used_mb: gttUsed,
    gtt_total_mb: gttTotal,
    clock_mhz: clock,
    temp_c: milliDegrees(temp),
    power_w: power
  }
}

type Sensor = (name: string) => Promise<string | null>

/** AMD tells the average or, on newer parts, what is drawn at this moment. */
async function readPower (sensor: Sensor): Promise<number | null> {
  for (const name of ['power1_average', 'power1_input']) {
    const microwatts = numberBetween(await sensor(name), 0, MOST_MICROWATTS)
    if (microwatts !== null) return microwatts / 1e6
  }
  return null
}

/** amdgpu: the sensor, else the line of the clock table that has the star. i915 and xe: a file in MHz. */
async function readClock (files: ProbeFiles, node: string, sensor: Sensor): Promise<number | null> {
  const hertz = numberBetween(await sensor('freq1_input'), 0, MOST_MHZ * 1e6)
  if (hertz !== null) return Math.round(hertz / 1e6)
  const table = /^\d+: *(\d+)Mhz *\*$/im.exec(await files.text(`${node}/device/pp_dpm_sclk`) ?? '')?.[1]
  if (table !== undefined) return numberBetween(table, 0, MOST_MHZ)
  for (const name of ['gt_act_freq_mhz', 'gt/gt0/rps_act_freq_mhz', 'device/tile0/gt0/freq0/act_freq']) {
    const megahertz = numberBetween(await files.text(`${node}/${name}`), 0, MOST_MHZ)
    if (megahertz !== null) return megahertz
  }
  return null
}

function mib (bytes: number | null): number | null {
  return bytes === null ? null : Math.round(bytes / MIB)
}
