import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** The largest block whose release glibc learns from (`DEFAULT_MMAP_THRESHOLD_MAX` of a 64-bit system). */
const LEARNT_BYTES = 32 * 2 ** 20
/** Blocks up to here change nothing (`DEFAULT_MMAP_THRESHOLD`). */
const SMALL_BYTES = 128 * 2 ** 10

/**
 * Reads files of which some are large, for strings and code that are made of them at once. Each thread's part of the C
 * library's heap keeps as much that is free as twice the largest block that was ever released: a few megabytes of sources
 * at the start cost a gateway tens of them for the rest of its life. A block above a limit teaches it nothing, and takes
 * no more memory than what is written to it.
 */
export class LargeFiles {
  #block: Buffer | null = null
  #keeps = true

  /** The content, which stands there until the next file is read. Throws as `openSync` and `readSync` do. */
  read (path: string): Buffer {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = this.#bytes(size)
      let end = 0
      for (let read = -1; read !== 0 && end < size; end += read) read = readSync(file, bytes, end, size - end, end)
      return bytes.subarray(0, end)
    } finally {
      closeSync(file)
    }
  }

  /** Keeps no memory between two files from now on. */
  release (): void {
    this.#keeps = false
    this.#block = null
  }

  #bytes (size: number): Buffer {
    if (size <= SMALL_BYTES || size > LEARNT_BYTES) return Buffer.allocUnsafeSlow(size)
    // V8 does not count shared memory as growth of the heap, which would be collected for it
    const block = this.#block ?? Buffer.from(new SharedArrayBuffer(LEARNT_BYTES + SMALL_BYTES))
    if (this.#keeps) this.#block = block
    return block
  }
}
