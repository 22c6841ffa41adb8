import { formParts, svcError, type FormPart } from 'svc-gateway/plugin'

/** A form of `/v1/images/edits` or `/v1/images/variations`, as it came. */
export interface EditForm {
  readonly body: Buffer
  readonly contentType: string
  readonly model: string
  /** The part that names the model: the one thing that is changed on the way to an upstream. */
  readonly modelPart: FormPart
  readonly images: readonly FormPart[]
  readonly mask: FormPart | null
  /** Text fields; of several of one name the first counts. */
  readonly fields: ReadonlyMap<string, string>
}

/** Throws `request.missing_model`, `request.invalid_form`, and `validation.invalid` for a form without a picture. Pure. */
export function editForm (body: Buffer, contentType: string | undefined): EditForm {
  const parts = formParts(body, contentType)
  const modelPart = parts.find(({ name, filename }) => name === 'model' && filename === null)
  const model = modelPart?.bytes.toString('utf8').trim() ?? ''
  if (modelPart === undefined || model === '') {
    throw svcError('request.missing_model', '`model` is missing: name an image model such as sdxl-turbo', { param: 'model', details: { field: 'model' } })
  }
  const images = parts.filter(({ name, filename }) => filename !== null && (name === 'image' || name === 'image[]'))
  if (images.length === 0) throw wrongField('image', 'is missing: send the picture as a file')
  const fields = new Map<string, string>()
  for (const { name, filename, bytes } of parts) {
    if (filename === null && !fields.has(name)) fields.set(name, bytes.toString('utf8'))
  }
  const mask = parts.find(({ name, filename }) => name === 'mask' && filename !== null) ?? null
  return { body, contentType: contentType!, model, modelPart, images, mask, fields }
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
