import type { Device } from 'svc-gateway/plugin'

/** What people are told about a device. */
export const deviceTexts: Readonly<Record<Device, { readonly label: string, readonly description: string }>> = {
  'gpu-rocm': { label: 'AMD GPU (ROCm)', description: 'AMD GPU through ROCm' },
  'gpu-vulkan': { label: 'GPU (Vulkan)', description: 'Any GPU through Vulkan' },
  'gpu-cuda': { label: 'NVIDIA GPU (CUDA)', description: 'NVIDIA GPU through CUDA; experimental' },
  'cpu': { label: 'CPU', description: 'No GPU' },
  'npu': { label: 'NPU', description: 'AMD XDNA NPU; one process serves chat, transcription and embeddings' }
}

export const recommendedDevice: Device = 'gpu-rocm'

/** Tags with a meaning of their own; models may carry any other. */
export const curatedModelTags = [
  'mtp', 'tool-calling', 'reasoning', 'coder', 'vision', 'curated', 'user-added', 'chat', 'code', 'coding', 'frontier',
  'long-context', 'multilingual', 'default', 'rocmfp4', 'balanced', 'tiny', 'lite-bundle', 'smoke-test', 'fast', 'low-vram', 'mit',
  'embed', 'light', 'medium', 'rerank', 'image', 'sdxl', 'sd-1.5', 'lora', 'upscale', 'esrgan', 'research-only', 'stt',
  'transcription', 'tts', 'edit'
] as const
