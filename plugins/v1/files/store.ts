import { randomBytes } from 'node:crypto'
import { copyFile, link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SerialQueue, type Clock, type Logger, type PluginTable } from 'svc-gateway/plugin'
import { filesError } from './errors.js'
import type { FileStore, MadeFile, StoredFile } from './ref.js'

export interface StoreLimits {
  readonly files: number
  readonly bytes: number
  /** What was made, which the others do not bound. */
  readonly madeBytes: number
}

export interface StoreDeps {
  readonly folder: string
  readonly table: PluginTable
  readonly clock: Clock
  readonly limits: StoreLimits
  readonly log: Logger
}

export interface NewFile {
  readonly filename: string
  readonly purpose: string
  readonly bytes: Buffer
  /** Seconds; null keeps it until it is deleted. */
  readonly expiresAfterS: number | null
}

const SWEEP_MS = 15 * 60_000
const PRIVATE = 0o600
/** What clients upload; everything else was made. */
const UPLOADED = 'batch'
/** Files that were made, of one purpose: the oldest give way. */
const MOST_MADE = 4000

/**
 * Files in one folder, named by their ids, and what is said of each in the plugin's table. A file is in the table when it is
 * whole on the disk; what is in the folder alone is cleared up at the start.
 */
export class Store implements FileStore {
  readonly #deps: StoreDeps
  /** Oldest first. */
  readonly #files = new Map<string, StoredFile>()
  readonly #line = new SerialQueue()
  #bytes = 0

  constructor (deps: StoreDeps) {
    this.#deps = deps
  }

  get size (): { readonly files: number, readonly bytes: number } {
    return { files: this.#files.size, bytes: this.#bytes }
  }

  /** Reads the table, clears up the folder, and looks for what has expired from then on. */
  async load (gone: AbortSignal): Promise<void> {
    const { folder, table } = this.#deps
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const rows = table.keys().map(id => table.get(id) as StoredFile)
    for (const row of rows.sort((a, b) => a.seq - b.seq)) {
      if (await stat(join(folder, row.id)).then(found => found.size === row.bytes, () => false)) this.#note(row)
      else table.delete(row.id)
    }
    for (const name of await readdir(folder)) if (!this.#files.has(name)) await this.#unlink(name)
    await this.#sweep()
    this.#sweepLater(gone)
  }

  /** Those that have not expired, oldest first. */
  list (): readonly StoredFile[] {
    return [...this.#files.values()].filter(file => !this.#isOver(file))
  }

  get (id: string): StoredFile {
    const file = this.#files.get(id)
    if (file !== undefined && !this.#isOver(file)) return file
    throw filesError('files.not_found', 'no file has this id; GET /v1/files lists all files', { param: 'file_id', details: { id } })
  }

  path ({ id }: StoredFile): string {
    return join(this.#deps.folder, id)
  }

  /** On the disk, and in the list, when it resolves. Rejects with `files.store_full`. */
  add ({ bytes, ...words }: NewFile): Promise<StoredFile> {
    return this.#line.run(async () => {
      await this.#sweep()
      this.#assertRoom(bytes.length)
      const id = `file-${randomBytes(12).toString('hex')}`
      const path = join(this.#deps.folder, id)
      try {
        const handle = await open(path, 'wx', PRIVATE)
        try {
          await handle.writeFile(bytes)
          await handle.sync()
        } finally {
          await handle.close()
        }
      } catch (error) {
        await this.#unlink(id)
        throw error
      }
      return this.#keep({ id, ...words, bytes: bytes.length })
    })
  }

  take (path: string, { id, ...words }: MadeFile): Promise<StoredFile> {
    return this.#line.run(async () => {
      const known = this.#files.get(id)
      if (known !== undefined) return known
      const { size } = await stat(path)
      await this.#makeRoom(words.purpose, size)
      // under both names until it is in the table: what is in the folder alone is cleared up at the start
      const own = join(this.#deps.folder, id)
      await this.#unlink(id) // what a failure left
      await link(path, own).catch(() => copyFile(path, own)) // where a second name is not to be had
      const file = this.#keep({ id, ...words, bytes: size })
      await unlink(path)
      return file
    })
  }

  remove (id: string): Promise<void> {
    return this.#line.run(async () => await this.#drop(this.get(id)))
  }

  /** For a file that was made: the oldest ones give way. */
  async #makeRoom (purpose: string, bytes: number): Promise<void> {
    const made = [...this.#files.values()].filter(file => file.purpose === purpose)
    let held = made.reduce((sum, file) => sum + file.bytes, bytes)
    let left = made.length
    for (const oldest of made) {
      if (left < MOST_MADE && held <= this.#deps.limits.madeBytes) return
      await this.#drop(oldest)
      held -= oldest.bytes
      left--
    }
  }

  #assertRoom (bytes: number): void {
    const { files, bytes: most } = this.#deps.limits
    const brought = [...this.#files.values()].filter(({ purpose }) => purpose === UPLOADED)
    const held = brought.reduce((sum, file) => sum + file.bytes, bytes)
    const full = brought.length >= files ? `${files} files` : held > most ? `${most} bytes of files` : null
    if (full === null) return
    throw filesError('files.store_full', `the limit of ${full} is reached: delete some with DELETE /v1/files/{id}, or raise the limits in [plugins.config.v1-files]`)
  }

  #keep ({ expiresAfterS, ...words }: MadeFile & { readonly bytes: number }): StoredFile {
    const now = Math.floor(this.#deps.clock.now() / 1000)
    const seq = ([...this.#files.values()].at(-1)?.seq ?? 0) + 1
    const file = { ...words, seq, created_at: now, expires_at: expiresAfterS === null ? null : now + expiresAfterS }
    this.#deps.table.set(file.id, file)
    this.#note(file)
    return file
  }

  #note (file: StoredFile): void {
    this.#files.set(file.id, file)
    this.#bytes += file.bytes
  }

  async #drop (file: StoredFile): Promise<void> {
    this.#deps.table.delete(file.id)
    this.#files.delete(file.id)
    this.#bytes -= file.bytes
    await this.#unlink(file.id)
  }

  #isOver ({ expires_at: end }: StoredFile): boolean {
    return end !== null && end * 1000 <= this.#deps.clock.now()
  }

  async #sweep (): Promise<void> {
    for (const file of [...this.#files.values()]) if (this.#isOver(file)) await this.#drop(file)
  }

  #sweepLater (gone: AbortSignal): void {
    if (gone.aborted) return
    const timer = this.#deps.clock.setTimer(SWEEP_MS, () => {
      gone.removeEventListener('abort', cancel)
      void this.#line.run(() => this.#sweep()).finally(() => this.#sweepLater(gone))
    })
    const cancel = (): void => timer.cancel()
    gone.addEventListener('abort', cancel, { once: true })
  }

  /** A file that cannot be removed stays until the next start, and counts no more. */
  async #unlink (name: string): Promise<void> {
    await unlink(join(this.#deps.folder, name)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#deps.log.warn({ file: name }, `a file cannot be removed: ${messageOf(error)}`)
    })
  }
}
