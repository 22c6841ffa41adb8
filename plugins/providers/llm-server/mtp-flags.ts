import type { GpuBackend } from 'svc-gateway/plugin'

const draftDevices: Readonly<Record<GpuBackend, string>> = { rocm: 'ROCm0', vulkan: 'Vulkan0', cuda: 'CUDA0' }

/** Multi-token prediction; the draft device follows the GPU runtime. */
export function mtpFlags (backend: GpuBackend | null): readonly string[] {
  return [
    '--spec-type', 'draft-mtp',
    '--spec-draft-device', backend === null ? 'ROCm0' : draftDevices[backend],
    '--spec-draft-ngl', 'all',
    '--spec-draft-n-max', '4',
    '--spec-draft-n-min', '0',
    '--spec-draft-p-min', '0.0',
    '--spec-draft-p-split', '0.10',
    '--spec-draft-type-k', 'q8_0',
    '--spec-draft-type-v', 'q8_0',
    '--spec-draft-threads', '16',
    '--spec-draft-threads-batch', '32',
    '--spec-draft-poll', '1',
    '--spec-draft-poll-batch', '1'
  ]
}
