import type { Device, GpuInfo, HardwareInfo } from '../contract/index.js'

export interface VisibilityInput {
  readonly device: Device
  /** The slot's `gpu_index`: a GPU of `hardware.gpus` by its index; null exposes all. */
  readonly gpuIndex: number | null
  readonly form: 'container' | 'process'
  readonly hardware: HardwareInfo
  /** Device nodes that exist (device-access.ts); null when that cannot be known, as on another system. */
  readonly nodes: readonly string[] | null
}

export interface Visibility {
  readonly devices: readonly string[]
  readonly cdiDevices: readonly string[]
  readonly groups: readonly number[]
  readonly securityOpts: readonly string[]
  /** Narrows the engine to its GPU. Lies over the provider's own environment and under `[server] env` of the slot. */
  readonly env: Readonly<Record<string, string>>
  /** What the device needs and this host lacks, in words. Not empty: do not start, it would run on the CPU. */
  readonly missing: readonly string[]
}

type Wanted = Omit<Visibility, 'groups' | 'securityOpts'> & { readonly groupNames: readonly string[] }

const NOTHING: Wanted = { devices: [], cdiDevices: [], missing: [], env: {}, groupNames: [] }

/**
 * What an engine must be given to see its device, and nothing beyond. Pure. A container gets device nodes, groups
 * and the environment; a process has the host's devices already and gets the environment alone.
 */
export function gpuVisibility (input: VisibilityInput): Visibility {
  const wanted = wantedFor(input)
  const contained = input.form === 'container'
  return {
    devices: contained ? wanted.devices : [],
    cdiDevices: contained ? wanted.cdiDevices : [],
    groups: contained ? groupIds(input.hardware, wanted.groupNames) : [],
    // SELinux keeps containers from device nodes; elsewhere this says nothing. No seccomp or AppArmor exception is needed
    securityOpts: contained && wanted.devices.length + wanted.cdiDevices.length > 0 ? ['label=disable'] : [],
    env: wanted.env,
    missing: wanted.missing
  }
}

function wantedFor (input: VisibilityInput): Wanted {
  switch (input.device) {
    case 'cpu': return NOTHING
    case 'npu': return npu(input)
    case 'gpu-cuda': return cuda(input)
    case 'gpu-rocm': return rocm(input)
    case 'gpu-vulkan': return vulkan(input)
  }
}

/**
 * HIP counts what ROCR left visible, from 0: both at the same index above 0 would hide every GPU. A container with
 * one render node has one GPU, number 0.
 */
function rocm (input: VisibilityInput): Wanted {
  const choice = choose(input, ['amd'])
  const { devices, missing, single } = driNodes(input, choice)
  const env = choice.ordinal === null ? {} : {
    ROCR_VISIBLE_DEVICES: String(single ? 0 : choice.ordinal), HIP_VISIBLE_DEVICES: '0'
  }
  const kfd = '/dev/kfd'
  return {
    ...NOTHING,
    devices: [kfd, ...devices],
    env,
    groupNames: ['render', 'video'],
    missing: [...absent(input, [kfd]), ...missing]
  }
}

function vulkan (input: VisibilityInput): Wanted {
  const choice = choose(input, null)
  const { gpus } = input.hardware
  const nvidia = choice.gpu === null ? gpus.length > 0 && gpus.every(gpu => gpu.vendor === 'nvidia') : choice.gpu.vendor === 'nvidia'
  const { devices, missing, single } = driNodes(input, choice)
  return {
    ...NOTHING,
    devices,
    // NVIDIA's Vulkan driver is not in any image: it is put in together with the device
    cdiDevices: nvidia ? [cdiName(input, choice)] : [],
    env: choice.ordinal === null ? {} : { GGML_VK_VISIBLE_DEVICES: String(single ? 0 : choice.ordinal) },
    groupNames: ['render', 'video'],
    missing
  }
}

function cuda (input: VisibilityInput): Wanted {
  const choice = choose(input, ['nvidia'])
  const present = input.nodes === null || input.nodes.some(node => /^\/dev\/(nvidia\d+|dxg)$/.test(node))
  const contained = input.form === 'container'
  return {
    ...NOTHING,
    cdiDevices: [cdiName(input, choice)],
    // CDI hands over one GPU, which is number 0 inside
    env: choice.ordinal === null ? {} : { CUDA_VISIBLE_DEVICES: String(contained ? 0 : choice.ordinal) },
    missing: [...choice.missing, ...(present ? [] : ['/dev/nvidia0 (the NVIDIA driver is not loaded)'])]
  }
}

function npu (input: VisibilityInput): Wanted {
  const { accel_path: accel, render_path: render } = input.hardware.npu
  const devices = [accel === '' ? '/dev/accel/accel0' : accel, ...(render === '' ? [] : [render])]
  return { ...NOTHING, devices, groupNames: ['render'], missing: absent(input, devices) }
}

interface Choice {
  /** The pinned GPU as the probe saw it. */
  readonly gpu: GpuInfo | null
  /** Its number among the GPUs that the engine's own runtime counts; null when none is pinned. */
  readonly ordinal: number | null
  readonly missing: readonly string[]
}

/** Vendors null: the runtime counts GPUs of every vendor. */
function choose ({ gpuIndex, hardware }: VisibilityInput, vendors: readonly string[] | null): Choice {
  if (gpuIndex === null) return { gpu: null, ordinal: null, missing: [] }
  if (hardware.gpus.length === 0) return { gpu: null, ordinal: gpuIndex, missing: [] } // never probed: taken at its word
  const gpu = hardware.gpus.find(candidate => candidate.index === gpuIndex)
  if (gpu === undefined) {
    const known = hardware.gpus.map(candidate => candidate.index).join(', ')
    return { gpu: null, ordinal: gpuIndex, missing: [`GPU ${gpuIndex} (the hardware probe found ${known})`] }
  }
  const counted = hardware.gpus.filter(candidate => vendors === null || candidate.vendor === 'unknown' || vendors.includes(candidate.vendor))
    .sort((a, b) => a.index - b.index)
  const ordinal = counted.indexOf(gpu)
  if (ordinal < 0) {
    return { gpu, ordinal: gpuIndex, missing: [`GPU ${gpuIndex} is ${gpu.name === '' ? gpu.vendor : gpu.name}; this device needs ${(vendors ?? []).join(' or ')}`] }
  }
  return { gpu, ordinal, missing: [] }
}

/** `single`: one GPU's nodes and no other's, so that the engine counts it as number 0. */
function driNodes (input: VisibilityInput, choice: Choice): { devices: string[], missing: string[], single: boolean } {
  const contained = input.form === 'container'
  const { nodes } = input
  const known = nodes?.filter(node => /^\/dev\/dri\/(renderD|card)\d+$/.test(node)).sort(byNumber)
  const ofThis = choice.gpu?.drm_path ?? ''
  if (ofThis !== '') return { devices: [ofThis], missing: [...choice.missing, ...absent(input, [ofThis])], single: contained }
  const devices = known ?? input.hardware.gpus.map(gpu => gpu.drm_path).filter(path => path !== '')
  const blind = nodes !== null && !devices.some(node => node.includes('renderD'))
  return { devices, missing: [...choice.missing, ...(blind ? ['/dev/dri/renderD128 or another render node'] : [])], single: false }
}

function cdiName (input: VisibilityInput, choice: Choice): string {
  if (choice.ordinal === null) return 'nvidia.com/gpu=all'
  // the runtime counts all vendors for Vulkan, CDI counts NVIDIA's alone
  const ordinal = choice.gpu === null ? choice.ordinal : choose(input, ['nvidia']).ordinal
  return `nvidia.com/gpu=${ordinal}`
}

function absent (input: VisibilityInput, wanted: readonly string[]): string[] {
  return input.nodes === null ? [] : wanted.filter(node => !input.nodes!.includes(node))
}

function groupIds (hardware: HardwareInfo, names: readonly string[]): number[] {
  return [...new Set(names.map(name => hardware.gpu_group_gids[name]).filter(gid => gid !== undefined))]
}

function byNumber (a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
