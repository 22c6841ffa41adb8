import { svcError } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { CuratedImage } from './ref.js'
import type { GraphParams, Workflow } from './workflow.js'

const pictureSchema = z.object({ format: z.enum(['png', 'jpeg', 'webp']), base64: z.string().min(1) })
export type Picture = z.output<typeof pictureSchema>

/** What `/v1/images/*` sends on: one flat object, defaults of the slot filled in. */
const requestSchema = z.looseObject({
  model: z.string(),
  prompt: z.string(),
  /** The picture that is to be changed; null makes one from the prompt alone. */
  image: pictureSchema.nullish(),
  /** Its transparent parts are painted anew, and nothing else. */
  mask: pictureSchema.nullish(),
  strength: z.number().nullish(),
  size: z.string().regex(/^\d+x\d+$/),
  n: z.int().min(1),
  seed: z.int().min(0),
  steps: z.int().min(1).nullish(),
  cfg: z.number().nullish(),
  negative_prompt: z.string().nullish()
})
export type RenderRequest = z.output<typeof requestSchema>

export function parseRequest (body: Buffer): RenderRequest {
  const parsed = requestSchema.safeParse(JSON.parse(body.toString('utf8')))
  if (parsed.success) return parsed.data
  throw svcError('validation.invalid', `the image request is not complete: ${z.prettifyError(parsed.error)}`, { details: { fields: [] } })
}

/** Names that the engine knows pictures by. */
export interface SentPictures {
  readonly image?: string
  readonly mask?: string
}

/** The parameters of one run. Throws `validation.invalid` for what the workflow cannot be driven with. Pure. */
export function graphParams (
  request: RenderRequest, model: CuratedImage, workflow: Workflow, prefix: string, pictures: SentPictures = {}
): GraphParams {
  const { defaults, limits } = workflow.meta
  const [width, height] = request.size.split('x').map(Number) as [number, number]
  return {
    ckpt_name: model.hubFile,
    positive_prompt: request.prompt,
    negative_prompt: request.negative_prompt ?? '',
    width,
    height,
    batch_size: request.n,
    seed: request.seed,
    steps: within('steps', request.steps ?? defaults.steps, limits.steps, model),
    cfg: within('cfg', request.cfg ?? defaults.cfg, limits.cfg, model),
    ...pictures,
    ...(pictures.image === undefined ? {} : { denoise: request.strength ?? usualStrength(request) }),
    filename_prefix: prefix
  }
}

/** Behind a mask everything is new; a whole picture stays one that can be known again. */
function usualStrength ({ mask, prompt }: RenderRequest): number {
  if (mask !== undefined && mask !== null) return 1
  return prompt === '' ? 0.6 : 0.75
}

function within (
  field: string, value: number, { min, max }: { readonly min: number, readonly max: number }, model: CuratedImage
): number {
  if (value >= min && value <= max) return value
  const message = `${field} must be from ${min} to ${max} for ${model.id}`
  throw svcError('validation.invalid', message, { param: field, details: { fields: [{ path: field, message }] } })
}
