import { open, stat, type FileHandle } from 'node:fs/promises'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { SerialQueue } from 'svc-gateway/plugin'

/** How one row ended, in the form that the files have. */
export interface RowResult {
  readonly line: number
  readonly customId: string
  /** Null where no answer came. */
  readonly response: { readonly status_code: number, readonly request_id: string, readonly body: unknown } | null
  readonly error: { readonly code: string, readonly message: string } | null
}

const PRIVATE = 0o600

/**
 * What the rows of a batch ended with: two files to which each is written once. The number of its line is part of its id, so that
 * after a crash it is known which rows are done; a line that was cut off is none.
 */
export class BatchResults {
  readonly #batch: string
  readonly #output: FileHandle
  readonly #errors: FileHandle
  readonly #line = new SerialQueue()
  readonly #done: Set<number>
  completed: number
  failed: number
  bytes: number

  private constructor (batch: string, output: Opened, errors: Opened) {
    this.#batch = batch
    this.#output = output.handle
    this.#errors = errors.handle
    this.#done = new Set([...output.lines, ...errors.lines])
    this.completed = output.lines.length
    this.failed = errors.lines.length
    this.bytes = output.bytes + errors.bytes
  }

  static async open (batch: string, outputPath: string, errorsPath: string): Promise<BatchResults> {
    const output = await openResults(outputPath)
    return new BatchResults(batch, output, await openResults(errorsPath).catch(async (error: unknown) => {
      await output.handle.close()
      throw error
    }))
  }

  has (line: number): boolean {
    return this.#done.has(line)
  }

  /** On the disk when it resolves; a row that has a result keeps it. */
  add (results: readonly RowResult[]): Promise<void> {
    return this.#line.run(async () => {
      const fresh = results.filter(({ line }) => !this.#done.has(line))
      const worked = fresh.filter(({ response }) => response !== null && response.status_code < 400)
      await this.#write(this.#output, worked)
      this.completed += worked.length
      const others = fresh.filter(result => !worked.includes(result))
      await this.#write(this.#errors, others)
      this.failed += others.length
    })
  }

  async #write (handle: FileHandle, results: readonly RowResult[]): Promise<void> {
    if (results.length === 0) return
    const lines = results.map(({ line, customId, response, error }) =>
      `${inOneLine(JSON.stringify({ id: rowId(this.#batch, line), custom_id: customId, response, error }))}\n`)
    const bytes = Buffer.from(lines.join(''))
    await handle.appendFile(bytes)
    await handle.datasync()
    for (const { line } of results) this.#done.add(line)
    this.bytes += bytes.length
  }

  async close (): Promise<void> {
    await this.#line.run(async () => {
      await this.#output.close()
      await this.#errors.close()
    })
  }
}

/** JSON without the characters that readers of lines take for the end of one besides the line feed. */
function inOneLine (json: string): string {
  return json.replace(/[\u0085\u2028\u2029]/g, end => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The id of a row, which engines see as that of its request. */
export function rowId (batch: string, line: number): string {
  return `batch_req_${batch.replace(/^batch_/, '')}_${line}`
}

interface Opened {
  readonly handle: FileHandle
  readonly lines: readonly number[]
  readonly bytes: number
}

async function openResults (path: string): Promise<Opened> {
  const lines: number[] = []
  let whole = 0
  if (await stat(path).then(() => true, () => false)) {
    for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      const line = lineOf(text)
      if (line === null) break
      lines.push(line)
      whole += Buffer.byteLength(text) + 1
    }
  }
  const handle = await open(path, 'a', PRIVATE)
  const { size } = await handle.stat()
  // the last line may lack its end alone: it is written anew then
  if (size < whole) {
    lines.pop()
    whole = await lastEnd(path, size)
  }
  if (size > whole) await handle.truncate(whole)
  return { handle, lines, bytes: whole }
}

async function lastEnd (path: string, size: number): Promise<number> {
  let end = 0
  let at = 0
  for await (const piece of createReadStream(path, { end: size - 1 })) {
    const last = (piece as Buffer).lastIndexOf(0x0a)
    if (last !== -1) end = at + last + 1
    at += (piece as Buffer).length
  }
  return end
}

/** Null for a line that was cut off. */
function lineOf (text: string): number | null {
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown }
    const number = /_(\d+)$/.exec(String(id))?.[1]
    return number === undefined ? null : Number(number)
  } catch {
    return null
  }
}
