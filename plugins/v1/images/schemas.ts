import { z } from 'zod'

/** Whole numbers that JSON can carry exactly; -1 is what some clients send for "any". */
const seed = z.int().min(-1).nullish().meta({ description: 'Default: random' })
const steps = z.int().min(0).nullish().meta({ description: 'Sampling steps; default, and 0: the slot\'s `default_steps`, else the model\'s' })
const cfg = z.number().min(0).nullish().meta({ description: 'Guidance scale; default: the model\'s' })
const negativePrompt = z.string().nullish().meta({ description: 'What must not be in the image' })

/** Options beyond the wire format; clients send them in `extra_body` or beside the others. */
const extraBodySchema = z.looseObject({ seed, steps, cfg, negative_prompt: negativePrompt })

/** Body of `POST /v1/images/generations`. What is not named here is ignored. */
export const imageBodySchema = z.looseObject({
  model: z.string().optional().meta({ description: 'Curated image model, image slot or upstream model', pattern: '\\S' }),
  prompt: z.string().nullish().meta({ description: 'What the image shows', anyOf: undefined, type: 'string', pattern: '\\S' }),
  n: z.int().nullish().meta({ description: 'Number of images, 1 (default) to 8; other numbers are clamped' }),
  size: z.string().regex(/^(auto|\d{1,5}x\d{1,5})$/i, { error: 'must look like 1024x1024' }).nullish()
    .meta({ description: 'Width and height in pixels, clamped to 64 to 2048 and rounded down to a multiple of 8; default, and auto: the slot\'s `default_size`' }),
  response_format: z.enum(['url', 'b64_json']).nullish().meta({ description: 'Default: the answer has both' }),
  stream: z.literal(false, { error: 'images are not streamed' }).nullish(),
  seed,
  steps,
  cfg,
  negative_prompt: negativePrompt,
  extra_body: extraBodySchema.nullish()
}).meta({ required: ['model', 'prompt'] })
export type ImageBody = z.output<typeof imageBodySchema>

const pictureSchema = z.string().meta({ format: 'binary', description: 'PNG, JPEG or WebP' })
const formShape = {
  model: z.string().meta({ description: 'Curated image model, image slot or upstream model; may be anywhere in the form', pattern: '\\S' }),
  n: z.int().optional().meta({ description: 'Number of images, 1 (default) to 8; other numbers are clamped' }),
  size: z.string().optional().meta({ description: 'As for generations; default, and auto: the size of the picture itself' }),
  response_format: z.enum(['url', 'b64_json']).optional().meta({ description: 'Default: the answer has both' }),
  strength: z.number().optional().meta({ description: 'How much to change, 0.1 to 1; default 1 with a mask, else 0.75, and 0.6 for variations' }),
  seed: z.int().optional(),
  steps: z.int().optional(),
  cfg: z.number().optional(),
  negative_prompt: z.string().optional()
}

/** Forms are documented here and read by edit-form.ts. */
export const editFormSchema = z.looseObject({
  image: pictureSchema,
  prompt: z.string().meta({ description: 'What the finished image shows', pattern: '\\S' }),
  mask: pictureSchema.optional().meta({ format: 'binary', description: 'PNG or WebP of the same size: only its transparent parts are repainted' }),
  ...formShape
})
export const variationFormSchema = z.looseObject({ image: pictureSchema, ...formShape })

export const imageAnswerSchema = z.looseObject({
  created: z.int().meta({ description: 'Unix seconds' }),
  data: z.array(z.looseObject({
    url: z.string().optional().meta({ description: 'Path on this gateway, such as /api/images/cache/<uuid>.png' }),
    b64_json: z.string().optional().meta({ description: 'PNG in base64' })
  })),
  _svc: z.looseObject({ workflow: z.string(), checkpoint: z.string() }).optional().meta({ description: 'Workflow and checkpoint that were run' })
})

/** What a slot's provider answers. */
export const renderedSchema = z.looseObject({
  created: z.int(),
  data: z.array(z.looseObject({ b64_json: z.string() }))
})
