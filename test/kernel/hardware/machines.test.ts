import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hardwareSchema, type Device, type HardwareInfo, type HardwareReading } from '../../../kernel/contract/index.js'
import { defaultDeviceOf } from '../../../kernel/hardware/default-device.js'
import { HardwareMonitor } from '../../../kernel/hardware/hardware-monitor.js'
import { createNvidiaReader, parseNvidiaGpus, type NvidiaReader } from '../../../kernel/hardware/nvidia-smi.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { FakeClock } from '../../../kernel/testing/index.js'
import { hardwareView } from '../../../plugins/api/hardware/view.js'
import type { HardwareView } from '../../../plugins/api/hardware/schemas.js'
import fc from '../../property.js'
import { writeTree } from '../config/support.js'
import { cpuOnly } from './machines/cpu-only.js'
import { dgxSpark } from './machines/dgx-spark.js'
import { discreteAmd } from './machines/discrete-amd.js'
import { intelIgpu } from './machines/intel-igpu.js'
import { haloWithCard, haloWithRadeon, nvidiaBesideRyzen, twoMakers } from './machines/mixed.js'
import { nvidia } from './machines/nvidia.js'
import { stat, type Recording } from './machines/recording.js'
import { strixHalo } from './machines/strix-halo.js'
import { kvm, proxmoxKvm, proxmoxLxc, wsl2 } from './machines/virtual.js'

interface Machine {
  readonly recording: Recording
  readonly view: Partial<Record<keyof HardwareView, unknown>>
  readonly device: Device
  /** GPUs of a reading, in order. */
  readonly gpus: readonly object[]
  readonly cpuTemp: number | null
}

const untold = {
  util: null, vram_used_mb: null, vram_total_mb: null, gtt_used_mb: null, clock_mhz: null, temp_c: null, power_w: null,
  util_is_forced_high: false
}

const machines: Readonly<Record<string, Machine>> = {
  'Strix Halo: unified memory and an NPU': {
    recording: strixHalo,
    view: {
      platform: 'strix-halo', platform_label: 'AMD Strix Halo', is_uma: true, memory_kind: 'unified', vram_total_mb: 0, gtt_total_mb: 112_640, unified_memory_mb: 112_640,
      gpu_name: 'Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics]', gpu_vendor: 'amd', npu_present: true, npu_name: 'RyzenAI-npu5',
      npu: { present: true, driver: 'amdxdna', accel_path: '/dev/accel/accel0', render_path: '/dev/dri/renderD128', aie_columns: null, validated: null },
      cpu_cores: 16, cpu_threads: 32, ram_total_mb: 128_396, swap_mb: 8191, extra: { container: '', virtual: false }, cgroup_max_mb: null
    },
    device: 'gpu-rocm',
    gpus: [{
      util: 0.87, util_is_forced_high: false, vram_used_mb: 384, vram_total_mb: 512, gtt_used_mb: 30_720, gtt_total_mb: 112_640,
      clock_mhz: 2643, temp_c: 61, power_w: 94.031
    }],
    cpuTemp: 66.125
  },
  'a discrete AMD card beside integrated graphics': {
    recording: discreteAmd,
    view: {
      platform: 'bare-metal-amd-gpu', is_uma: false, memory_kind: 'system', vram_total_mb: 25_072, gpu_name: 'Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]',
      npu_present: false, npu_name: null, unified_memory_mb: 32_039,
      gpus: [
        { pci_id: '0000:03:00.0', index: 0, vram_mb: 24_560, integrated: false, gpu_index: { 'gpu-rocm': 0, 'gpu-vulkan': 0 } },
        { pci_id: '0000:7a:00.0', index: 1, integrated: true, gtt_mb: 32_039, gpu_index: { 'gpu-rocm': 1, 'gpu-vulkan': 1 } }
      ]
    },
    device: 'gpu-rocm',
    gpus: [
      { util: 1, util_is_forced_high: true, vram_used_mb: 20_480, gtt_used_mb: 100, clock_mhz: 2304, temp_c: 58, power_w: 303 },
      { util: 0, vram_used_mb: 18, clock_mhz: null, temp_c: null, power_w: null }
    ],
    cpuTemp: 48.25
  },
  'NVIDIA beside Intel graphics': {
    recording: nvidia,
    view: {
      platform: 'bare-metal-nvidia-gpu', gpu_name: 'NVIDIA GeForce RTX 4090', gpu_vendor: 'nvidia', vram_total_mb: 24_564, is_uma: false,
      gpus: [
        { vendor: 'intel', driver: 'i915', vulkan_capable: true, integrated: true, gpu_index: { 'gpu-vulkan': 0 } },
        { vendor: 'nvidia', driver: 'nvidia', vram_mb: 24_564, compute_capable: true, drm_path: '/dev/dri/renderD129', gpu_index: { 'gpu-cuda': 0, 'gpu-vulkan': 1 } }
      ]
    },
    device: 'gpu-cuda',
    gpus: [
      { ...untold, clock_mhz: 300 },
      { util: 0.63, vram_used_mb: 20_135, vram_total_mb: 24_564, clock_mhz: 2610, temp_c: 57, power_w: 287.41 }
    ],
    cpuTemp: 52
  },
  'NVIDIA beside the graphics of a Ryzen': {
    recording: nvidiaBesideRyzen,
    view: {
      platform: 'bare-metal-nvidia-gpu', gpu_name: 'NVIDIA GeForce RTX 4090', is_uma: false, memory_kind: 'system', vram_total_mb: 25_076, gtt_total_mb: 0,
      gpus: [
        { vendor: 'nvidia', integrated: false, gpu_index: { 'gpu-cuda': 0, 'gpu-vulkan': 0 } },
        { vendor: 'amd', compute_capable: true, integrated: true, gtt_mb: 32_039, gpu_index: { 'gpu-rocm': 0, 'gpu-vulkan': 1 } }
      ]
    },
    device: 'gpu-cuda',
    gpus: [{ vram_total_mb: 24_564 }, { vram_total_mb: 512, gtt_total_mb: 32_040 }],
    cpuTemp: 48.25
  },
  'Strix Halo with a card of NVIDIA': {
    recording: haloWithCard,
    view: {
      platform: 'strix-halo', gpu_name: 'NVIDIA GeForce RTX 4090', is_uma: false, unified_memory_mb: 112_640, vram_total_mb: 25_076,
      npu: { present: true, accel_path: '/dev/accel/accel0', render_path: '/dev/dri/renderD128' }
    },
    device: 'gpu-cuda',
    gpus: [{ vram_total_mb: 24_564 }, { gtt_total_mb: 112_640 }],
    cpuTemp: 66.125
  },
  'Strix Halo with a card of AMD': {
    recording: haloWithRadeon,
    view: {
      gpu_name: 'Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]', is_uma: false, unified_memory_mb: 112_640,
      npu: { present: true, render_path: '/dev/dri/renderD128' },
      gpus: [{ pci_id: '0000:03:00.0', integrated: false, gpu_index: { 'gpu-rocm': 0 } }, { pci_id: '0000:c1:00.0', integrated: true, gpu_index: { 'gpu-rocm': 1 } }]
    },
    device: 'gpu-rocm',
    gpus: [{ vram_total_mb: 24_560 }, { gtt_total_mb: 112_640 }],
    cpuTemp: 66.125
  },
  'cards of two makers': {
    recording: twoMakers,
    view: {
      platform: 'bare-metal-amd-gpu', gpu_vendor: 'amd', is_uma: false, vram_total_mb: 40_936,
      gpus: [{ vendor: 'nvidia', gpu_index: { 'gpu-cuda': 0, 'gpu-vulkan': 0 } }, { vendor: 'amd', gpu_index: { 'gpu-rocm': 0, 'gpu-vulkan': 1 } }]
    },
    device: 'gpu-rocm',
    gpus: [{ vram_total_mb: 16_376 }, { vram_total_mb: 24_560 }],
    cpuTemp: 52
  },
  'NVIDIA on unified memory': {
    recording: dgxSpark,
    view: {
      gpu_name: 'NVIDIA GB10', is_uma: true, memory_kind: 'unified', unified_memory_mb: 124_610, vram_total_mb: 0, cpu_threads: 20, cpu_name: '',
      gpus: [{ pci_id: '000f:01:00.0', compute_capable: true, vram_mb: 0 }]
    },
    device: 'gpu-cuda',
    gpus: [{ util: 0, vram_used_mb: null, vram_total_mb: null, clock_mhz: 208, temp_c: 35, power_w: 11.17 }],
    cpuTemp: null
  },
  'Intel graphics': {
    recording: intelIgpu,
    view: { platform: 'bare-metal-intel-igpu', gpu_vendor: 'intel', gpu_name: 'Alder Lake-N [UHD Graphics]', is_uma: false, vram_total_mb: 0, gtt_total_mb: 0 },
    device: 'gpu-vulkan',
    gpus: [{ ...untold, clock_mhz: 0 }],
    cpuTemp: 43
  },
  'a server without a GPU': {
    recording: cpuOnly,
    view: { platform: 'bare-metal-cpu-only', gpus: [], gpu_name: '', gpu_vendor: null, memory_kind: 'system', npu: { present: false } },
    device: 'cpu',
    gpus: [],
    cpuTemp: 36
  },
  'a virtual machine': {
    recording: kvm,
    view: { platform: 'kvm', platform_label: 'KVM virtual machine', gpus: [], extra: { virtual: true, container: '' } },
    device: 'cpu',
    gpus: [],
    cpuTemp: null
  },
  'a virtual machine of Proxmox': { recording: proxmoxKvm, view: { platform: 'proxmox-kvm', extra: { virtual: true } }, device: 'cpu', gpus: [], cpuTemp: null },
  'a container of Proxmox with a GPU and a limit': {
    recording: proxmoxLxc,
    view: { platform: 'lxc', cgroup_max_mb: 32_768, extra: { container: 'lxc', virtual: false }, gpus: [{ name: 'AMD GPU 1002:1638', compute_capable: true }], is_uma: true },
    device: 'gpu-rocm',
    gpus: [{ util: null, vram_total_mb: 2048, vram_used_mb: 20, gtt_used_mb: 0 }],
    cpuTemp: null
  },
  'Windows with Linux in it': {
    recording: wsl2,
    view: { platform: 'wsl2', gpus: [{ vendor: 'nvidia', name: 'NVIDIA GeForce RTX 4080 SUPER', vram_mb: 16_376, pci_id: '0000:2b:00.0', compute_capable: true }], extra: { virtual: true } },
    device: 'gpu-cuda',
    gpus: [{ util: 0.04, vram_used_mb: 1204, vram_total_mb: 16_376, temp_c: 41, power_w: 18.9 }],
    cpuTemp: null
  }
}

function readerOf ({ nvidiaSmi }: Recording): NvidiaReader {
  return () => Promise.resolve(nvidiaSmi === undefined ? null : parseNvidiaGpus(nvidiaSmi))
}

/** Waits for a reading; moves the clock only over the pause between its first two looks, so that no deadline passes. */
async function settled (
  clock: FakeClock, reading: Promise<HardwareReading>, between: () => void = () => {}
): Promise<HardwareReading> {
  let result: HardwareReading | null = null
  void reading.then(value => { result = value })
  while (result === null) {
    await new Promise(resolve => { setImmediate(resolve) })
    if (clock.pending < 2) continue
    between()
    await clock.advance(100)
  }
  return result
}

/** One reading, with processor time going by between its two looks. */
async function readOnce (root: string, info: HardwareInfo, reader: NvidiaReader) {
  const clock = new FakeClock()
  const monitor = new HardwareMonitor({ clock, root, info: () => info, nvidia: reader })
  const result = await settled(clock, monitor.read(), () => writeTree(root, { 'proc/stat': stat(1025, 500, 8075) }))
  await monitor.close()
  return { clock, result }
}

t.test('what recorded machines are, and what they do', async t => {
  for (const [name, { recording, view, device, gpus, cpuTemp }] of Object.entries(machines)) {
    t.test(name, async t => {
      const root = t.testdir()
      writeTree(root, recording.tree)
      const clock = new FakeClock()
      const info = await probeHardware({ root, clock, diskPath: '/', nvidia: readerOf(recording) })
      t.equal(clock.pending, 0, 'its deadlines are gone')
      t.match(hardwareView(info, 1), view)
      t.equal(info.gpus.length, gpus.length)
      t.equal(defaultDeviceOf(info), device)
      const { clock: monitorClock, result } = await readOnce(root, info, readerOf(recording))
      const { ram_mb: total, ram_available_mb: available } = info
      t.match(result, { gpus, cpu_temp_c: cpuTemp, cpu_util: 0.25, ram_total_mb: total, ram_available_mb: available })
      t.equal(monitorClock.pending, 0)
    })
  }
})

t.test('broken files are unknown, whatever is in them', async t => {
  const files = [...new Set(Object.values(machines).flatMap(({ recording }) => Object.keys(recording.tree)))]
    .filter(path => !path.startsWith('dev/'))
  const garbage = fc.constantFrom('', '\n', '\0', '-1\n', 'max\n', '99999999999999999999\n', 'NaN', '0x\n', 'cpu  \n', 'cpu  a b c d\n', 'DRIVER=\n', ':::\n', '\u0001\u0002\u0003')
  const changes = fc.dictionary(fc.constantFrom(...files), garbage, { maxKeys: 12 })
  await fc.assert(fc.asyncProperty(fc.constantFrom(...Object.values(machines)), changes, async ({ recording }, broken) => {
    const root = t.testdir()
    writeTree(root, { ...recording.tree, ...broken })
    const info = await probeHardware({ root, clock: new FakeClock(), diskPath: '/', nvidia: readerOf(recording) })
    const { result: reading } = await readOnce(root, info, readerOf(recording))
    return hardwareSchema.safeParse(info).success && !JSON.stringify(reading).includes('NaN')
  }), { numRuns: 25 })
})

t.test('a folder where a file should be', async t => {
  const root = t.testdir()
  const folders = ['proc/uptime', 'proc/meminfo', 'etc/group', 'sys/class/drm/card1/device/mem_info_vram_used']
  writeTree(root, Object.fromEntries(Object.entries(strixHalo.tree).map(([path, text]) => [folders.includes(path) ? `${path}/inner` : path, text])))
  const info = await probeHardware({ root, clock: new FakeClock(), diskPath: '/' })
  t.match(info, { uptime_s: 0, ram_mb: 0, gpu_group_gids: {}, platform: 'strix-halo', gpus: [{ vram_mb: 512 }] })
  const { result } = await readOnce(root, info, () => Promise.resolve(null))
  t.match(result, { ram_total_mb: null, ram_available_mb: null, gpus: [{ vram_used_mb: null, vram_total_mb: 512 }] })
})

t.test('a reading is shared, shown while the next is taken, and not shown when it is old', async t => {
  const root = t.testdir()
  writeTree(root, cpuOnly.tree)
  const clock = new FakeClock()
  let asked = 0
  const info = hardwareSchema.parse({ gpus: [{ vendor: 'nvidia', pci_id: '0000:01:00.0' }] })
  const monitor = new HardwareMonitor({
    clock,
    root,
    info: () => info,
    nvidia: () => {
      asked++
      return Promise.resolve(null)
    }
  })
  const [first, second] = await Promise.all([settled(clock, monitor.read()), monitor.read()])
  t.equal(first, second)
  t.equal(asked, 1, 'one reader for all of them')
  await clock.advance(4_000)
  t.equal(await monitor.read(), first)
  t.equal(asked, 1, 'nothing runs when it is fresh, nor when nobody asks')
  await clock.advance(1_000)
  writeTree(root, { 'proc/stat': stat(1900, 500, 8100) })
  t.equal(await monitor.read(), first, 'nobody waits')
  t.equal(asked, 2)
  while (await monitor.read() === first) await new Promise(resolve => { setImmediate(resolve) })
  t.equal((await monitor.read()).cpu_util, 0.9, 'the load since the reading before')
  await clock.advance(30_000)
  t.not((await settled(clock, monitor.read())).at, first.at, 'an old one is not shown')
  t.equal(asked, 3)
  await monitor.close()
  t.equal(clock.pending, 0)
})

const query = '--query-gpu=pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,clocks.current.graphics,name'

/** As the real one: prints fields that it was asked for and refuses what it does not know. */
function fakeSmi (t: Test, body: string): string {
  const folder = t.testdir()
  writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\n${body}\n`)
  chmodSync(join(folder, 'nvidia-smi'), 0o755)
  return folder
}

t.test('nvidia-smi is asked for gauges, and may fail or hang', async t => {
  const clock = createSystemClock()
  const never = new AbortController().signal
  const PATH = (folder: string) => ({ PATH: `${folder}:/usr/bin:/bin` })
  t.test('is asked with arguments that it knows', async t => {
    const folder = fakeSmi(t, `[ "$1" = "${query}" ] && [ "$2" = "--format=csv,noheader,nounits" ] && [ $# = 2 ] || { echo "Field is not a valid field to query."; exit 2; }
[ -z "$SECRET" ] || exit 3
echo "00000000:01:00.0, 24564, 20135, 63, 57, 287.41, 2610, NVIDIA GeForce RTX 4090"`)
    t.match(await createNvidiaReader({ ...PATH(folder), SECRET: 'x' }, clock)(never), [{ pciId: '0000:01:00.0', memoryTotalMb: 24564, util: 0.63, powerW: 287.41 }])
  })
  t.test('that fails, is not there or answers nonsense tells nothing', async t => {
    t.equal(await createNvidiaReader(PATH(fakeSmi(t, 'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; exit 9')), clock)(never), null)
    t.equal(await createNvidiaReader({ PATH: t.testdir() }, clock)(never), null)
    t.same(await createNvidiaReader(PATH(fakeSmi(t, 'echo "No devices were found"')), clock)(never), [])
    t.equal(await createNvidiaReader({}, clock)(AbortSignal.abort()), null)
  })
  t.test('that hangs is ended at its time limit', async t => {
    const folder = fakeSmi(t, `echo $$ > "$(dirname "$0")/pid"; exec sleep 600`)
    const fake = new FakeClock()
    const answer = createNvidiaReader(PATH(folder), fake)(never)
    await fake.advance(3_000)
    t.equal(await answer, null)
    t.equal(fake.pending, 0)
  })
  t.same(parseNvidiaGpus('0000000F:01:00.0, [N/A], [Not Supported], [Unknown Error], 35, [N/A], 208, A, B\nNo running processes found\n'), [
    { pciId: '000f:01:00.0', name: 'A, B', memoryTotalMb: null, memoryUsedMb: null, util: null, tempC: 35, powerW: null, clockMhz: 208 }
  ])
})
