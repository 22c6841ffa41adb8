import { WireError } from './error.js'

export interface FormPart {
  readonly name: string
  /** Null for a field that is no file. */
  readonly filename: string | null
  readonly type: string | null
  readonly bytes: Buffer
}

const BREAK = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** The parts of a `multipart/form-data` body. Throws the wire's 422 for another body. Pure. */
export function readForm (body: Buffer, headers: Readonly<Record<string, string>>): readonly FormPart[] {
  const type = headers['content-type'] ?? ''
  const boundary = /^multipart\/form-data\b.*;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type)
  if (boundary === null) throw malformed('Expected multipart/form-data with a boundary')
  const mark = Buffer.from(`--${boundary[1] ?? boundary[2]!}`)
  const parts: FormPart[] = []
  let at = body.indexOf(mark)
  if (at < 0) throw malformed('The body has no part')
  for (;;) {
    at += mark.length
    if (body.subarray(at, at + 2).toString() === '--') return parts
    const end = body.indexOf(Buffer.concat([BREAK, mark]), at)
    const head = body.indexOf(HEAD_END, at)
    if (end < 0 || head < 0 || head > end) throw malformed('A part of the body is cut off')
    parts.push(partOf(body.subarray(at, head).toString(), body.subarray(head + HEAD_END.length, end)))
    at = end + BREAK.length
  }
}

function partOf (head: string, bytes: Buffer): FormPart {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? ''
  const name = /;\s*name="([^"]*)"/i.exec(disposition)?.[1]
  if (name === undefined) throw malformed('A part of the body has no name')
  return {
    name,
    filename: /;\s*filename="([^"]*)"/i.exec(disposition)?.[1] ?? null,
    type: /^content-type:\s*([^\s;]+)/im.exec(head)?.[1]?.toLowerCase() ?? null,
    bytes
  }
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
