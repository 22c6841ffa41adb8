import { formParts, messageOf, type FormPart } from 'svc-gateway/plugin'
import { WireError } from './error.js'

export type { FormPart }

/** The parts of a `multipart/form-data` body. Throws the wire's 422 for another body. Pure. */
export function readForm (body: Buffer, headers: Readonly<Record<string, string>>): readonly FormPart[] {
  let parts: readonly FormPart[]
  try {
    parts = formParts(body, headers['content-type'])
  } catch (error) {
    throw malformed(messageOf(error))
  }
  if (parts.length === 0) throw malformed('the form has no part')
  return parts
}

function malformed (msg: string): WireError {
  return new WireError(422, [{ type: 'value_error', loc: ['body'], msg: `Value error, ${msg}`, input: null }])
}

/** The file of this name. Throws the wire's 422 where it is missing. */
export function fileOf (parts: readonly FormPart[], name: string): FormPart {
  const file = parts.find(part => part.name === name)
  if (file === undefined) throw new WireError(422, [{ type: 'missing', loc: ['body', name], msg: 'Field required', input: null }])
  return file
}
