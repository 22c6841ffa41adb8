import { gpusOf, type Device, type GpuInfo, type HardwareInfo } from '../../contract/index.js'

export interface VisibilityInput {
  readonly device: Device
  /** The slot's `gpu_index`: counts the GPUs that the device means; null exposes all of them. */
  readonly gpuIndex: number | null
  readonly form: 'container' | 'process'
  /** The engine's `vulkanVariable`; null for one that has none. */
  readonly vulkanVariable: string | null
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
  const choice = choose(input)
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

/** A container gets the render nodes of its GPUs. NVIDIA's Vulkan driver is in no image: it is put in with the device. */
function vulkan (input: VisibilityInput): Wanted {
  const choice = choose(input)
  const { hardware: { gpus }, vulkanVariable: variable } = input
  const nvidia = choice.gpu === null ? gpus.some(isNvidia) : isNvidia(choice.gpu)
  const alone = nvidia && (choice.gpu !== null || gpus.every(isNvidia))
  const { devices, missing, single } = driNodes(input, choice, alone)
  return {
    ...NOTHING,
    devices,
    cdiDevices: nvidia ? [cdiName(choice.gpu, gpus)] : [],
    env: choice.ordinal === null || variable === null ? {} : { [variable]: String(single ? 0 : choice.ordinal) },
    groupNames: ['render', 'video'],
    missing
  }
}

function cuda (input: VisibilityInput): Wanted {
  const choice = choose(input)
  const present = input.nodes === null || input.nodes.some(node => /^\/dev\/(nvidia\d+|dxg)$/.test(node))
  const contained = input.form === 'container'
  return {
    ...NOTHING,
    cdiDevices: [choice.ordinal === null || choice.gpu !== null ? cdiName(choice.gpu, input.hardware.gpus) : `nvidia.com/gpu=${choice.ordinal}`],
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
  /** Its number among the GPUs that the engine's own runtime counts, which is what the slot says; null when none is pinned. */
  readonly ordinal: number | null
  readonly missing: readonly string[]
}

function choose ({ device, gpuIndex, hardware: { gpus } }: VisibilityInput): Choice {
  if (gpuIndex === null) return { gpu: null, ordinal: null, missing: [] }
  if (gpus.length === 0) return { gpu: null, ordinal: gpuIndex, missing: [] } // never probed: taken at its word
  const counted = gpusOf(device, gpus)
  const gpu = counted[gpuIndex]
  if (gpu !== undefined) return { gpu, ordinal: gpuIndex, missing: [] }
  const known = counted.map((each, number) => `${number} ${each.name === '' ? each.vendor : each.name}`).join(', ')
  return { gpu: null, ordinal: gpuIndex, missing: [`GPU ${gpuIndex} (for ${device} this host has ${known === '' ? 'none' : known})`] }
}

/**
 * `single`: one GPU's nodes and no other's, so that the engine counts it as number 0.
 * @param withoutNodes the device comes by CDI, and a render node is not needed for it
 */
function driNodes (
  input: VisibilityInput, choice: Choice, withoutNodes = false
): { readonly devices: readonly string[], readonly missing: readonly string[], readonly single: boolean } {
  const contained = input.form === 'container'
  const { nodes } = input
  const known = nodes?.filter(node => /^\/dev\/dri\/(renderD|card)\d+$/.test(node)).sort(byNumber)
  const ofThis = choice.gpu?.drm_path ?? ''
  if (ofThis !== '') return { devices: [ofThis], missing: [...choice.missing, ...absent(input, [ofThis])], single: contained }
  if (withoutNodes && choice.gpu !== null) return { devices: [], missing: choice.missing, single: contained }
  const { gpus } = input.hardware
  const all = known ?? gpus.map(gpu => gpu.drm_path).filter(path => path !== '')
  const blind = nodes !== null && !withoutNodes && !all.some(node => node.includes('renderD'))
  const counted = gpusOf(input.device, gpus)
  const ofOthers = new Set(gpus.filter(gpu => !counted.includes(gpu)).map(gpu => gpu.drm_path))
  const devices = all.filter(node => !ofOthers.has(node))
  return { devices, missing: [...choice.missing, ...(blind ? ['/dev/dri/renderD128 or another render node'] : [])], single: false }
}

/** CDI counts NVIDIA's alone, whatever the device counts. */
function cdiName (gpu: GpuInfo | null, gpus: readonly GpuInfo[]): string {
  return gpu === null ? 'nvidia.com/gpu=all' : `nvidia.com/gpu=${gpusOf('gpu-cuda', gpus).indexOf(gpu)}`
}

function isNvidia ({ vendor }: GpuInfo): boolean {
  return vendor === 'nvidia'
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
