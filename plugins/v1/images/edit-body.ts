import { requestObject, isObject, type Json } from '../over-chat/ref.js'
import { missingModel, wrongField, type EditWish, type GivenPicture } from './edit-form.js'

const MOST_IMAGES = 16
const DATA_URL = /^data:image\/[\w.+-]{1,40}(?:;[\w=.+-]{1,40}){0,8};base64,/i

/** A request for `/v1/images/edits` in JSON, whose pictures stand in it or are referred to. */
export interface EditBody {
  readonly model: string
  readonly asked: Json
  readonly images: readonly PictureRef[]
  readonly mask: PictureRef | null
  readonly fields: ReadonlyMap<string, string>
  /** A field that no form can have: an object or a list. Null where there is none. */
  readonly nested: string | null
}

interface PictureRef {
  readonly at: string
  readonly told: Json
  /** Null for a picture that is named by its file. */
  readonly url: string | null
}

/** Images that were made here, by the paths that their answers gave. */
interface MadeImages {
  get (path: string): Promise<Buffer | null>
}

/** Throws `request.invalid_json`, `request.missing_model`, and `validation.invalid`, which names the field. Pure. */
export function editBody (bytes: Buffer): EditBody {
  const asked = requestObject(bytes)
  const model = typeof asked.model === 'string' ? asked.model.trim() : ''
  if (model === '') throw missingModel()
  const { images, mask } = asked
  if (!Array.isArray(images) || images.length === 0) {
    throw wrongField('images', 'is missing: send a list of pictures, each as {"image_url": "data:image/png;base64,..."}')
  }
  if (images.length > MOST_IMAGES) throw wrongField('images', `has ${images.length} pictures; ${MOST_IMAGES} are allowed`)
  return {
    model,
    asked,
    images: images.map((image: unknown, i) => reference(image, `images.${i}`)),
    mask: mask == null ? null : reference(mask, 'mask'),
    ...fieldsOf(asked)
  }
}

function reference (told: unknown, at: string): PictureRef {
  if (!isObject(told)) throw wrongField(at, 'must be an object with image_url or file_id')
  const { image_url: url, file_id: file } = told
  if (typeof url === 'string' && file == null) return { at: `${at}.image_url`, told, url }
  if (typeof file === 'string' && url == null) return { at: `${at}.file_id`, told, url: null }
  throw wrongField(at, 'must have either image_url or file_id, as text')
}

/** As they stand in a form. */
function fieldsOf (asked: Json): Pick<EditBody, 'fields' | 'nested'> {
  const { extra_body: extra, images: _images, mask: _mask, ...others } = asked
  const given = Object.entries({ ...others, ...isObject(extra) ? extra : {} }).filter(([, value]) => value !== null)
  const nested = given.find(([, value]) => typeof value === 'object')?.[0] ?? null
  return { fields: new Map(given.map(([key, value]) => [key, String(value)])), nested }
}

/**
 * What an engine gets that takes forms. Throws `validation.invalid` for a picture that is not in the request and was not made
 * here, and for a field that no form can have.
 */
export async function picturesOf ({ model, images, mask, fields, nested }: EditBody, made: MadeImages): Promise<EditWish> {
  if (nested !== null) throw wrongField(nested, 'must be text, a number or a boolean: this engine takes forms')
  const pictures: GivenPicture[] = []
  for (const image of images) pictures.push(await picture(image, made))
  return { model, images: pictures, mask: mask === null ? null : await picture(mask, made), fields }
}

async function picture ({ at, url }: PictureRef, made: MadeImages): Promise<GivenPicture> {
  if (url === null) throw wrongField(at, 'names a file, but files here are for batches only: send the picture as a data URL')
  if (url.startsWith('/')) {
    const bytes = await made.get(url)
    if (bytes === null) throw wrongField(at, 'is not, or no longer, an image of this gateway: send the picture as a data URL')
    return { at, bytes }
  }
  const head = DATA_URL.exec(url)
  if (head === null) {
    throw wrongField(at, 'must be a data URL (data:image/png;base64,...) or the path of an image that this gateway made: remote images are not fetched')
  }
  return { at, bytes: Buffer.from(url.slice(head[0].length), 'base64') }
}

/** The request for an upstream, which cannot ask here for what was made here. */
export async function jsonForUpstream ({ asked, images, mask }: EditBody, model: string, made: MadeImages): Promise<Buffer> {
  const sent = async (ref: PictureRef): Promise<Json> => {
    if (ref.url?.startsWith('/') !== true) return ref.told
    const { bytes } = await picture(ref, made)
    return { ...ref.told, image_url: `data:image/png;base64,${bytes.toString('base64')}` }
  }
  const pictures: Json[] = []
  for (const image of images) pictures.push(await sent(image))
  return Buffer.from(JSON.stringify({ ...asked, model, images: pictures, ...mask === null ? {} : { mask: await sent(mask) } }))
}
