import type { CatalogueModel } from 'svc-gateway/plugin'

/** A curated image model (SPEC.md "Image model catalogue") and how the engine is driven for it. */
export interface CuratedImage extends CatalogueModel {
  readonly modelClass: string
  /** Folder below the engine's `models`. */
  readonly folder: string
  /** File below `workflows`, without its ending; null when none drives it. */
  readonly workflow: string | null
}

export const curatedImages: readonly CuratedImage[] = [
  {
    id: 'sdxl-turbo',
    title: 'SDXL Turbo',
    family: 'sdxl',
    sizeGb: 6.5,
    vramGbMin: 8,
    license: 'SAI-NC-Research-Community',
    licenseUrl: 'https://huggingface.co/stabilityai/sdxl-turbo/blob/main/LICENSE.md',
    hubRepo: 'stabilityai/sdxl-turbo',
    hubFile: 'sd_xl_turbo_1.0_fp16.safetensors',
    modelClass: 'sdxl-turbo',
    folder: 'checkpoints',
    workflow: 'sdxl_turbo_simple',
    problem: null
  },
  {
    id: 'sd-1.5-pruned-emaonly',
    title: 'Stable Diffusion 1.5 (pruned, EMA only)',
    family: 'sd',
    sizeGb: 4.3,
    vramGbMin: 4,
    license: 'CreativeML-Open-RAIL-M',
    licenseUrl: 'https://huggingface.co/spaces/CompVis/stable-diffusion-license',
    hubRepo: 'stable-diffusion-v1-5/stable-diffusion-v1-5',
    hubFile: 'v1-5-pruned-emaonly.safetensors',
    modelClass: 'sd-1.5',
    folder: 'checkpoints',
    workflow: 'sd15_simple',
    problem: null
  },
  {
    id: 'flux-schnell',
    title: 'FLUX.1 [schnell]',
    family: 'flux',
    sizeGb: 23.8,
    vramGbMin: 24,
    license: 'Apache-2.0',
    licenseUrl: 'https://www.apache.org/licenses/LICENSE-2.0',
    hubRepo: 'black-forest-labs/FLUX.1-schnell',
    hubFile: 'flux1-schnell.safetensors',
    modelClass: 'flux-schnell',
    folder: 'diffusion_models',
    workflow: null,
    problem: 'no workflow drives it yet: its text encoders and its autoencoder come in files of their own'
  }
]

export function curatedImage (id: string): CuratedImage | undefined {
  return curatedImages.find(model => model.id === id)
}
