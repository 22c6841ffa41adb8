import { gpuInfoSchema, gpuVendors, hardwareSchema } from 'svc-gateway/plugin'
import { z } from 'zod'

const mib = z.int().meta({ description: 'MiB' })

/**
 * The probe, and its main facts once more without nesting. Keys that operators keep in
 * hardware.json come along.
 */
export const hardwareViewSchema = hardwareSchema.extend({
  gpus: z.array(gpuInfoSchema.extend({
    gpu_index: z.record(z.string(), z.int()).meta({ description: 'The `gpu_index` of a slot that selects this GPU, by device' })
  })),
  gpu_name: z.string().meta({ description: 'Of the GPU that engines would use; empty if there is none' }),
  gpu_vendor: z.enum(gpuVendors).nullable(),
  vram_total_mb: mib.meta({ description: 'MiB of all GPUs together; 0 if the GPU shares the memory of the host' }),
  gtt_total_mb: mib.meta({ description: 'MiB of host memory that the GPU may map' }),
  ram_total_mb: mib,
  is_uma: z.boolean().meta({ description: 'GPU and processor share one memory: never add RAM and VRAM' }),
  cpu_name: z.string(),
  npu_present: z.boolean(),
  npu_name: z.string().nullable(),
  platform_label: z.string().meta({ description: 'Description of the platform' }),
  memory_kind: z.enum(['unified', 'system'])
})
export type HardwareView = z.output<typeof hardwareViewSchema>
