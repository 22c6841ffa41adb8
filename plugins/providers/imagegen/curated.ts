import type { CuratedModel } from '../../services/library/ref.js'
import type { CuratedImage } from './ref.js'

const turbo = { workflow: 'sdxl_turbo_simple', edits: { image: 'sdxl_turbo_image', inpaint: 'sdxl_turbo_inpaint' } }
const sd15 = { workflow: 'sd15_simple', edits: { image: 'sd15_image', inpaint: 'sd15_inpaint' } }

/** Files below `workflows` that drive a class of models; a class that is not here has none. */
const workflows: Readonly<Record<string, Pick<CuratedImage, 'workflow' | 'edits'>>> = {
  'sdxl-turbo': turbo, 'sdxl': turbo, 'sd-1.5': sd15, 'sd15': sd15
}

/** The image models of the model library, and how the engine is driven for each. Pure. */
export function imagesOf (curated: readonly CuratedModel[]): readonly CuratedImage[] {
  return curated.filter(model => model.capability === 'image' && !model.bundle_only).map(model => {
    const { workflow, edits } = workflows[model.model_class] ?? { workflow: null, edits: null }
    return {
      id: model.id,
      title: model.display_name,
      family: model.family,
      sizeGb: model.size_gb,
      vramGbMin: model.vram_gb_min,
      license: model.license,
      licenseUrl: model.license_url,
      hubRepo: model.hf_repo,
      hubFile: model.hf_file,
      modelClass: model.model_class,
      folder: model.comfyui_subdir,
      workflow,
      edits,
      problem: workflow === null ? 'no workflow supports it yet: its text encoders and autoencoder are separate files' : null
    }
  })
}
