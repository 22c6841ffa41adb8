import { type GpuInfo } from 'svc-gateway/plugin'
import type { CuratedImage, ImageEngine } from '../../providers/imagegen/ref.js'
import type { ModelPulls } from '../../services/pull/ref.js'
import { comfyuiError } from './errors.js'
import type { FetchBody } from './schemas.js'

export interface FetchServices {
  readonly engine: ImageEngine
  readonly pulls: ModelPulls
}

/** Starts the pulls that are asked for, or joins those that run. Ids of the jobs. */
export async function fetchModels (
  { engine, pulls }: FetchServices, body: FetchBody, gpus: readonly GpuInfo[], signal: AbortSignal
): Promise<readonly string[]> {
  const wanted = 'auto' in body ? suitable(engine.catalogue, gpus) : body.selections.map(selection => variantOf(engine.catalogue, selection))
  const jobs: string[] = []
  for (const model of new Set(wanted)) {
    if (await engine.has(model)) continue
    const { snapshot } = await pulls.start({ model_id: model.id, image_models: engine.modelsFolder }, signal)
    jobs.push(snapshot.id)
  }
  return jobs
}

/** The model with the most demands that the largest GPU can meet, of those that requests can use; else the least one. Pure. */
export function suitable (catalogue: readonly CuratedImage[], gpus: readonly GpuInfo[]): readonly CuratedImage[] {
  const vramGb = Math.max(0, ...gpus.map(gpu => gpu.vram_mb)) / 1024
  const usable = catalogue.filter(({ problem }) => problem === null).sort((a, b) => b.vramGbMin - a.vramGbMin)
  const best = usable.find(({ vramGbMin }) => vramGbMin <= vramGb) ?? usable.at(-1)
  return best === undefined ? [] : [best]
}

function variantOf (
  catalogue: readonly CuratedImage[], { capability, family }: { readonly capability: string, readonly family: string }
): CuratedImage {
  const found = capability === 'image' ? catalogue.find(model => model.family === family) : undefined
  if (found !== undefined) return found
  const families = [...new Set(catalogue.map(model => model.family))]
  throw comfyuiError('comfyui.fetch.unknown_variant', `there is no curated model of capability ${capability} and family ${family}; families for image are ${families.join(', ')}`,
    { param: 'selections', details: { capability, family, families } })
}
