import { open, type FileHandle } from 'node:fs/promises'
import type { BatchEndpoint, InputProblem } from './record.js'

/** Where a line of the file stands, without its end. */
export interface InputLine {
  /** From 1, empty lines counted. */
  readonly line: number
  readonly start: number
  readonly bytes: number
}

/** One request of the file. */
export interface InputRow {
  readonly line: number
  readonly customId: string
  readonly body: Readonly<Record<string, unknown>>
}

const MOST_ROWS = 50_000
const LONGEST_ROW_BYTES = 16 * 1024 * 1024
const LONGEST_ID = 512
/** Problems that are told; a file that is no such file has one in every line. */
const MOST_PROBLEMS = 100
const PIECE_BYTES = 256 * 1024
const LF = 0x0a

/** A file of requests, one in a line, that is read line by line and never held as a whole. */
export class BatchInput {
  readonly #handle: FileHandle
  readonly lines: readonly InputLine[]

  private constructor (handle: FileHandle, lines: readonly InputLine[]) {
    this.#handle = handle
    this.lines = lines
  }

  /** Finds the lines. One too many is there, so that it can be seen. */
  static async open (path: string, signal: AbortSignal): Promise<BatchInput> {
    const handle = await open(path, 'r')
    try {
      return new BatchInput(handle, await linesOf(handle, signal))
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async read ({ start, bytes }: InputLine): Promise<string> {
    const buffer = Buffer.allocUnsafe(bytes)
    const { bytesRead } = await this.#handle.read(buffer, 0, bytes, start)
    return buffer.toString('utf8', 0, bytesRead).replace(/^\ufeff/, '')
  }

  /** What is wrong with the file, at most the first hundred; none for one that can be run. */
  async problems (endpoint: BatchEndpoint, signal: AbortSignal): Promise<readonly InputProblem[]> {
    if (this.lines.length === 0) return [{ code: 'empty_file', line: null, message: 'the file has no requests', param: null }]
    if (this.lines.length > MOST_ROWS) {
      return [{ code: 'too_many_tasks', line: null, message: `the file has more than ${MOST_ROWS} requests; split it`, param: null }]
    }
    const found: InputProblem[] = []
    const ids = new Map<string, number>()
    for (const line of this.lines) {
      signal.throwIfAborted()
      const row = line.bytes > LONGEST_ROW_BYTES
        ? problem(line.line, 'invalid_json_line', `is longer than ${LONGEST_ROW_BYTES} bytes`, null)
        : parseRow(await this.read(line), line.line, endpoint)
      if (!('customId' in row)) found.push(row)
      else if (ids.has(row.customId)) {
        found.push(problem(line.line, 'duplicate_custom_id', `has the same custom_id as line ${ids.get(row.customId)!}`, 'custom_id'))
      } else ids.set(row.customId, line.line)
      if (found.length === MOST_PROBLEMS) break
    }
    return found
  }

  async close (): Promise<void> {
    await this.#handle.close()
  }
}

async function linesOf (handle: FileHandle, signal: AbortSignal): Promise<InputLine[]> {
  const lines: InputLine[] = []
  const piece = Buffer.allocUnsafe(PIECE_BYTES)
  let number = 0
  let start = 0
  let isBlank = true
  const end = (at: number): void => {
    number++
    if (!isBlank) lines.push({ line: number, start, bytes: at - start })
    start = at + 1
    isBlank = true
  }
  for (let offset = 0; ;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, offset)
    for (let i = 0; i < bytesRead; i++) {
      const byte = piece[i]!
      if (byte === LF) end(offset + i)
      else if (isBlank && byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) isBlank = false
      if (lines.length > MOST_ROWS) return lines
    }
    offset += bytesRead
    if (bytesRead === 0) {
      end(offset)
      return lines
    }
  }
}

/** A line of the file, or what is wrong with it. Pure. */
export function parseRow (text: string, line: number, endpoint: BatchEndpoint): InputRow | InputProblem {
  let row: unknown
  try {
    row = JSON.parse(text)
  } catch {
    return problem(line, 'invalid_json_line', 'is not valid JSON', null)
  }
  if (!isObject(row)) return problem(line, 'invalid_json_line', 'is not a JSON object', null)
  const { custom_id: customId, method = 'POST', url, body } = row
  if (typeof customId !== 'string' || customId === '' || customId.length > LONGEST_ID) {
    return problem(line, 'missing_required_parameter', `needs a custom_id, a string of at most ${LONGEST_ID} characters`, 'custom_id')
  }
  if (method !== 'POST') return problem(line, 'invalid_method', 'has a method other than POST', 'method')
  if (url !== endpoint) return problem(line, 'invalid_url', `has a url other than the endpoint of the batch, ${endpoint}`, 'url')
  if (!isObject(body)) return problem(line, 'missing_required_parameter', 'needs a body, an object', 'body')
  return { line, customId, body }
}

function problem (line: number, code: string, message: string, param: string | null): InputProblem {
  return { code, line, message: `line ${line} ${message}`, param }
}

function isObject (value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
