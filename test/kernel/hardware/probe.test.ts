import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hardwareSchema, type HardwareInfo } from '../../../kernel/contract/index.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { defaultDeviceOf } from '../../../kernel/hardware/default-device.js'
import { createHardwareService } from '../../../kernel/hardware/hardware-service.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { createProbeFiles } from '../../../kernel/hardware/probe-files.js'
import { parseCpuInfo } from '../../../kernel/hardware/proc-text.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { manualClock, openHome, recordingLog, writeTree } from '../config/support.js'

type Tree = Readonly<Record<string, string>>

const cpu = (model: string, extra = ''): string => [0, 1, 2, 3].map(i =>
  `processor\t: ${i}\nvendor_id\t: AuthenticAMD\nmodel name\t: ${model}\nphysical id\t: 0\ncore id\t: ${i >> 1}\nflags\t\t: fpu sse2${extra}\n`).join('\n')

const linux: Tree = {
  'proc/meminfo': 'MemTotal:       131072000 kB\nMemFree:  1000 kB\nMemAvailable:   65536000 kB\nSwapTotal:       8388608 kB\n',
  'proc/sys/kernel/osrelease': '6.14.0-23-generic\n',
  'proc/sys/kernel/hostname': 'box\n',
  'proc/uptime': '1234.56 5000.00\n',
  'proc/self/cgroup': '0::/system.slice/svc-api.service\n',
  'sys/fs/cgroup/system.slice/memory.max': 'max\n',
  'etc/os-release': 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\nID=ubuntu\n',
  'etc/group': 'root:x:0:\nvideo:x:44:svc\nrender:x:992:svc\nrendering:x:1:\n'
}

const card = (n: number, render: number | null, slot: string, driver: string, ids: string, extra: Tree = {}): Tree => {
  const [vendor, device] = ids.split(':')
  const node: Tree = { uevent: `DRIVER=${driver}\nPCI_CLASS=30000\nPCI_ID=${ids.toUpperCase()}\nPCI_SLOT_NAME=${slot}\n`, vendor: `0x${vendor}\n`, device: `0x${device}\n`, ...extra }
  const at = (name: string): Tree => Object.fromEntries(Object.entries(node).map(([file, text]) => [`sys/class/drm/${name}/device/${file}`, text]))
  return { ...at(`card${n}`), ...(render === null ? {} : { ...at(`renderD${render}`), [`dev/dri/renderD${render}`]: '' }), [`sys/class/drm/card${n}-DP-1/status`]: 'connected\n' }
}

const pciIds = '# comment\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t1586  Strix Halo [Radeon 8060S Graphics]\n\t\t1043 1  Board\n\t744c  Navi 31 [Radeon RX 7900 XTX]\n8086  Intel Corporation\n\t1586  Wrong one\n'

const machines: Readonly<Record<string, { tree: Tree, expect: object, device: string }>> = {
  'Strix Halo with NPU': {
    tree: {
      ...linux,
      'proc/cpuinfo': cpu('AMD RYZEN AI MAX+ 395 w/ Radeon 8060S'),
      ...card(1, 128, '0000:c5:00.0', 'amdgpu', '1002:1586', { mem_info_vram_total: '536870912\n', mem_info_gtt_total: '66571993088\n', gpu_metrics: '\u0008\u0001\u0003\u0000' }),
      'dev/kfd': '',
      'usr/share/misc/pci.ids': pciIds,
      'sys/class/accel/accel0/device/uevent': 'DRIVER=amdxdna\nPCI_SLOT_NAME=0000:c6:00.1\n',
      'sys/class/accel/accel0/device/vbnv': 'RyzenAI-npu5\n',
      'dev/accel/accel0': '',
      'sys/class/dmi/id/sys_vendor': 'Framework\n'
    },
    expect: {
      hostname: 'box', kernel: '6.14.0-23-generic', distro: 'Ubuntu 24.04.2 LTS', cpu_model: 'AMD RYZEN AI MAX+ 395 w/ Radeon 8060S', uptime_s: 1234.56,
      cpu_cores: 2, cpu_threads: 4, ram_mb: 128_000, ram_available_mb: 64_000, swap_mb: 8192, unified_memory_mb: 63_488, platform: 'strix-halo',
      gpus: [{
        vendor: 'amd', index: 0, name: 'Strix Halo [Radeon 8060S Graphics]', vram_mb: 512, pci_id: '0000:c5:00.0', driver: 'amdgpu',
        drm_path: '/dev/dri/renderD128', compute_capable: true, vulkan_capable: true
      }],
      npu: { present: true, vendor: 'amd', name: 'RyzenAI-npu5', driver: 'amdxdna', accel_path: '/dev/accel/accel0', render_path: '/dev/dri/renderD128' },
      gpu_group_gids: { video: 44, render: 992 }, cgroup_max_mb: null, extra: { gtt_total_mb: 63_488 }
    },
    device: 'gpu-rocm'
  },
  'two discrete AMD cards, in the order of the bus': {
    tree: {
      ...linux,
      'proc/cpuinfo': cpu('AMD Ryzen 9 7950X'),
      ...card(0, 128, '0000:2d:00.0', 'amdgpu', '1002:744c', { mem_info_vram_total: '25753026560\n', mem_info_gtt_total: '67000000000\n', gpu_metrics: '\u0078\u0000\u0001\u0003' }),
      ...card(1, 129, '0000:03:00.0', 'amdgpu', '1002:9999', { product_name: 'Radeon PRO W7900\n' }),
      'dev/kfd': '',
      'usr/share/hwdata/pci.ids': pciIds
    },
    expect: {
      platform: 'bare-metal-amd-gpu', unified_memory_mb: 0,
      gpus: [
        { name: 'Radeon PRO W7900', index: 0, drm_path: '/dev/dri/renderD129', vram_mb: 0 },
        { name: 'Navi 31 [Radeon RX 7900 XTX]', index: 1, vram_mb: 24_560, drm_path: '/dev/dri/renderD128' }
      ],
      npu: { present: false }
    },
    device: 'gpu-rocm'
  },
  'an AMD card without the compute interface': {
    tree: { ...linux, 'proc/cpuinfo': cpu('AMD Ryzen 5'), ...card(0, 128, '0000:03:00.0', 'amdgpu', '1002:744c') },
    expect: { gpus: [{ compute_capable: false, vulkan_capable: true, name: 'AMD GPU 1002:744c' }] },
    device: 'gpu-vulkan'
  },
  'NVIDIA beside the graphics of the processor': {
    tree: {
      ...linux,
      'proc/cpuinfo': cpu('Intel(R) Core(TM) i9-14900K'),
      'proc/driver/nvidia/gpus/0000:01:00.0/information': 'Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 185\nBus Location: \t 0000:01:00.0\n',
      ...card(0, 128, '0000:00:02.0', 'i915', '8086:a780')
    },
    expect: {
      platform: 'bare-metal-nvidia-gpu',
      gpus: [
        { vendor: 'intel', index: 0, driver: 'i915', compute_capable: false, vulkan_capable: true },
        { vendor: 'nvidia', index: 0, name: 'NVIDIA GeForce RTX 4090', driver: 'nvidia', compute_capable: true, pci_id: '0000:01:00.0' }
      ]
    },
    device: 'gpu-cuda'
  },
  'NVIDIA with a DRM node is one GPU': {
    tree: {
      ...linux,
      'proc/cpuinfo': cpu('AMD EPYC'),
      'proc/driver/nvidia/gpus/0000:01:00.0/information': 'Model: NVIDIA L4\n',
      ...card(0, 128, '0000:01:00.0', 'nvidia', '10de:27b8')
    },
    expect: { gpus: [{ vendor: 'nvidia', driver: 'nvidia', compute_capable: true, vulkan_capable: true }] },
    device: 'gpu-cuda'
  },
  'Intel graphics only': {
    tree: { ...linux, 'proc/cpuinfo': cpu('Intel(R) N100'), ...card(0, 128, '0000:00:02.0', 'i915', '8086:46d1') },
    expect: { platform: 'bare-metal-intel-igpu', gpus: [{ vendor: 'intel', vram_mb: 0, drm_path: '/dev/dri/renderD128' }], unified_memory_mb: 0 },
    device: 'gpu-vulkan'
  },
  'a GPU that this container was not given': {
    tree: { ...linux, 'proc/cpuinfo': cpu('Intel(R) N100'), ...card(0, null, '0000:00:02.0', 'i915', '8086:46d1'), 'run/systemd/container': 'lxc\n' },
    expect: { platform: 'lxc', gpus: [{ drm_path: '', vulkan_capable: false }] },
    device: 'cpu'
  },
  'a virtual machine with a display adapter': {
    tree: {
      ...linux, 'proc/cpuinfo': cpu('QEMU Virtual CPU', ' hypervisor'), 'sys/class/dmi/id/sys_vendor': 'QEMU\n', 'sys/class/dmi/id/product_name': 'Standard PC\n',
      ...card(0, 128, '0000:00:01.0', 'virtio-pci', '1af4:1050')
    },
    expect: { platform: 'kvm', gpus: [], npu: { present: false } },
    device: 'cpu'
  },
  'Proxmox, with a memory limit': {
    tree: {
      ...linux, 'proc/cpuinfo': cpu('QEMU Virtual CPU', ' hypervisor'), 'sys/class/dmi/id/sys_vendor': 'QEMU\n',
      'sys/class/dmi/id/bios_vendor': 'Proxmox distribution of EDK II\n',
      'sys/fs/cgroup/system.slice/memory.max': '4294967296\n', 'sys/fs/cgroup/system.slice/svc-api.service/memory.max': '8589934592\n'
    },
    expect: { platform: 'proxmox-kvm', cgroup_max_mb: 4096 },
    device: 'cpu'
  },
  'cgroups of version 1': {
    tree: {
      ...linux, 'proc/self/cgroup': '12:memory:/docker/abc\n5:cpu,cpuacct:/docker/abc\n', 'sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': '2147483648\n',
      'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n', 'proc/cpuinfo': cpu('x')
    },
    expect: { cgroup_max_mb: 2048, platform: 'bare-metal-cpu-only' },
    device: 'cpu'
  },
  'Windows with Linux in it': {
    tree: { ...linux, 'proc/sys/kernel/osrelease': '5.15.167.4-microsoft-standard-WSL2\n', 'proc/cpuinfo': cpu('AMD Ryzen', ' hypervisor') },
    expect: { platform: 'wsl2' },
    device: 'cpu'
  },
  'an ARM board': {
    tree: { ...linux, 'proc/cpuinfo': 'processor\t: 0\nBogoMIPS\t: 48.00\n\nprocessor\t: 1\nBogoMIPS\t: 48.00\n', 'proc/device-tree/model': 'Raspberry Pi 5 Model B\u0000' },
    expect: { cpu_model: 'Raspberry Pi 5 Model B', cpu_cores: 2, cpu_threads: 2, platform: 'bare-metal-cpu-only' },
    device: 'cpu'
  },
  'nothing at all': {
    tree: {},
    expect: { hostname: '', cpu_model: '', ram_mb: 0, gpus: [], npu: { present: false }, cgroup_max_mb: null, platform: 'unknown', gpu_group_gids: {} },
    device: 'cpu'
  },
  'files that make no sense': {
    tree: {
      'proc/cpuinfo': '\u0000\u0001garbage', 'proc/meminfo': 'MemTotal: lots\n', 'proc/uptime': 'x', 'etc/group': ':::\nrender:x:no:\n', 'etc/os-release': '=',
      'sys/class/drm/card0/device/uevent': 'DRIVER=amdgpu', 'sys/class/drm/card0/device/mem_info_vram_total': '-1', 'sys/class/drm/version': 'drm'
    },
    expect: { ram_mb: 0, gpus: [{ vendor: 'unknown', vram_mb: 0, pci_id: 'card0' }], gpu_group_gids: {} },
    device: 'cpu'
  }
}

t.test('recorded machines are probed as what they are', async t => {
  for (const [name, { tree, expect, device }] of Object.entries(machines)) {
    const root = t.testdir()
    writeTree(root, tree)
    const info = await probeHardware({ root, clock: manualClock(), diskPath: '/var/lib/svc/models' })
    t.match(info, { ...expect, probed_at: '2026-01-01T00:00:00.000Z' }, name)
    t.equal((expect as Partial<HardwareInfo>).gpus?.length ?? info.gpus.length, info.gpus.length, name)
    t.ok(info.disk_free_mb > 0, 'the nearest folder that exists has a file system')
    t.equal(defaultDeviceOf(info), device, name)
    t.ok(hardwareSchema.safeParse(JSON.parse(JSON.stringify(info))).success, name)
  }
})

t.test('this machine is probed with memory, threads, name and disk', async t => {
  const info = await probeHardware({ root: '/', clock: createSystemClock(), diskPath: '/' })
  t.ok(info.ram_mb > 0 && info.cpu_threads > 0 && info.hostname !== '' && info.disk_free_mb > 0)
})

t.test('a read that never ends', async t => {
  const clock = manualClock()
  const files = createProbeFiles(t.testdir({ 'a.txt': 'x' }), clock, 3000)
  clock.advance(3000)
  t.same([await files.text('/a.txt'), await files.list('/'), await files.exists('/a.txt'), await files.diskFree('/')], [null, [], false, null])
  files.close()
})

t.test('hyper-threads count once as cores', async t => {
  t.match(parseCpuInfo(cpu('x'), ''), { cores: 2, threads: 4, virtual: false })
  t.match(parseCpuInfo('', 'board'), { model: 'board', cores: 0, threads: 0 })
})

t.test('the service keeps the probe in hardware.json', async t => {
  const home = t.testdir()
  const root = join(home, 'machine')
  writeTree(root, machines['Strix Halo with NPU']!.tree)
  const { config, paths, log } = await openHome(home, { 'hardware.json': '{"slots": {"agent": {"warmup_grace_s": 5}}}' })
  const hardware = createHardwareService({
    paths, log, root, clock: manualClock(), cached: config.snapshot.hardware, diskPath: paths.models,
    onWritten: () => config.reload()
  })
  t.equal(hardware.defaultDevice, 'cpu', 'nothing is known yet')
  t.equal((await hardware.ensureProbed()).platform, 'strix-halo')
  t.equal(hardware.defaultDevice, 'gpu-rocm')
  t.match(config.snapshot.hardware, { platform: 'strix-halo', slots: { agent: { warmup_grace_s: 5 } } }, 'other keys of the file stay')
  const written = readFileSync(join(paths.etc, 'hardware.json'), 'utf8')
  t.match(JSON.parse(written), { platform: 'strix-halo', slots: {} })
  writeTree(root, { 'proc/sys/kernel/hostname': 'renamed\n' })
  t.equal((await hardware.ensureProbed()).hostname, 'box', 'a cached probe is used')
  t.equal((await hardware.probe()).hostname, 'renamed')
  t.equal(hardware.info.hostname, 'renamed')
})

t.test('a home that cannot be written keeps its probe in memory', async t => {
  const home = t.testdir({ 'a-file': '' })
  const paths = resolvePaths({}, { home: join(home, 'a-file') })
  const log = recordingLog()
  const root = join(home, 'machine')
  mkdirSync(root)
  const cached = hardwareSchema.parse({})
  const hardware = createHardwareService({ paths, log, root, clock: manualClock(), cached, diskPath: '/' })
  t.ok((await hardware.probe()).probed_at)
  t.match(log.lines, [{ level: 'warn', message: /hardware\.json could not be written/ }])
  writeFileSync(join(root, 'x'), '')
  t.notOk(existsSync(paths.etc))
})
