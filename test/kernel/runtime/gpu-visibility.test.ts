import t from 'tap'
import { devices, hardwareSchema, type Device, type HardwareInfo } from '../../../kernel/contract/index.js'
import { deviceAccess, deviceNodes } from '../../../kernel/runtime/device/device-access.js'
import { gpuVisibility, type Visibility, type VisibilityInput } from '../../../kernel/runtime/device/gpu-visibility.js'

const AMD = { vendor: 'amd', name: 'Radeon' }
const NVIDIA = { vendor: 'nvidia', name: 'GeForce' }

function hardware (gpus: readonly object[], more: object = {}): HardwareInfo {
  return hardwareSchema.parse({ gpus, gpu_group_gids: { render: 110, video: 44 }, ...more })
}

const twoAmd = hardware([{ ...AMD, index: 0, drm_path: '/dev/dri/renderD128' }, { ...AMD, index: 1, drm_path: '/dev/dri/renderD129' }])
const twoNvidia = hardware([{ ...NVIDIA, index: 0 }, { ...NVIDIA, index: 1 }])
const mixed = hardware([
  { vendor: 'intel', name: 'Arc', index: 0, drm_path: '/dev/dri/renderD128' },
  { ...NVIDIA, index: 0, drm_path: '/dev/dri/renderD129' },
  { ...AMD, index: 0, drm_path: '/dev/dri/renderD130' }
])
const unprobed = hardware([])
const withNpu = hardware([], { npu: { present: true, accel_path: '/dev/accel/accel0', render_path: '/dev/dri/renderD129' } })

const amdNodes = ['/dev/kfd', '/dev/dri/renderD129', '/dev/dri/card1', '/dev/dri/renderD128', '/dev/dri/card0']
const allDri = ['/dev/dri/card0', '/dev/dri/card1', '/dev/dri/renderD128', '/dev/dri/renderD129']
const nvidiaNodes = ['/dev/nvidia0', '/dev/nvidia1']
const gpuGroups = [110, 44]
const nothing: Visibility = { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {}, missing: [] }
const open = ['label=disable']

interface Case {
  readonly title: string
  readonly device: Device
  readonly gpuIndex?: number
  readonly hardware: HardwareInfo
  readonly nodes: readonly string[] | null
  readonly container: Partial<Visibility>
  readonly process: Partial<Visibility>
}

const cases: readonly Case[] = [
  { title: 'cpu', device: 'cpu', hardware: twoAmd, nodes: amdNodes, container: {}, process: {} },
  { title: 'cpu, an index means nothing', device: 'cpu', gpuIndex: 1, hardware: twoAmd, nodes: [], container: {}, process: {} },
  {
    title: 'rocm, all', device: 'gpu-rocm', hardware: twoAmd, nodes: amdNodes,
    container: { devices: ['/dev/kfd', ...allDri], groups: gpuGroups, securityOpts: open }, process: {}
  },
  {
    title: 'rocm, the second: HIP counts what ROCR leaves, and a container has one', device: 'gpu-rocm', gpuIndex: 1, hardware: twoAmd, nodes: amdNodes,
    container: {
      devices: ['/dev/kfd', '/dev/dri/renderD129'], groups: gpuGroups, securityOpts: open,
      env: { ROCR_VISIBLE_DEVICES: '0', HIP_VISIBLE_DEVICES: '0' }
    },
    process: { env: { ROCR_VISIBLE_DEVICES: '1', HIP_VISIBLE_DEVICES: '0' } }
  },
  {
    title: 'rocm, its node unknown: all nodes, picked by number', device: 'gpu-rocm', gpuIndex: 1, hardware: unprobed, nodes: amdNodes,
    container: {
      devices: ['/dev/kfd', ...allDri], groups: gpuGroups, securityOpts: open,
      env: { ROCR_VISIBLE_DEVICES: '1', HIP_VISIBLE_DEVICES: '0' }
    },
    process: { env: { ROCR_VISIBLE_DEVICES: '1', HIP_VISIBLE_DEVICES: '0' } }
  },
  {
    title: 'rocm counts AMD\'s alone', device: 'gpu-rocm', gpuIndex: 0, hardware: mixed, nodes: ['/dev/kfd', '/dev/dri/renderD130'],
    container: {
      devices: ['/dev/kfd', '/dev/dri/renderD130'], groups: gpuGroups, securityOpts: open,
      env: { ROCR_VISIBLE_DEVICES: '0', HIP_VISIBLE_DEVICES: '0' }
    },
    process: { env: { ROCR_VISIBLE_DEVICES: '0', HIP_VISIBLE_DEVICES: '0' } }
  },
  {
    title: 'rocm, all of several makers: AMD\'s alone', device: 'gpu-rocm', hardware: mixed,
    nodes: ['/dev/kfd', '/dev/dri/renderD128', '/dev/dri/renderD129', '/dev/dri/renderD130'],
    container: { devices: ['/dev/kfd', '/dev/dri/renderD130'], groups: gpuGroups, securityOpts: open }, process: {}
  },
  {
    title: 'rocm, nothing there', device: 'gpu-rocm', hardware: unprobed, nodes: [],
    container: {
      devices: ['/dev/kfd'], groups: gpuGroups, securityOpts: open, missing: ['/dev/kfd', '/dev/dri/renderD128 or another render node']
    },
    process: { missing: ['/dev/kfd', '/dev/dri/renderD128 or another render node'] }
  },
  {
    title: 'rocm, the pinned GPU is gone', device: 'gpu-rocm', gpuIndex: 1, hardware: twoAmd, nodes: ['/dev/kfd', '/dev/dri/renderD128'],
    container: {
      devices: ['/dev/kfd', '/dev/dri/renderD129'], groups: gpuGroups, securityOpts: open,
      env: { ROCR_VISIBLE_DEVICES: '0', HIP_VISIBLE_DEVICES: '0' }, missing: ['/dev/dri/renderD129']
    },
    process: { env: { ROCR_VISIBLE_DEVICES: '1', HIP_VISIBLE_DEVICES: '0' }, missing: ['/dev/dri/renderD129'] }
  },
  {
    title: 'vulkan, all', device: 'gpu-vulkan', hardware: twoAmd, nodes: amdNodes,
    container: { devices: allDri, groups: gpuGroups, securityOpts: open }, process: {}
  },
  {
    title: 'vulkan, the second', device: 'gpu-vulkan', gpuIndex: 1, hardware: twoAmd, nodes: amdNodes,
    container: { devices: ['/dev/dri/renderD129'], groups: gpuGroups, securityOpts: open, env: { GGML_VK_VISIBLE_DEVICES: '0' } },
    process: { env: { GGML_VK_VISIBLE_DEVICES: '1' } }
  },
  {
    title: 'vulkan, node unknown', device: 'gpu-vulkan', gpuIndex: 1, hardware: unprobed, nodes: amdNodes,
    container: { devices: allDri, groups: gpuGroups, securityOpts: open, env: { GGML_VK_VISIBLE_DEVICES: '1' } },
    process: { env: { GGML_VK_VISIBLE_DEVICES: '1' } }
  },
  {
    title: 'vulkan on NVIDIA, whose driver no image holds', device: 'gpu-vulkan', gpuIndex: 1, hardware: mixed,
    nodes: ['/dev/dri/renderD129', '/dev/nvidia0'],
    container: {
      devices: ['/dev/dri/renderD129'], cdiDevices: ['nvidia.com/gpu=0'], groups: gpuGroups, securityOpts: open,
      env: { GGML_VK_VISIBLE_DEVICES: '0' }
    },
    process: { env: { GGML_VK_VISIBLE_DEVICES: '1' } }
  },
  {
    title: 'vulkan, all of several makers', device: 'gpu-vulkan', hardware: mixed, nodes: ['/dev/dri/renderD128', '/dev/dri/renderD129', '/dev/dri/renderD130'],
    container: {
      devices: ['/dev/dri/renderD128', '/dev/dri/renderD129', '/dev/dri/renderD130'], cdiDevices: ['nvidia.com/gpu=all'], groups: gpuGroups, securityOpts: open
    },
    process: {}
  },
  {
    title: 'vulkan on an NVIDIA card without a render node', device: 'gpu-vulkan', gpuIndex: 1, hardware: twoNvidia, nodes: nvidiaNodes,
    container: { cdiDevices: ['nvidia.com/gpu=1'], groups: gpuGroups, securityOpts: open, env: { GGML_VK_VISIBLE_DEVICES: '0' } },
    process: { env: { GGML_VK_VISIBLE_DEVICES: '1' } }
  },
  {
    title: 'vulkan, nothing there', device: 'gpu-vulkan', hardware: unprobed, nodes: ['/dev/dri/card0'],
    container: {
      devices: ['/dev/dri/card0'], groups: gpuGroups, securityOpts: open, missing: ['/dev/dri/renderD128 or another render node']
    },
    process: { missing: ['/dev/dri/renderD128 or another render node'] }
  },
  {
    title: 'cuda, all', device: 'gpu-cuda', hardware: twoNvidia, nodes: nvidiaNodes,
    container: { cdiDevices: ['nvidia.com/gpu=all'], securityOpts: open }, process: {}
  },
  {
    title: 'cuda, the second', device: 'gpu-cuda', gpuIndex: 1, hardware: twoNvidia, nodes: nvidiaNodes,
    container: { cdiDevices: ['nvidia.com/gpu=1'], securityOpts: open, env: { CUDA_VISIBLE_DEVICES: '0' } },
    process: { env: { CUDA_VISIBLE_DEVICES: '1' } }
  },
  {
    title: 'cuda counts NVIDIA\'s alone', device: 'gpu-cuda', gpuIndex: 0, hardware: mixed, nodes: ['/dev/nvidia0'],
    container: { cdiDevices: ['nvidia.com/gpu=0'], securityOpts: open, env: { CUDA_VISIBLE_DEVICES: '0' } },
    process: { env: { CUDA_VISIBLE_DEVICES: '0' } }
  },
  {
    title: 'cuda in WSL', device: 'gpu-cuda', hardware: unprobed, nodes: ['/dev/dxg'],
    container: { cdiDevices: ['nvidia.com/gpu=all'], securityOpts: open }, process: {}
  },
  {
    title: 'cuda, nothing there', device: 'gpu-cuda', hardware: unprobed, nodes: ['/dev/dri/card0'],
    container: { cdiDevices: ['nvidia.com/gpu=all'], securityOpts: open, missing: ['/dev/nvidia0 (the NVIDIA driver is not loaded)'] },
    process: { missing: ['/dev/nvidia0 (the NVIDIA driver is not loaded)'] }
  },
  {
    title: 'npu as it was probed', device: 'npu', hardware: withNpu, nodes: ['/dev/accel/accel0', '/dev/dri/renderD129'],
    container: { devices: ['/dev/accel/accel0', '/dev/dri/renderD129'], groups: [110], securityOpts: open }, process: {}
  },
  {
    title: 'npu, an index means nothing', device: 'npu', gpuIndex: 3, hardware: unprobed, nodes: ['/dev/accel/accel0'],
    container: { devices: ['/dev/accel/accel0'], groups: [110], securityOpts: open }, process: {}
  },
  {
    title: 'npu, nothing there', device: 'npu', hardware: withNpu, nodes: [],
    container: {
      devices: ['/dev/accel/accel0', '/dev/dri/renderD129'], groups: [110], securityOpts: open,
      missing: ['/dev/accel/accel0', '/dev/dri/renderD129']
    },
    process: { missing: ['/dev/accel/accel0', '/dev/dri/renderD129'] }
  },
  {
    title: 'an index that the probe did not see', device: 'gpu-vulkan', gpuIndex: 5, hardware: twoAmd, nodes: amdNodes,
    container: {
      devices: allDri, groups: gpuGroups, securityOpts: open, env: { GGML_VK_VISIBLE_DEVICES: '5' },
      missing: ['GPU 5 (for gpu-vulkan this host has 0 Radeon, 1 Radeon)']
    },
    process: { env: { GGML_VK_VISIBLE_DEVICES: '5' }, missing: ['GPU 5 (for gpu-vulkan this host has 0 Radeon, 1 Radeon)'] }
  },
  {
    title: 'a number past the GPUs of the device', device: 'gpu-cuda', gpuIndex: 2, hardware: mixed, nodes: nvidiaNodes,
    container: {
      cdiDevices: ['nvidia.com/gpu=2'], securityOpts: open, env: { CUDA_VISIBLE_DEVICES: '0' },
      missing: ['GPU 2 (for gpu-cuda this host has 0 GeForce)']
    },
    process: { env: { CUDA_VISIBLE_DEVICES: '2' }, missing: ['GPU 2 (for gpu-cuda this host has 0 GeForce)'] }
  },
  {
    title: 'nodes that nobody can list are not missed', device: 'gpu-rocm', hardware: twoAmd, nodes: null,
    container: { devices: ['/dev/kfd', '/dev/dri/renderD128', '/dev/dri/renderD129'], groups: gpuGroups, securityOpts: open }, process: {}
  }
]

t.test('what a device needs, in a container and as a process', async t => {
  for (const { title, device, gpuIndex, hardware, nodes, container, process } of cases) {
    const input: Omit<VisibilityInput, 'form'> = {
      device, gpuIndex: gpuIndex ?? null, hardware, nodes, vulkanVariable: 'GGML_VK_VISIBLE_DEVICES'
    }
    t.same(gpuVisibility({ ...input, form: 'container' }), { ...nothing, ...container }, `${title}: container`)
    t.same(gpuVisibility({ ...input, form: 'process' }), { ...nothing, ...process }, `${title}: process`)
  }
  t.same(new Set(cases.map(({ device }) => device)), new Set(devices), 'every device is in the table')
})

t.test('groups that the probe did not find are left out', async t => {
  const { groups } = gpuVisibility({
    device: 'gpu-rocm', gpuIndex: null, form: 'container', vulkanVariable: null, nodes: amdNodes,
    hardware: hardwareSchema.parse({ gpu_group_gids: { video: 44 } })
  })
  t.same(groups, [44])
})

t.test('GPU and NPU device nodes are found below /dev, none where it is missing, null on macOS', async t => {
  const root = t.testdir({
    kfd: '', null: '', nvidia0: '', nvidiactl: '', dri: { 'renderD128': '', 'card0': '', 'by-path': {} }, accel: { accel0: '' }
  })
  t.same([...deviceNodes('linux', root)!].sort(),
    ['/dev/accel/accel0', '/dev/dri/card0', '/dev/dri/renderD128', '/dev/kfd', '/dev/nvidia0'])
  t.same(deviceNodes('linux', `${root}/nowhere`), [])
  t.equal(deviceNodes('darwin', root), null)
})

t.test('an engine that has no variable for Vulkan is told no number', async t => {
  const input = { device: 'gpu-vulkan', gpuIndex: 1, hardware: twoAmd, nodes: allDri, vulkanVariable: null } as const
  t.same(gpuVisibility({ ...input, form: 'container' }).env, {})
  t.same(gpuVisibility({ ...input, form: 'container' }).devices, ['/dev/dri/renderD129'], 'its container has that GPU alone')
  t.same(gpuVisibility({ ...input, form: 'process' }).env, {})
})

t.test('a device that is not there is an error that says what is', async t => {
  const asked = { form: 'container', vulkanVariable: null } as const
  t.same(deviceAccess({ ...asked, device: 'cpu', gpuIndex: null, hardware: unprobed }), { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} })
  t.throws(() => deviceAccess({ ...asked, device: 'gpu-vulkan', gpuIndex: 7, hardware: twoAmd }), {
    code: 'slot.load_failed', message: /gpu-vulkan is missing.*GPU 7 \(for gpu-vulkan this host has 0 Radeon, 1 Radeon\)/, details: { device: 'gpu-vulkan', gpu_index: 7 }
  })
})
