import { randomUUID } from 'node:crypto'
import { formParts, svcError, type FormPart } from 'svc-gateway/plugin'

/** A picture of a request, and the field that it came in. */
export interface GivenPicture {
  readonly at: string
  readonly bytes: Buffer
}

/** What a request for `/v1/images/edits` or `/v1/images/variations` asks for. */
export interface EditWish {
  readonly model: string
  readonly images: readonly GivenPicture[]
  readonly mask: GivenPicture | null
  /** Text fields; of several of one name the first counts. */
  readonly fields: ReadonlyMap<string, string>
}

/** Such a request as a form, as it came. */
export interface EditForm extends EditWish {
  readonly body: Buffer
  readonly contentType: string
  /** The part that names the model: the one thing that is changed on the way to an upstream. */
  readonly modelPart: FormPart
}

/** Throws `request.missing_model`, `request.invalid_form`, and `validation.invalid` for a form without a picture. Pure. */
export function editForm (body: Buffer, contentType: string | undefined): EditForm {
  const parts = formParts(body, contentType)
  const modelPart = parts.find(({ name, filename }) => name === 'model' && filename === null)
  const model = modelPart?.bytes.toString('utf8').trim() ?? ''
  if (modelPart === undefined || model === '') throw missingModel()
  const images = parts.filter(({ name, filename }) => filename !== null && (name === 'image' || name === 'image[]')).map(pictureAt('image'))
  if (images.length === 0) throw wrongField('image', 'is missing: send the picture as a file')
  const fields = new Map<string, string>()
  for (const { name, filename, bytes } of parts) {
    if (filename === null && !fields.has(name)) fields.set(name, bytes.toString('utf8'))
  }
  const mask = parts.filter(({ name, filename }) => name === 'mask' && filename !== null).map(pictureAt('mask'))[0] ?? null
  return { body, contentType: contentType!, model, modelPart, images, mask, fields }
}

function pictureAt (at: string): (part: FormPart) => GivenPicture {
  return ({ bytes }) => ({ at, bytes })
}

export function missingModel (): Error {
  return svcError('request.missing_model', '`model` is missing: name an image model such as sdxl-turbo', { param: 'model', details: { field: 'model' } })
}

/** A wish as a form that asks for `model`, for an engine that takes nothing else. */
export function formOf ({ images, mask, fields }: EditWish, model: string): Pick<EditForm, 'body' | 'contentType'> {
  const boundary = `svc-${randomUUID()}`
  const head = (name: string, more = ''): Buffer => Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`)
  const end = Buffer.from('\r\n')
  const file = (name: string, { bytes }: GivenPicture): Buffer[] => [
    head(name, `; filename="${name.replace('[]', '')}"\r\nContent-Type: application/octet-stream`), bytes, end
  ]
  const texts = [...fields].filter(([name]) => /^[\w.-]{1,100}$/.test(name) && name !== 'model')
  const body = Buffer.concat([
    head('model'), Buffer.from(model), end,
    ...texts.flatMap(([name, value]) => [head(name), Buffer.from(value), end]),
    ...images.flatMap(picture => file(images.length === 1 ? 'image' : 'image[]', picture)),
    ...mask === null ? [] : file('mask', mask),
    Buffer.from(`--${boundary}--\r\n`)
  ])
  return { body, contentType: `multipart/form-data; boundary=${boundary}` }
}

/** The same form that asks for another model; every other byte stays. Pure. */
export function withModel ({ body, modelPart }: EditForm, model: string): Buffer {
  const start = modelPart.bytes.byteOffset - body.byteOffset
  return Buffer.concat([body.subarray(0, start), Buffer.from(model), body.subarray(start + modelPart.bytes.length)])
}

export function wrongField (field: string, problem: string): Error {
  const message = `${field} ${problem}`
  return svcError('validation.invalid', message, { param: field, details: { fields: [{ path: field, message }] } })
}
