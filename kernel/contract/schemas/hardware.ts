import { z } from 'zod'

export const gpuVendors = ['amd', 'nvidia', 'intel', 'unknown'] as const
export const platforms = [
  'strix-halo', 'wsl2', 'proxmox-kvm', 'kvm', 'lxc', 'bare-metal-amd-gpu', 'bare-metal-nvidia-gpu',
  'bare-metal-intel-igpu', 'bare-metal-cpu-only', 'unknown'
] as const

const mb = z.int().min(0).default(0)
const text = z.string().default('')

export const gpuInfoSchema = z.looseObject({
  vendor: z.enum(gpuVendors).default('unknown'),
  index: z.int().min(0).default(0),
  name: text,
  vram_mb: mb,
  gtt_mb: mb.meta({ description: 'MiB of host memory that the GPU may map' }),
  integrated: z.boolean().default(false).meta({ description: 'Part of the processor: its memory is the host\'s' }),
  pci_id: text,
  driver: text,
  drm_path: text.meta({ description: 'Render node, such as /dev/dri/renderD128' }),
  compute_capable: z.boolean().default(false),
  vulkan_capable: z.boolean().default(false)
})

export const npuInfoSchema = z.looseObject({
  present: z.boolean().default(false),
  vendor: text,
  name: text,
  driver: text,
  accel_path: text,
  render_path: text,
  aie_columns: z.int().min(0).nullable().default(null),
  validated: z.boolean().nullable().default(null)
})

/** hardware.json: the cached probe. Sizes in MiB. Never add ram and vram on unified memory. */
export const hardwareSchema = z.looseObject({
  hostname: text,
  kernel: text,
  distro: text,
  cpu_model: text,
  uptime_s: z.number().min(0).default(0),
  cpu_cores: z.int().min(0).default(0),
  cpu_threads: z.int().min(0).default(0),
  ram_mb: mb,
  ram_available_mb: mb,
  swap_mb: mb,
  unified_memory_mb: mb.meta({ description: 'MiB of host memory that integrated graphics may map; 0 if none' }),
  disk_free_mb: mb,
  gpus: z.array(gpuInfoSchema).default([]),
  gpu_group_gids: z.record(z.string(), z.int().min(0)).default({}),
  npu: npuInfoSchema.prefault({}),
  cgroup_max_mb: z.int().min(0).nullable().default(null),
  probed_at: text,
  platform: z.enum(platforms).default('unknown'),
  extra: z.record(z.string(), z.unknown()).default({})
})

export type HardwareInfo = z.output<typeof hardwareSchema>
export type GpuInfo = z.output<typeof gpuInfoSchema>
