import type { CuratedModel } from './ref.js'

const blank = {
  mmproj_file: '', notes: '', backend: '', model_class: '', comfyui_subdir: '', bundle_only: false, context_length: 0, tags: []
} as const

const whisper = {
  ...blank, family: 'whisper', license: 'mit', license_url: 'https://opensource.org/license/mit', hf_repo: 'ggerganov/whisper.cpp', capability: 'asr',
  recommended_slot: 'stt'
} as const

const checkpoint = { ...blank, capability: 'image', recommended_slot: 'img', comfyui_subdir: 'checkpoints' } as const

/** Models of speech and images. */
export const curatedMedia: readonly CuratedModel[] = [
  {
    ...whisper, id: 'Whisper-Tiny', display_name: 'Whisper tiny', description: 'Transcribes at once, and roughly', size_gb: 0.08, vram_gb_min: 0.5,
    hf_file: 'ggml-tiny.bin', bundle_only: true
  },
  {
    ...whisper, id: 'Whisper-Base', display_name: 'Whisper base', description: 'Transcribes clear speech on a CPU', size_gb: 0.15, vram_gb_min: 0.5,
    hf_file: 'ggml-base.bin', bundle_only: true
  },
  {
    ...whisper, id: 'Whisper-Large-v3-Turbo', display_name: 'Whisper large v3 turbo', description: 'Transcribes about a hundred languages well',
    size_gb: 1.62, vram_gb_min: 2, hf_file: 'ggml-large-v3-turbo.bin'
  },
  {
    ...checkpoint, id: 'sdxl-turbo', display_name: 'SDXL Turbo', family: 'sdxl', model_class: 'sdxl-turbo', license: 'sai-nc-community',
    license_url: 'https://huggingface.co/stabilityai/sdxl-turbo/blob/main/LICENSE.md', description: 'An image in one to four steps', size_gb: 6.94,
    vram_gb_min: 8, hf_repo: 'stabilityai/sdxl-turbo', hf_file: 'sd_xl_turbo_1.0_fp16.safetensors', notes: 'Not for commercial use'
  },
  {
    ...checkpoint, id: 'sd-1.5-pruned-emaonly', display_name: 'Stable Diffusion 1.5', family: 'sd', model_class: 'sd-1.5', license: 'creativeml-openrail-m',
    license_url: 'https://huggingface.co/spaces/CompVis/stable-diffusion-license', description: 'The older generation, for small GPUs', size_gb: 4.27,
    vram_gb_min: 4, hf_repo: 'stable-diffusion-v1-5/stable-diffusion-v1-5', hf_file: 'v1-5-pruned-emaonly.safetensors'
  },
  {
    ...checkpoint, id: 'flux-schnell', display_name: 'FLUX.1 [schnell]', family: 'flux', model_class: 'flux-schnell', license: 'apache-2.0',
    license_url: 'https://www.apache.org/licenses/LICENSE-2.0', description: 'Large and detailed, in a few steps', size_gb: 23.8, vram_gb_min: 24,
    hf_repo: 'black-forest-labs/FLUX.1-schnell', hf_file: 'flux1-schnell.safetensors', comfyui_subdir: 'diffusion_models',
    notes: 'The default workflow cannot drive it yet'
  }
]
