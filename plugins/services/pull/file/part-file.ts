import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readFile, rename, stat, unlink, writeFile, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'

/** What a part file will be when it is whole. Hashes in hex. */
export interface PartIdentity {
  readonly size: number
  readonly sha256: string | null
  readonly gitSha1: string | null
}

const sidecarSchema = z.looseObject({
  size: z.number(),
  sha256: z.string().nullable(),
  gitSha1: z.string().nullable(),
  etag: z.string().nullable(),
  boot: z.string(),
  synced: z.number()
})

/** Bytes between two times that the disk is asked to really hold what was written. */
const SYNC_EVERY = 64 * 1024 * 1024

const MOST_FOLDERS = 5

interface Known { readonly offset: number, readonly etag: string | null }

/**
 * A file on its way: `<key>.part` with `<key>.json` beside it, which says what it belongs to, how much of it the disk holds
 * for sure, and in which run of the machine. A process that is killed loses nothing, for what it wrote is with the kernel;
 * after the machine itself went down only what was synced counts.
 */
export class PartFile {
  readonly path: string
  readonly #sidecar: string
  readonly #identity: PartIdentity
  readonly #boot: string
  #file: FileHandle | null = null
  #offset: number
  #synced: number
  /** Of the server that sent the bytes so far. */
  etag: string | null

  private constructor (path: string, sidecar: string, identity: PartIdentity, boot: string, known: Known) {
    this.path = path
    this.#sidecar = sidecar
    this.#identity = identity
    this.#boot = boot
    this.#offset = known.offset
    this.#synced = known.offset
    this.etag = known.etag
  }

  /** Takes up what an earlier run left, if it is of the same file; else begins anew. */
  static async take (folder: string, key: string, identity: PartIdentity, boot: string): Promise<PartFile> {
    const path = join(folder, `${key}.part`)
    const sidecar = join(folder, `${key}.json`)
    const part = new PartFile(path, sidecar, identity, boot, await knownState(path, sidecar, identity, boot))
    part.#file = await openIn(folder, path)
    await part.#file.truncate(part.#offset)
    await part.#remember()
    return part
  }

  /** Where the next byte goes. */
  get offset (): number { return this.#offset }
  get isComplete (): boolean { return this.#offset === this.#identity.size }

  /** All of it, or it rejects with the error of the file system, and `offset` says how much. */
  async append (bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.#file!.write(bytes, at, bytes.length - at, this.#offset)
      at += bytesWritten
      this.#offset += bytesWritten
    }
    if (this.#offset - this.#synced >= SYNC_EVERY) await this.sync()
  }

  /** Remembers who sends the bytes from here on. */
  async sentBy (etag: string | null): Promise<void> {
    if (etag === this.etag) return
    this.etag = etag
    await this.#remember()
  }

  async restart (): Promise<void> {
    this.#offset = 0
    this.#synced = 0
    this.etag = null
    await this.#file!.truncate(0)
    await this.#remember()
  }

  async sync (): Promise<void> {
    await this.#file!.datasync()
    this.#synced = this.#offset
    await this.#remember()
  }

  /** Closes it and leaves it for a later run. */
  async close (): Promise<void> {
    const file = this.#file
    this.#file = null
    await file?.close().catch(() => undefined)
  }

  /** Temp file and rename: it is never seen half-written. Lost in a crash it only costs bytes. */
  async #remember (): Promise<void> {
    const { size, sha256, gitSha1 } = this.#identity
    // one name, so that what a kill leaves is overwritten; and never through a link that lies there
    const temp = `${this.#sidecar}.tmp`
    await unlink(temp).catch(() => undefined)
    await writeFile(temp, JSON.stringify({ size, sha256, gitSha1, etag: this.etag, boot: this.#boot, synced: this.#synced }), { flag: 'wx' })
    await rename(temp, this.#sidecar)
  }
}

/** Makes the folder as often as it takes: another gateway with the same store removes it when it finds it empty. */
async function openIn (folder: string, path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries++) {
    await mkdir(folder, { recursive: true })
    try {
      // a symbolic link in its place would have us write somewhere else
      return await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o644)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === MOST_FOLDERS) throw error
    }
  }
}

/** The name of a part file: the same for the same content on its way to the same place from the same home. */
export function partKey (home: string, dest: string, identity: PartIdentity): string {
  return createHash('sha256').update([home, dest, identity.size, identity.sha256 ?? '', identity.gitSha1 ?? ''].join('\0')).digest('hex').slice(0, 24)
}

/** Puts a complete part in its place, for good, also across a power failure. */
export async function placePart (folder: string, key: string, dest: string): Promise<void> {
  await mkdir(dirname(dest), { recursive: true })
  await rename(join(folder, `${key}.part`), dest)
  const handle = await open(dirname(dest), constants.O_RDONLY)
  try {
    await handle.sync().catch(() => undefined)
  } finally {
    await handle.close()
  }
  await unlink(join(folder, `${key}.json`)).catch(() => undefined)
}

export async function removePart (folder: string, key: string): Promise<void> {
  for (const extension of ['part', 'json', 'json.tmp']) await unlink(join(folder, `${key}.${extension}`)).catch(() => undefined)
}

/** Bytes of a part that can be gone on from, without opening it. */
export async function partBytes (folder: string, key: string, identity: PartIdentity, boot: string): Promise<number> {
  return (await knownState(join(folder, `${key}.part`), join(folder, `${key}.json`), identity, boot)).offset
}

/** The kernel's name of this run of the machine; empty where there is none, and then only synced bytes count. */
export async function bootId (): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim()
}

async function knownState (
  path: string, sidecar: string, identity: PartIdentity, boot: string
): Promise<Known> {
  const nothing = { offset: 0, etag: null }
  const stats = await stat(path).catch(() => null)
  const parsed = sidecarSchema.safeParse(await readFile(sidecar, 'utf8').then(text => JSON.parse(text) as unknown).catch(() => null))
  if (stats === null || !stats.isFile() || !parsed.success) return nothing
  const { size, sha256, gitSha1, etag, synced } = parsed.data
  if (size !== identity.size || sha256 !== identity.sha256 || gitSha1 !== identity.gitSha1) return nothing
  const certain = boot !== '' && parsed.data.boot === boot ? stats.size : Math.min(synced, stats.size)
  return { offset: Math.min(certain, size), etag }
}
