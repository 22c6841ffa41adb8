import { z } from 'zod'
import { wrongField, type EditWish, type GivenPicture } from './edit-form.js'
import { imageRequest, type ImageRequest } from './image-request.js'
import { pictureHead, type PictureHead } from './picture-head.js'
import { imageBodySchema, type ImageBody } from './schemas.js'

/** What `/v1/images/edits` and `/v1/images/variations` want of a slot. */
export type EditVerb = 'edit' | 'variation'

/** What a slot's provider gets of a picture. */
interface SentPicture { readonly format: PictureHead['format'], readonly base64: string }

/** A request for a slot; what is left open comes from the slot. */
export interface EditRequest {
  readonly wish: ImageRequest
  readonly image: SentPicture
  readonly mask: SentPicture | null
  /** `WxH` of the picture itself, brought within what images may have. */
  readonly ownSize: string
  /** How much is new, above 0 to 1; null leaves it to the provider. */
  readonly strength: number | null
}

const MAX_PICTURE_BYTES = 32 * 1024 * 1024
/** Decoded, a picture takes three bytes and more for each. */
const MAX_PICTURE_PIXELS = 64 * 1024 * 1024

const numbers = ['n', 'seed', 'steps', 'cfg', 'strength'] as const
const words = ['size', 'response_format', 'negative_prompt', 'prompt', 'stream'] as const

const strengthSchema = z.number().min(0.1).max(1).nullish()

/**
 * A wish as a request for a slot. Throws `image.prompt_required` for an edit without a prompt, and `validation.invalid`, which
 * names the field, for everything else that an image engine could not be asked. Pure.
 */
export function editRequest (asked: EditWish, verb: EditVerb): EditRequest {
  const { fields, images, model } = asked
  const body = parsedFields(fields)
  if (images.length > 1) throw wrongField(images[0]!.at === 'image' ? 'image' : 'images', `came ${images.length} times: an image slot takes one picture`)
  const image = picture(images[0]!)
  const mask = verb === 'variation' || asked.mask === null ? null : picture(asked.mask)
  if (verb === 'variation' && asked.mask !== null) throw wrongField('mask', 'is not supported for variations; POST /v1/images/edits takes one')
  if (mask !== null) {
    if (!mask.head.alpha) throw wrongField('mask', 'must be a PNG or WebP whose transparent parts mark what to repaint')
    if (mask.head.width !== image.head.width || mask.head.height !== image.head.height) {
      throw wrongField('mask', `is ${mask.head.width}x${mask.head.height} and the picture ${image.head.width}x${image.head.height}; both must be the same size`)
    }
  }
  return {
    wish: imageRequest({ ...body.wish, model }, verb === 'edit'),
    image: sent(image),
    mask: mask === null ? null : sent(mask),
    ownSize: ownSize(image.head),
    strength: body.strength
  }
}

interface ReadFields { readonly wish: ImageBody, readonly strength: number | null }

function parsedFields (fields: ReadonlyMap<string, string>): ReadFields {
  const given: Record<string, unknown> = {}
  for (const name of numbers) {
    const text = fields.get(name)?.trim() ?? ''
    if (text === '') continue
    if (!/^[+-]?\d{1,20}(\.\d{1,20})?$/.test(text)) throw wrongField(name, 'must be a number')
    given[name] = Number(text)
  }
  for (const name of words) {
    const text = fields.get(name)
    if (text !== undefined && text !== '') given[name] = text
  }
  if (given.stream !== undefined) given.stream = given.stream === 'true'
  if (given.stream === false) delete given.stream
  const { strength, ...others } = given
  const wish = imageBodySchema.safeParse(others)
  if (!wish.success) throw firstProblem(wish.error)
  const share = strengthSchema.safeParse(strength)
  if (!share.success) throw wrongField('strength', 'must be from 0.1 to 1')
  return { wish: wish.data, strength: share.data ?? null }
}

function firstProblem ({ issues: [first] }: z.ZodError): Error {
  return wrongField(first!.path.join('.'), first!.message)
}

interface ReadPicture { readonly bytes: Buffer, readonly head: PictureHead }

function picture ({ at: field, bytes }: GivenPicture): ReadPicture {
  if (bytes.length > MAX_PICTURE_BYTES) throw wrongField(field, `is larger than ${MAX_PICTURE_BYTES / 1024 / 1024} MiB`)
  const head = pictureHead(bytes)
  if (head === null) throw wrongField(field, 'must be a PNG, JPEG or WebP')
  if (head.moves) throw wrongField(field, 'is animated: send a single frame')
  if (head.width === 0 || head.height === 0 || head.width * head.height > MAX_PICTURE_PIXELS) {
    throw wrongField(field, `has ${head.width}x${head.height} pixels; at most ${MAX_PICTURE_PIXELS / 1024 / 1024} million are allowed`)
  }
  return { bytes, head }
}

function sent ({ bytes, head }: ReadPicture): SentPicture {
  return { format: head.format, base64: bytes.toString('base64') }
}

/** The form of the picture in a size that images may have: the longer side decides. */
function ownSize ({ width, height }: PictureHead): string {
  const scale = Math.min(1, 2048 / Math.max(width, height))
  return `${Math.round(width * scale)}x${Math.round(height * scale)}`
}
