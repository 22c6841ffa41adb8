import { slotImageSchema, svcError, type BodyEdits, type NamedSlotConfig } from 'svc-gateway/plugin'
import { randomInt } from 'node:crypto'
import { imageError } from './errors.js'
import type { ImageBody } from './schemas.js'

/** What is asked for, whichever way it was written. */
export interface ImageRequest {
  readonly model: string
  readonly prompt: string
  readonly n: number
  /** Null leaves it to the slot. */
  readonly size: string | null
  readonly seed: number
  readonly steps: number | null
  readonly cfg: number | null
  readonly negativePrompt: string | null
  /** Null where the client did not say. */
  readonly format: 'url' | 'b64_json' | null
}

/** Whole numbers that `randomInt` gives, and that JSON carries exactly. */
const SEEDS = 2 ** 48 - 1
const MAX_IMAGES = 8

/**
 * Throws `request.missing_model` and `image.prompt_required`; everything else has been checked by the schema.
 * @param asksPrompt false for what is made from a picture alone
 */
export function imageRequest (body: ImageBody, asksPrompt = true): ImageRequest {
  const { model = '' } = body
  const prompt = body.prompt ?? ''
  if (asksPrompt && prompt.trim() === '') {
    throw imageError('image.prompt_required', '`prompt` is missing: say what the image shows', { param: 'prompt' })
  }
  if (model.trim() === '') throw svcError('request.missing_model', '`model` is missing: name an image model such as sdxl-turbo', { param: 'model', details: { field: 'model' } })
  // both places at once: what was put into the special one was meant
  const extra = body.extra_body ?? {}
  const seed = extra.seed ?? body.seed ?? -1
  const steps = extra.steps ?? body.steps ?? 0
  const size = body.size ?? 'auto'
  return {
    model: model.trim(),
    prompt: asksPrompt ? prompt : '',
    n: Math.min(MAX_IMAGES, Math.max(1, body.n ?? 1)),
    size: size.toLowerCase() === 'auto' ? null : fittedSize(size),
    seed: seed === -1 ? randomInt(SEEDS) : seed,
    steps: steps === 0 ? null : steps,
    cfg: extra.cfg ?? body.cfg ?? null,
    negativePrompt: extra.negative_prompt ?? body.negative_prompt ?? null,
    format: body.response_format ?? null
  }
}

/**
 * The request as a slot's provider gets it: flat, complete, always for base64. An upstream gets the client's own words,
 * for which this is null. Pure.
 */
export function slotEdits (request: ImageRequest, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null) return null
  const { default_size: size, default_steps: steps } = slot.image ?? slotImageSchema.parse({})
  return {
    set: {
      prompt: request.prompt,
      n: request.n,
      size: request.size ?? fittedSize(size),
      seed: request.seed,
      steps: request.steps ?? (steps > 0 ? steps : null),
      cfg: request.cfg,
      negative_prompt: request.negativePrompt,
      response_format: 'b64_json'
    },
    drop: ['extra_body']
  }
}

/** Each side within 64 to 2048 and down to a multiple of 8. Pure. */
export function fittedSize (size: string): string {
  return size.toLowerCase().split('x').map(side => {
    const pixels = Math.min(2048, Math.max(64, Number(side)))
    return pixels - pixels % 8
  }).join('x')
}
