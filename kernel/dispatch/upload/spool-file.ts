import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * A file that bytes go through in order. It has no name: it is taken out of its folder as soon as it is open, so
 * that it is gone with its holder, even a killed process.
 */
export class SpoolFile {
  readonly #handle: FileHandle
  #written = 0
  #read = 0

  private constructor (handle: FileHandle) {
    this.#handle = handle
  }

  static async open (folder: string): Promise<SpoolFile> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const path = join(folder, randomUUID())
    const handle = await open(path, 'wx+', 0o600)
    try {
      await unlink(path)
    } catch (error) {
      await handle.close()
      throw error
    }
    return new SpoolFile(handle)
  }

  /** Bytes that were written and not read. */
  get unread (): number { return this.#written - this.#read }

  /** One call at a time. */
  async append (chunks: readonly Buffer[]): Promise<void> {
    let rest = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    while (rest.length > 0) {
      const { bytesWritten } = await this.#handle.write(rest, 0, rest.length, this.#written)
      this.#written += bytesWritten
      rest = rest.subarray(bytesWritten)
    }
  }

  /** The next bytes, at most `longest`; at least one when there are unread ones. One call at a time. */
  async read (longest: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(longest, this.unread))
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#read)
    if (bytesRead === 0) throw new Error('the file is shorter than what was written to it')
    this.#read += bytesRead
    return buffer.subarray(0, bytesRead)
  }

  /** Gives the room on disk back. Everything must have been read, and nothing be on its way. */
  async rewind (): Promise<void> {
    this.#written = 0
    this.#read = 0
    await this.#handle.truncate(0)
  }

  async close (): Promise<void> {
    await this.#handle.close()
  }
}

/** Where uploads wait, below the state folder: `/tmp` may be memory. */
export function spoolFolder (stateDir: string): string {
  return join(stateDir, 'spool')
}

/** Removes what a gateway left that died between opening a file and taking its name away. */
export async function sweepSpool (folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names) await unlink(join(folder, name)).catch(() => {})
}
