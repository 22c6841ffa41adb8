import { invalidForm, notAForm } from './form-errors.js'

const LF = 0x0a
const CR = 0x0d
const DASH = 0x2d
/** Spaces that may stand between a boundary and the end of its line. */
const LONGEST_PADDING = 256
const LONGEST_HEADERS = 16 * 1024
const MOST_PARTS = 1000

/** A part of a `multipart/form-data` body. */
export interface FormPart {
  readonly name: string
  /** Null for a field that is no file. */
  readonly filename: string | null
  /** Content type in lower case without parameters; null where the part names none. */
  readonly type: string | null
  /** A view of the body. */
  readonly bytes: Buffer
}

/**
 * The parts of a form that is there as a whole, in order. Lines may end with a bare line feed. Throws
 * `request.unsupported_media_type` for a body that is no form, `request.invalid_form` for one that cannot be read or has more
 * than 1,000 parts. Pure.
 */
export function formParts (body: Buffer, contentType: string | undefined): readonly FormPart[] {
  const boundary = formBoundary(contentType ?? '')
  if (boundary === null) throw notAForm(contentType)
  const parts: FormPart[] = []
  const needle = Buffer.from(`\n--${boundary}`, 'latin1')
  const first = needle.subarray(1)
  // the body may start with a boundary
  let at = body.subarray(0, first.length).equals(first) ? boundaryLine(body, first.length) : nextBoundary(body, 0, needle).line
  for (;;) {
    if (at === 'last') return parts
    if (at === 'open' || at === 'other') throw invalidForm(parts.length === 0 ? 'it has no part' : 'it is truncated')
    if (parts.length === MOST_PARTS) throw invalidForm(`it has more than ${MOST_PARTS} parts`)
    const head = headersEnd(body, at)
    const next = nextBoundary(body, at, needle)
    if (head === -1 || next.line === 'open' || head > next.found + 1) throw invalidForm('a part is truncated')
    if (head - at > LONGEST_HEADERS) throw invalidForm(`the headers of a part are longer than ${LONGEST_HEADERS} bytes`)
    const headers = body.toString('utf8', at, head)
    const end = body[next.found - 1] === CR ? next.found - 1 : next.found
    const { name, filename } = disposition(headers)
    if (name === null) throw invalidForm('a part has no name')
    const type = /^content-type[ \t]*:[ \t]*([^\s;]+)/im.exec(headers)?.[1]?.toLowerCase() ?? null
    parts.push({ name, filename, type, bytes: body.subarray(head, Math.max(head, end)) })
    at = next.line
  }
}

/** The next line that is a boundary: where its line break stands, and what is behind it. */
function nextBoundary (body: Buffer, from: number, needle: Buffer): { readonly found: number, readonly line: BoundaryLine } {
  for (let at = Math.max(0, from - 1); ;) {
    const found = body.indexOf(needle, at)
    if (found === -1) return { found, line: 'open' }
    const line = boundaryLine(body, found + needle.length)
    if (line !== 'other') return { found, line }
    at = found + 1
  }
}

type BoundaryLine = number | 'last' | 'other' | 'open'

/**
 * What stands behind a boundary: offset behind its line; `last` for the one that ends the form, `other` when it is
 * only the beginning of another word, `open` when more has to come.
 */
export function boundaryLine (data: Buffer, at: number): BoundaryLine {
  if (data[at] === DASH) return data[at + 1] === DASH ? 'last' : at + 1 >= data.length ? 'open' : 'other'
  for (let pos = at; pos < data.length; pos++) {
    const byte = data[pos]
    if (byte === LF) return pos + 1
    if ((byte !== CR && byte !== 0x20 && byte !== 0x09) || pos - at > LONGEST_PADDING) return 'other'
  }
  return 'open'
}

/** Offset behind the empty line that ends the headers of the part that begins at `from`, or -1. */
export function headersEnd (data: Buffer, from = 0): number {
  for (let line = from; ;) {
    const end = data.indexOf(LF, line)
    if (end === -1) return -1
    if (end === line || (end === line + 1 && data[line] === CR)) return end + 1
    line = end + 1
  }
}

const parameter = /;\s*([^\s=;]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;\s]*))/g

/** The name of a part, and that of its file. Names of headers and parameters count in any case. */
export function disposition (headers: string): { readonly name: string | null, readonly filename: string | null } {
  const unfolded = headers.replace(/\r?\n[ \t]+/g, ' ')
  const line = /^content-disposition[ \t]*:(.*)$/im.exec(unfolded)?.[1] ?? ''
  let name: string | null = null
  let filename: string | null = null
  for (const [, key, quoted, plain] of line.matchAll(parameter)) {
    const lower = key!.toLowerCase()
    if (lower === 'name') name ??= quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
    else if (lower === 'filename' || lower === 'filename*') filename ??= quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
  }
  return { name, filename }
}

/** The boundary that a content type names; null when it is no `multipart/form-data` or names none. Pure. */
export function formBoundary (contentType: string): string | null {
  if (!/^\s*multipart\/form-data\s*(;|$)/i.test(contentType)) return null
  for (const [, key, quoted, plain] of contentType.matchAll(parameter)) {
    if (key!.toLowerCase() !== 'boundary') continue
    const boundary = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
    return boundary === '' || boundary.length > 200 ? null : boundary
  }
  return null
}

/** Fields as parts of a form, to stand behind the value of another one. Pure. */
export function fieldParts (contentType: string, fields: Readonly<Record<string, string>>): string {
  const mark = `\r\n--${formBoundary(contentType) ?? ''}\r\n`
  return Object.entries(fields).map(([name, value]) => `${mark}Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`).join('')
}
