import type { CuratedModel } from '../../services/library/ref.js'
import type { CuratedImage } from './ref.js'

/** File below `workflows` that drives a class of models; a class that is not here has none. */
const workflows: Readonly<Record<string, string>> = {
  'sdxl-turbo': 'sdxl_turbo_simple',
  'sdxl': 'sdxl_turbo_simple',
  'sd-1.5': 'sd15_simple',
  'sd15': 'sd15_simple'
}

/** The image models of the model library, and how the engine is driven for each. Pure. */
export function imagesOf (curated: readonly CuratedModel[]): readonly CuratedImage[] {
  return curated.filter(model => model.capability === 'image' && !model.bundle_only).map(model => {
    const workflow = workflows[model.model_class] ?? null
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
      problem: workflow === null ? 'no workflow drives it yet: its text encoders and its autoencoder come in files of their own' : null
    }
  })
}
