import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, unlink, utimes, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue, type Clock } from 'svc-gateway/plugin'

export interface CacheLimits {
  readonly files: number
  readonly bytes: number
}

const NAME = /^[0-9a-f-]{8,40}$/

/** Whether a name can be one of ours at all; everything else never becomes a path. */
export function isImageName (name: string): boolean {
  return NAME.test(name)
}

/**
 * PNG files in one folder, as many and as large together as the limits say: the least recently used go first. The index
 * is in memory and is read from the folder at the start; what appears there later is found when it is asked for. A file is
 * there whole or not at all.
 */
export class ImageFolder {
  readonly #folder: string
  readonly #clock: Clock
  readonly #limits: CacheLimits
  /** Sizes by name, the least recently used first. */
  readonly #entries = new Map<string, number>()
  readonly #line = new SerialQueue()
  #bytes = 0

  constructor (folder: string, clock: Clock, limits: CacheLimits) {
    this.#folder = folder
    this.#clock = clock
    this.#limits = limits
  }

  get size (): { readonly files: number, readonly bytes: number } {
    return { files: this.#entries.size, bytes: this.#bytes }
  }

  /** Reads what is there, and clears up what a crash left half done or a smaller limit no longer allows. */
  load (): Promise<void> {
    return this.#line.run(async () => {
      await mkdir(this.#folder, { recursive: true })
      const found: Array<{ readonly name: string, readonly bytes: number, readonly usedAt: number }> = []
      for (const file of await readdir(this.#folder)) {
        const path = join(this.#folder, file)
        const name = file.replace(/\.png$/, '')
        if (file.endsWith('.tmp')) await unlink(path).catch(ignore)
        else if (file.endsWith('.png') && isImageName(name)) {
          const stats = await lstat(path).catch(() => null)
          if (stats?.isFile() === true) found.push({ name, bytes: stats.size, usedAt: stats.mtimeMs })
        }
      }
      for (const { name, bytes } of found.sort((a, b) => a.usedAt - b.usedAt)) this.#note(name, bytes)
      await this.#shrink(null)
    })
  }

  /** Name of the new image. Rejects with the file system's error, and leaves nothing behind then. */
  put (png: Buffer): Promise<string> {
    return this.#line.run(async () => {
      const name = randomUUID()
      const temp = join(this.#folder, `${name}.tmp`)
      try {
        await writeWhole(temp, png)
        await rename(temp, this.#path(name))
      } catch (error) {
        await unlink(temp).catch(ignore)
        throw error
      }
      this.#note(name, png.length)
      await this.#shrink(name)
      return name
    })
  }

  /** The open file, for the caller to close; null when there is none of this name. Counts as use. */
  async read (name: string): Promise<{ readonly file: FileHandle, readonly bytes: number } | null> {
    const bytes = isImageName(name) ? this.#entries.get(name) ?? await this.#find(name) : null
    if (bytes === null) return null
    try {
      // a link that was put there leads nowhere
      const file = await open(this.#path(name), constants.O_RDONLY | constants.O_NOFOLLOW)
      // to the end of the line, unless it was thrown out meanwhile
      if (this.#entries.delete(name)) this.#entries.set(name, bytes)
      // for the order after a restart
      const usedAtS = this.#clock.now() / 1000
      await utimes(this.#path(name), usedAtS, usedAtS).catch(ignore)
      return { file, bytes }
    } catch {
      // it was removed from the folder
      this.#forget(name)
      return null
    }
  }

  /** All of an image; null when there is none of this name. Counts as use. */
  async bytes (name: string): Promise<Buffer | null> {
    const found = await this.read(name)
    if (found === null) return null
    try {
      return await found.file.readFile()
    } finally {
      await found.file.close()
    }
  }

  /** Size of a file that was put there since the start; null when there is none. */
  async #find (name: string): Promise<number | null> {
    return await this.#line.run(async () => {
      const known = this.#entries.get(name)
      if (known !== undefined) return known
      const stats = await lstat(this.#path(name)).catch(() => null)
      if (stats?.isFile() !== true) return null
      this.#note(name, stats.size)
      await this.#shrink(name)
      return stats.size
    })
  }

  /** @param keep the newest stays, however large it is */
  async #shrink (keep: string | null): Promise<void> {
    if (this.#entries.size <= this.#limits.files && this.#bytes <= this.#limits.bytes) return
    for (const name of [...this.#entries.keys()].filter(name => name !== keep)) {
      if (this.#entries.size <= this.#limits.files && this.#bytes <= this.#limits.bytes) return
      this.#forget(name)
      await unlink(this.#path(name)).catch(ignore)
    }
  }

  #note (name: string, bytes: number): void {
    this.#entries.set(name, bytes)
    this.#bytes += bytes
  }

  #forget (name: string): void {
    this.#bytes -= this.#entries.get(name) ?? 0
    this.#entries.delete(name)
  }

  #path (name: string): string {
    return join(this.#folder, `${name}.png`)
  }
}

async function writeWhole (path: string, content: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o644)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

function ignore (): void {}
