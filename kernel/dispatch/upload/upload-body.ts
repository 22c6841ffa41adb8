import { Readable } from 'node:stream'
import type { UploadBuffer } from './upload-buffer.js'

/** Bytes that stand in the place of others; offsets in the original body, the end exclusive. */
export interface Replacement {
  readonly start: number
  readonly end: number
  readonly bytes: Buffer
}

/** A body with one range replaced while it passes; every other byte stays as it is. */
export class RangeSplice {
  readonly #replacement: Replacement | null
  #offset = 0
  #inserted = false

  constructor (replacement: Replacement | null) {
    this.#replacement = replacement
  }

  /** The next piece as it goes out, in parts; none when it lies in what is replaced. */
  push (chunk: Buffer): Buffer[] {
    const from = this.#offset
    const to = this.#offset = from + chunk.length
    if (this.#replacement === null) return [chunk]
    const { start, end, bytes } = this.#replacement
    if (to <= start || (from >= end && this.#inserted)) return [chunk]
    const parts: Buffer[] = []
    if (from < start) parts.push(chunk.subarray(0, start - from))
    if (!this.#inserted) parts.push(bytes)
    this.#inserted = true
    if (to > end) parts.push(chunk.subarray(Math.max(end - from, 0)))
    return parts.filter(part => part.length > 0)
  }
}

/** What an engine reads of an upload. */
export class UploadBody extends Readable {
  readonly #buffer: UploadBuffer
  readonly #splice: RangeSplice

  constructor (buffer: UploadBuffer, replacement: Replacement | null) {
    super({ highWaterMark: 64 * 1024 })
    this.#buffer = buffer
    this.#splice = new RangeSplice(replacement)
    // a reader is told by the stream; without one an error must not end the process
    this.on('error', () => {})
  }

  override _read (): void {
    void this.#fill().catch((error: Error) => this.destroy(error))
  }

  async #fill (): Promise<void> {
    for (;;) {
      const chunk = await this.#buffer.read()
      if (this.destroyed) return
      if (chunk === null) {
        this.push(null)
        return
      }
      const parts = this.#splice.push(chunk)
      for (const part of parts) this.push(part)
      // the stream asks again for itself once something was pushed
      if (parts.length > 0) return
    }
  }
}
