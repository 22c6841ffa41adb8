import { open, rename, stat, truncate, type FileHandle } from 'node:fs/promises'
import { SerialQueue } from '../../async/serial-queue.js'
import { createLineSplitter } from '../../contract/text/line-splitter.js'

/** `output.log` is cut at this size and its end kept as `output.log.1`: about twice this for each engine. */
export const MAX_LOG_BYTES = 5 * 1024 * 1024
const BLOCK = 64 * 1024
/** So many looks pass at most without measuring output that stands still. */
const MOST_PASSED = 3

/** A place in the output: `generation` counts the cuts since the gateway started. */
export interface LogPosition {
  readonly generation: number
  readonly offset: number
}

/**
 * The output file of one engine. The child writes straight into it and outlives the gateway, so nothing can
 * rotate by rename: the content is copied and the file cut to nothing, which a writer in append mode does not
 * notice. What it writes between copy and cut (microseconds) is lost. Reads and cuts take turns.
 */
export class EngineLog {
  readonly #file: string
  readonly #kept: string
  readonly #maxBytes: number
  #generation = 0
  /** Offset in the generation before this one at which the kept file begins. */
  #keptFrom = 0
  readonly #turns = new SerialQueue()
  /** What the last look found, and how many pass until the next. */
  #measured = { size: -1, passed: 0, left: 0 }

  constructor (file: string, maxBytes: number = MAX_LOG_BYTES) {
    this.#file = file
    this.#kept = `${file}.1`
    this.#maxBytes = maxBytes
  }

  /** For the child's stdout and stderr, in append mode. The caller closes it. */
  openForChild (): Promise<FileHandle> {
    return open(this.#file, 'a', 0o600)
  }

  /** `bound` for a caller that comes every second: it is seldom done while nothing is written. */
  async look (): Promise<void> {
    if (this.#measured.left-- > 0) return
    const size = await this.bound()
    const stood = size === this.#measured.size && size <= this.#maxBytes
    const passed = stood ? Math.min(MOST_PASSED, this.#measured.passed * 2 + 1) : 0
    this.#measured = { size, passed, left: passed }
  }

  /** Cuts the file when it has grown too large. Tells its size before. */
  bound (): Promise<number> {
    return this.#turns.run(async () => {
      // one call, where opening it takes three
      const size = await sizeOf(this.#file)
      if (size > this.#maxBytes) await this.#cut(Math.max(0, size - this.#maxBytes))
      return size
    })
  }

  /** The last `count` lines, and where to read on. With `toRead` a last line without its end is left for that. */
  tail (count: number, toRead: boolean): Promise<{ lines: readonly string[], position: LogPosition }> {
    return this.#turns.run(async () => {
      const current = await withFile(this.#file, file => readEnd(file, count), { text: Buffer.alloc(0), size: 0 })
      const finished = toRead ? current.text.lastIndexOf(0x0A) + 1 : current.text.length
      const position = { generation: this.#generation, offset: current.size - (current.text.length - finished) }
      const lines = linesOf(current.text.subarray(0, finished))
      if (lines.length < count) {
        const older = await withFile(this.#kept, file => readEnd(file, count - lines.length), { text: Buffer.alloc(0), size: 0 })
        lines.unshift(...linesOf(older.text))
      }
      return { lines: count === 0 ? [] : lines.slice(-count), position }
    })
  }

  /** The next block from `position`; empty when there is nothing new. After a cut it first goes on in the kept file. */
  read (position: LogPosition): Promise<{ chunk: Buffer, next: LogPosition }> {
    return this.#turns.run(async () => {
      let { generation, offset } = position
      if (generation < this.#generation) {
        // a reader further behind than one cut goes on where the kept file begins: the rest is gone
        const from = generation === this.#generation - 1 ? Math.max(offset, this.#keptFrom) : this.#keptFrom
        const chunk = await readAt(this.#kept, from - this.#keptFrom)
        if (chunk.length > 0) return { chunk, next: { generation: this.#generation - 1, offset: from + chunk.length } }
        generation = this.#generation
        offset = 0
      }
      const chunk = await readAt(this.#file, offset)
      return { chunk, next: { generation, offset: offset + chunk.length } }
    })
  }

  async #cut (from: number): Promise<void> {
    const source = await open(this.#file, 'r')
    try {
      const target = await open(`${this.#kept}.tmp`, 'w', 0o600)
      try {
        const copied = await copyToEnd(source, target, from, this.#maxBytes)
        await rename(`${this.#kept}.tmp`, this.#kept)
        await copyToEnd(source, target, copied, this.#maxBytes) // what was written meanwhile
        await truncate(this.#file, 0)
      } finally {
        await target.close()
      }
    } finally {
      await source.close()
    }
    this.#keptFrom = from
    this.#generation += 1
  }
}

/** Copies from `offset` to the end of the source, at most `limit` bytes; returns the offset reached. */
async function copyToEnd (source: FileHandle, target: FileHandle, offset: number, limit: number): Promise<number> {
  const block = Buffer.alloc(BLOCK)
  const last = offset + limit
  while (offset < last) {
    const { bytesRead } = await source.read(block, 0, BLOCK, offset)
    if (bytesRead === 0) break
    await target.write(block, 0, bytesRead)
    offset += bytesRead
  }
  return offset
}

/** At least the last `count` lines and whatever follows them, or the whole file. */
async function readEnd (file: FileHandle, count: number): Promise<{ text: Buffer, size: number }> {
  const { size } = await file.stat()
  for (let want = BLOCK; ; want *= 4) {
    const length = Math.min(want, size)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    const text = buffer.subarray(0, bytesRead)
    if (length === size || countLineEnds(text) > count) return { text, size }
  }
}

function countLineEnds (text: Buffer): number {
  let count = 0
  for (let at = text.indexOf(0x0A); at >= 0; at = text.indexOf(0x0A, at + 1)) count += 1
  return count
}

function linesOf (text: Buffer): string[] {
  const splitter = createLineSplitter()
  return [...splitter.push(text), ...splitter.end()]
}

function readAt (path: string, offset: number): Promise<Buffer> {
  return withFile(path, async file => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, offset)
    return buffer.subarray(0, bytesRead)
  }, Buffer.alloc(0))
}

async function sizeOf (path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}

/** `absent` when there is no such file: nothing was written yet, or the engine was removed. */
async function withFile<T> (path: string, work: (file: FileHandle) => Promise<T>, absent: T): Promise<T> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return absent
    throw error
  }
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}
