import { svcError } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { CuratedImage } from './ref.js'
import type { GraphParams, Workflow } from './workflow.js'

/** What `/v1/images/generations` sends on: one flat object, defaults of the slot filled in. */
const requestSchema = z.looseObject({
  model: z.string(),
  prompt: z.string().min(1),
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

/** The parameters of one run. Throws `validation.invalid` for what the workflow cannot be driven with. Pure. */
export function graphParams (request: RenderRequest, model: CuratedImage, workflow: Workflow, prefix: string): GraphParams {
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
    filename_prefix: prefix
  }
}

function within (
  field: string, value: number, { min, max }: { readonly min: number, readonly max: number }, model: CuratedImage
): number {
  if (value >= min && value <= max) return value
  const message = `${field} must be from ${min} to ${max} for ${model.id}`
  throw svcError('validation.invalid', message, { param: field, details: { fields: [{ path: field, message }] } })
}
