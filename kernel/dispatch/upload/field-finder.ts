import { boundaryLine, disposition, headersEnd } from '../../contract/http/form.js'

const CR = 0x0d
const EMPTY = Buffer.alloc(0)
/** Spaces that may stand between a boundary and the end of its line. */
const LONGEST_PADDING = 256
const LONGEST_HEADERS = 16 * 1024

/** A field of a form: its text, and where that stands in the body; the end is exclusive. */
export interface FoundField {
  readonly value: string
  readonly start: number
  readonly end: number
}

export interface FieldFinderOptions {
  readonly boundary: string
  /** Name of the field; of several the first counts, and one with a file name is no field. */
  readonly name: string
  readonly longestValue: number
}

/**
 * Finds one field of a `multipart/form-data` body (RFC 7578, RFC 2046 5.1) while the body passes in pieces of any
 * size. Looks and copies nothing but the little that may be cut in two by the end of a piece; the rest of the body
 * can be as large as it likes. Takes lines that end with a bare line feed too: what to make of them is the engine's
 * to decide.
 */
export class FieldFinder {
  readonly #needle: Buffer
  readonly #options: FieldFinderOptions
  #state: 'body' | 'value' | 'headers' | 'done' = 'body'
  /** Bytes that were seen and not decided on. A line break stands in front of the body: it may start with a boundary. */
  #rest: Buffer = Buffer.from('\n')
  /** Offset of the first byte of `#rest` in the body. */
  #at = -1
  #field: FoundField | null = null
  #problem: string | null = null

  constructor (options: FieldFinderOptions) {
    this.#options = options
    this.#needle = Buffer.from(`\n--${options.boundary}`, 'latin1')
  }

  get field (): FoundField | null { return this.#field }
  /** Nothing more is looked for: the field was found, the form has ended, or it cannot be read. */
  get done (): boolean { return this.#state === 'done' }
  /** Why the form cannot be read, in words. */
  get problem (): string | null { return this.#problem }

  /** Whether a piece holds what a boundary begins with. */
  isIn (chunk: Buffer): boolean {
    return chunk.includes(this.#needle)
  }

  /** @param isIn what `isIn` says of the piece: finders of one form need not all look for it */
  push (chunk: Buffer, isIn = this.isIn(chunk)): void {
    if (this.#state === 'done') return
    if (this.#state === 'body' && !isIn && this.#passes(chunk)) return
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const used = this.#state === 'headers' ? this.#readHeaders(data) : this.#readBody(data)
      if (this.done) {
        this.#rest = EMPTY
        return
      }
      if (used === null) break
      this.#at += used
      data = data.subarray(used)
    }
    // a copy, so that a few bytes do not hold on to a whole piece
    this.#rest = Buffer.from(data)
  }

  /** The common case, without a copy of the piece: the seam in front of it holds no boundary either. */
  #passes (chunk: Buffer): boolean {
    const needle = this.#needle
    if (chunk.length < needle.length) return false
    const seam = Buffer.concat([this.#rest, chunk.subarray(0, needle.length - 1)])
    if (seam.includes(needle)) return false
    this.#at += this.#rest.length + chunk.length - (needle.length - 1)
    this.#rest = Buffer.from(chunk.subarray(chunk.length - (needle.length - 1)))
    return true
  }

  /** Reads up to the next boundary. Returns how much is decided, or null when more has to come. */
  #readBody (data: Buffer): number | null {
    const needle = this.#needle
    let from = 0
    for (;;) {
      const found = data.indexOf(needle, from)
      if (found === -1) return this.#waitForBoundary(data)
      const line = boundaryLine(data, found + needle.length)
      if (line === 'open') return this.#state === 'value' || found === 0 ? null : this.#skip(found)
      if (line === 'other') {
        from = found + 1
        continue
      }
      if (this.#state === 'value') this.#take(data, found)
      else if (line === 'last') this.#state = 'done'
      else this.#state = 'headers'
      return line === 'last' ? 0 : line
    }
  }

  /** What may be the beginning of a boundary is kept; a value is kept whole. */
  #waitForBoundary (data: Buffer): number | null {
    if (this.#state === 'value') {
      if (data.length <= this.#options.longestValue + this.#needle.length + LONGEST_PADDING) return null
      return this.#refuse(`the field '${this.#options.name}' is longer than ${this.#options.longestValue} bytes`)
    }
    return this.#skip(data.length - (this.#needle.length - 1))
  }

  #skip (bytes: number): number | null {
    return bytes > 0 ? bytes : null
  }

  #readHeaders (data: Buffer): number | null {
    const end = headersEnd(data)
    if (end === -1 ? data.length > LONGEST_HEADERS : end > LONGEST_HEADERS) {
      return this.#refuse(`the headers of a part are longer than ${LONGEST_HEADERS} bytes`)
    }
    if (end === -1) return null
    const { name, filename } = disposition(data.toString('utf8', 0, end))
    this.#state = name === this.#options.name && filename === null ? 'value' : 'body'
    return end
  }

  /** @param boundary offset of the line break in front of it */
  #take (data: Buffer, boundary: number): void {
    const end = boundary > 0 && data[boundary - 1] === CR ? boundary - 1 : boundary
    if (end > this.#options.longestValue) {
      this.#refuse(`the field '${this.#options.name}' is longer than ${this.#options.longestValue} bytes`)
      return
    }
    this.#field = { value: data.toString('utf8', 0, end), start: this.#at, end: this.#at + end }
    this.#state = 'done'
  }

  #refuse (problem: string): number {
    this.#problem = problem
    this.#state = 'done'
    return 0
  }
}
